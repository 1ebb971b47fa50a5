"""A random sample of lines with different features, drawn in one pass over a log that does not fit into memory."""

from __future__ import annotations

import heapq
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from surepick.bench.datasets.yahoo_lines import Features, YahooRecord

Row = tuple[Features, Features]


def feature_row(line: YahooRecord) -> Row:
    """What decides the features of the arm that a line becomes."""
    return line.user, line.displayed


@dataclass(frozen=True, slots=True)
class Taken:
    """The first lines in the random order.

    Args:
        lines: those taken.
        repeated: those passed over on the way, since an earlier one had the same features.
    """

    lines: list[YahooRecord]
    repeated: int


@dataclass(slots=True)
class _Seat:
    """A row's first line so far, its place in the random order, and the places of the row's other lines."""

    place: float
    line: YahooRecord
    others: list[float] = field(default_factory=list)

    def add(self, place: float, line: YahooRecord) -> None:
        if place < self.place:
            self.others.append(self.place)
            self.place, self.line = place, line
        else:
            self.others.append(place)


class DistinctSample:
    """The `size` different rows that come first when all lines stand in the order of their random places.

    A row that falls out cannot come back by a place already seen: the last place kept only becomes earlier.

    Cost: O(log size) time a line that is kept, O(1) for the others; memory for `size` lines and the places of repeats.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.seats: dict[Row, _Seat] = {}
        self.latest: list[tuple[float, Row]] = []  # a heap of (-place, row) with the last on top; some are outdated

    def offer(self, place: float, line: YahooRecord) -> None:
        """Consider a line at its place, a random number that no other line has."""
        if self.size == 0 or (len(self.seats) == self.size and place > -self.latest[0][0]):
            return
        row = feature_row(line)
        seat = self.seats.get(row)
        if seat is None:
            seat = self.seats[row] = _Seat(place, line)
        else:
            seat.add(place, line)
        if seat.place == place:
            heapq.heappush(self.latest, (-place, row))
            self._forget_outdated()
        if len(self.seats) > self.size:
            del self.seats[heapq.heappop(self.latest)[1]]
            self._forget_outdated()

    def _forget_outdated(self) -> None:
        """Take from the top what is no longer the place of its row."""
        while self.latest[0][1] not in self.seats or self.seats[self.latest[0][1]].place != -self.latest[0][0]:
            heapq.heappop(self.latest)

    def first(self, number: int, excluded: AbstractSet[Row] = frozenset()) -> Taken:
        """The first `number` lines, none with an excluded row; fewer if there are not so many."""
        in_order = sorted(self.seats.items(), key=lambda entry: entry[1].place)
        taken = [seat for row, seat in in_order if row not in excluded][:number]
        end = taken[-1].place if taken else -1.0
        met = [place for _, seat in in_order for place in (seat.place, *seat.others) if place <= end]
        return Taken([seat.line for seat in taken], len(met) - len(taken))
