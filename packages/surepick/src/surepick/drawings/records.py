"""What closed rounds say of each candidate and of each round: one record for pages, report, notebook and terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from surepick.drawings.numbers import decimals_for
from surepick.errors import InvalidInput

State = Literal["recommended", "possible", "ruled out", "withdrawn", "waiting", "aside"]
STATES: dict[State, str] = {  # what each is called where the question is which candidate is the best
    "recommended": "recommended",
    "possible": "still possible",
    "ruled out": "ruled out",
    "withdrawn": "withdrawn",
    "waiting": "not there yet",
    "aside": "not asked about",
}
MOST_ROWS, LEAST_ROWS = 30, 15  # of a picture


class Columns(dict[str, list[Any]]):
    """A table as a dict of columns, each as long as the others; with pyarrow it is also an Arrow stream.

    `pandas.DataFrame(table)`, `polars.DataFrame(table)`, `pyarrow.table(table)` and `narwhals.from_arrow` read it.
    """

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The table by the Arrow PyCapsule interface.

        Raises:
            InvalidInput: pyarrow is absent.
        """
        try:
            import pyarrow  # noqa: PLC0415 (an extra)
        except ImportError as error:
            raise InvalidInput(
                'an Arrow table needs pyarrow, which is absent: pip install "surepick[tables]". The dict of columns '
                "needs nothing."
            ) from error
        return pyarrow.table(dict(self)).__arrow_c_stream__(requested_schema)


@dataclass(frozen=True, slots=True)
class Candidate:
    """What closed rounds say of one candidate.

    Args:
        id: its id.
        mean: of its results, or what the model of the policy estimates, in the user's sign and unit; None: nothing is
            known of it.
        error: the standard error of that; None: nothing shows it.
        low, high: the ends of the interval: two standard errors to each side, or Wilson's of the same level for results
            that are yes or no. It describes, and is not promised.
        times: how often it was measured.
        better_at_most: by how much it is better than the recommended one at most, if it is the best; negative: it is
            not. None: the policy has no such bound.
        state: what became of it.
    """

    id: str
    mean: float | None
    error: float | None
    low: float | None
    high: float | None
    times: int
    better_at_most: float | None
    state: State


@dataclass(frozen=True, slots=True)
class ClosedRound:
    """What was known when a round, or a part of one that was judged by itself, was closed.

    Args:
        round: its number.
        measurements: up to its end.
        gap: the best candidate so far is at most this much worse than the best; None: nothing is proved.
        possible: candidates that were still possible, or undecided.
        leader: id of the best candidate so far.
    """

    round: int
    measurements: int
    gap: float | None
    possible: int
    leader: str


@dataclass(frozen=True, slots=True)
class Trace:
    """The closed rounds, in order."""

    rounds: tuple[ClosedRound, ...]
    tolerance: float  # 0: none was asked for
    asked_about: int  # candidates before the first round

    @property
    def gap(self) -> float | None:
        """The last gap that is proved."""
        return self.rounds[-1].gap if self.rounds else None

    def to_frame(self) -> Columns:
        """A row a closed round: round, measurements, gap, possible, leader."""
        names = ("round", "measurements", "gap", "possible", "leader")
        return Columns({name: [getattr(one, name) for one in self.rounds] for name in names})


@dataclass(frozen=True, slots=True)
class Candidates:
    """What the closed rounds of a study say of its candidates. Nothing of an open round is in it.

    Args:
        rows: one a candidate, in the order in which they were given.
        trace: the gap and the candidates still possible, round by round.
        tolerance: epsilon, in the unit of the results; 0: none was asked for.
        delta: the probability that something that is promised is wrong.
        verdict: that of the certificate, "certified" for instance.
        minimize: small results are good.
        promised: the bounds are proved; False where the policy's rule, or what the results contradict, has the word.
        whole: all candidates are in the promise; False where some came or went.
        estimated: `mean` is what the policy's model says, from all results and the columns.
        lines: (number, what it is) of what the candidates are compared with, where the question is not the best one.
        called: what each state is called.
        listed: the question is answered by lists.
    """

    rows: tuple[Candidate, ...]
    trace: Trace
    tolerance: float
    delta: float
    verdict: str = "not-yet"
    minimize: bool = False
    promised: bool = True
    whole: bool = True
    estimated: bool = False
    lines: tuple[tuple[float, str], ...] = ()
    called: Mapping[State, str] = field(default_factory=lambda: STATES)
    listed: bool = False

    @property
    def recommended(self) -> Candidate | None:
        """The recommended candidate, or the best so far; None while nothing is known, and where the answer is lists."""
        if self.listed:
            return None
        return next((row for row in self.rows if row.state == "recommended"), None)

    @property
    def gap(self) -> float | None:
        """The recommended candidate is at most this much worse than the best; None: nothing is proved."""
        return self.trace.gap

    @property
    def possible(self) -> int:
        """How many may still be the best, the recommended one among them."""
        return sum(row.state in ("recommended", "possible") for row in self.rows)

    @property
    def decimals(self) -> int:
        """In which all of these numbers are written."""
        return decimals_for(self.tolerance, [row.mean for row in self.rows if row.mean is not None])

    @property
    def by_mean(self) -> tuple[Candidate, ...]:
        """The best mean first, of equals the one measured most; then those of which nothing is known."""
        sign = 1.0 if self.minimize else -1.0

        def place(row: Candidate) -> tuple[bool, float, int, str]:
            return row.mean is None, 0.0 if row.mean is None else sign * row.mean, -row.times, row.id

        return tuple(sorted(self.rows, key=place))

    def shown(
        self, *, least: int = LEAST_ROWS, most: int = MOST_ROWS
    ) -> tuple[Sequence[Candidate], Sequence[Candidate]]:
        """(rows of the picture, the others), by mean: all that are possible, at most `most`, and at least `least`."""
        order = self.by_mean
        if len(order) <= least:
            return order, ()
        possible = [row.id for row in order if row.state in ("recommended", "possible")][:most]
        wanted = {*possible, *(row.id for row in order[: max(least, 0)])}
        best = self.recommended
        if len(possible) >= most:
            wanted = {*possible} | ({best.id} if best else set())
        return [row for row in order if row.id in wanted], [row for row in order if row.id not in wanted]

    def to_frame(self) -> Columns:
        """A row a candidate: candidate, mean, error, low, high, times, better_at_most, state; None where unknown."""
        names = ("id", "mean", "error", "low", "high", "times", "better_at_most", "state")
        columns = {name: [getattr(row, name) for row in self.rows] for name in names}
        return Columns({"candidate": columns.pop("id"), **columns})
