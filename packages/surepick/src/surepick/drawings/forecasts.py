"""What a study is expected to take, as ranges: a row for clear differences, usual ones, and hardly any."""

from __future__ import annotations

import math
from dataclasses import dataclass

from surepick.drawings import cards
from surepick.drawings.html import place, text
from surepick.drawings.numbers import Scale, tick_label
from surepick.drawings.records import Columns
from surepick.drawings.terminal import UNICODE, Signs

NAMES = {"clear": "clear differences", "usual": "usual", "nearly equal": "nearly equal"}
LOGARITHMIC = 8.0  # times the usual one, beyond which the axis counts factors
WIDTH, NAME = 60, 18
LEFT, RIGHT, ROW = 2.0, 98.0, 34


@dataclass(frozen=True, slots=True)
class Range:
    """What simulated studies of one kind took.

    Args:
        kind: "clear", "usual" or "nearly equal".
        fewest, median, most: measurements, in 5, 50 and 95 % of the studies.
        fewest_rounds, rounds, most_rounds: the same of rounds.
        studies: how many were simulated.
        at_least: simulating ended before some of them did: the numbers are less than they take.
    """

    kind: str
    fewest: int
    median: int
    most: int
    fewest_rounds: int
    rounds: int
    most_rounds: int
    studies: int
    at_least: bool = False

    @property
    def said(self) -> str:
        """The rounds, or the measurements where each round has one: "3 to 6 rounds"."""
        single = self.rounds == self.median
        low, high = (self.fewest, self.most) if single else (self.fewest_rounds, self.most_rounds)
        noun = "measurement" if single else "round"
        more = "more than " if self.at_least else ""
        number = f"{high:,}" if low == high else f"{low:,} to {high:,}"
        return f"{more}{number} {noun}" + "s" * (high != 1)


