"""Where a certificate differs from the computed one, in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from surepick.core.diff import first_difference

PARTS = ("leads", "widths", "margins")  # of an interval


@dataclass(frozen=True, slots=True)
class Comparison:
    """How stored and computed values are compared.

    Args:
        tolerance: relative, of numbers; the parts of an interval are compared on the scale of the largest of them and
            of epsilon.
        epsilon: in reward units.
    """

    tolerance: float
    epsilon: float

    def difference(self, stored: Any, again: Any, where: str) -> str:
        """Where they differ, "" where they agree."""
        if isinstance(stored, dict) and isinstance(again, dict):
            return self._fields_differ(stored, again, where)
        if isinstance(stored, list) and isinstance(again, list) and any(isinstance(one, dict) for one in again):
            if len(stored) != len(again):
                return f"{where} has {len(stored)} entries, and {len(again)} are computed"
            pairs = enumerate(zip(stored, again, strict=True))
            return next(filter(None, (self.difference(*pair, f"{where}[{row}]") for row, pair in pairs)), "")
        return first_difference(stored, again, self.tolerance, where)

    def _fields_differ(self, stored: dict[str, Any], again: dict[str, Any], where: str) -> str:
        scales = self._scales(again)
        for name in [*stored, *(name for name in again if name not in stored)]:
            place = f"{where}.{name}"
            if name not in stored or name not in again:
                return f"{place} is {'unknown' if name in stored else 'missing'}"
            if name in PARTS and isinstance(again[name], list):
                wrong = self._parts_differ(stored[name], again[name], scales, place)
            else:
                wrong = self.difference(stored[name], again[name], place)
            if wrong:
                return wrong
        return ""

    def _scales(self, entry: Mapping[str, Any]) -> list[float]:
        columns = [entry[name] for name in PARTS if isinstance(entry.get(name), list)]
        return [
            max([self.epsilon, *(abs(one) for one in row if one is not None)]) for row in zip(*columns, strict=False)
        ]

    def _parts_differ(self, stored: Any, again: list[float | None], scales: list[float], where: str) -> str:
        if not isinstance(stored, list) or len(stored) != len(again):
            return f"{where} is not a list of {len(again)} numbers"
        for row, (theirs, ours, scale) in enumerate(zip(stored, again, scales, strict=True)):
            if ours is None or theirs is None:
                same = ours is theirs
            else:
                near = isinstance(theirs, float) and abs(theirs - ours) <= self.tolerance * scale
                same = near and (not where.endswith("margins") or (theirs < 0.0) == (ours < 0.0))
            if not same:
                return f"{where}[{row}] is stored as {theirs!r} and computed as {ours!r}"
        return ""
