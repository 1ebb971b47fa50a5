"""Where two records, or two pieces of JSON data, differ, in words."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

TOLERANCE = 1e-9  # relative; another processor adds in another order


ROUNDING = 1e-12


def first_difference(stored: Any, again: Any, tolerance: float = TOLERANCE, where: str = "") -> str:
    """Where they differ, in words; "" where they agree: numbers within `tolerance`, all else exactly."""
    if is_dataclass(stored) and not isinstance(stored, type) and type(stored) is type(again):
        told = [one.name for one in fields(stored)]
        stored, again = ({name: getattr(one, name) for name in told} for one in (stored, again))
    if isinstance(stored, np.ndarray | tuple) and type(stored) is type(again):
        stored, again = (one.tolist() if isinstance(one, np.ndarray) else list(one) for one in (stored, again))
    if isinstance(stored, dict) and isinstance(again, dict):
        names = [*stored, *(name for name in again if name not in stored)]
        parts = ((stored.get(name), again.get(name), f"{where}.{name}") for name in names)
        return next(filter(None, (first_difference(*part[:2], tolerance, part[2]) for part in parts)), "")
    if isinstance(stored, list) and isinstance(again, list) and len(stored) == len(again):
        if _all_numbers(stored) and _all_numbers(again):
            return _first_number(stored, again, tolerance, where)
        rows = enumerate(zip(stored, again, strict=True))
        found = (first_difference(*pair, tolerance, f"{where}[{row}]") for row, pair in rows)
        return next(filter(None, found), "")
    if isinstance(stored, float) and isinstance(again, float):
        return _first_number([stored], [again], tolerance, where)
    if type(stored) is not type(again) or stored != again:
        return f"{where} is stored as {_short(stored)} and computed as {_short(again)}"
    return ""


def _all_numbers(values: list[Any]) -> bool:
    return bool(values) and all(isinstance(value, float) for value in values)


def _first_number(stored: list[float], again: list[float], tolerance: float, where: str) -> str:
    """Relative to each number, but for the rounding of sums that nearly cancel, which is that of the list's largest."""
    left, right = np.array(stored), np.array(again)
    size = np.maximum(np.abs(left), np.abs(right))
    bad = np.flatnonzero(~(np.abs(left - right) <= tolerance * size + ROUNDING * size.max()))
    if len(bad) == 0:
        return ""
    row = int(bad[0])
    place = where if len(stored) == 1 else f"{where}[{row}]"
    return f"{place} is stored as {stored[row]!r} and computed as {again[row]!r}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
