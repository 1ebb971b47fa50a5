"""How a table is read: the options of every command that reads one, declared once."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer

from surepick.cli.output import noted
from surepick.tables.reading import ReadOptions
from surepick.tables.table import TableWarning

READING = "reading"  # the parameter of a command that gets all of them
SheetOption = Annotated[
    str | None, typer.Option("--sheet", help="The sheet of an .xlsx or .ods file; none: the first.")
]
PercentOption = Annotated[bool, typer.Option("--percent", help="Cells like 1.3% are the number 0.013.")]
DropMissingOption = Annotated[
    bool, typer.Option("--drop-missing", help="Leave out rows that miss a cell which is used, and say how many.")
]
OPTIONS: dict[str, tuple[Any, Any]] = {
    "sheet": (SheetOption, None),
    "percent": (PercentOption, False),
    "drop_missing": (DropMissingOption, False),
}


def reads_tables(command: Callable[..., None]) -> Callable[..., None]:
    """A command that reads a table, with the options that say how.

    Args:
        command: it has a parameter `reading`, in which it gets what was given, to be passed on to whatever reads.

    Returns:
        The command with --sheet, --percent and --drop-missing where it has `reading`. What the library has to say of
        the table is shown as notes.
    """
    signature = inspect.signature(command, eval_str=True)
    parameters: list[inspect.Parameter] = []
    for parameter in signature.parameters.values():
        if parameter.name == READING:
            parameters += [
                inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=usual, annotation=annotation)
                for name, (annotation, usual) in OPTIONS.items()
            ]
        else:
            parameters.append(parameter)

    @wraps(command)
    def with_options(**given: Any) -> None:
        reading = {name: given.pop(name) for name in OPTIONS}
        with noted(TableWarning):
            command(**given, **{READING: reading})

    vars(with_options)["__signature__"] = signature.replace(parameters=parameters)
    return with_options


def given_options(reading: ReadOptions) -> dict[str, Any]:
    """The options that were given, as they are written on a command line: --sheet with its value, flags with True."""
    return {f"--{name.replace('_', '-')}": value for name, value in reading.items() if value}
