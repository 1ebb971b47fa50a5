"""What the certifying policies share: their state, how a batch moves it, and what it entitles them to claim.

A candidate is certified by one e-process for each rival (docs/certified-elimination.md; the lines named here are its).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from surepick.core.observations import Observations
from surepick.core.plans import CandidateBounds, Intervals, Plan, Step
from surepick.core.records import IntArray, freeze, record
from surepick.errors import ContractError, InvalidInput
from surepick.estimators import Evidence
from surepick.estimators.e_processes import Collected, EProcesses, processes_of
from surepick.noise import failure_probability
from surepick.policies.base import Claim, Problem, check_arms, trace_row
from surepick.policies.certified import sampling_rule
from surepick.policies.model_checks import with_failed_checks
from surepick.policies.options import check_options

# --- Epochs: the candidates that may be recommended, the weight that each one spends, and the evidence for it.

HEURISTIC_WEIGHT_RATIO = 0.5  # of the weights of one epoch and the one before


def weight_of(number: int) -> float:
    """p_e = (1 - r) r^e of the epoch after so many others: the weights of all that could ever open sum to 1.

    Source: docs/certified-elimination.md, line 6.
    """
    return (1.0 - HEURISTIC_WEIGHT_RATIO) * HEURISTIC_WEIGHT_RATIO**number


def log_weight_of(number: int) -> float:
    """log p_e, finite."""
    return math.log(max(weight_of(number), sys.float_info.min))


def open_test(epochs: Collected, candidate: int, num_arms: int) -> Collected:
    """The epochs with a new one for the candidate, whose evidence starts at its weight: nothing seen so far counts.

    Source: docs/certified-elimination.md, lines 5 and 6.
    """
    if any(one.name == str(candidate) for one in epochs):
        raise ContractError(
            f"arm {candidate} has an epoch already; a second one would spend its weight twice (line 6)."
        )
    if math.fsum(map(weight_of, range(len(epochs) + 1))) > 1.0:
        raise ContractError("the weights of the epochs exceed 1; the error probability would exceed delta (line 6).")
    return (*epochs, processes_of((), candidate, num_arms, log_weight_of(len(epochs))))


FEW = 4096  # arms on which all bets go on: it costs little


@record
class CertifiedState:
    """Where a certified elimination stands."""

    round: int  # the next batch, from 1
    seen: Observations  # everything told so far; steers, and never enters a later batch's evidence
    epochs: Collected  # the evidence for each candidate tried so far, named after it, in the order in which they opened
    candidate: int  # the arm that the last batch was to certify; -1 before the first
    dim: int  # dimension of the last batch's embedding; 0 before the first
    leader: int  # the arm that would be recommended now
    active: IntArray  # the candidate and the rivals that may still be better by more than epsilon
    finished: str  # why it stopped: "" while it runs, "certified", "single" or "given"
    compressed: bool = False  # some batch used the features, so that the evidence rests on what the embedding assumes
    alarms: tuple[str, ...] = ()  # what the checks of the embedding found so far, in words

    def __post_init__(self) -> None:
        freeze(self, active=np.int64)

    @property
    def pulls(self) -> int:
        """All pulls received."""
        return self.seen.total


def delta_for_test(problem: Problem) -> float:
    """delta, less what a pilot of the noise may fail with (line 9)."""
    failure = failure_probability(problem.noise, problem.delta)
    if problem.delta <= failure:
        raise InvalidInput(
            f"the noise's pilot may fail with probability {failure:g}, and delta is {problem.delta:g}: nothing is left "
            "for the test. Raise delta, or repeat the pilot with a smaller one."
        )
    return problem.delta - failure


def check_certifying(policy: Any) -> None:
    """Refuse settings without meaning, and an embedding of which nothing bounds what an inexact weight misses."""
    check_arms(policy.problem, policy.embedding.num_arms)
    check_options(policy)
    if policy.dim is not None:
        policy.embedding.at(policy.dim)
    if policy.embedding.norm_bound is None and policy.embedding.traits.family != "independent":
        raise InvalidInput(
            "the embedding declares no norm bound, so what an inexact weight misses cannot be bounded. Give "
            "norm_bound, or IndependentEmbedding."
        )
    delta_for_test(policy.problem)


def threshold_of(problem: Problem) -> float:
    """log(1/delta), with the delta that is left for the test."""
    return -math.log(delta_for_test(problem))


def initial_state(problem: Problem) -> CertifiedState:
    """Nothing seen; finished at once where the answer needs no pull."""
    finished, _ = problem.answer_without_pulls()
    nothing = Observations.nothing(problem.num_arms)
    return CertifiedState(1, nothing, (), -1, 0, 0, np.arange(problem.num_arms), finished)


def opens(state: CertifiedState, candidate: int, predicted: float) -> bool:
    """Whether the candidate's epoch opens before this batch: a function of the past alone (line 5)."""
    enough = state.seen.total >= sampling_rule.HEURISTIC_SHORTEST_EPOCH * predicted
    return enough and all(one.name != str(candidate) for one in state.epochs) and weight_of(len(state.epochs)) > 0.0


def current_test(state: CertifiedState, candidate: int) -> EProcesses:
    """The candidate's epoch, or the one that would be opened for it: nothing seen so far counts (line 5)."""
    return processes_of(state.epochs, candidate, len(state.seen.counts), log_weight_of(len(state.epochs)))


