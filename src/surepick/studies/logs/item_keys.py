"""Keys of answers to test items: an arm answers an item once, so that the two of them are the key."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from surepick.core.arrays import IntArray
from surepick.core.observations import Answers
from surepick.core.plan import Plan
from surepick.core.validation import text_of, texts_of
from surepick.errors import InvalidInput
from surepick.items import ItemOrder
from surepick.studies.logs.base import Results

ITEM = "item"  # the column of a table
ITEM_KEY = re.compile(r"item(0|[1-9][0-9]{0,17})@.*", re.DOTALL)


def item_key(item: int, name: str) -> str:
    """The key of the answer of the arm of that id to the item of that index."""
    return f"item{item}@{name}"


def read_item_key(key: str | None) -> int:
    """The index of the item of a canonical key; -1 where it is none."""
    found = None if key is None else ITEM_KEY.fullmatch(key)
    return -1 if found is None else int(found[1])


def items_of(results: Results) -> IntArray:
    """The index of the item of each row, shape (n,); -1 where the key names none."""
    keys = results.keys or (None,) * len(results.arms)
    return np.array([read_item_key(key) for key in keys], np.int64)


def set_aside(results: Results) -> Results:
    """The rows under other keys where these are of items: an answer that does not count leaves its item to be asked."""
    if results.keys is None:
        return results
    keys = tuple(key if read_item_key(key) < 0 else f"unused {key}" for key in results.keys)
    return replace(results, keys=keys)


def check_items(plan: Plan, places: IntArray, results: Results, ids: Sequence[str]) -> None:
    """Refuse results of a plan of test items that are no single answers to items that it asked of their arms.

    Args:
        plan: with places.
        places: the place of each item in the order, shape (N,).
        results: the rows.

    Raises:
        InvalidInput: there are some.
    """
    items = items_of(results)
    known = (items >= 0) & (items < len(places)) & (results.pulls == 1)
    at = np.where(known, places[np.where(known, items, 0)], -1)
    first = np.zeros_like(plan.counts) if plan.first_items is None else plan.first_items
    asked = known & (at >= first[results.arms]) & (at < (first + plan.counts)[results.arms])
    wrong = np.flatnonzero(~asked)
    if len(wrong):
        raise InvalidInput(
            f"{len(wrong)} results are not answers to items that the open plan asked of their candidate, the first is "
            f"of {ids[results.arms[wrong[0]]]!r}. Report each answer with its item, as tell(batch, scores) does; which "
            "items are answered must not depend on a hunch. Nothing of this call was stored."
        )


def keys_of(order: ItemOrder | None, ids: Sequence[object], items: Sequence[object]) -> list[str]:
    """The keys of answers of these arms to these items, one a row.

    Args:
        order: the items of the study; None: it has none.
        ids: n ids of arms.
        items: n ids of items.

    Raises:
        InvalidInput: the study has no items, some are not its own, or their number is not that of the ids.
    """
    if order is None:
        raise InvalidInput("this study has no test items: its measurements are draws; leave the items out.")
    index = {name: item for item, name in enumerate(order.items.ids)}
    names = list(texts_of("items", items))
    unknown = [name for name in names if name not in index]
    if unknown or len(names) != len(ids):
        raise InvalidInput(
            f"{len(unknown)} of {len(names)} items are not items of this study, the first is {unknown[0]!r}."
            if unknown
            else f"there are {len(names)} items for {len(ids)} answers; give one item for each."
        )
    return [item_key(index[item], text_of("an id", name)) for item, name in zip(names, ids, strict=True)]


def answers_of(results: Sequence[Results], *, minimize: bool) -> Answers:
    """What arms answered, in the policy's sign, by arm and item, so that the order of arrival changes nothing."""
    arms = np.concatenate([np.empty(0, np.int64), *(part.arms for part in results)])
    items = np.concatenate([np.empty(0, np.int64), *(items_of(part) for part in results)])
    scores = np.concatenate([np.empty(0), *(part.sums for part in results)])
    order = np.lexsort((items, arms))
    return Answers(arms[order], items[order], (-scores if minimize else scores)[order])
