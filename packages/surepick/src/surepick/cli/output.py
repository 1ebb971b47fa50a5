"""Everything that a command prints goes through here: a terminal obeys control characters, and a name may hold some."""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import rich.text
import typer
from rich.console import Console

from surepick.text import printable

LOG = logging.getLogger("surepick")  # as in `core.arms`, which loads numpy
DONE, FAILURE, BAD_INPUT, NOT_CERTIFIED = 0, 1, 2, 3
INTERRUPTED = 130  # by Ctrl-C, as shells have it
WIDEST = 10_000  # columns of a table
AGAIN = 2.0  # a longer wait is worth a second note if it is so many times as long


class Text(rich.text.Text):
    """A line for a terminal. What a terminal would obey instead of showing it is written out: ESC, newlines, bells."""

    def __init__(self, text: str = "", style: Any = "", **more: Any) -> None:
        super().__init__(printable(text), style, **more)

    def append(self, text: Any, style: Any = None) -> Text:
        """Add a text, as `assemble` does with each of its parts."""
        super().append(printable(text) if isinstance(text, str) else text, style)
        return self


def say(*parts: str | tuple[str, str], err: bool = False) -> None:
    """One line on standard output, or on standard error: texts, some with a style of rich."""
    Console(stderr=err, highlight=False, soft_wrap=True).print(Text.assemble(*parts))


def terminal_width() -> int:
    """Columns of standard output."""
    return Console().width


def note(*sentences: str) -> None:
    """Sentences on standard error."""
    for sentence in sentences:
        say(("note: ", "bold yellow"), sentence, err=True)


def print_table(
    headers: Sequence[str],
    rows: Iterable[Sequence[str | rich.text.Text]],
    *,
    left: Sequence[str] = (),
    fold: str = "",
    title: str | None = None,
) -> None:
    """A table on standard output. Without a column to fold it is never cut: a name that is cut cannot be typed."""
    from rich import box  # noqa: PLC0415 (`--help` prints no table)
    from rich.table import Table  # noqa: PLC0415

    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for header in headers:
        side: Any = "left" if header in left else "right"
        table.add_column(header, justify=side, no_wrap=header != fold, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
    console = Console(highlight=False)
    if not fold:
        console.width = max(console.width, console.measure(table, options=console.options.update_width(WIDEST)).maximum)
    console.print(table)


def print_json(answer: dict[str, Any]) -> None:
    """One JSON object on standard output; what a terminal would obey stands in it as an escape of JSON."""
    from surepick.core.records import encode  # noqa: PLC0415 (numpy: `--help` needs none)

    lines = json.dumps(encode(answer), indent=2, ensure_ascii=False, allow_nan=False).split("\n")
    typer.echo("\n".join(line if line.isprintable() else _escaped(line) for line in lines))


def print_either(output: str, answer: dict[str, Any], *lines: str) -> None:
    """The answer as JSON, or as lines of text."""
    if output == "json":
        print_json(answer)
    else:
        for line in lines:
            say(line)


def picked(record: object, *names: str) -> dict[str, Any]:
    """Some fields of a record, for JSON."""
    return {name: getattr(record, name) for name in names}


def known(record: object, *names: str) -> list[str]:
    """Those of these fields that are not None: what is said of money, which most studies have not."""
    return [name for name in names if getattr(record, name) is not None]


def _escaped(line: str) -> str:
    return "".join(one if one.isprintable() else json.dumps(one)[1:-1] for one in line)


def end_by(verdict: str) -> None:
    """Exit code 3 unless the verdict is "certified"."""
    if verdict != "certified":
        raise typer.Exit(NOT_CERTIFIED)


class _Announcements(logging.Handler):
    """Prints what the library announces; of the many designs of a study the first, and those that take much longer."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self._said = 0.0

    def emit(self, record: logging.LogRecord) -> None:
        seconds = float(getattr(record, "seconds", 0.0))
        if seconds >= AGAIN * self._said:
            self._said = max(self._said, seconds)
            note(record.getMessage())


@contextmanager
def noted() -> Iterator[None]:
    """What the library announces and warns of, as notes on standard error, each when it comes."""
    announcements, usual = _Announcements(), LOG.level
    LOG.addHandler(announcements)
    LOG.setLevel(logging.INFO)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", UserWarning)
            said: set[str] = set()

            def show(message: Warning | str, *_: Any) -> None:
                if str(message) not in said:  # once, however many policies are compared
                    said.add(str(message))
                    note(str(message))

            warnings.showwarning = show  # type: ignore[assignment]
            yield
    finally:
        LOG.removeHandler(announcements)
        LOG.setLevel(usual)
