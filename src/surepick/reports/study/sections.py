"""What a part of a study report holds, and how candidates are named and marked in all of them."""

from __future__ import annotations

from typing import Any

from surepick.core.arrays import record
from surepick.reports.study.svg import Drawing
from surepick.reports.study.tables import Table
from surepick.reports.study.verdict import PROVED, Document, out_word, standing_of

SYMBOLS = {"recommended": "\N{BLACK STAR}", "possible": "\N{WHITE DIAMOND}", "left": "\N{BULLET}"}
GAP = "\N{NO-BREAK SPACE}"


@record
class Figure:
    """A picture and the numbers behind it; one of them may be absent.

    Args:
        drawing: the picture.
        table: the numbers.
    """

    drawing: Drawing | None = None
    table: Table | None = None


@record
class Item:
    """A line of a list.

    Args:
        label: what it is about, may be "".
        text: the sentence.
    """

    label: str
    text: str


@record
class Part:
    """A part of the report, with a heading of its own.

    Args:
        key: its place in the page, for links.
        heading: its question or name.
        sentences: paragraphs above the figures.
        figures: in order.
        lists: (heading, lines) below them.
        shown: False if its sentences only say why there is nothing to show.
    """

    key: str
    heading: str
    sentences: tuple[str, ...]
    figures: tuple[Figure, ...] = ()
    lists: tuple[tuple[str, tuple[Item, ...]], ...] = ()
    shown: bool = True


def absent(*reasons: str) -> Part:
    """A part that the page does not have, and why."""
    return Part("", "", reasons, shown=False)


def names_of(document: Document) -> list[str]:
    """The candidates' names."""
    ids = document["arms"]["ids"]
    return [str(place) for place in range(document["arms"]["number"])] if ids is None else list(ids)


def is_empty(document: Document) -> bool:
    """Whether nothing was measured that could speak for a candidate."""
    return document["pulls"] == 0 and document["verdict"] not in PROVED


def best_place(document: Document) -> int | None:
    """The position of the recommended candidate, or of the best so far; None while nothing is known."""
    fates = document["candidates"]["fates"]
    return fates.index("recommended") if "recommended" in fates else None


def fates_of(document: Document) -> dict[str, str]:
    """What each fate is called: nobody recommends a candidate of which nothing is proved or believed."""
    best = "recommended" if document["verdict"] in PROVED else "best so far"
    if standing_of(document) == "contradicted":
        best = "best by the rule"
    return {"recommended": best, "possible": "still possible", "left": out_word(document)}


def fate_words(document: Document) -> list[str]:
    """The fates of all candidates with their symbols, as they stand in tables."""
    words = {fate: f"{SYMBOLS[fate]} {called}".replace(" ", GAP) for fate, called in fates_of(document).items()}
    return [words[fate] for fate in document["candidates"]["fates"]]


def beside_names(document: Document) -> str:
    """What the symbols beside names mean."""
    return ", ".join(f"{SYMBOLS[fate]}{GAP}{called}" for fate, called in fates_of(document).items()) + "."


def looks_of(document: Document) -> list[dict[str, Any]]:
    """The closed batches, in order."""
    return [look for entry in document["rounds"] for look in entry["looks"]]
