"""Texts from outside made safe to show: a name, a file or a table may hold any character."""

from __future__ import annotations


def printable(text: str) -> str:
    """The text on one line, with control characters and halves of characters written out as escapes."""
    whole = text.encode("utf-8", "backslashreplace").decode()
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in whole)
