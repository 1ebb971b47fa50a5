"""Repeats against a declared scale: do they lie farther apart than it allows, and does one result stand out?

All of it rests on one inequality. If X is s-sub-Gaussian around m, and 0 <= a < 1,

    E exp(a (X - m)^2 / (2 s^2)) <= (1 - a)^(-1/2)                                    (S)

since the left-hand side is E exp(sqrt(a) g (X - m) / s) for an independent standard normal g, at most
E exp(a g^2 / 2). Nobody knows m; but the smallest value over all m bounds the value at the true one.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from surepick.core.arrays import FloatArray, freeze, record
from surepick.core.observations import Observations

SHARES = (0.9, 0.5, 0.2, 0.05)  # a; an equal part of the evidence for each
PRIOR = 0.1  # r: results that the guess of an unseen mean counts for
SURPRISE = 0.9  # a of the result that is looked at


@record
class Spread:
    """What repeats say against declared scales.

    Args:
        evidence: log E of all candidates together.
        worst: the candidate whose repeats speak most against its scale.
        within: SS of each, shape (K,), in squared reward units.
    """

    evidence: float
    worst: int
    within: FloatArray

    def __post_init__(self) -> None:
        freeze(self, within=np.float64)


def with_least_squares(seen: Observations) -> Observations:
    """The same, where sums of squares are unknown with the least that they can be: the results of a row are equal."""
    if seen.squares is not None:
        return seen
    return replace(seen, squares=seen.means * seen.sums, within=np.zeros(len(seen.counts)))


@np.errstate(over="ignore", invalid="ignore")
def spread_of(seen: Observations, scales: FloatArray) -> Spread:
    """How much the repeats of candidates speak against their declared scales.

        E_x(a) = (1 - a)^(n/2) exp(a SS / (2 s^2)),    SS = sum (r - rbar)^2
        E = mean over a in SHARES of ( mean over x of E_x(a) + product over x of E_x(a) ) / 2

    With the true mean in the place of rbar each factor is a supermartingale that starts at 1, by (S), whatever decides
    which candidate is measured next, and SS is no larger than the sum around it. So for s-sub-Gaussian rewards
    P(E >= 1/q at any time) <= q (Ville).

    Args:
        seen: everything told; without sums of squares the results of a row count as equal, which only lowers E.
        scales: s, shape (K,).

    Source: docs/certified-elimination.md, line 35; ours.
    """
    known = with_least_squares(seen)
    counts = known.counts.astype(np.float64)
    within = np.maximum(known.deviations - known.rounding, 0.0)
    parts, ratio = [], within / scales**2
    for share in SHARES:
        each = 0.5 * counts * math.log1p(-share) + 0.5 * share * ratio
        parts += [_log_mean(each), float(each.sum())]
    worst = int(np.argmax(np.where(counts > 1, ratio - counts, -np.inf)))
    return Spread(_log_mean(np.array(parts)), worst, within)


def _log_mean(logs: FloatArray) -> float:
    """log of the mean of exp(logs)."""
    top = float(logs.max())
    return top if not math.isfinite(top) else top + math.log(float(np.mean(np.exp(logs - top))))


def surprise(pulls: int, mean: float, others: float, others_mean: float, scale: float) -> float:
    """log E of one result of a candidate against the others of it: how much it stands out.

        E = sqrt(r / (n + r)) sqrt(1 - a) exp(D^2 / (2 s^2 (1/(a p) + 1/A))),    A = n^2 / (n + r),    r = PRIOR

    D is the distance of the result (the mean of p) from the mean of the n others, a = SURPRISE. For the true mean m of
    the candidate, M_n = sqrt(r / (n + r)) exp(A (m - mean)^2 / (2 s^2)) is a supermartingale in n that starts at 1 (a
    normal mixture), and the new result adds the factor sqrt(1 - a) exp(a p (x - m)^2 / (2 s^2)) of (S): their product
    has mean at most 1, and the smallest of it over m is E. Over K candidates the sum of the M_n has mean at most K. So
    P(E >= K / q) <= q for each result, whatever decided which candidate was measured and how often.

    Args:
        pulls: p, results that it averages.
        mean: it.
        others: n, other results of the candidate; with 0 nothing can be said.
        others_mean: their mean.
        scale: s.

    Source: docs/certified-elimination.md, line 36; ours.
    """
    if others <= 0:
        return -math.inf
    distance = abs(mean - others_mean) / scale
    weight = others**2 / (others + PRIOR)
    spread = 1.0 / (SURPRISE * pulls) + 1.0 / weight
    cost = 0.5 * math.log(PRIOR / (others + PRIOR)) + 0.5 * math.log1p(-SURPRISE)
    exponent = 0.5 * distance / spread * distance if math.isfinite(distance) else math.inf
    return cost + exponent
