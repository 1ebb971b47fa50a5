"""What the elimination algorithms share: their state, the looks inside a round, and the words of the certificate.

A round fixes its allocation before its first reward. It may be judged at several looks, each a prefix with fixed
counts: its least squares is that of a fixed design, and its widths hold with probability 1 - delta_k / looks. So the
error probability of a round is divided by its looks, and nothing else changes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from surepick.core.arrays import IntArray, freeze, record
from surepick.core.design import Design, Embedding, IndependentArms
from surepick.core.observations import Observations
from surepick.core.plan import Plan
from surepick.core.step import Step
from surepick.errors import ContractError, InvalidInput
from surepick.policies import options
from surepick.policies.base import Claim, Problem, designed, trace_row
from surepick.policies.elimination.delta_spending import SCHEDULES, UNIONS, largest_spending, round_delta, union_size
from surepick.policies.elimination.rule import Comparison, intervals_after
from surepick.policies.options import check_options, one_of, option, whole
from surepick.policies.round_sizes import FLOORS, rounded, whole_pulls

STOPPINGS = ("certified", "rounds")


@record
class EliminationState:
    """Where an elimination algorithm stands.

    Args:
        round: k, the open round or the next one, from 1.
        active: S_k, indices of the arms not ruled out when round k started; after the end, the survivors.
        opened: the latest plan of the open round, None between rounds.
        seen: what was told in the open round so far.
        pulls: all pulls received.
        leader: the arm of highest score at the last look.
        gap: the leader is at most this much worse than the best arm, in reward units; None if nothing can be said.
        finished: why it stopped: "" while it runs, "certified", "single", "rounds" or "given".
        compressed: some round used an embedding in which not every list of means is representable.
        alarms: what the checks of the embedding found so far, in words.
    """

    round: int
    active: IntArray
    opened: Plan | None
    seen: Observations
    pulls: int
    leader: int
    gap: float | None
    finished: str
    compressed: bool = False
    alarms: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        freeze(self, active=np.int64)


@record
class RoundSettings:
    """The settings that every elimination algorithm with rounds shares.

    Args:
        problem: what is asked, its epsilon what is promised.
        slack: zeta, what rounding to whole pulls may cost, in (0, 1].
        schedule: delta_k: "convergent", "uniform" or "paper".
        union: events per look: "best-pairs", "paper" or "all".
        looks: how often a round is judged.
        floor: least round size: "support" (the rounding promise, evaluated) or "published" (2 p / zeta).
        stopping: "certified" (on realised widths, another round if need be) or "rounds" (the paper's n rounds).

    Raises:
        InvalidInput: a setting has no meaning.
    """

    problem: Problem
    slack: float = option(0.1, options.slack)
    schedule: str = option("convergent", one_of(*SCHEDULES))
    union: str = option("best-pairs", one_of(*UNIONS))
    looks: int = option(8, whole("a round is judged at least once."))
    floor: str = option("support", one_of(*FLOORS))
    stopping: str = option("certified", one_of(*STOPPINGS))

    def __post_init__(self) -> None:
        check_options(self)

    @property
    def epsilon(self) -> float:
        """What is promised, in reward units."""
        return self.problem.epsilon

    @property
    def num_rounds(self) -> int:
        """n = max(1, ceil(log2(2 R / epsilon))): after n rounds survivors are epsilon-best.

        Source: Algorithm 1, line 1, where R = 1.
        """
        return max(1, math.ceil(math.log2(2.0 * self.radius / self.epsilon)))

    @property
    def radius(self) -> float:
        """R, half a bound on the largest gap; without one 1, for the paper's h in [-1, 1], or epsilon if larger.

        Nothing in the guarantee depends on it: it only says at which accuracy the rounds start.
        """
        gap = self.problem.largest_gap
        return max(1.0, self.epsilon) if gap is None else gap / 2.0

    def accuracy(self, round_number: int) -> float:
        """t_k = R 2^-k: in round k every width is brought to t_k; rounds beyond the n-th repeat the last accuracy.

        Source: Algorithm 1, line 6 (2^-k).  Differs from the paper: scaled by R; repeated beyond n if need be.
        """
        return self.radius * 2.0 ** -min(round_number, self.num_rounds)

    def log_term(self, round_number: int, num_active: int) -> float:
        """L_k = log(looks M_k / delta_k), never below 0.

        Source: Algorithm 1, lines 3, 6 and 10 (M_k = |S_k|^2, one look).
        """
        events = self.looks * union_size(self.union, num_active, self.problem.num_arms)
        return math.log(events / round_delta(self.schedule, self.problem.delta, round_number, self.num_rounds))

    @property
    def spent(self) -> float:
        """The most that rounds, looks and pairs together can spend of the error probability, whatever the data."""
        return largest_spending(self.schedule, self.union, self.problem.delta, self.problem.num_arms)

    def first_look(self, whole_round: Plan) -> Plan:
        """The first part of a round, from a plan whose counts are those of all of it."""
        counts = whole_round.counts
        return _look(whole_round, counts, 1, max(1, min(self.looks, int(counts.max()))))


def initial_state(settings: RoundSettings) -> EliminationState:
    """All arms active; finished at once where the answer needs no pull."""
    finished, gap = settings.problem.answer_without_pulls()
    num_arms = settings.problem.num_arms
    return EliminationState(1, np.arange(num_arms), None, Observations.nothing(num_arms), 0, 0, gap, finished)


def round_size(settings: RoundSettings, round_number: int, *, value: float, bias: float, num_active: int) -> int:
    """N_k = ceil( 2 sigma^2 (1 + zeta) tau_k L_k / (t_k - eps_k)^2 ).

    Args:
        value: tau_k.
        bias: eps_k, in reward units.
        num_active: |S_k|.

    Raises:
        ContractError: eps_k >= t_k, the bias of misspecification leaves no room.

    Source: Algorithm 1, line 6.
    """
    accuracy = settings.accuracy(round_number)
    if bias >= accuracy:
        raise ContractError(
            f"misspecification can move a difference of two arms by {bias:g}, and this round must resolve "
            f"{accuracy:g}: no number of pulls would help. Raise epsilon, use a larger dimension, or a smaller valid "
            "norm bound."
        )
    log_term = settings.log_term(round_number, num_active)
    numerator = 2.0 * settings.problem.sigma**2 * (1.0 + settings.slack) * value * log_term
    return whole_pulls(numerator / (accuracy - bias) ** 2)


def open_round(
    settings: RoundSettings,
    state: EliminationState,
    *,
    embedded: Embedding | IndependentArms,
    design: Design,
    total: int,
    checkable: Callable[[IntArray], IntArray] = np.copy,
) -> Plan:
    """Round the design to whole pulls and ask for the first look (Algorithm 1, line 7).

    `checkable` spreads and adds pulls, so that a lack of fit can show.

    The floor of a round's size is that of `rounded`.
    """
    counts = rounded(settings.floor, design, embedded, state.active, total, slack=settings.slack)
    return settings.first_look(designed(state.round, checkable(counts), design, embedded))


def next_look(plan: Plan) -> Plan:
    """The part of the round that follows `plan`."""
    if plan.allocation is None or plan.look >= plan.looks:
        raise InvalidInput(f"round {plan.round} has no look after look {plan.look} of {plan.looks}.")
    return _look(plan, plan.allocation, plan.look + 1, plan.looks)


def _look(plan: Plan, allocation: IntArray, look: int, looks: int) -> Plan:
    done, until = (-(-allocation * part // looks) for part in (look - 1, look))
    return replace(plan, counts=until - done, look=look, looks=looks, allocation=allocation)


def conclude(
    settings: RoundSettings,
    state: EliminationState,
    plan: Plan,
    seen: Observations,
    comparison: Comparison,
    *,
    compressed: bool = True,
    alarms: tuple[str, ...] = (),
) -> Step[EliminationState]:
    """End the look: stop if the answer is certified or one arm is left, else go on with the round or open the next.

    Differs from the paper: it stops as soon as the realised widths, bias included, certify an epsilon-best arm, and
    goes on with another round if the last one does not; with stopping "rounds" it runs its n rounds as the paper does.
    """
    pooled = state.seen.plus(seen)
    closed = plan.look == plan.looks
    finished = _why_finished(settings, plan, comparison) if closed or settings.stopping == "certified" else ""
    over = closed or finished != ""
    gap = 0.0 if finished == "single" else comparison.gap
    after = EliminationState(
        round=state.round + 1 if over and not finished else state.round,
        active=comparison.survivors if over else state.active,
        opened=None if over else plan,
        seen=Observations.nothing(settings.problem.num_arms) if over else pooled,
        pulls=state.pulls + seen.total,
        leader=comparison.leader,
        gap=gap if math.isfinite(gap) else None,
        finished=finished,
        compressed=state.compressed or compressed,
        alarms=state.alarms + tuple(alarm for alarm in alarms if alarm not in state.alarms),
    )
    certifies = None if settings.stopping == "rounds" else settings.epsilon
    deciding = intervals_after(comparison, state.active, after.active, epsilon=certifies)
    return Step(after, trace_row(plan, after, pulls=pooled.total, gap=after.gap, alarms=alarms), deciding)


def _why_finished(settings: RoundSettings, plan: Plan, comparison: Comparison) -> str:
    if len(comparison.survivors) == 1:
        return "single"
    if settings.stopping == "certified":
        if comparison.gap <= settings.epsilon:
            return "certified"
        exhausted = settings.schedule == "uniform" and plan.round >= settings.num_rounds and plan.look == plan.looks
        return "rounds" if exhausted else ""
    return "rounds" if plan.round >= settings.num_rounds else ""


def claim(settings: RoundSettings, state: EliminationState, **more: Any) -> Claim:
    """What may be said where the algorithm stands; `more` are further fields of the claim."""
    return Claim(state.leader, state.finished, state.pulls, state.gap, settings.spent, **more)
