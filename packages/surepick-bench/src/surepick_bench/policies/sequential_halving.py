"""Sequential halving (Karnin, Koren & Somekh 2013): a budget in equal rounds, each keeps the better half."""

import math
from dataclasses import field

import numpy as np
from numpy.typing import ArrayLike

from surepick.core.observations import Observations
from surepick.core.plans import Plan, Step
from surepick.core.records import IntArray, frozen, record
from surepick.core.values import not_negative, positive_number, whole_number
from surepick.errors import InvalidInput
from surepick.policies.base import Claim, Problem, Spec, Traits, trace_row


@frozen
class HalvingState:
    """Where sequential halving stands."""

    round: int  # the round that is open, from 1
    active: IntArray  # indices of the arms that are still pulled
    seen: Observations  # everything told in the open round
    before: int  # pulls received in the rounds that are over
    leader: int  # leader, gap: as in `MeansState`
    gap: float | None
    finished: str  # why it stopped: "" while it runs, "budget", "single" or "given"

    @property
    def pulls(self) -> int:
        """Pulls received since the start."""
        return self.before + self.seen.total


@record
class SequentialHalving:
    """Spend the budget in ceil(log2 K) equal rounds; each pulls the arms left equally often and keeps the better half.

        pulls of each arm in a round = floor(budget / (arms left * ceil(log2 K)))

    Only the rewards of the round decide, as in the paper; of equal means the first stay. A round ends when every arm
    left has its pulls: what did not come is asked for again.

    It answers within a budget and certifies nothing, because its bound on the error (`halving_error_bound`) needs the
    gaps, which nobody knows. For an answer with a confidence, take a policy that stops by itself.

    Args:
        problem: what is asked. Only the words of the verdict use epsilon and the noise; delta is only reported; the gap
            bound is only used to answer at once when it is at most epsilon.
        budget: pulls in all, at least K ceil(log2 K).

    Raises:
        InvalidInput: a setting has no meaning, or the budget is too small for one pull of each arm in each round.

    Source: Karnin, Koren & Somekh (2013), Algorithm 2 (Sequential Halving).
    Cost: O(K log K) a round.
    """

    problem: Problem
    budget: int
    spec: Spec | None = field(default=None, compare=False, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        budget = whole_number("budget", self.budget, least=1, meaning="the pulls in all, which end the study.")
        object.__setattr__(self, "budget", budget)
        num_arms = self.problem.num_arms
        if num_arms * self.num_rounds > budget:
            raise InvalidInput(
                f"budget is {budget:,} pulls for {num_arms:,} arms; sequential halving spends it in "
                f"{self.num_rounds} equal rounds, the first of which pulls every arm. Give at least "
                f"{num_arms * self.num_rounds:,}."
            )

    @property
    def num_rounds(self) -> int:
        """ceil(log2 K)."""
        return (self.problem.num_arms - 1).bit_length()

    @property
    def traits(self) -> Traits:
        caveat = (
            f"It stops after at most {self.budget:,} measurements, however unclear things are then: the verdict will "
            "be heuristic. certified-independent measures until it can certify."
        )
        return Traits(stops="budget", certifies="nothing", caveats=(caveat,), most_rounds=self.num_rounds)

    def init(self) -> HalvingState:
        finished, gap = self.problem.answer_without_pulls()
        num_arms = self.problem.num_arms
        return HalvingState(1, np.arange(num_arms), Observations.nothing(num_arms), 0, 0, gap, finished)

    def ask(self, state: HalvingState) -> Plan:
        counts = np.zeros(self.problem.num_arms, np.int64)
        counts[state.active] = np.maximum(self._share(state) - state.seen.counts[state.active], 0)
        return Plan(round=state.round, counts=counts)

    def tell(self, state: HalvingState, plan: Plan, seen: Observations) -> Step[HalvingState]:
        pooled, active = state.seen.plus(seen), state.active
        scores = np.where(pooled.counts[active] > 0, pooled.means[active], -np.inf)
        ranked = active[np.argsort(-scores, kind="stable")]
        leader = int(ranked[0]) if pooled.total else state.leader
        if np.all(pooled.counts[active] >= self._share(state)):
            left = np.sort(ranked[: math.ceil(len(ranked) / 2)])  # Alg. 2: the better half by this round alone
            fresh, finished = Observations.nothing(self.problem.num_arms), "budget" if len(left) == 1 else ""
            after = HalvingState(state.round + 1, left, fresh, state.before + pooled.total, leader, None, finished)
        else:
            after = HalvingState(state.round, active, pooled, state.before, leader, None, "")
        return Step(after, trace_row(plan, after, pulls=pooled.total, gap=None))

    def claim(self, state: HalvingState) -> Claim:
        reason = self._what_can_be_said() if state.finished == "budget" else ""
        return Claim(state.leader, state.finished, state.pulls, state.gap, reason=reason)

    def _share(self, state: HalvingState) -> int:
        """Pulls of each arm in the open round."""
        return self.budget // (len(state.active) * self.num_rounds)

    def _what_can_be_said(self) -> str:
        """Why the answer is not certified, with the paper's bound for the hardest instance with one right answer."""
        gaps = np.full(self.problem.num_arms, self.problem.epsilon)
        gaps[0] = 0.0
        bound = halving_error_bound(gaps, budget=self.budget, sigma=self.problem.sigma)
        says = f"at most {bound:.3g}" if bound < 1.0 else "anything, because the bound is above 1"
        return (
            "The budget is spent. How likely the answer is wrong depends on gaps that nobody knows: if one candidate "
            f"were better than each of the {len(gaps) - 1:,} others by {self.problem.epsilon:g}, the chance of missing "
            f"it could be {says}. With smaller gaps the bound says less."
        )


def halving_error_bound(gaps: ArrayLike, *, budget: int, sigma: float = 0.5) -> float:
    """The paper's bound on the probability that sequential halving errs, at most 1: 1 for two best arms, 0 for one arm.

        3 log2(K) exp(-budget / (8 H2 (2 sigma)^2 log2 K)),   H2 = max over i > 1 of i / gap_i^2, gaps in rising order

    Karnin, Koren & Somekh (2013), Theorem 4.1; the factor (2 sigma)^2 is ours; pulls are whole, which it ignores.
    """
    ordered = np.sort(np.asarray(gaps, dtype=np.float64))
    if ordered.ndim != 1 or len(ordered) == 0 or not np.all(np.isfinite(ordered)) or ordered[0] != 0.0:
        raise InvalidInput(
            "gaps must be a list of finite numbers of which the smallest is 0: how much worse than the best arm each "
            "arm is, the best arm included."
        )
    not_negative("budget", budget, "the pulls in all.")
    positive_number("sigma", sigma, "the sub-Gaussian scale of a reward.")
    num_arms = len(ordered)
    if num_arms == 1:
        return 0.0
    if ordered[1] == 0.0:
        return 1.0
    rounds = (num_arms - 1).bit_length()
    hardness = float(np.max(np.arange(2, num_arms + 1) / ordered[1:] ** 2))
    return min(1.0, 3.0 * rounds * math.exp(-budget / (8.0 * hardness * (2.0 * sigma) ** 2 * rounds)))
