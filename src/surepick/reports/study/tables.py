"""The numbers behind a picture, as a table."""

from __future__ import annotations

from collections.abc import Sequence

from surepick.core.arrays import record

MOST_ROWS = 300
SHORT = 60  # rows of a table that is printed


@record
class Row:
    """A row of a table.

    Args:
        cells: the first names the row.
        data: exact numbers, as data-* attributes.
    """

    cells: tuple[str, ...]
    data: dict[str, str]


@record
class Table:
    """A table that can be opened below a picture.

    Args:
        caption: what it holds.
        headers: one a column.
        rows: those that are shown.
        left_out: how many are not.
        numeric: positions of the columns that are numbers.
        printed: whether paper shows it, if it is short.
    """

    caption: str
    headers: tuple[str, ...]
    rows: tuple[Row, ...]
    left_out: int
    numeric: tuple[int, ...]
    printed: bool = True

    @property
    def short(self) -> bool:
        """Shown on paper: asked for, and of few enough rows."""
        return self.printed and len(self.rows) <= SHORT


def table(
    caption: str,
    headers: Sequence[str],
    rows: Sequence[Row],
    *,
    total: int | None = None,
    words: Sequence[int] = (0,),
    printed: bool = True,
) -> Table:
    """A table of the first few hundred of these rows.

    Args:
        total: how many there are, if `rows` are the first of them.
        words: positions of the columns that are no numbers.
        printed: whether paper shows it, if it is short.
    """
    kept = tuple(rows[:MOST_ROWS])
    numeric = tuple(place for place in range(len(headers)) if place not in words)
    return Table(caption, tuple(headers), kept, (len(rows) if total is None else total) - len(kept), numeric, printed)


def row(*cells: str, **data: object) -> Row:
    """A row; floats in `data` are written exactly."""
    exact = {name.replace("_", "-"): "" if value is None else _exact(value) for name, value in data.items()}
    return Row(tuple(cells), exact)


def _exact(value: object) -> str:
    return repr(value) if isinstance(value, float) else str(value)
