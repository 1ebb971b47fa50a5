"""Evidence of two arms where measurements of a block share an effect: they are compared within blocks only."""

from __future__ import annotations

import numpy as np

from surepick.core.arrays import FloatArray
from surepick.core.observations import BlockTotals, Observations
from surepick.core.plan import Blocking
from surepick.errors import InvalidInput
from surepick.estimators import e_values
from surepick.noise import known_scale
from surepick.policies.base import Problem
from surepick.policies.block_equations import equations
from surepick.policies.questions.sheets import Bet
from surepick.questions import constraints_of, number_of


def gains_in_blocks(
    seen: Observations, scales: FloatArray, bet: Bet, margins: FloatArray, caution: float
) -> FloatArray:
    """The log e-values of a batch for one bet, shape (K,); 0 for arms that do not bet.

        L = sum_B w_j w_c / (w_j + w_c),   Q = sum_B w_j w_c / (w_j + w_c) (y_j(B) - y_c(B)),   w = n(B) / s^2
        gain = l (L margin - Q) - l^2 L / 2,    l = kappa times the guessed margin

    What all rewards of a block share drops out of y_j(B) - y_c(B), the means of both arms in block B.

    Args:
        seen: the batch, rewards negated where the bet is high; without blocks it is a single one.
        scales: s, sub-Gaussian, shape (K,), in reward units.
        bet: its centre is an arm.
        margins: guesses from before the batch of what the truth adds to the bet's margin, shape (K,).
        caution: kappa.

    Source: docs/questions.md, line 19; docs/certified-elimination.md, lines 24 and 25.
    """
    gains = np.zeros(len(scales))
    blocks = BlockTotals.one(seen.counts, seen.sums) if seen.blocks is None else seen.blocks
    arms = np.flatnonzero(bet.arms & (margins > 0.0) & (seen.counts > 0))
    if len(arms) == 0 or seen.counts[bet.centre] == 0:
        return gains
    found = equations(blocks, scales, bet.centre, arms, [])
    whole, drawn = found.matrix[:, 0, 0], found.totals[:, 0]
    placed = caution * margins[arms] * whole
    costs = 0.5 * caution * margins[arms] * placed
    shrunk, _ = e_values.enough(placed, margins[arms], costs, bet.needs[arms])
    levels = np.divide(shrunk, whole, out=np.zeros_like(whole), where=whole > 0.0)
    gains[arms] = levels * (whole * bet.margin - drawn) - found.cost(levels[:, None])
    return np.minimum(gains, e_values.CERTAIN)


def check_blocks(problem: Problem, blocking: Blocking | None, *, features: bool) -> None:
    """Refuse blocks where their effects would not drop out.

    Raises:
        InvalidInput: there is a threshold or a constraint, the scale of the noise is not known, or features are used.
    """
    if blocking is None:
        return
    if number_of(problem) is not None:
        raise InvalidInput(
            f"a {blocking.name} may shift all of its measurements, and a threshold does not shift with them: measure a "
            "control in the place of the threshold (control=ID, --control ID), or leave blocks out."
        )
    if constraints_of(problem.question):
        raise InvalidInput(
            f"a {blocking.name} may shift the quantities of the constraints too, and their bounds do not shift with "
            "them: leave blocks out."
        )
    if not known_scale(problem.noise):
        raise InvalidInput(
            "blocks of noise whose scale nobody knows are compared for question 'best' only, so far: declare "
            "subgaussian:SIGMA, the scale of measurements in the same block."
        )
    if features:
        raise InvalidInput(
            "blocks are compared without features where the question is another than 'best', so far: take "
            "certified-independent (--policy certified-independent)."
        )
