"""The form of JSON data: its fields, and what kind of value stands in each."""

from typing import Any

WORD = 24  # characters; a longer text is a sentence or a digest, of which only the kind counts


def form_of(data: Any) -> object:
    """Two pieces of data with the same form differ in numbers, long texts and the lengths of lists only."""
    if isinstance(data, dict):
        return frozenset((name, form_of(value)) for name, value in data.items())
    if isinstance(data, list | tuple):
        return frozenset(map(form_of, data))
    if isinstance(data, str) and len(data) <= WORD:
        return data
    return (type(data).__name__, isinstance(data, int | float) and bool(data >= 0))
