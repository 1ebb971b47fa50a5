"""A finite set of test items that every arm answers, and the one order in which they are answered."""

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import field

import numpy as np

from surepick.core.arms import Originals
from surepick.core.random_streams import Chooser, stream
from surepick.core.records import IntArray, record
from surepick.core.values import MOST, listed, storable_text, texts_of, whole_number
from surepick.errors import InvalidInput
from surepick.text import quoted


@record
class Items:
    """The test items among which none is drawn twice: what is asked is the mean score over all of them.

    Args:
        ids: N names, each once, kept as texts; or N alone: then "1" .. "N". Whoever measures gets them as they were.

    Raises:
        InvalidInput: there is none, one has no text that a file can hold, or two are equal.
    """

    ids: tuple[str, ...]
    objects: Originals | None = field(default=None, init=False, compare=False, repr=False)

    def __init__(self, ids: int | Sequence[object]) -> None:
        objects: Originals | None = None
        if isinstance(ids, int | np.integer):
            number = whole_number("items", ids, least=1, meaning="the test items that every candidate answers.")
            if number > MOST:
                raise InvalidInput(f"items is {quoted(ids)}; no memory holds so many. At most {MOST:,} are taken.")
            names = tuple(map(str, range(1, number + 1)))
        else:
            ids = listed("items", ids)
            names = texts_of("items", ids)
            objects = Originals.of(names, ids)
        if not names:
            raise InvalidInput("there is no item; nothing could be measured.")
        storable_text("an item", "".join(names))
        if "" in names or len(set(names)) != len(names):
            repeated = next(name for name, times in Counter(names).items() if times > 1 or not name)
            raise InvalidInput(f"the item {repeated!r} is empty or stands there twice; an id must name one item.")
        object.__setattr__(self, "ids", names)
        object.__setattr__(self, "objects", objects)

    @property
    def num_items(self) -> int:
        """N."""
        return len(self.ids)

    @property
    def digest(self) -> str:
        """SHA-256 of the ids in their order, as hexadecimal digits: it changes with the set."""
        return hashlib.sha256(json.dumps(self.ids, ensure_ascii=False).encode()).hexdigest()

    @property
    def spec(self) -> int | list[str]:
        """Plain data that `Items` makes an equal one of."""
        numbered = self.ids == tuple(str(number) for number in range(1, self.num_items + 1))
        return self.num_items if numbered else list(self.ids)


@record
class ItemOrder:
    """The items in the one order in which all arms answer them."""

    items: Items  # the set
    seed: int  # of the order, a non-negative integer
    by: Chooser = "user"  # who chose it

    def __post_init__(self) -> None:
        whole_number("seed", self.seed, least=0, meaning="it decides the order of the items.")

    @property
    def order(self) -> IntArray:
        """The index of the item at each place, shape (N,): a permutation drawn from the seed and the ids."""
        return np.asarray(stream(self.seed, "order of items", self.items.digest).permutation(self.items.num_items))

    @property
    def places(self) -> IntArray:
        """The place of each item, shape (N,)."""
        return np.asarray(np.argsort(self.order))
