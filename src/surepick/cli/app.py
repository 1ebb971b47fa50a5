"""The `surepick` command: its groups of commands, and how errors become exit codes.

Exit codes: 0 done, 1 storage or internal failure, 2 bad input, 3 not certified.
"""

from __future__ import annotations

import importlib
import sys
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperGroup

import surepick
from surepick.cli.notes import listen
from surepick.cli.output import BAD_INPUT, DONE, FAILURE
from surepick.errors import NotConverged, StorageError, SurepickError

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


class Commands(TyperGroup):
    """The commands, each loaded when it is asked for: `tell` does not wait for what `bench` needs."""

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
        typer.echo(f"surepick {surepick.__version__}")
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
    errors = Console(stderr=True, highlight=False, soft_wrap=True)
    try:
        app()
    except (StorageError, NotConverged) as error:
        errors.print(_message(error))
        sys.exit(FAILURE)
    except SurepickError as error:
        errors.print(_message(error))
        sys.exit(BAD_INPUT)


def _message(error: SurepickError) -> Text:
    return Text.assemble(("error: ", "bold red"), str(error))
