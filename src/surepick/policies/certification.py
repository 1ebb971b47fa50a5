"""What the certifying policies share: their state, how a batch moves it, and the words of the certificate.

A candidate is certified by one e-process for each rival (docs/certified-elimination.md; the lines named here are its).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping

import numpy as np

from surepick.errors import InvalidInput
from surepick.estimators import Evidence
from surepick.intervals import Intervals, Trial
from surepick.noise import Noise, failure_probability
from surepick.policies import steering
from surepick.policies.answers import answer_without_pulls, assumptions_for, verdict
from surepick.policies.belief import with_alarms
from surepick.policies.epochs import Epoch, advanced, epoch_of, next_weight, opened, start_of
from surepick.policies.protocol import trace_row
from surepick.records import Certificate, FloatArray, IntArray, Observations, Plan, RoundRecord, Step, freeze, record

FEW = 4096  # arms on which all bets go on: it costs little


@record
class CertifiedState:
    """Where a certified elimination stands.

    Args:
        round: the next batch, from 1.
        seen: everything told so far; steers, and never enters a later batch's evidence.
        epochs: the candidates tried so far, with their evidence.
        candidate: the arm that the last batch was to certify; -1 before the first.
        dim: dimension of the last batch's embedding; 0 before the first.
        leader: the arm that would be recommended now.
        active: the candidate and the rivals that may still be better by more than epsilon.
        finished: why it stopped: "" while it runs, "certified", "single" or "given".
        compressed: some batch used the features, so that the evidence rests on what the embedding assumes.
        alarms: what the checks of the embedding found so far, in words.
    """

    round: int
    seen: Observations
    epochs: tuple[Epoch, ...]
    candidate: int
    dim: int
    leader: int
    active: IntArray
    finished: str
    compressed: bool = False
    alarms: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        freeze(self, active=np.int64)


def delta_for_test(delta: float, noise: Noise) -> float:
    """delta, less what a pilot of the noise may fail with (line 9).

    Raises:
        InvalidInput: nothing is left.
    """
    left = delta - failure_probability(noise)
    if left <= 0.0:
        raise InvalidInput(
            f"the noise's pilot may fail with probability {failure_probability(noise):g}, and delta is {delta:g}: "
            "nothing is left for the test. Raise delta, or repeat the pilot with a smaller one."
        )
    return left


def capped(total: int, weights: FloatArray, *, largest_batch: int | None, reserve: float) -> int:
    """Pulls of a batch within the largest one, reserved pulls included; at least one for each arm of the design."""
    limit = total if largest_batch is None else int(largest_batch / (1.0 + reserve))
    return max(min(total, limit), int(np.count_nonzero(weights)))


def initial_state(num_arms: int, epsilon: float, gap_bound: float | None) -> CertifiedState:
    """Nothing seen; finished at once where the answer needs no pull."""
    finished, _ = answer_without_pulls(num_arms, epsilon, gap_bound)
    nothing = Observations.nothing(num_arms)
    return CertifiedState(1, nothing, (), -1, 0, 0, np.arange(num_arms), finished)


def opens(state: CertifiedState, candidate: int, predicted: float) -> bool:
    """Whether the candidate's epoch opens before this batch: a function of the past alone (line 5).

    Args:
        predicted: pulls that settling its rivals is predicted to take still.
    """
    enough = state.seen.total >= steering.HEURISTIC_SHORTEST_EPOCH * predicted
    return enough and epoch_of(state.epochs, candidate) is None and next_weight(state.epochs) > 0.0


def epoch_ahead(state: CertifiedState, candidate: int, num_arms: int) -> Epoch:
    """The candidate's epoch, or the one that would be opened for it."""
    epoch = epoch_of(state.epochs, candidate)
    if epoch is not None:
        return epoch
    start = math.log(max(next_weight(state.epochs), sys.float_info.min))
    return Epoch(candidate, 0.0, np.full(num_arms, start), np.empty(0, np.int64))