@dataclass(frozen=True, slots=True)
class Ranges:
    """A forecast as three ranges.

    Args:
        rows: clear, usual and nearly equal.
        candidates: K.
        epsilon, delta: as asked.
        spread: the standard deviation of the means of a usual study, in reward units.
        uniform: measurements of every candidate equally often, for the same promise.
    """

    rows: tuple[Range, ...]
    candidates: int
    epsilon: float
    delta: float
    spread: float
    uniform: int

    @property
    def usual(self) -> Range:
        """That of a usual study."""
        return next(row for row in self.rows if row.kind == "usual")

    @property
    def _logarithmic(self) -> bool:
        return self.rows[-1].median > LOGARITHMIC * max(self.usual.median, 1)

    @property
    def _dearer(self) -> bool:
        """Whether measuring every candidate equally often is dearer than the median of nearly equal ones."""
        return self.uniform > self.rows[-1].median

    def _at(self, value: float) -> float:
        """Where a number of measurements lies, from 0 to 1."""
        most = max([row.most for row in self.rows] + [self.uniform] * self._dearer + [1])
        if self._logarithmic:
            least = max(min(row.fewest for row in self.rows), 1)
            return math.log(max(value, least) / (0.8 * least)) / math.log(most / (0.8 * least))
        return value / most

    def _ticks(self) -> list[float]:
        most = float(max([row.most for row in self.rows] + [self.uniform] * self._dearer + [1]))
        if not self._logarithmic:
            return [tick for tick in Scale(0.0, most).ticks(4) if tick == int(tick)]
        least = max(min(row.fewest for row in self.rows), 1)
        powers = range(math.floor(math.log10(least)), math.floor(math.log10(most)) + 1)
        return [10.0**power for power in powers if 10.0**power >= least]

    def to_frame(self) -> Columns:
        """A row a kind of candidates, with the fields of `Range`."""
        names = ("kind", "fewest", "median", "most", "fewest_rounds", "rounds", "most_rounds", "studies", "at_least")
        return Columns({name: [getattr(row, name) for row in self.rows] for name in names})

    def __repr__(self) -> str:
        parts = [f"{row.kind} {row.median:,} ({row.fewest:,} to {row.most:,})" for row in self.rows]
        return f"<Ranges: {self.candidates:,} candidates, epsilon {self.epsilon:g}; measurements {', '.join(parts)}>"

    def __str__(self) -> str:
        return "\n".join(self.lines())

    @property
    def headline(self) -> str:
        """The middle of the usual study: "4 rounds, as a rule: 96 measurements"."""
        row = self.usual
        return f"{row.rounds:,} round{'s' * (row.rounds != 1)}, as a rule: {row.median:,} measurements"

    @property
    def caption(self) -> str:
        """What the bars are."""
        studies = min(row.studies for row in self.rows)
        said = f"Measurements of {studies} simulated studies each: from 5 to 95 %, and the one in the middle."
        said += " The axis counts factors." if self._logarithmic else ""
        return said + (f" Every candidate equally often takes {self.uniform:,}." if self._dearer else "")

    def lines(self, signs: Signs = UNICODE) -> list[str]:
        """The three ranges in 60 columns."""
        said = [row.said for row in self.rows]
        room = max(WIDTH - NAME - max(map(len, said)) - 2, 10)
        found = [f"{self.headline} ({self.candidates:,} candidates)"]
        for row, words in zip(self.rows, said, strict=True):
            cells = [" "] * room
            shown = (row.fewest, row.median, row.most)
            low, middle, high = (min(int(self._at(one) * (room - 1)), room - 1) for one in shown)
            cells[low : high + 1] = signs.line * (high + 1 - low)
            cells[middle] = signs.dots["best"]
            found.append(f"{NAMES[row.kind]:<{NAME}}{''.join(cells)}  {words}")
        return [*found, self.caption]

    def html(self) -> str:
        """The three ranges as a picture, with its heading and its caption."""

        def across(value: float) -> float:
            return LEFT + (RIGHT - LEFT) * self._at(value)

        ticks = self._ticks()
        grid = "".join(
            f'<line class="g-grid" x1="{place(across(tick))}%" x2="{place(across(tick))}%" y1="0" y2="{ROW}"/>'
            for tick in ticks
        )
        limit = ""
        if self._dearer:
            at = place(across(self.uniform))
            limit = f'<line class="g-limit dash" x1="{at}%" x2="{at}%" y1="0" y2="{ROW}"/>'
        rows = []
        for row in self.rows:
            left, middle, right = (place(across(value)) for value in (row.fewest, row.median, row.most))
            bar = f'<line class="g-range" x1="{left}%" x2="{right}%" y1="17" y2="17"/>'
            mark = f'<line class="g-median" x1="{middle}%" x2="{middle}%" y1="9" y2="25"/>'
            drawn = f'<svg class="plot" height="{ROW}" aria-hidden="true">{grid}{limit}{bar}{mark}</svg>'
            unseen = f'<span class="unseen"> measurements, {row.median:,} in the middle</span>'
            numbers = f"{row.fewest:,} to {row.most:,}{unseen}"
            rows.append(
                f'<tr><th scope="row">{NAMES[row.kind]}</th><td class="draw">{drawn}</td>'
                f'<td class="right">{numbers}</td><td class="right">{text(row.said)}</td></tr>'
            )
        labels = "".join(
            f'<text class="mid" x="{place(across(tick))}%" y="12">{tick_label(tick)}</text>' for tick in ticks
        )
        head = (
            '<tr><th scope="col">Candidates</th><th scope="col" class="draw">'
            f'<svg class="plot" height="18" aria-hidden="true">{labels}</svg><span class="unseen">Drawn</span></th>'
            '<th scope="col" class="right">Measurements</th><th scope="col" class="right">Rounds</th></tr>'
        )
        return (
            f'<section aria-labelledby="forecast"><h2 id="forecast">{text(self.headline)}</h2>\n'
            f'<table class="rows two-line"><caption class="unseen">What a study takes</caption>'
            '<colgroup><col class="c-id"><col><col class="c-range"><col class="c-range"></colgroup>\n'
            f"<thead>{head}</thead><tbody>{''.join(rows)}</tbody></table>\n"
            f'<p class="hint">{text(self.caption)}</p></section>'
        )

    def _repr_html_(self) -> str:
        """The picture, for notebooks."""
        return cards.notebook(self.html())
