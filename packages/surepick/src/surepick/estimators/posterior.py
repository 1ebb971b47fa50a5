"""Guesses of the means, and what a comparison takes by them. For steering only: no certificate rests on it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from surepick.core.records import BoolArray, FloatArray, IntArray, record
from surepick.errors import ContractError

EVERYBODY = slice(None)
NUMBER = -1  # as the centre of a comparison: a number that is known
SAME_CHANCE = 1e-12  # chances nearer than this differ by rounding alone
FEW = 16  # arms of which there are less than one in so many have their errors formed alone

# Leads as guesses have them, lowered or raised by part of their standard errors.
HEURISTIC_CAUTION = 0.5  # by which leads are lowered where pulls are planned
HEURISTIC_DOUBT = 1.0  # within which a lead on the wrong side is taken for chance
HEURISTIC_LEAST_MARGIN = 0.25  # of a comparison's margin, mostly epsilon: what it is guessed to be at least


def _unknown(_: float) -> FloatArray:
    raise ContractError("nobody asks for the chances of these guesses.")


@record
class Posterior:
    """Guesses of the means, and of their errors."""

    scores: FloatArray  # f, (K,), in reward units; up to a constant where no number is compared with
    errors: Callable[[int], FloatArray]  # c or NUMBER -> standard errors of the difference of each arm to it, (K,)
    number: float = 0.0  # what arms are compared with where the centre is NUMBER, in the units of the scores
    # (c, arms j) -> the same of some arms, of the shape of these, where that is cheaper than of all
    few_errors: Callable[[int, IntArray], FloatArray] | None = None
    # epsilon -> the chance that each arm is within epsilon of the best one, (K,)
    chances: Callable[[float], FloatArray] = _unknown

    def leads(self, centre: int, *, high: bool = False, arms: IntArray | slice = EVERYBODY) -> FloatArray:
        """By how much each arm is below the centre, or above it where `high`, as guessed; shape of `arms`."""
        found: FloatArray = (self.number if centre == NUMBER else self.scores[centre]) - self.scores[arms]
        return -found if high else found

    def margins(
        self,
        centre: int,
        margin: float,
        arms: IntArray | None = None,
        *,
        high: bool = False,
        caution: float = 0.0,
        doubt: float = HEURISTIC_DOUBT,
        least: float = HEURISTIC_LEAST_MARGIN,
    ) -> FloatArray:
        """By how much the truth contradicts "j is better than c by more than the margin", as guessed; shape of `arms`.

            margin + max(0, f_c - f_j - caution se_j)                            where the centre leads
            max(margin + min(0, f_c - f_j + doubt se_j), least |margin|)         where it trails

        Where it trails, only as far as that is no chance: bets that do not believe in a deficit lose again and again on
        a rival that is better, but not by the margin. Where `high`, the same of "j is worse than c".
        """
        lead = self.leads(centre, high=high, arms=EVERYBODY if arms is None else arms)
        asked = np.arange(len(lead)) if arms is None else arms
        found = margin + np.maximum(lead, 0.0)
        if caution > 0.0:  # an error may be infinite
            found = margin + np.maximum(lead - caution * self.errors_of(centre, asked), 0.0)
        behind = np.flatnonzero(~(lead >= 0.0))
        short = lead[behind]
        if doubt > 0.0 and len(behind):
            short = np.minimum(short + doubt * self.errors_of(centre, asked[behind]), 0.0)
        found[behind] = margin + short
        return np.asarray(np.maximum(found, least * abs(margin)))

    def cautious(self, centre: int, margin: float, arms: IntArray, *, high: bool = False) -> FloatArray:
        """`margins` for planning: leads are lowered by part of their errors, and deficits are believed."""
        return self.margins(centre, margin, arms, high=high, caution=HEURISTIC_CAUTION, doubt=0.0)

    def errors_of(self, centre: int, arms: IntArray) -> FloatArray:
        """Standard errors of the differences of some arms to the centre, of the shape of `arms`."""
        if self.few_errors is not None and FEW * len(arms) < len(self.scores):
            return self.few_errors(centre, arms)
        return self.errors(centre)[arms]

    def likeliest(self, epsilon: float, away: BoolArray | None = None) -> int:
        """The arm, none that is away, likeliest to be within epsilon of the best; of equals the one that looks best."""
        chances = self.chances(epsilon) if away is None else np.where(away, -1.0, self.chances(epsilon))
        return int(max(np.flatnonzero(chances >= chances.max() - SAME_CHANCE), key=lambda arm: self.scores[arm]))

    def best_of(self, away: BoolArray) -> int:
        """The arm that looks best of those that are not away, shape (K,)."""
        return int(np.argmax(np.where(away, -np.inf, self.scores)))


def efforts(evidence: FloatArray, threshold: float) -> FloatArray:
    """sqrt(2 (need + min(need, 1)/2)), need = what the evidence lacks to the threshold: by how many standard errors the
    margin must exceed 0 for a batch to reject a rival; of the shape of `evidence`."""
    need = np.maximum(threshold - evidence, 1e-3)
    effort: FloatArray = np.sqrt(2.0 * (need + 0.5 * np.minimum(need, 1.0)))
    return effort
