"""The `surepick` command: its groups of commands, and how errors become exit codes.

Exit codes: 0 done, 1 storage or internal failure, 2 bad input, 3 not certified.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

import surepick
from surepick.cli import bench, demo, design, forecast, run, tune
from surepick.errors import NotConverged, StorageError, SurepickError

DONE, FAILURE, BAD_INPUT, NOT_CERTIFIED = 0, 1, 2, 3

app = typer.Typer(
    name="surepick",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Find the best of many candidates from noisy measurements, with a certificate, in as few as possible.",
    epilog="Exit codes: 0 done, 1 internal failure, 2 bad input, 3 not certified.",
)
app.command("demo")(demo.demo)
app.command("run")(run.run)
app.command("design")(design.design)
app.command("forecast")(forecast.forecast)
app.command("tune")(tune.tune)
app.add_typer(bench.bench, name="bench")


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
    pass


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
