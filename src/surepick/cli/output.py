"""Everything that a command prints goes through here: a terminal obeys control characters, and a name may hold some."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import rich.text
import typer
from rich.console import Console

from surepick.text import printable

DONE, FAILURE, BAD_INPUT, NOT_CERTIFIED = 0, 1, 2, 3
INTERRUPTED = 130  # by Ctrl-C, as shells have it


class Text(rich.text.Text):
    """A line for a terminal. What a terminal would obey instead of showing it is written out: ESC, newlines, bells."""

    def __init__(self, text: str = "", style: Any = "", **more: Any) -> None:
        super().__init__(printable(text), style, **more)

    def append(self, text: Any, style: Any = None) -> Text:
        """Add a text, as `assemble` does with each of its parts."""
        super().append(printable(text) if isinstance(text, str) else text, style)
        return self


def say(line: str = "", *, err: bool = False) -> None:
    """One line on standard output, or on standard error."""
    typer.echo(printable(line), err=err)


def print_json(answer: dict[str, Any]) -> None:
    """One JSON object on standard output; what a terminal would obey stands in it as an escape of JSON."""
    lines = json.dumps(answer, indent=2, ensure_ascii=False, allow_nan=False).split("\n")
    typer.echo("\n".join(line if line.isprintable() else _escaped(line) for line in lines))


def _escaped(line: str) -> str:
    return "".join(one if one.isprintable() else json.dumps(one)[1:-1] for one in line)


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
        console.print(Text.assemble(("note: ", "bold"), sentence))
