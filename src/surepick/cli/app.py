"""The `surepick` command: its groups of commands, and how errors become exit codes.

Exit codes: 0 done, 1 storage or internal failure, 2 bad input, 3 not certified, 130 interrupted.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from typer.core import TyperGroup

import surepick
from surepick.cli.output import BAD_INPUT, DONE, FAILURE, INTERRUPTED, Text, say
from surepick.errors import NotConverged, StorageError, SurepickError
from surepick.text import one_line

COMMANDS = {  # in the order of --help: the file and the function of each; a command loads its own file only
    "demo": ("demo", "demo"),
    "run": ("run", "run"),
    "design": ("design", "design"),
    "forecast": ("forecast", "forecast"),
    "tune": ("tune", "tune"),
    "create": ("studies", "create"),
    "ask": ("study_work", "ask"),
    "tell": ("study_work", "tell"),
    "status": ("study_answers", "status"),
    "recommend": ("study_answers", "recommend"),
    "certificate": ("study_answers", "certificate"),
    "report": ("report", "report"),
    "run-study": ("run_study", "run_study"),
    "verify": ("verify", "verify"),
    "release": ("study_work", "release"),
    "abandon": ("study_work", "abandon"),
    "close": ("study_work", "close"),
    "export": ("study_answers", "export"),
    "list": ("studies", "list_all"),
    "migrate": ("studies", "migrate"),
    "bench": ("bench", "bench"),
}


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
        module, function = COMMANDS[cmd_name]
        found = getattr(importlib.import_module(f"surepick.cli.{module}"), function)
        if isinstance(found, typer.Typer):
            group = typer.main.get_group(found)
            group.name = cmd_name
            return group
        alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        alone.command(cmd_name)(found)
        return typer.main.get_command(alone)


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
    pass


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
