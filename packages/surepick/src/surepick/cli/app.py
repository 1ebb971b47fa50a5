"""The `surepick` command: its groups of commands, and how errors become exit codes.

Exit codes: 0 done, 1 storage or internal failure, 2 bad input, 3 not certified, 130 interrupted.
"""

import importlib
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.resources import files
from typing import Annotated, Any, NoReturn

import typer
from rich.markup import escape
from typer import Option
from typer.core import TyperCommand, TyperGroup

import surepick
from surepick.cli.options import with_groups, with_plugins
from surepick.cli.output import BAD_INPUT, DONE, FAILURE, INTERRUPTED, noted, say
from surepick.core.plugins import COMMANDS, CommandSpec, plugin, plugin_names
from surepick.errors import InvalidInput, NotConverged, StorageError, SurepickError
from surepick.text import did_you_mean, one_line, quoted

# --- Groups of commands that know what somebody meant who mistyped the name of one.


class Suggesting(TyperGroup):
    """A group of commands; one that it does not have is answered with the one that is meant."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        known = self.list_commands(ctx)
        if args and not args[0].startswith("-") and args[0] not in known:
            meant = did_you_mean(args[0], known)
            ctx.fail(f"No such command {quoted(args[0])}.{meant or f' {ctx.command_path} --help lists them.'}")
        return super().resolve_command(ctx, args)


EMOJI_CODE = re.compile(r":(\S+?)(?=:)")  # what rich may take for the name of a picture


PANELS = {  # panel of --help -> its commands, FILE:FUNCTION
    "Try": "run:demo analyze:analyze run:run forecast:design forecast:forecast forecast:tune policies:policies",
    "Studies": "confirm:confirm create:create measure:ask measure:tell run_study:run_study studies:status "
    "studies:recommend studies:interim studies:release studies:abandon studies:add create:shortlist measure:undo "
    "measure:correct studies:withdraw studies:close studies:list_studies studies:migrate mcp:mcp",
    "Share and check": "certificate:certificate certificate:report certificate:read certificate:verify "
    "certificate:export",
}
OURS = {
    place.partition(":")[2].removesuffix("_studies").replace("_", "-"): CommandSpec(panel, "", place)
    for panel, places in PANELS.items()
    for place in places.split()
}
SHORTER = {  # in --help than the first line of the command's own help
    "design": "Compute where to measure to know every difference of two candidates equally well.",
    "withdraw": "Go on without some candidates.",
}
ORDER = ("Try", "Studies", "Team", "Share and check", "Experiments")  # of the panels of --help; others follow
NEGATIVE = ("correct",)  # commands with an argument that may be a negative number
ELSEWHERE = {"serve": "serve", "token": "serve", "bench": "bench"}  # commands of other packages -> the extra


def command_spec(name: str) -> CommandSpec | None:
    """The command of this name, ours or that of an installed package."""
    return OURS.get(name) or plugin(COMMANDS, name, CommandSpec)


def command_names() -> list[str]:
    """All commands, in the order of --help."""
    specs = OURS | {name: _listed(name) for name in plugin_names(COMMANDS) if name not in OURS}
    panels = dict.fromkeys((*ORDER, *(spec.panel for spec in specs.values())))
    return [name for panel in panels for name, spec in specs.items() if spec.panel == panel]


def _listed(name: str) -> CommandSpec:
    """The command, as --help lists it; one of an installed package with what is wrong with it, where something is."""
    try:
        found = command_spec(name)
    except InvalidInput as error:
        return CommandSpec("Not available", str(error), "")
    assert found is not None
    return found if name not in OURS else replace(found, summary=SHORTER.get(name) or _first_line(found.path))


def _first_line(place: str) -> str:
    """The first line of the help of a command of ours, whose module is read and not loaded."""
    file, _, name = place.partition(":")
    source = files("surepick.cli").joinpath("commands", f"{file}.py").read_text("utf-8")
    found = re.search(rf'^def {name}\(.*? -> None:\n    """([^"\n]*)', source, re.DOTALL | re.MULTILINE)
    return found[1] if found else ""


def loaded(name: str, *, helps: bool = False) -> Any:
    """The command or the group of commands, with its options; only its own module is loaded."""
    spec = command_spec(name)
    assert spec is not None
    module, _, function = spec.path.rpartition(":")
    found = getattr(importlib.import_module(f"surepick.cli.commands.{module}" if name in OURS else module), function)
    if isinstance(found, typer.Typer):
        return _with_plain_help(typer.main.get_group(found), helps=helps)
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    alone.command(name, context_settings={"ignore_unknown_options": name in NEGATIVE})(with_groups(found))
    return _with_plain_help(typer.main.get_command(alone), helps=helps)


def _with_plain_help(command: Any, *, helps: bool) -> Any:
    """The command, and those of a group, with help that is printed as it is written."""
    for each in (command, *command.params):
        if getattr(each, "help", None):
            each.help = as_written(with_plugins(each.help) if helps else each.help)
    for below in getattr(command, "commands", {}).values():
        _with_plain_help(below, helps=helps)
    return command


def as_written(text: str) -> str:
    """Text that rich prints as it stands: help is read as markup, in which [a] is a style and :100: a picture."""
    return EMOJI_CODE.sub(r":[none]\1[/none]", escape(text))


@contextmanager
def _one_line_usage() -> Iterator[None]:
    """What Typer says about words that it does not understand quotes them: on one line, and not too long."""
    try:
        yield
    except Exception as error:
        said: Any = error  # Typer has its own copy of Click's errors, which are not for others to name
        if hasattr(said, "format_message") and isinstance(getattr(said, "message", None), str):
            said.message = one_line(said.message)
        raise


class Commands(Suggesting):
    """The commands. --help lists them by what stands in PANELS; the one that is run is loaded."""

    def make_context(self, *given: Any, **named: Any) -> Any:
        with _one_line_usage():
            return super().make_context(*given, **named)

    def invoke(self, ctx: Any) -> Any:
        with _one_line_usage(), noted():
            try:
                return super().invoke(ctx)
            except KeyboardInterrupt:  # Typer would end without a word
                _end("interrupted. What was stored stays; the same command goes on.", INTERRUPTED)

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 (the signature is Typer's)
        return command_names()

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        if cmd_name not in OURS and cmd_name not in plugin_names(COMMANDS):
            return None
        spec = _listed(cmd_name)
        return TyperCommand(cmd_name, help=as_written(spec.summary), rich_help_panel=spec.panel)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name = args[0] if args else ""
        if command_spec(name) is None:
            if name in ELSEWHERE:
                extra = ELSEWHERE[name]
                raise InvalidInput(
                    f'surepick {name} is in another package, which is absent: pip install "surepick[{extra}]".'
                )
            return super().resolve_command(ctx, args)
        return name, loaded(name, helps="--help" in args), args[1:]


app = typer.Typer(
    name="surepick",
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Find the best of many candidates from noisy measurements, with a certificate, in as few as possible.",
    epilog="Exit codes: 0 done, 1 internal failure, 2 bad input, 3 not certified.",
)


def _version(wanted: bool) -> None:
    if wanted:
        say(f"surepick {surepick.__version__}")
        raise typer.Exit(DONE)


@app.callback()
def _main(
    version: Annotated[
        bool, Option("--version", help="Show the version and exit.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line; every error that surepick raises on purpose becomes one message and an exit code."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy: more wait for each other, and round otherwise
    try:
        app()
    except (StorageError, NotConverged) as error:
        _end(str(error), FAILURE)
    except SurepickError as error:
        _end(str(error), BAD_INPUT)
    except BrokenPipeError:  # the reader of our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(FAILURE)
    except MemoryError:
        _end("this machine has not enough memory for that. Take fewer candidates or features.", FAILURE)
    except RecursionError:
        _end("something in the input is nested too deeply to be read. See that it is the file that you meant.", FAILURE)


def _end(sentence: str, code: int) -> NoReturn:
    say(("error: ", "bold red"), sentence, err=True)
    sys.exit(code)