def concluded(
    state: CertifiedState,
    plan: Plan,
    seen: Observations,
    *,
    evidence: Callable[[int, IntArray], Evidence],
    threshold: float,
    epsilon: float,
    leader: int,
    compressed: bool,
    alarms: tuple[str, ...],
    gap: Callable[[str], float | None],
    also: tuple[int, ...] = (),
) -> Step[CertifiedState]:
    """The state after a batch, and its row of the trace.

    A rival that is settled stays so. Of more than FEW arms nothing more is bet on it, and its evidence stays what it
    was; only the intervals go on with the bets on everybody, for whoever asks for them.

    Args:
        also: further candidates whose epochs open with that of the plan's, chosen from the past.
        evidence: (candidate, rivals) -> what the batch says for it against these (lines 2 to 4), and nothing of others.
        threshold: log(1/delta).
        epsilon: the shortfall that is tolerated, in reward units.
        leader: the arm of highest score now.
        compressed: the batch used the features.
        alarms: what the checks found in it.
        gap: why it stopped -> certified shortfall of the leader.
    """
    epochs, num_arms = state.epochs, len(seen.counts)
    if plan.candidate is not None and opens(state, plan.candidate, plan.value or 0.0):
        for candidate in (plan.candidate, *also):  # before the batch: lines 5 and 6
            epochs = opened(epochs, candidate, num_arms)
    everybody, nobody = np.arange(num_arms), np.empty(0, np.int64)
    few = num_arms <= FEW
    found = {one.candidate: evidence(one.candidate, everybody if few else one.unsettled()) for one in epochs}
    past = {one.candidate: nobody if few else one.settled for one in epochs}
    epochs = advanced(epochs, {candidate: one.gains for candidate, one in found.items()}, threshold)
    candidate = -1 if plan.candidate is None else plan.candidate
    certified = next((epoch for epoch in epochs if len(epoch.unsettled()) == 0), None)  # line 8
    if certified is not None:
        candidate = leader = certified.candidate
    after = CertifiedState(
        round=state.round + (seen.total > 0),
        seen=state.seen.plus(seen),
        epochs=epochs,
        candidate=candidate,
        dim=plan.dim,
        leader=leader,
        active=_active(epochs, candidate, leader, num_arms),
        finished="" if certified is None else "certified",
        compressed=state.compressed or compressed,
        alarms=with_alarms(state.alarms, alarms),
    )

    def deciding(before: Intervals | None) -> Intervals:
        whole = {candidate: one.plus(evidence(candidate, past[candidate])) for candidate, one in found.items()}
        return intervals_of(after, whole, before, threshold=threshold, epsilon=epsilon)

    return Step(after, _row(plan, seen, after, gap(after.finished)), deciding)


def _active(epochs: tuple[Epoch, ...], candidate: int, leader: int, num_arms: int) -> IntArray:
    epoch = epoch_of(epochs, candidate)
    if epoch is None:
        return np.arange(num_arms)
    possible = np.ones(num_arms, bool)
    possible[epoch.settled] = False
    possible[[candidate, leader]] = True
    return np.flatnonzero(possible)


