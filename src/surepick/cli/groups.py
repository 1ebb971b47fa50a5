"""Groups of commands that know what somebody meant who mistyped the name of one."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

from surepick.text import did_you_mean, quoted


class Suggesting(TyperGroup):
    """A group of commands; one that it does not have is answered with the one that is meant."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        known = self.list_commands(ctx)
        if args and not args[0].startswith("-") and args[0] not in known:
            meant = did_you_mean(args[0], known)
            ctx.fail(f"No such command {quoted(args[0])}.{meant or f' {ctx.command_path} --help lists them.'}")
        return super().resolve_command(ctx, args)
