"""JSON answers on standard output, notes on standard error, and the exit codes of all commands."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console
from rich.text import Text

from surepick.text import printable

DONE, FAILURE, BAD_INPUT, NOT_CERTIFIED = 0, 1, 2, 3


def print_json(answer: dict[str, Any]) -> None:
    """One JSON object on standard output."""
    typer.echo(json.dumps(answer, indent=2, ensure_ascii=False, allow_nan=False))


@contextmanager
def noted(kind: type[Warning] = UserWarning) -> Iterator[None]:
    """Warnings of the library as notes on standard error, each when it comes."""
    with warnings.catch_warnings():
        usual = warnings.showwarning
        warnings.simplefilter("always", kind)

        def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
            if issubclass(category, kind):
                note(str(message))
            else:
                usual(message, category, *where, **more)

        warnings.showwarning = show
        yield


def note(*sentences: str) -> None:
    """Sentences on standard error."""
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    for sentence in sentences:
        console.print(Text.assemble(("note: ", "bold"), printable(sentence)))