def intervals_of(
    after: CertifiedState,
    found: Mapping[int, Evidence],
    before: Intervals | None,
    *,
    threshold: float,
    epsilon: float,
) -> Intervals:
    """The rivals of the candidate, and by how much each can be better than it at most (line 10).

        U_j = min over batches of  epsilon + (log(1/delta) - log(p_c E_j)) / sum of t      settled: U_j <= epsilon

    Args:
        after: the state after the batch.
        found: candidate -> what the batch says for it against everybody.
        before: the intervals of the batch before, with the trials of all candidates.
        threshold: log(1/delta).
        epsilon: the shortfall that is tolerated, in reward units.
    """
    known = {} if before is None else {trial.candidate: trial for trial in before.trials}
    num_arms = len(after.seen.counts)
    trials = tuple(
        _tried(epoch, known.get(epoch.candidate) or _untried(epoch, num_arms), found, threshold, epsilon)
        for epoch in after.epochs
    )
    trial = next((one for one in trials if one.candidate == after.candidate), None)
    if trial is None:
        nobody, nothing = np.full(num_arms, -1), np.full(num_arms, np.nan)
        allowed = np.full(num_arms, epsilon)
        return Intervals(np.arange(num_arms), nobody, nothing, nothing, nothing, allowed, trials)
    rivals = np.flatnonzero(np.arange(num_arms) != trial.candidate)
    bounds, leads = trial.bounds[rivals], trial.leads[rivals]
    return Intervals(
        arms=rivals,
        witnesses=np.full(len(rivals), trial.candidate),
        leads=leads,
        widths=bounds + leads,
        margins=epsilon - bounds,
        allowed=np.full(len(rivals), epsilon),
        trials=trials,
    )


def _untried(epoch: Epoch, num_arms: int) -> Trial:
    zeros, unknown = np.zeros(num_arms), np.full(num_arms, np.inf)
    return Trial(epoch.candidate, zeros, zeros, unknown, np.full(num_arms, np.nan), start_of(epoch.weight, num_arms))


def _tried(epoch: Epoch, trial: Trial, found: Mapping[int, Evidence], threshold: float, epsilon: float) -> Trial:
    """The trial of an epoch's candidate after one more batch."""
    batch = found[epoch.candidate]
    bets, drawn, evidence = trial.bets + batch.bets, trial.drawn + batch.drawn, trial.evidence + batch.gains
    told = bets > 0.0
    share = np.where(told, bets, 1.0)
    bounds = np.where(told, epsilon + (threshold - evidence) / share, np.inf)
    better = bounds < trial.bounds
    leads = np.where(better, -drawn / share, trial.leads)
    return Trial(epoch.candidate, bets, drawn, np.where(better, bounds, trial.bounds), leads, evidence)


def _row(plan: Plan, seen: Observations, after: CertifiedState, gap: float | None) -> RoundRecord:
    return trace_row(
        plan,
        pulls=seen.total,
        total_pulls=after.seen.total,
        active=after.active,
        leader=after.leader,
        certified_gap=gap,
        alarms=after.alarms,
    )


def certified_gap(finished: str, epsilon: float, gap_bound: float | None) -> float | None:
    """The certified shortfall of the leader, None if nothing can be said."""
    return {"single": 0.0, "certified": epsilon}.get(finished, gap_bound)


def certificate(
    state: CertifiedState,
    *,
    epsilon: float,
    delta: float,
    test_delta: float,
    noise: Noise,
    gap_bound: float | None,
    needed: tuple[str, ...],
    obstacle: Callable[[CertifiedState], str],
) -> Certificate:
    """The answer before the checks of the embedding have their say.

    Args:
        test_delta: delta less what a pilot of the noise may fail with.
        needed: what is assumed of the arms.
        obstacle: why more pulls would not help, in words, if they would not.
    """
    gap = certified_gap(state.finished, epsilon, gap_bound)
    claim, reason = verdict(
        finished=state.finished,
        pulls=state.seen.total,
        gap=gap,
        epsilon=epsilon,
        delta=test_delta,
        spent=test_delta * math.fsum(epoch.weight for epoch in state.epochs),
    )
    if claim == "not-yet":
        reason += obstacle(state)
    num_arms = len(state.seen.counts)
    return Certificate(
        best_arm=str(state.leader),
        arm=state.leader,
        epsilon=epsilon,
        delta=delta,
        pulls=state.seen.total,
        verdict=claim,
        reason=reason,
        assumptions=assumptions_for(state.finished, num_arms, gap_bound, noise, needed),
        certified_gap=gap,
    )
