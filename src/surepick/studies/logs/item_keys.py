"""Keys of answers to test items: an arm answers an item once, so that the two of them are the key."""

from __future__ import annotations

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
from surepick.studies.logs.keys import canonical_keys, item_key, read_item_key
from surepick.text import quoted

ITEM = "item"  # the column of a table


def _items(results: Results) -> IntArray:
    """The number of the item of each row, shape (n,); -1 where it answers none."""
    return np.full(len(results.arms), -1) if results.items is None else results.items


def set_aside(results: Results) -> Results:
    """The rows under other keys where these are of items: an answer that does not count leaves its item to be asked."""
    if results.keys is None or results.items is None:
        return results
    rows = zip(results.keys, results.items.tolist(), strict=True)
    return replace(results, keys=tuple(key if item < 0 else f"unused {key}" for key, item in rows))


def check_items(plan: Plan, places: IntArray, results: Results, ids: Sequence[str]) -> None:
    """Refuse results of a plan of test items that are no single answers to items that it asked of their arms.

    Args:
        plan: with places.
        places: the place of each item in the order, shape (N,).
        results: the rows.

    Raises:
        InvalidInput: there are some.
    """
    items = _items(results)
    known = (items >= 0) & (items < len(places)) & (results.pulls == 1)
    at = np.where(known, places[np.where(known, items, 0)], -1)
    first = np.zeros_like(plan.counts) if plan.first_items is None else plan.first_items
    asked = known & (at >= first[results.arms]) & (at < (first + plan.counts)[results.arms])
    if results.keys is not None:  # by construction: whatever else enters, an answer has one key
        exact = [
            key == item_key(item, ids[arm]) for key, item, arm in zip(results.keys, items, results.arms, strict=True)
        ]
        asked &= np.array(exact, bool)
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


def with_items(
    order: ItemOrder | None, ids: Sequence[object], items: Sequence[object], keys: Sequence[object] | None
) -> list[str]:
    """The keys of answers of a table that has items; where its own keys are those of items too, they say the same.

    Raises:
        InvalidInput: as `keys_of` and `canonical_keys`, or a key is of another item.
    """
    found = keys_of(order, ids, items)
    given = canonical_keys(keys, [text_of("an id", name) for name in ids]) or ()
    for key, own, item in zip(given, found, items, strict=False):
        if read_item_key(key) >= 0 and key != own:
            raise InvalidInput(
                f"key {quoted(key)} is not that of the item {quoted(item)}, in the same row: the columns of the table "
                "may have been moved against each other. Nothing of this call was stored."
            )
    return found


def answers_of(results: Sequence[Results], *, minimize: bool) -> Answers:
    """What arms answered, in the policy's sign, by arm and item, so that the order of arrival changes nothing."""
    arms = np.concatenate([np.empty(0, np.int64), *(part.arms for part in results)])
    items = np.concatenate([np.empty(0, np.int64), *(_items(part) for part in results)])
    scores = np.concatenate([np.empty(0), *(part.sums for part in results)])
    order = np.lexsort((items, arms))
    return Answers(arms[order], items[order], (-scores if minimize else scores)[order])
