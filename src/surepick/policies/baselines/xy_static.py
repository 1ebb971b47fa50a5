"""XY-static allocation (Soare, Lazaric & Munos 2014): one fixed design for all differences, until one arm is told."""

from __future__ import annotations

import math
from dataclasses import field, replace

import numpy as np

from surepick.core.arrays import FloatArray, IntArray, freeze, record
from surepick.core.design import Embedding
from surepick.core.observations import Observations
from surepick.core.plan import Plan
from surepick.core.step import Step
from surepick.designs import round_design, solve_design
from surepick.estimators import least_squares
from surepick.policies import options
from surepick.policies.base import Claim, Problem, Spec, Traits, designed, trace_row
from surepick.policies.baselines.linear import Linear, check_linear, judge, next_batch
from surepick.policies.model_checks import LINEAR, misfit, why_heuristic
from surepick.policies.options import one_of, option

CONSTANTS = ("paper", "published-code", "sub-gaussian")
RESOLUTION = 1000  # pulls per supported arm in which a design is written down
ROUNDING = 1e-9  # pulls


@record
class PhaseState:
    """Where an algorithm stands that follows fixed allocations.

    Args:
        round, leader, gap, finished: as in `MeansState`.
        active: the arms in question: not ruled out, or the leader and the open rivals.
        opened: the latest plan of the phase; its allocation holds for the whole phase. None between phases.
        seen: what was told in the phase.
        pulls: all pulls received.
        reached: max over pairs of ||y||^2_{A^-1} at the end of the phase before.
        alarms: what the check of linearity found so far, in words.
        looks: how often it was decided so far whether arms go or the study stops; 0 where no width depends on that.
    """

    round: int
    active: IntArray
    opened: Plan | None
    seen: Observations
    pulls: int
    reached: float
    leader: int
    gap: float | None
    finished: str
    alarms: tuple[str, ...] = ()
    looks: int = 0

    def __post_init__(self) -> None:
        freeze(self, active=np.int64)


