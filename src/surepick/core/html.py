"""Records as small HTML tables for notebooks: no script, and no colour, so they read on light and dark pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import islice
from numbers import Integral, Real

from surepick.text import LONGEST, printable, shortened

MOST_ROWS = 10
LEFT, RIGHT = ' style="text-align:left"', ' style="text-align:right"'


def html_table(
    head: Sequence[object],
    rows: Iterable[Sequence[object]],
    caption: object = "",
    *,
    total: int | None = None,
    most: int = MOST_ROWS,
) -> str:
    """A table of the first rows, and how many more there are.

    Args:
        head: names of the columns; empty: the table has no header.
        rows: cells of each row. Numbers stand on the right, floats with four digits; None is an empty cell. Of a long
            iterable we take no more than we show.
        caption: what stands above the table.
        total: rows there are in all, where `rows` is only their beginning; None: we count `rows`.
        most: rows that are shown.

    Returns:
        One `<table>` element. Every text in it is escaped, on one line and at most 500 characters long.
    """
    given = iter(rows)
    shown = [list(row) for row in islice(given, most)]
    left = (sum(1 for _ in given) if total is None else total - len(shown)) if len(shown) == most else 0
    body = ["<tr>" + "".join(map(_cell, row)) + "</tr>" for row in shown]
    if left > 0:
        width = len(head) or max(map(len, shown), default=1)
        body.append(f'<tr><td colspan="{width}"{LEFT}>... and {left:,} more</td></tr>')
    top = f'<caption style="caption-side:top;text-align:left">{_text(caption)}</caption>' if caption else ""
    names = "".join(f"<th{LEFT}>{_text(name)}</th>" for name in head)
    return f"<table>{top}{f'<thead><tr>{names}</tr></thead>' if head else ''}<tbody>{''.join(body)}</tbody></table>"


def _cell(value: object) -> str:
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    return f"<td{RIGHT if is_number else LEFT}>{_text(value)}</td>"


def _text(value: object) -> str:
    if isinstance(value, Real) and not isinstance(value, bool):
        return f"{value:,}" if isinstance(value, Integral) else f"{float(value):.4g}"
    return "" if value is None else escape(shortened(printable(str(value)), LONGEST))
