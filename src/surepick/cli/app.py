"""The `surepick` command: its groups of commands, and how errors become exit codes.

Exit codes: 0 done, 1 storage or internal failure, 2 bad input, 3 not certified, 130 interrupted.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.markup import escape
from typer.core import TyperGroup

import surepick
from surepick.cli.notes import listen
from surepick.cli.output import BAD_INPUT, DONE, FAILURE, INTERRUPTED, Text, say
from surepick.errors import NotConverged, StorageError, SurepickError
from surepick.text import one_line

EMOJI_CODE = re.compile(r":(\S+?)(?=:)")  # what rich may take for the name of a picture
PANELS = {  # in the order of --help: the file and the function of each command; a command loads its own file only
    "Try": {
        "demo": ("demo", "demo"),
        "run": ("run", "run"),
        "design": ("design", "design"),
        "forecast": ("forecast", "forecast"),
        "tune": ("tune", "tune"),
    },
    "Studies": {
        "create": ("studies", "create"),
        "ask": ("study_work", "ask"),
        "tell": ("study_work", "tell"),
        "run-study": ("run_study", "run_study"),
        "status": ("study_answers", "status"),
        "recommend": ("study_answers", "recommend"),
        "release": ("study_work", "release"),
        "abandon": ("study_work", "abandon"),
        "close": ("study_work", "close"),
        "list": ("studies", "list_all"),
        "migrate": ("studies", "migrate"),
    },
    "Share and check": {
        "certificate": ("study_answers", "certificate"),
        "report": ("report", "report"),
        "verify": ("verify", "verify"),
        "export": ("study_answers", "export"),
    },
    "Experiments": {
        "bench": ("surepick.bench.cli.commands", "bench"),
    },
}
COMMANDS = {  # name -> (module, function)
    name: (module if "." in module else f"surepick.cli.commands.{module}", function)
    for places in PANELS.values()
    for name, (module, function) in places.items()
}
PANEL_OF = {name: panel for panel, places in PANELS.items() for name in places}


def with_plain_help(command: Any) -> Any:
    """The command, and those of a group, with help that is printed as it is written."""
    command.help = None if command.help is None else as_written(command.help)
    for parameter in command.params:
        if getattr(parameter, "help", None):
            parameter.help = as_written(parameter.help)
    for below in getattr(command, "commands", {}).values():
        with_plain_help(below)
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


class Commands(TyperGroup):
    """The commands, each loaded when it is asked for: `tell` does not wait for what `bench` needs."""

    def make_context(self, *given: Any, **named: Any) -> Any:
        with _one_line_usage():
            return super().make_context(*given, **named)

    def invoke(self, ctx: Any) -> Any:
        with _one_line_usage():
            try:
                return super().invoke(ctx)
            except KeyboardInterrupt:  # Typer would end without a word
                _end("interrupted. What was stored stays; the same command goes on.", INTERRUPTED)

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 (the signature is Typer's)
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        panel, (module, function) = PANEL_OF[cmd_name], COMMANDS[cmd_name]
        found = getattr(importlib.import_module(module), function)
        if isinstance(found, typer.Typer):
            group = typer.main.get_group(found)
            group.name, group.rich_help_panel = cmd_name, panel
            return with_plain_help(group)
        alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        alone.command(cmd_name, rich_help_panel=panel)(found)
        return with_plain_help(typer.main.get_command(alone))


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
        bool, typer.Option("--version", help="Show the version and exit.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    if not version:
        listen()


def main() -> None:
    """Run the command line; every error that surepick raises on purpose becomes one message and an exit code."""
    try:
        app()
    except (StorageError, NotConverged) as error:
        _end(str(error), FAILURE)
    except SurepickError as error:
        _end(str(error), BAD_INPUT)
    except BrokenPipeError:  # whoever read our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(FAILURE)
    except MemoryError:
        _end("this machine has not enough memory for that. Take fewer candidates or features.", FAILURE)
    except RecursionError:
        _end("something in the input is nested too deeply to be read. See that it is the file that you meant.", FAILURE)


def _end(sentence: str, code: int) -> NoReturn:
    errors = Console(stderr=True, highlight=False, soft_wrap=True)
    errors.print(Text.assemble(("error: ", "bold red"), sentence))
    sys.exit(code)
