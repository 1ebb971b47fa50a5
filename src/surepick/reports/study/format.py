"""Numbers, names and lists as they are written in a report, for readers who know no statistics of this kind."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

MINUS = "\N{MINUS SIGN}"
MOST_DECIMALS = 9
LARGEST_PLAIN = 1e12
FIELD_WORDS = {"arm": "candidate", "arms": "candidates", "pull": "measurement", "pulls": "measurements"}
MOST_ROWS = 300  # of a table


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


def listed(parts: Iterable[str]) -> str:
    """Things in a sentence: "a, b and c"."""
    *most, last = parts
    return f"{', '.join(most)} and {last}" if most else last


def column(values: Sequence[float | None], digits: int = 4, *, unknown: str = "unknown") -> list[str]:
    """Numbers of one column, all with so many decimals that a usual one has `digits` digits.

    A number too small for them is written by itself, lest it look like 0.
    """
    sizes = sorted(abs(value) for value in values if value is not None and value != 0 and math.isfinite(value))
    usual = sizes[len(sizes) // 2] if sizes else 1.0
    decimals = min(max(digits - 1 - math.floor(math.log10(usual)), 0), MOST_DECIMALS)

    def written(value: float | None) -> str:
        if value is None:
            return unknown
        text = f"{abs(value):,.{decimals}f}"
        if not math.isfinite(value) or (value != 0 and not text.strip("0.,")) or abs(value) >= LARGEST_PLAIN:
            return number(value, digits)
        return (MINUS if value < 0 else "") + text

    return [written(value) for value in values]


def signed_column(values: Sequence[float | None], digits: int = 4, *, unknown: str = "unknown") -> list[str]:
    """The same, with their signs."""
    texts = column(values, digits, unknown=unknown)
    return [f"+{text}" if value is not None and value > 0 else text for value, text in zip(values, texts, strict=True)]


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

    As much as has to be of what all begin with is left out first; then the middle, the beginning or the end, whichever
    keeps them apart.
    """
    if all(len(name) <= most for name in names):
        return list(names)
    first, last = min(names), max(names)  # what these two begin with, all begin with
    shared = next((place for place, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1]), 0)
    dots = "\N{HORIZONTAL ELLIPSIS}"
    cut = min(shared, max(map(len, names)) + 1 - most)
    rest = [f"{dots}{name[cut:]}" if cut > 2 else name for name in names]
    ways = (
        [shortened(name, most) for name in rest],
        [name if len(name) <= most else f"{dots}{name[1 - most :]}" for name in rest],
        [name if len(name) <= most else f"{name[: most - 1]}{dots}" for name in rest],
    )
    return max(ways, key=lambda way: len(set(way)))  # of equals the first


def distinct(names: Sequence[str], most: int, longest: int) -> list[str]:
    """`labels`, made longer until names that differ do so, with at most `longest` letters."""
    wanted, found = len(set(names)), labels(names, most)
    while most < longest and len(set(found)) < wanted:
        most += 1
        found = labels(names, most)
    return found
