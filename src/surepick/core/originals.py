"""What ids were before they became texts: whoever gave numbers, tuples or functions gets them back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

NOTHING: Mapping[str, object] = MappingProxyType({})


class Originals:
    """The objects behind ids, which are texts everywhere else.

    They stay in the process that was given them: a copy in another one, a database and a certificate have the texts.

    Args:
        found: text -> object, of those that are no texts themselves.
    """

    __slots__ = ("_found",)

    def __init__(self, found: Mapping[str, object] = NOTHING) -> None:
        self._found = found

    @staticmethod
    def of(names: Iterable[str], values: Iterable[object]) -> Originals:
        """Those of values that became these texts, one each."""
        return Originals({name: one for name, one in zip(names, values, strict=True) if type(one) is not str})

    def of_text(self, name: str) -> object:
        """The object whose text it is; the text where it was given as one."""
        return self._found.get(name, name)

    def __deepcopy__(self, memo: object) -> Originals:
        return self

    def all_of(self, names: Iterable[str]) -> list[object]:
        """The objects of these texts, in their order."""
        return [self._found.get(name, name) for name in names] if self._found else list(names)

    def __reduce__(self) -> tuple[type[Originals], tuple[()]]:
        return Originals, ()

    def __repr__(self) -> str:
        return f"Originals({len(self._found)})"
