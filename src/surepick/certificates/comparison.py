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
        stored = self._as_now(stored, again, scales)
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

    def _as_now(self, stored: dict[str, Any], again: dict[str, Any], scales: list[float]) -> dict[str, Any]:
        """What an earlier version wrote where an estimate lay below what was proved, as it is written now.

        It wrote the estimate, with a width that made width - lead the bound (so below 0), or with 0. Now the lead is
        the end of the interval, and the width 0. Margins are the same, and are compared as they are.
        """
        if set(stored) == {"least", "largest"} == set(again):
            return {name: max(value, 0.0) if isinstance(value, float) else value for name, value in stored.items()}
        columns = [stored.get("leads"), stored.get("widths"), again.get("leads"), again.get("widths")]
        if not all(isinstance(one, list) and len(one) == len(scales) for one in columns):
            return stored
        leads, widths = list(stored["leads"]), list(stored["widths"])
        for row, (lead, width, ours, none) in enumerate(zip(*columns, strict=True)):
            below = none == 0.0 and isinstance(lead, float) and isinstance(width, float) and lead < ours
            if below and (width == 0.0 or abs(width - lead + ours) <= self.tolerance * scales[row]):
                leads[row], widths[row] = ours, none
        return {**stored, "leads": leads, "widths": widths}

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