@record
class XYStatic:
    """Follow the design that is best for all differences of arms, whatever the rewards are; stop when one arm is told.

        lambda = argmin over designs of max over pairs ||x - x'||^2 in A(lambda)^-1
        width(x, x') = 2 sqrt(2) sigma ||x - x'||_{A^-1} sqrt(log(6 n^2 K^2 / (pi^2 delta)))      ("paper")
        width(x, x') = sigma ||x - x'||_{A^-1} sqrt(2 log(pi^2 k^2 K^2 / (3 delta)))              ("published-code")
        width(x, x') = sigma ||x - x'||_{A^-1} sqrt(2 log(pi^2 n^2 (K - 1) / (6 delta)))          ("sub-gaussian")
        stop when score(x') - score(leader) + width(x', leader) <= epsilon for every x'

    The counts after n pulls are a function of n alone, so the least squares at each look is that of a fixed design. At
    the k-th look, with n pulls, a pair of the best arm errs beyond its width, on the side that harms, with probability
    at most (pi^2 delta / (6 n^2 K^2))^4 ("paper"), 3 delta / (pi^2 k^2 K^2) ("published-code") or
    6 delta / (pi^2 n^2 (K - 1)): for the K - 1 pairs and all looks below delta.

    "paper" is what the text says. "published-code" are the widths in the code with which Fiez et al. (2019) ran these
    algorithms; the text's take 5 to 7 times the pulls of that code (docs/peers.md). All three are proved.

    Args:
        problem: what is asked. The largest scale is used for all arms, the gap bound only to answer at once when it is
            at most epsilon.
        features: X, shape (K, D). The rewards are taken to be exactly linear in them.
        constants: "paper", "published-code" or "sub-gaussian", as above.
        growth: a batch has ceil(growth * n) pulls after n; at most 1000.
        tolerance: the relative gap to which the design is solved.

    Raises:
        InvalidInput: a setting has no meaning.

    Source: Soare, Lazaric & Munos (2014): XY-allocation, its stopping rule, Proposition 1 with c = 2 sqrt(2) sigma.
    Differs from its source: batches; an epsilon-stop (the paper's is that with epsilon = 0: it comes later); the design
    is solved and rounded, not built greedily; means that lie too far from any linear function make the verdict
    heuristic (`lack_of_fit`); a range check in place of an inverse.
    Cost: one design, then O(K d^2) a batch.
    """

    problem: Problem
    features: FloatArray
    constants: str = option("paper", one_of(*CONSTANTS))
    growth: float = option(0.1, options.growth)
    tolerance: float = option(0.01, options.tolerance)
    traits: Traits = field(init=False, compare=False, repr=False)
    spec: Spec | None = field(default=None, compare=False, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        check_linear(self, checks=(LINEAR,))

    def init(self) -> PhaseState:
        return initial_state(self.problem)

    def ask(self, state: PhaseState) -> Plan:
        if state.opened is not None:
            return next_part(state.opened, state, self.growth)
        design = solve_design(self.features, tolerance=self.tolerance)
        allocation = round_design(design.weights, RESOLUTION * int(np.count_nonzero(design.weights)))
        return next_part(designed(state.round, allocation, design, Embedding(self.features, 0.0)), state, self.growth)

    def tell(self, state: PhaseState, plan: Plan, seen: Observations) -> Step[PhaseState]:
        pooled = state.seen.plus(seen)
        fitted = least_squares(Embedding(self.features, 0.0), pooled)
        asked, pulls = self.problem, pooled.total
        multiplier = fixed_design_multiplier(self.constants, asked, pulls=pulls, look=state.looks + 1)
        found = judge(fitted, multiplier=multiplier, epsilon=asked.epsilon)
        alarms = misfit(plan, pooled, fitted, asked)
        after = PhaseState(
            round=state.round + 1,
            active=found.active,
            opened=plan,
            seen=pooled,
            pulls=pulls,
            reached=state.reached,
            leader=found.leader,
            gap=found.certified_gap,
            finished=found.finished,
            alarms=state.alarms or alarms,
            looks=state.looks + counts_looks(self.constants),
        )
        return Step(after, trace_row(plan, after, pulls=seen.total, gap=after.gap, alarms=alarms), found.deciding)

    def claim(self, state: PhaseState) -> Claim:
        return linear_claim(self, state)


def initial_state(problem: Problem, reached: float = 1.0) -> PhaseState:
    """All arms in question; finished at once where the answer needs no pull."""
    finished, gap = problem.answer_without_pulls()
    nothing = Observations.nothing(problem.num_arms)
    return PhaseState(1, np.arange(problem.num_arms), None, nothing, 0, reached, 0, gap, finished)


def linear_claim(policy: Linear, state: PhaseState) -> Claim:
    """What a state entitles to say: all of delta is spent, and a failed check of linearity makes it heuristic."""
    spent, assumptions, why = policy.problem.delta, policy.traits.assumptions, why_heuristic(state.alarms, "")
    return Claim(state.leader, state.finished, state.pulls, state.gap, spent, assumptions, why)


def next_part(whole: Plan, state: PhaseState, growth: float, *, most: int | None = None) -> Plan:
    """The next batch of a phase: what its allocation, scaled to m pulls, has beyond the pulls received.

        n_i(m) = ceil(m allocation_i / sum of allocation),   m = pulls of the phase + next batch (at most `most`)

    Source: ours; the counts are functions of m alone and never fall.
    """
    allocation = whole.counts if whole.allocation is None else whole.allocation
    wanted = state.seen.total + next_batch(state.pulls, growth)
    wanted = wanted if most is None else min(wanted, most)
    target = np.ceil(wanted * (allocation / allocation.sum()) - ROUNDING).astype(np.int64)
    if most is not None:
        target = np.minimum(target, allocation) if wanted < most else allocation
    missing = np.maximum(target - state.seen.counts, 0)
    return replace(whole, round=state.round, counts=missing, allocation=allocation)


def counts_looks(constants: str) -> bool:
    """Whether the widths depend on the number of the look."""
    return constants == "published-code"


def fixed_design_multiplier(constants: str, asked: Problem, *, pulls: int, look: int) -> float:
    """Width per unit of ||x - x'||_{A^-1} for a fixed design; see `XYStatic`.

    Args:
        constants: one of `CONSTANTS`.
        asked: has sigma, K and delta.
        pulls: n, all pulls received.
        look: k, counted from 1.
    """
    num_arms, pulls = asked.num_arms, max(pulls, 1)
    if constants == "paper":
        events = 6.0 / math.pi**2 * float(pulls) ** 2 * num_arms**2
        return 2.0 * math.sqrt(2.0) * asked.sigma * math.sqrt(math.log(events / asked.delta))
    if counts_looks(constants):
        events = math.pi**2 / 3.0 * float(look) ** 2 * num_arms**2
    else:
        events = math.pi**2 / 6.0 * float(pulls) ** 2 * max(num_arms - 1, 1)
    return asked.sigma * math.sqrt(2.0 * math.log(events / asked.delta))
