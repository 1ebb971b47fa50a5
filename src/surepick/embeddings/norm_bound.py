"""Where a norm bound comes from: someone vouches for it, or measurements suggest it."""

from __future__ import annotations

from surepick.core.validation import check_size, positive_number
from surepick.errors import InvalidInput
from surepick.text import quoted

DECLARED, ESTIMATED = "declared", "estimated"
NORM_SOURCES = (DECLARED, ESTIMATED)
IN_SPACE = "the reward function can have in the kernel's space"
ESTIMATED_NORM = (
    "The norm bound was estimated from measurements, which bounds nothing: rewards that differ where none was "
    "measured, or by less than the noise, may have a larger norm."
)


def check_norm(norm_bound: float, norm_source: str, *, of: str) -> None:
    """Refuse a norm bound without meaning, or a source that says nothing about who vouches for it.

    Args:
        of: what it is the largest norm of, to complete "the largest norm that ...".

    Raises:
        InvalidInput: the bound is not positive and finite, or the source neither "declared" nor "estimated".
    """
    meaning = f"the largest norm that {of}. A value below the truth makes the certificate worthless."
    positive_number("norm_bound", norm_bound, meaning)
    check_size("norm_bound", norm_bound)
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
