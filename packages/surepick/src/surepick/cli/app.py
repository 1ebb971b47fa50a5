"""The `surepick` command: its groups of commands, and how errors become exit codes.

Exit codes: 0 done, 1 storage or internal failure, 2 bad input, 3 not certified, 130 interrupted.
"""

import importlib
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
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


PANELS = {  # name -> (module and function, the first line of the command's own help)
    "Try": {
        "demo": ("run:demo", "Find a seven among 60 real handwritten digits under heavy noise (no download)."),
        "run": (
            "run:run",
            "Rehearse on recorded measurements: which candidate is best, and what does it cost to know?",
        ),
        "design": (
            "forecast:design",
            "Compute where to measure to know every difference of two candidates equally well.",
        ),
        "forecast": ("forecast:forecast", "Forecast what a study will cost; compare policies and settings."),
        "tune": ("forecast:tune", "Choose a kernel's gamma and estimate the norm from a pilot."),
    },
    "Studies": {
        "create": ("create:create", "Start a study in a database: candidates, noise, and the goal."),
        "ask": ("measure:ask", "Show what to measure next."),
        "tell": ("measure:tell", "Report what was measured, in any order and in any part."),
        "run-study": ("run_study:run_study", "Ask, measure with a program, tell, until it is certified."),
        "status": ("studies:status", "Show what is in, what is out, and what the complete rounds say."),
        "recommend": ("studies:recommend", "Name the best candidate by the complete rounds."),
        "judge": ("studies:judge", "Judge what is in, without waiting for the rest of the round."),
        "release": ("studies:release", "End the leases of a worker, so that others can measure."),
        "abandon": ("studies:abandon", "Give up the missing measurements of the open round."),
        "add": (
            "studies:add",
            "From the next round on, measure some of the candidates that were declared to come later.",
        ),
        "shortlist": (
            "create:shortlist",
            "Start the study of a short list, once the study of a long list in files has found it.",
        ),
        "undo": ("measure:undo", "Take back results that were typed wrongly, while their round is open."),
        "correct": (
            "measure:correct",
            "Put what was read in the place of a result that was typed wrongly, after its round was closed.",
        ),
        "withdraw": ("studies:withdraw", "Go on without some candidates."),
        "close": ("studies:close", "End a study early."),
        "list": ("studies:list_studies", "List the studies of a database."),
        "migrate": ("studies:migrate", "Bring a database to the schema of this version; copy it first."),
    },
    "Share and check": {
        "certificate": ("certificate:certificate", "State the answer and the assumptions that it rests on."),
        "report": (
            "certificate:report",
            "Write a study as one page to pass on: answer, pictures, assumptions and log.",
        ),
        "read": ("certificate:read", "Say what the results show under assumptions that are named now."),
        "verify": ("certificate:verify", "Compute every number of a certificate again, from its measurements."),
        "export": ("certificate:export", "Write the results of the complete rounds to a table."),
    },
}
OURS = {
    name: CommandSpec(panel, summary, f"surepick.cli.commands.{place}")
    for panel, entries in PANELS.items()
    for name, (place, summary) in entries.items()
}
ORDER = ("Try", "Studies", "Team", "Share and check", "Experiments")  # of the panels of --help; others follow
NEGATIVE = ("correct",)  # commands with an argument that may be a negative number
ELSEWHERE = {"serve": "serve", "token": "serve", "bench": "bench"}  # commands of other packages -> the extra


def command_spec(name: str) -> CommandSpec | None:
    """The command of this name, ours or that of an installed package."""
    return OURS.get(name) or plugin(COMMANDS, name, CommandSpec)


def command_names() -> list[str]:
    """All commands, in the order of --help."""
    specs = {**OURS, **{name: _listed(name) for name in plugin_names(COMMANDS) if name not in OURS}}
    panels = dict.fromkeys((*ORDER, *(spec.panel for spec in specs.values())))
    return [name for panel in panels for name, spec in specs.items() if spec.panel == panel]


def _listed(name: str) -> CommandSpec:
    """The command of an installed package, as --help lists it: what is wrong with it, where something is."""
    try:
        found = command_spec(name)
    except InvalidInput as error:
        return CommandSpec("Not available", str(error), "")
    assert found is not None
    return found


def loaded(name: str, *, helps: bool = False) -> Any:
    """The command or the group of commands, with its options; only its own module is loaded."""
    spec = command_spec(name)
    assert spec is not None
    module, _, function = spec.path.partition(":")
    found = getattr(importlib.import_module(module), function)
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
        spec = OURS.get(cmd_name) or _listed(cmd_name)
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
    add_completion=False,
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
