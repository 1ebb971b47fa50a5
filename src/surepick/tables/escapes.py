"""Texts that a spreadsheet would take for formulas, made harmless in CSV files and read back as they were.

A cell that begins with = + - @ (also of full width), a tab or a line end is computed where the file is opened in a
spreadsheet. Such a text is written with an apostrophe in front, by which spreadsheets know a text. A text that already
begins with apostrophes and one of these gets one more, so that no two texts are written alike.
"""

from __future__ import annotations

import re

FORMULA = re.compile(r"'*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")


def escaped(text: str) -> str:
    """The text as a cell that no spreadsheet computes; `unescaped` gives it back."""
    return "'" + text if FORMULA.match(text) else text


def unescaped(cell: str) -> str:
    """The text of a cell: an apostrophe that could be one of `escaped` is taken away."""
    return cell[1:] if cell.startswith("'") and FORMULA.match(cell) else cell
