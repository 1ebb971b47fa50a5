"""How a name becomes a command of `surepick`."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CommandSpec:
    """A command. The entry point of another package in `surepick.commands` gives one; --help loads it, so its module
    imports nothing that takes time.

    Args:
        panel: the heading of --help under which it stands; one of surepick's own, or another.
        summary: one line: the first of the command's own help.
        path: "module:function" of a function whose parameters are options of Typer, or of a `typer.Typer`. It is loaded
            when the command is run. An exception of `surepick.errors` becomes one message and an exit code.
    """

    panel: str
    summary: str
    path: str
