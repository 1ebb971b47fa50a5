"""Numbers and sentences of a study report, for readers who know no statistics of this kind."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from fractions import Fraction

from surepick.studies.progress import times

MINUS = "\N{MINUS SIGN}"
FIELD_WORDS = {"arm": "candidate", "arms": "candidates", "pull": "measurement", "pulls": "measurements"}
VERDICTS = {  # verdict -> (symbol, what it is called, what it means in one sentence)
    "certified": (
        "\N{CHECK MARK}",
        "certified",
        "The answer is proved, as far as the assumptions below hold.",
    ),
    "heuristic": (
        "\N{ALMOST EQUAL TO}",
        "a good guess, not proved",
        "The study is over, but something that the answer rests on is not backed by a proof.",
    ),
    "not-yet": (
        "\N{HORIZONTAL ELLIPSIS}",
        "not certified yet",
        "What was measured so far does not suffice for a promise.",
    ),
    "budget-exhausted": (
        "\N{HORIZONTAL ELLIPSIS}",
        "not certified, the budget is spent",
        "The measurements that were allowed are spent, and they do not suffice for a promise.",
    ),
}


def number(value: float | None, digits: int = 4) -> str:
    """A number as people write it: "1,204", "0.153", "\N{MINUS SIGN}2.5", "3.1e-07"; "unknown" for None."""
    if value is None:
        return "unknown"
    if value == 0:
        return "0"
    size = abs(value)
    if math.isinf(value):
        return f"{MINUS}infinite" if value < 0 else "infinite"
    if 1e-3 <= size < 10**digits:
        text = f"{size:,.{digits}g}"
    elif 10**digits <= size < 1e12:
        text = f"{size:,.0f}"
    else:
        text = f"{size:.{digits - 1}e}"
    return (MINUS if value < 0 else "") + text


def signed(value: float | None, digits: int = 3) -> str:
    """A number with its sign."""
    text = number(value, digits)
    return f"+{text}" if value is not None and value > 0 else text


def listed(parts: Iterable[str]) -> str:
    """Things in a sentence: "a, b and c"."""
    *most, last = parts
    return f"{', '.join(most)} and {last}" if most else last


def chance(delta: float) -> str:
    """A probability as so many in so many: "at most once in 20 such studies"."""
    share = Fraction(repr(delta)).limit_denominator(10**9)
    if share.numerator == 1:
        return f"at most once in {share.denominator:,} such studies"
    whole = 10 ** max(len(repr(delta).partition(".")[2]), 2)
    count = delta * whole
    if whole <= 10**6 and abs(count - round(count)) < 1e-6:
        return f"at most {times(round(count), 'time')} in {whole:,} such studies"
    return f"with probability at most {delta!r}"


def plain(sentence: str, kept: Iterable[str] = ()) -> str:
    """A sentence of the library with its readers' words for those of the field.

    Args:
        sentence: as it stands in the certificate.
        kept: what users wrote, which is not touched.
    """
    own = [rf"(?<!\w){re.escape(text)}(?!\w)" for text in kept if text]
    words = r"\b(?:arms?|pulls?)\b"
    found = re.compile("|".join([*own, words]))
    return found.sub(lambda match: FIELD_WORDS.get(match[0], match[0]), sentence)


def shortened(text: str, most: int) -> str:
    """At most so many letters, the middle left out; names often differ at their ends."""
    if len(text) <= most:
        return text
    head = (most - 1) // 2
    return f"{text[:head]}\N{HORIZONTAL ELLIPSIS}{text[len(text) - (most - 1 - head) :]}"


def labels(names: Sequence[str], most: int) -> list[str]:
    """At most so many letters of each name, such that names that differ still do, if that can be done.

    What all begin with is left out first; then the middle, the beginning or the end, whichever keeps them apart.
    """
    if all(len(name) <= most for name in names):
        return list(names)
    first, last = min(names), max(names)  # what these two begin with, all begin with
    shared = next((place for place, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1]), 0)
    dots = "\N{HORIZONTAL ELLIPSIS}"
    rest = [f"{dots}{name[shared:]}" if shared > 2 else name for name in names]
    ways = (
        [shortened(name, most) for name in rest],
        [name if len(name) <= most else f"{dots}{name[1 - most :]}" for name in rest],
        [name if len(name) <= most else f"{name[: most - 1]}{dots}" for name in rest],
    )
    return max(ways, key=lambda way: len(set(way)))  # of equals the first
