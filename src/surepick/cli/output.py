"""Everything that a command prints goes through here: a terminal obeys control characters, and a name may hold some."""

from __future__ import annotations

import json
from typing import Any

import rich.text
import typer

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
