"""Where a norm bound comes from: someone vouches for it, or measurements suggest it."""

from __future__ import annotations

from surepick.errors import InvalidInput
from surepick.text import quoted

DECLARED, ESTIMATED = "declared", "estimated"
NORM_SOURCES = (DECLARED, ESTIMATED)
ESTIMATED_NORM = (
    "The norm bound was estimated from measurements, which bounds nothing: rewards that differ where none was "
    "measured, or by less than the noise, may have a larger norm."
)


def check_norm_source(norm_source: str) -> None:
    """Refuse a source that says nothing about who vouches for the bound.

    Raises:
        InvalidInput: it is neither "declared" nor "estimated".
    """
    if norm_source not in NORM_SOURCES:
        raise InvalidInput(
            f"norm_source is {quoted(norm_source)}; choose 'declared' if someone vouches for norm_bound, or "
            "'estimated' if measurements suggest it: an answer that uses it is then heuristic."
        )


def unproved_norm(norm_source: str) -> str:
    """Why no theorem holds with a norm bound from there, "" if one does."""
    return ESTIMATED_NORM if norm_source == ESTIMATED else ""


def norm_in_words(norm_bound: float, norm_source: str) -> str:
    """The norm bound as an assumption names it."""
    return f"{norm_bound:g} (estimated from measurements)" if norm_source == ESTIMATED else f"{norm_bound:g}"