def concluded(
    problem: Problem,
    state: CertifiedState,
    plan: Plan,
    seen: Observations,
    *,
    evidence: Callable[[int, IntArray], Evidence],
    leader: int,
    compressed: bool,
    alarms: tuple[str, ...],
    also: tuple[int, ...] = (),
) -> Step[CertifiedState]:
    """The state after a batch, and its row of the trace.

    A rival that is rejected stays so. Of more than FEW arms nothing more is bet on it, and its evidence stays what it
    was; only the intervals go on with the bets on everybody, for whoever asks for them.
    """
    epochs, num_arms = state.epochs, len(seen.counts)
    if plan.candidate is not None and opens(state, plan.candidate, plan.predicted_pulls or 0.0):
        for candidate in (plan.candidate, *also):  # before the batch: lines 5 and 6
            epochs = open_test(epochs, candidate, num_arms)
    everybody, nobody = np.arange(num_arms), np.empty(0, np.int64)
    few, threshold = num_arms <= FEW, threshold_of(problem)
    still_open = {int(one.name): everybody if few else one.open_rivals(threshold) for one in epochs}
    found = {candidate: evidence(candidate, rivals) for candidate, rivals in still_open.items()}
    past = {int(one.name): nobody if few else np.flatnonzero(one.rejected(threshold)) for one in epochs}
    epochs = tuple(one.after(found[int(one.name)].gains) for one in epochs)
    candidate = -1 if plan.candidate is None else plan.candidate
    certified = next((one for one in epochs if len(one.open_rivals(threshold)) == 0), None)  # line 8
    if certified is not None:
        candidate = leader = int(certified.name)
    after = CertifiedState(
        round=state.round + (seen.total > 0),
        seen=state.seen.plus(seen),
        epochs=epochs,
        candidate=candidate,
        dim=plan.dim,
        leader=leader,
        active=_active(epochs, candidate, leader, num_arms, threshold),
        finished="" if certified is None else "certified",
        compressed=state.compressed or compressed,
        alarms=with_failed_checks(state.alarms, alarms),
    )

    def deciding(before: Intervals | None) -> Intervals:
        whole = {candidate: one.plus(evidence(candidate, past[candidate])) for candidate, one in found.items()}
        return intervals_of(problem, after, whole, before)

    gap = certified_gap(problem, after.finished)
    return Step(after, trace_row(plan, after, pulls=seen.total, gap=gap, alarms=after.alarms), deciding)


def _active(epochs: Collected, candidate: int, leader: int, num_arms: int, threshold: float) -> IntArray:
    possible = ~processes_of(epochs, candidate, num_arms).rejected(threshold)
    possible[[candidate, leader]] = True
    return np.flatnonzero(possible)


def intervals_of(
    problem: Problem, after: CertifiedState, found: Mapping[int, Evidence], before: Intervals | None
) -> Intervals:
    """The rivals of the candidate, and by how much each can be better than it at most (line 10).

    U_j = min over batches of  epsilon + (log(1/delta) - log(p_c E_j)) / sum of t      rejected: U_j <= epsilon
    """
    known = {} if before is None else {one.candidate: one for one in before.candidates}
    num_arms, epsilon = problem.num_arms, problem.epsilon
    zeros, unknown, nothing = (np.full(num_arms, each) for each in (0.0, np.inf, np.nan))
    bounds = (
        known.get(int(one.name))
        or CandidateBounds(int(one.name), zeros, zeros, unknown, nothing, np.full(num_arms, log_weight_of(number)))
        for number, one in enumerate(after.epochs)
    )
    candidates = tuple(_tightened(problem, one, found[one.candidate]) for one in bounds)
    current = next((one for one in candidates if one.candidate == after.candidate), None)
    if current is None:
        nobody, allowed = np.full(num_arms, -1), np.full(num_arms, epsilon)
        return Intervals(np.arange(num_arms), nobody, nothing, nothing, nothing, allowed, candidates)
    rivals = np.flatnonzero(np.arange(num_arms) != current.candidate)
    widest, leads = current.bounds[rivals], current.leads[rivals]
    return Intervals(
        arms=rivals,
        comparators=np.full(len(rivals), current.candidate),
        leads=leads,
        widths=widest + leads,
        margins=epsilon - widest,
        allowed=np.full(len(rivals), epsilon),
        candidates=candidates,
    )


def _tightened(problem: Problem, known: CandidateBounds, batch: Evidence) -> CandidateBounds:
    """The bounds of a candidate after one more batch."""
    bets, drawn, log_e_values = known.bets + batch.bets, known.drawn + batch.drawn, known.log_e_values + batch.gains
    told = bets > 0.0
    share = np.where(told, bets, 1.0)
    bounds = np.where(told, problem.epsilon + (threshold_of(problem) - log_e_values) / share, np.inf)
    better = bounds < known.bounds
    leads = np.where(better, -drawn / share, known.leads)
    return CandidateBounds(known.candidate, bets, drawn, np.where(better, bounds, known.bounds), leads, log_e_values)


def certified_gap(problem: Problem, finished: str) -> float | None:
    """The certified shortfall of the leader, None if nothing can be said."""
    return {"single": 0.0, "certified": problem.epsilon}.get(finished, problem.largest_gap)


def claim(
    problem: Problem,
    state: CertifiedState,
    *,
    needed: tuple[str, ...],
    why_heuristic: str,
    remark: Callable[[], str] = str,
) -> Claim:
    """What a state entitles to say."""
    weights = math.fsum(map(weight_of, range(len(state.epochs))))
    return Claim(
        leader=state.leader,
        finished=state.finished,
        pulls=state.pulls,
        gap=certified_gap(problem, state.finished),
        spent=failure_probability(problem.noise, problem.delta) + delta_for_test(problem) * weights,
        assumptions=needed,
        why_heuristic=why_heuristic,
        remark=remark,
    )
