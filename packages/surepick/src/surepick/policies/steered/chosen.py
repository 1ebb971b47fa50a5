"""Whether the features say anything, by the results: what `assume="auto"` asks before it steers by them.

A class fits while its log marginal likelihood is near that of the best of all, means that share nothing included. A
study begins as `certified-independent` does. It steers by features once means that share nothing fit worse than some
class, and only where that is predicted to save measurements: so useless features cost next to nothing.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from surepick.assumptions.records import LEVEL, Assumption, Linear, Smooth
from surepick.core.observations import Observations
from surepick.core.records import FloatArray, IntArray
from surepick.embeddings.base import IndependentEmbedding
from surepick.embeddings.kernel_functions import GaussianKernel
from surepick.estimators.running_processes import MeanProcesses
from surepick.policies.base import Problem
from surepick.policies.carried.elimination import CarriedElimination
from surepick.policies.sequential.state import SequentialState, start_weights
from surepick.policies.steered.weights import SCALES

AUTO = "auto"
HEURISTIC_LENGTHS = (0.35, 0.7, 1.4, 2.8)  # of kernels, in units of the median distance of two arms
LEAST_LOOKS = 2  # before features steer: with one result a candidate no prediction is worth anything
HEURISTIC_LEFT = 1.0  # of the pulls so far: where less is to come without features, they would save little
HEURISTIC_WORTH = 1.0  # of what no structure is predicted to take: the most that features may be predicted to
HEURISTIC_DEAR = 1.5  # ... after which they are not used any more


def kernels(found: Smooth, features: FloatArray) -> list[Assumption]:
    """The class with Gaussian kernels of several lengths, the widest first."""
    usual = found.of(features)
    assert isinstance(usual, GaussianKernel)
    return [replace(found, kernel=_with_length(usual.gamma / factor**2)) for factor in HEURISTIC_LENGTHS]


def all_classes(features: FloatArray) -> list[Assumption]:
    """The classes among which results choose, the widest first."""
    return [*kernels(Smooth(), features), Linear(), Linear(level=False)]


def _with_length(gamma: float) -> GaussianKernel:
    """A kernel of about this gamma, with a length of three digits."""
    return GaussianKernel(0.5 / float(f"{(0.5 / gamma) ** 0.5:.3g}") ** 2)


def apart_log_likelihood(seen: Observations, sigma: FloatArray, size: float) -> float:
    """The largest log marginal likelihood of means that share a level alone: h ~ N(b, tau^2), b ~ N(0, (100 tau)^2).

    Args: as of `fitted`.
    """
    measured = np.flatnonzero(seen.counts)
    means, noise = seen.means[measured], sigma[measured] ** 2 / seen.counts[measured]
    scales = (SCALES * max(float(np.ptp(means)), size))[:, None] ** 2
    variances = noise + scales
    precision, level = np.sum(1.0 / variances, axis=1), LEVEL**2 * scales[:, 0]
    towards, grown = np.sum(means / variances, axis=1), 1.0 + level * precision
    fit = np.sum(means**2 / variances + np.log(variances), axis=1) + np.log(grown)
    return float(-0.5 * np.min(fit - level * towards**2 / grown))


def without_features(problem: Problem) -> CarriedElimination:
    """What measures where features say nothing."""
    return CarriedElimination(problem, IndependentEmbedding(problem.num_arms))


def fallen_back(plain: CarriedElimination, round_number: int, seen: Observations, starts: IntArray) -> SequentialState:
    """A study without features that knows these results and has no evidence: all processes start anew (line 13)."""
    state: SequentialState = plain.init()
    fresh = MeanProcesses(start_weights(starts), starts, np.zeros(len(starts)), ())
    whole = Observations(seen.counts, seen.sums)
    return replace(state, round=round_number, seen=whole, means=fresh, dim=len(starts))


def predicted_apart(plain: CarriedElimination, state: SequentialState) -> float:
    """Pulls that certifying the leader is predicted to take without features; infinite while nothing is told."""
    if not state.begun:
        return math.inf
    planner = plain._planner
    return planner.rest(state, planner.situation.guess(state.processes, state.seen)).num_pulls
