"""A random sample of lines with different features, drawn in one pass over a log that does not fit into memory."""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from surepick.bench.datasets.yahoo_lines import Features, YahooRecord

Row = tuple[Features, Features]


def feature_row(line: YahooRecord) -> Row:
    """What decides the features of the arm that a line becomes."""
    return line.user, line.displayed


@dataclass(slots=True)
class _Seat:
    """A row's first line so far, and the places of all the row's lines in the random order, sorted."""

    line: YahooRecord
    places: list[float] = field(default_factory=list)


class DistinctSample:
    """The `size` different rows that come first when all lines stand in the order of their random places.

    A row that falls out cannot come back by a place already seen: the last place kept only becomes earlier.

    Cost: O(size) time a line that is kept, O(1) for the others; memory for `size` lines and the places of repeats.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.seats: dict[Row, _Seat] = {}
        self.end = math.inf if size else -math.inf  # the last place kept, once all seats are taken

    def offer(self, place: float, line: YahooRecord) -> None:
        """Consider a line at its place, a random number that no other line has."""
        if place > self.end:
            return
        seat = self.seats.setdefault(feature_row(line), _Seat(line))
        insort(seat.places, place)
        if seat.places[0] == place:
            seat.line = line
        if len(self.seats) > self.size:
            del self.seats[max(self.seats, key=self._first_place)]
        if len(self.seats) == self.size:
            self.end = max(map(self._first_place, self.seats))

    def _first_place(self, row: Row) -> float:
        return self.seats[row].places[0]

    def first(self, number: int, excluded: AbstractSet[Row] = frozenset()) -> tuple[list[YahooRecord], int]:
        """The first `number` lines without an excluded row, and how many others were passed over on the way.

        There are fewer lines where the log has not so many different rows.
        """
        rows = [row for row in sorted(self.seats, key=self._first_place) if row not in excluded][:number]
        end = self._first_place(rows[-1]) if rows else -math.inf
        met = sum(place <= end for seat in self.seats.values() for place in seat.places)
        return [self.seats[row].line for row in rows], met - len(rows)
