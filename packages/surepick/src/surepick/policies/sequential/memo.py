"""What a policy keeps so as not to form it again: a memo, and no part of the policy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np

from surepick.embeddings import ArmEmbedding
from surepick.linalg.factorisations import Whitened, whitened

MOST_DIMENSIONS = 2  # a study hardly ever uses more at a time
T = TypeVar("T")


class Memo:
    """What was worked out last, by name.

    Each answer is, bit by bit, that of the function behind it: what is kept belongs to equal keys, or to the very same
    objects, and is read-only. So a policy that holds one is as pure as without it. Copied and pickled as empty.
    """

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: dict[str, tuple[tuple[Any, Any], ...]] = {}

    def __reduce__(self) -> tuple[type[Memo], tuple[()]]:
        return Memo, ()

    def last(self, name: str, key: Any, form: Callable[[], T], most: int = 1) -> T:
        """What goes by that name, formed by `form` unless the key is one of the last; so many are kept."""
        kept = self._kept.get(name, ())  # looked at once: another thread may change what is kept
        found = next((each for each in kept if each[0] is key or each[0] == key), None)
        if found is not None:
            return cast(T, found[1])
        self._kept[name] = kept[max(len(kept) + 1 - most, 0) :]
        del kept  # what has to go goes first: of one, two are never held at a time
        return self._formed(name, key, form)

    def of(self, name: str, owner: object, key: Any, form: Callable[[], T]) -> T:
        """The same of what belongs to that very object; what belongs to another one goes."""
        found, value = self.known(name, owner, key)
        if found:
            return cast(T, value)
        self._kept[name] = tuple(each for each in self._kept.get(name, ()) if each[0][0] is owner)
        return self._formed(name, (owner, key), form)

    def known(self, name: str, owner: object, key: Any = None) -> tuple[bool, Any]:
        """(whether it is kept, what is kept) of that very object."""
        kept = self._kept.get(name, ())
        return next(((True, value) for (of, known), value in kept if of is owner and known == key), (False, None))

    def white(self, embedding: ArmEmbedding, dim: int) -> Whitened | None:
        """`whitened` of the features of psi_d; None without structure."""

        def form() -> Whitened | None:
            embedded = embedding.at(dim)
            if not embedded.structured:
                return None
            found = whitened(embedded.features)
            found.basis.flags.writeable = False
            return found

        return self.last("white", dim, form, most=MOST_DIMENSIONS)

    def _formed(self, name: str, key: Any, form: Callable[[], T]) -> T:
        found = form()
        if isinstance(found, np.ndarray):
            found.flags.writeable = False
        self._kept[name] = (*self._kept[name], (key, found))  # one assignment: a thread sees the old or the new
        return found
