"""Results that are more than a server takes at once, as several requests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from surepick.studies.logs.keys import read_pull_key
from surepick.studies.recording import Receipt

MOST_ROWS = 100_000  # in one request
COLUMNS = (
    "results",
    "ids",
    "pulls",
    "sums",
    "squares",
    "keys",
    "blocks",
)  # an entry for each row, where they are there


def in_parts(body: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], bool]]:
    """Requests of at most so many rows, each with whether the keys of its rows say their plan.

    Rows with the key of a lease go first: those without one belong to the plan that is open when they come.

    Args:
        body: of one request, with "results", or with columns.
    """
    rows = body.get("results", body.get("ids", ()))
    keys = [row["key"] for row in rows] if "results" in body else body.get("keys") or [None] * len(rows)
    leased = [key is not None and read_pull_key(key) is not None for key in keys]
    if len(rows) <= MOST_ROWS:
        yield dict(body), all(leased)
        return
    for named in (True, False):
        places = [place for place, one in enumerate(leased) if one is named]
        for first in range(0, len(places), MOST_ROWS):
            yield _rows(body, places[first : first + MOST_ROWS]), named


def together(receipts: Sequence[Receipt]) -> Receipt:
    """What became of all parts, as of one request."""
    counts = {
        name: sum(getattr(one, name) for one in receipts) for name in ("counted", "repeated", "late", "prior", "failed")
    }
    return Receipt(plan=receipts[0].plan, closed=any(one.closed for one in receipts), **counts)


def _rows(body: Mapping[str, Any], places: Sequence[int]) -> dict[str, Any]:
    """Some rows of a body."""

    def some(columns: Mapping[str, Any]) -> dict[str, Any]:
        return {
            name: None if values is None else [values[place] for place in places] for name, values in columns.items()
        }

    found = dict(body) | some({name: body[name] for name in COLUMNS if name in body})
    if body.get("quantities") is not None:
        found["quantities"] = [some(one) for one in body["quantities"]]
    return found
