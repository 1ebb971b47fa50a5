"""One e-process an arm, carried on, for arms that share nothing: weights on own and on candidates' pulls."""

from __future__ import annotations

import numpy as np

from surepick.core.arrays import FloatArray, IntArray, freeze, record
from surepick.core.observations import Observations
from surepick.estimators.noise_mgf import NoiseMgf
from surepick.estimators.normal_mgf import NormalMgf
from surepick.estimators.vector_processes import UNKNOWN, Given, given_to, without

ROUNDING = 1e-9  # of the flows: what their sums may be off by


@record
class MeanProcesses:
    """The processes of arms without vectors: F_j(j) = -T_j, and flows on the pulls of arms that were candidates.

    What an unmatched flow could hide is bounded only by the range of the rewards; without one U_jc is known only while
    F_j(c) = T_j and no other candidate's flow is left.

    Args:
        log_values: shape (K,).
        starts: shape (K,).
        taken: T, at least 0, in 1 / reward units, shape (K,).
        given: F_j(c), for each arm c that was a candidate and where something is left.
    """

    log_values: FloatArray
    starts: IntArray
    taken: FloatArray
    given: tuple[Given, ...]

    def __post_init__(self) -> None:
        freeze(self, log_values=np.float64, starts=np.int64, taken=np.float64)

    @staticmethod
    def started(num_arms: int, log_weight: float) -> MeanProcesses:
        """No evidence yet."""
        starts = np.ones(num_arms, np.int64)
        return MeanProcesses(np.full(num_arms, log_weight), starts, np.zeros(num_arms), ())

    def given_to(self, candidate: int) -> FloatArray:
        """F_j(candidate), shape (K,)."""
        return given_to(self.given, candidate, len(self.taken))

    def others_than(self, candidate: int) -> dict[int, FloatArray]:
        """F_j of the other arms that were candidates, where some flow is left."""
        return {one.arm: one.flows for one in self.given if one.arm != candidate and one.flows.any()}

    def restarted(self, arms: IntArray, log_weights: FloatArray) -> MeanProcesses:
        """The processes with a new start of some arms, each with its weight; what they held counts no more."""
        log_values, taken, starts = np.array(self.log_values), np.array(self.taken), np.array(self.starts)
        log_values[arms] = log_weights
        starts[arms] += 1
        taken[arms] = 0.0
        return MeanProcesses(log_values, starts, taken, without(self.given, arms))

    def after(
        self,
        arms: IntArray,
        taken: FloatArray,
        given: dict[int, FloatArray],
        seen: Observations,
        noise_mgf: NoiseMgf | NormalMgf,
    ) -> MeanProcesses:
        """The processes after a batch: T_j and F_j(c) become what was decided before its first reward.

        Args:
            arms: the m arms whose processes bet, shape (m,).
            taken: their T after the batch, shape (m,); as it was for arms without a pull in the batch.
            given: candidate -> their flow on its pulls after the batch, shape (m,); only of candidates with a pull.
            seen: the batch, with squares where rewards have a range.
            noise_mgf: what may be assumed of the noise, from before the batch.

        Raises:
            ValueError: a flow changes on an arm without a pull.
        """
        log_values, whole = np.array(self.log_values), np.array(self.taken)
        named = dict.fromkeys([*(one.arm for one in self.given), *given])
        flows = {arm: np.array(self.given_to(arm)) for arm in named}
        log_values[arms] += _told(taken - whole[arms], -1.0, arms, seen, noise_mgf.own)
        whole[arms] = taken
        for arm, flow in given.items():
            log_values[arms] += _told(flow - flows[arm][arms], 1.0, np.full(len(arms), arm), seen, noise_mgf)
            flows[arm][arms] = flow
        left = tuple(Given(arm, flow) for arm, flow in flows.items() if flow.any())
        return MeanProcesses(log_values, self.starts, whole, left)

    def with_flows(
        self, arms: IntArray, taken: FloatArray, given: dict[int, FloatArray], gained: FloatArray
    ) -> MeanProcesses:
        """The processes after a batch whose weights were placed elsewhere, in blocks.

        Args:
            arms: the m arms whose processes bet, shape (m,).
            taken: their T after the batch, shape (m,).
            given: candidate -> their flow on its pulls after the batch, shape (m,).
            gained: sum w r - sum cost of the batch, shape (m,).
        """
        log_values, whole = np.array(self.log_values), np.array(self.taken)
        log_values[arms] += gained
        whole[arms] = taken
        flows = {arm: np.array(self.given_to(arm)) for arm in dict.fromkeys([*(one.arm for one in self.given), *given])}
        for arm, flow in given.items():
            flows[arm][arms] = flow
        left = tuple(Given(arm, flow) for arm, flow in flows.items() if flow.any())
        return MeanProcesses(log_values, self.starts, whole, left)

    def upper_bounds(
        self, candidate: int, threshold: FloatArray | float, span: tuple[float, float] | None = None
    ) -> FloatArray:
        """U_j = min over T of (threshold - log value + B(T)) / T, and its limit for large T; shape (K,).

            B(T) = max of sum_x D_x h_x over the means that are possible,   D_x = F_j(x) - T 1{x = c} + T 1{x = j}

        With a range of the rewards B is a sum over the arms, linear in T but at T_j and F_j(c), so that one of these,
        a T near 0 or the limit is best. Without one it is 0 where the flow is matched and infinite elsewhere, and U is
        UNKNOWN there.

        Args:
            candidate: c.
            threshold: log(1/delta) of each arm, shape (K,), or of all alike.
            span: the range of the rewards, or of the rewards with their sign turned; None: there is none.

        Cost: O(h K).
        """
        lack, there = threshold - self.log_values, self.given_to(candidate)
        others = list(self.others_than(candidate).values())
        if span is None:
            matched = (self.taken > 0.0) & (there == self.taken)
            for flow in others:
                matched &= flow == 0.0
            bounds = np.divide(lack, self.taken, out=np.full_like(lack, UNKNOWN), where=matched)
        else:
            flows = np.array(others).reshape(len(others), len(lack))
            above, below = np.maximum(flows, 0.0).sum(axis=0), np.maximum(-flows, 0.0).sum(axis=0)
            bounds = np.full_like(lack, span[1] - span[0])
            for amount in (np.zeros_like(lack), self.taken, there):
                moved, left = amount - self.taken, there - amount
                gained = above + np.maximum(moved, 0.0) + np.maximum(left, 0.0)
                lost = below + np.maximum(-moved, 0.0) + np.maximum(-left, 0.0)
                missed = _largest_sum(gained, lost, span)
                limit = np.where((lack + missed < 0.0) & (amount == 0.0), -UNKNOWN, UNKNOWN)
                found = np.divide(lack + missed, amount, out=limit, where=amount > 0.0)
                bounds = np.minimum(bounds, found)
        bounds[candidate] = 0.0
        return np.asarray(np.clip(bounds, -UNKNOWN, UNKNOWN))


def _largest_sum(gained: FloatArray, lost: FloatArray, span: tuple[float, float]) -> FloatArray:
    """The largest sum_x D_x h_x for means in [low, high] or in [-high, -low], with the sums of D's positive and
    negative parts: it is not known here whether rewards had their sign turned."""
    low, high = span
    rounding = ROUNDING * (gained + lost) * max(abs(low), abs(high))
    return np.asarray(np.maximum(gained * high - lost * low, lost * high - gained * low) + rounding)


def _told(
    change: FloatArray, sign: float, arms: IntArray, seen: Observations, noise_mgf: NoiseMgf | NormalMgf
) -> FloatArray:
    """sum w r - sum cost(w) of the pulls of each arm, all with the weight that makes its flow change by that much."""
    counts = seen.counts[arms]
    moved = change != 0.0
    if np.any(moved & (counts == 0)):
        raise ValueError("a flow changes on an arm that was not pulled.")
    each = np.divide(np.abs(change), counts, out=np.zeros_like(change), where=moved)
    cost = noise_mgf.total(each, arms, seen)
    return np.asarray(np.where(moved, sign * change * seen.means[arms] - cost, 0.0))
