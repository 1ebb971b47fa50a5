"""Texts that a spreadsheet would take for formulas, made harmless in CSV files and read back as they were.

A cell that begins with = + - @ (also as wide letters), a tab, a carriage return or a line feed is computed where the
file is opened in a spreadsheet. Such a text is written with an apostrophe in front, by which spreadsheets know a text.
A text that already begins with apostrophes and one of these gets one more, so that no two texts are written alike. What
stands behind a semicolon, a tab, a bar or a line break begins a cell for spreadsheets that split there, and is treated
alike.
"""

from __future__ import annotations

import re

BEGINS = r"(?:^|(?<=[;|\t\r\n]))"  # of a cell, wherever a spreadsheet splits
FORMULA = r"(?='*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20])"
TO_ESCAPE, ESCAPED = re.compile(BEGINS + FORMULA), re.compile(f"{BEGINS}'{FORMULA}")


def escaped(text: str) -> str:
    """The text as a cell that no spreadsheet computes; `unescaped` gives it back."""
    return TO_ESCAPE.sub("'", text)


def unescaped(cell: str) -> str:
    """The text of a cell: apostrophes that could be those of `escaped` are taken away."""
    return ESCAPED.sub("", cell)
