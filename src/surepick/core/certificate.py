"""The answer, and what it promises."""

from __future__ import annotations

from dataclasses import field

from surepick.core.arrays import LATER, record
from surepick.core.html import html_table
from surepick.core.step import RoundRecord
from surepick.text import money, printable

VERDICTS = ("certified", "heuristic", "not-yet", "budget-exhausted")


@record
class Certificate:
    """The answer, and what it rests on.

    Args:
        best_arm: id of the recommended arm.
        arm: its index.
        epsilon: the arm is at most this much worse than the best one, in reward units ...
        delta: ... except with this probability, under the assumptions.
        pulls: measurements spent.
        verdict: "certified", "heuristic", "not-yet" or "budget-exhausted".
        reason: why the verdict is what it is, in words.
        assumptions: sentences that the certificate rests on.
        certified_gap: the smallest epsilon that the data support, None when nothing can be said.
        minimize: small rewards are good.
        rounds: the trace.
        cost: money spent on them, in the currency of the costs; None where nothing has a cost.
    """

    best_arm: str
    arm: int
    epsilon: float
    delta: float
    pulls: int
    verdict: str
    reason: str
    assumptions: tuple[str, ...]
    certified_gap: float | None = None
    minimize: bool = False
    rounds: tuple[RoundRecord, ...] = ()
    cost: float | None = field(default=None, metadata=LATER)

    @property
    def promise(self) -> str:
        """What may be claimed, in one sentence."""
        best = "smallest" if self.minimize else "largest"
        if self.verdict == "certified":
            return (
                f"Its mean is within {self.epsilon:g} of the {best} of all; "
                f"this statement is wrong with probability at most {self.delta:g}."
            )
        if self.verdict == "heuristic":
            return f"Its mean should be within {self.epsilon:g} of the {best} of all, but that is not a theorem."
        if self.certified_gap is None or self.pulls == 0:
            return f"Not certified to within {self.epsilon:g}: nothing can be said yet about how good it is."
        return (
            f"Not certified to within {self.epsilon:g}: so far its mean is proved to be within "
            f"{self.certified_gap:.4g} of the {best} of all."
        )

    def __str__(self) -> str:
        lines = [
            f"{self.best_arm}   {self.verdict}",
            self.promise,
            self.reason,
            f"Measurements spent: {self.pulls:,}",
            *([] if self.cost is None else [f"Money spent: {money(self.cost)}"]),
            *(["This holds if:"] if self.assumptions else []),
            *(f"  - {sentence}" for sentence in self.assumptions),
        ]
        return "\n".join(printable(line) for line in lines)

    def _repr_html_(self) -> str:
        """The answer and all that it rests on, for notebooks."""
        rows = [
            ("promise", self.promise),
            ("reason", self.reason),
            ("measurements spent", self.pulls),
            *([] if self.cost is None else [("money spent", money(self.cost))]),
            *(("holds if", sentence) for sentence in self.assumptions),
        ]
        return html_table((), rows, f"{self.best_arm}: {self.verdict}", most=len(rows))
