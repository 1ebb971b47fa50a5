"""A line of a verification: what was checked, whether it holds, and what was found."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that was checked.

    Args:
        what: what it is about.
        holds: whether it does.
        words: what was found.
    """

    what: str
    holds: bool
    words: str
