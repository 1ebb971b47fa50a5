"""What the closed rounds of a study say of each candidate: mean, standard error, measurements, bound and state."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from surepick.core.observations import Observations
from surepick.core.plans import Intervals, RoundRecord, Step
from surepick.core.records import BoolArray, FloatArray
from surepick.drawings.records import STATES, Candidate, Candidates, ClosedRound, State, Trace
from surepick.errors import ContractError
from surepick.estimators.least_squares import RegularLeastSquares
from surepick.noise import Bernoulli, Noise, informative, known_scale, scales
from surepick.policies.base import Policy
from surepick.policies.verdict import PolicySummary
from surepick.questions import lists_of
from surepick.questions.protocol import Question
from surepick.studies.logs.base import Decision, Deviations
from surepick.studies.progress import proves
from surepick.studies.replay import Replay, relisted

ERRORS = 2.0  # standard errors to each side, that an interval reaches
FREE_NORM = 100.0  # times what the results span, where no bound on the norm is declared: no prior that matters
MOST_ENTRIES = 20_000_000  # of the features; with more, means are shown in place of the model's estimates


class Closed(Protocol):
    """What the record needs of a study."""

    minimize: bool
    ids: tuple[str, ...]
    replay: Replay

    @property
    def policy(self) -> Policy[Any]: ...
    @property
    def trace(self) -> tuple[RoundRecord, ...]: ...
    def early_end(self) -> Any: ...


def candidates_of(study: Closed, terms: PolicySummary) -> Candidates:
    """The record of a study, from its closed rounds alone."""
    policy, ids, replay = study.policy, study.ids, study.replay
    decision = replay.settle().decision
    proved = proves(terms, decision)
    trace = trace_of(study.trace, policy, ids, proved=proved, waiting=len(policy.traits.later))
    seen = replay.seen_up_to(decision.plan) or Observations.nothing(len(ids))
    means, low, high, errors, estimated = _estimates(policy, decision, seen)
    claim = policy.claim(_state(study, decision))
    states = _states(policy, decision, claim.leader, lists_of(policy.problem, claim.lists), ids, study.early_end())
    bounds = _bounds(policy, replay.last_step(), claim.leader, len(ids))
    sign = -1.0 if study.minimize else 1.0
    low, high = (-high, -low) if study.minimize else (low, high)
    columns = (_plain(column) for column in (sign * means, errors, low, high, bounds))
    rows = zip(ids, *columns, states, seen.counts.tolist(), strict=True)
    listed = claim.lists is not None
    return Candidates(
        rows=tuple(
            Candidate(name, mean, error, left, right, times, None if listed else bound, state)
            for name, mean, error, left, right, bound, state, times in rows
        ),
        trace=trace,
        tolerance=0.0 if policy.traits.any_gap else float(policy.problem.epsilon),
        delta=float(policy.problem.delta),
        verdict=decision.verdict,
        minimize=study.minimize,
        promised=proved,
        whole=not set(states) & {"withdrawn", "waiting"},
        estimated=estimated,
        lines=_lines(policy, ids, sign * means, sign),
        called=_called(policy, stopped=decision.stopped, proved=proved),
        listed=listed,
    )


def trace_of(
    rounds: tuple[RoundRecord, ...], policy: Policy[Any], ids: tuple[str, ...], *, proved: bool, waiting: int = 0
) -> Trace:
    """The closed rounds: the gaps that are proved, and how many candidates were left."""
    problem, found = policy.problem, []
    for row in rounds:
        gap = informative(row.certified_gap, problem.noise, problem.gap_bound) if proved and not row.alarms else None
        found.append(ClosedRound(row.round, row.total_pulls, gap, len(row.active), ids[row.leader]))
    tolerance = 0.0 if policy.traits.any_gap else float(problem.epsilon)
    return Trace(tuple(found), tolerance, len(ids) - waiting)


def _state(study: Closed, decision: Decision) -> Any:
    """Where the policy stands, without what was withdrawn when the study was closed."""
    state, end = study.replay.state_of(decision), study.early_end()
    if end is None or not end.withdrawn:
        return state
    return relisted(study.policy, Step.at(state), Deviations(withdrawn=end.withdrawn)).state


# --- Means, and how sure each is.


def _estimates(
    policy: Policy[Any], decision: Decision, seen: Observations
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, bool]:
    """(means, ends of their intervals, standard errors; whether they are of a model), in the policy's sign."""
    own = _of_results(policy.problem.noise, seen)
    found = None if decision.row is None or seen.total == 0 else _of_model(policy, decision.row.dim, seen)
    if found is None:
        return *own, False
    means, errors = found
    return means, means - ERRORS * errors, means + ERRORS * errors, errors, True


def _of_results(noise: Noise, seen: Observations) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """(means, lower ends, upper ends, standard errors) of the candidates' own results, NaN where they show none."""
    measured = seen.counts > 0
    times = np.where(measured, seen.counts, 1)
    means = np.where(measured, seen.sums / times, np.nan)
    if isinstance(noise, Bernoulli) or _yes_or_no(noise, seen):
        sign = -1.0 if np.nanmin(means, initial=0.0) < 0.0 else 1.0  # negated where small results are good
        share, spread = np.clip(sign * means, 0.0, 1.0), ERRORS**2 / times
        centre = (share + spread / 2.0) / (1.0 + spread)
        half = np.sqrt(share * (1.0 - share) * spread + spread**2 / 4.0) / (1.0 + spread)
        low, high = sign * centre - half, sign * centre + half
        return means, low, high, half / ERRORS
    errors = np.where(measured, _scales(noise, seen) / np.sqrt(times), np.nan)
    return means, means - ERRORS * errors, means + ERRORS * errors, errors


def _scales(noise: Noise, seen: Observations) -> FloatArray:
    """The scale of a result of each candidate: as declared, else as its own repeats show it; shape (K,)."""
    number = len(seen.counts)
    try:
        own = np.sqrt(seen.deviations / np.maximum(seen.counts - 1, 1))
    except ContractError:  # totals alone were told
        own = np.full(number, np.nan)
    own = np.where(seen.counts > 1, own, np.nan)
    if not known_scale(noise):
        return own
    declared = scales(noise, number)
    return declared if noise.support is None else np.where(np.isnan(own), declared, np.minimum(own, declared))


def _yes_or_no(noise: Noise, seen: Observations) -> bool:
    """Whether all results so far are 0 or 1, in a range that says so."""
    if noise.support != (0.0, 1.0) or seen.squares is None or seen.total == 0:
        return False
    return bool(np.all(np.abs(seen.squares - np.abs(seen.sums)) <= 1e-9 * seen.counts))


def _of_model(policy: Policy[Any], dim: int, seen: Observations) -> tuple[FloatArray, FloatArray] | None:
    """(means, standard errors) by the features of the policy in so many dimensions; None where it has none."""
    embedding = policy.traits.embedding
    if embedding is None or not policy.traits.uses_features or not 0 < dim <= embedding.max_dim:
        return None
    if embedding.num_arms * dim > MOST_ENTRIES:
        return None
    embedded = embedding.at(dim)
    if not embedded.structured:
        return None
    noise = policy.problem.noise
    own = _scales(noise, seen)
    known = own[np.isfinite(own)]
    typical = float(np.sqrt(np.mean(known**2))) if len(known) else 0.0
    noise_scales = scales(noise, len(own)) if known_scale(noise) else np.full(len(own), typical)
    if not np.all(noise_scales > 0.0):
        return None
    level = float(seen.sums.sum() / seen.total)
    features, apart = embedded.features, seen.less(level)
    lengths = float(np.sqrt(np.mean(np.sum(features**2, axis=1))))
    span = float(np.abs(apart.means).max()) + float(noise_scales.max())
    bound = embedding.norm_bound or (FREE_NORM * span / lengths if lengths > 0.0 else 0.0)
    if not bound > 0.0:
        return None
    fit = RegularLeastSquares.shrunk(features, None, apart, noise_scales=noise_scales, norm_bound=float(bound))
    errors = float(noise_scales.max()) * np.sqrt(np.sum((features @ fit.to_unit) ** 2, axis=1))
    return fit.scores + level, errors


# --- What became of each, and what is promised of it.


def _bounds(policy: Policy[Any], step: Step[Any] | None, leader: int, number: int) -> FloatArray:
    """By how much each candidate is better than the leader at most, if it is the best; NaN where that is not known."""
    bounds = np.full(number, np.nan)
    found: Intervals | None = None if step is None or step.deciding is None else step.deciding(None)
    if found is None:
        return bounds
    known = (found.comparators == leader) & np.isfinite(found.widths) & np.isfinite(found.leads)
    bounds[found.arms[known]] = (found.widths - found.leads)[known]
    widest = policy.problem.largest_gap
    return bounds if widest is None else np.where(bounds < widest, bounds, np.nan)


def _states(
    policy: Policy[Any], decision: Decision, leader: int, lists: Any, ids: tuple[str, ...], end: Any
) -> list[State]:
    """What became of each candidate."""
    row, traits, number = decision.row, policy.traits, len(ids)
    states: list[State] = ["possible"] * number
    if lists is not None:
        on: dict[str, State] = dict.fromkeys(lists.inside, "recommended") | dict.fromkeys(lists.outside, "ruled out")
        undecided = set(lists.undecided)
        states = [on.get(name, "possible" if name in undecided else "aside") for name in ids]
    elif row is not None:
        active = np.zeros(number, bool)
        active[row.active] = True
        states = ["possible" if one else "ruled out" for one in active.tolist()]
    away: BoolArray = np.zeros(number, bool)
    if row is not None and row.withdrawn is not None:
        away[row.withdrawn] = True
    if end is not None:
        away[[one.arm for one in end.withdrawn]] = True
    for arm in np.flatnonzero(away).tolist():
        states[arm] = "withdrawn" if states[arm] == "possible" or lists is None else states[arm]
    came = number - len(traits.later) if row is None or row.waiting is None else number - row.waiting
    for arm in sorted(traits.later)[len(traits.later) - (number - came) :] if number > came else ():
        states[arm] = "waiting"
    if lists is None and row is not None:
        states[leader] = "recommended"
    return states


def _called(policy: Policy[Any], *, stopped: bool, proved: bool) -> dict[State, str]:
    """What the states are called: by the lists of a question; without a proof nothing is ruled out or recommended."""
    called, asked = dict(STATES), policy.problem.question
    if isinstance(asked, Question):
        names = asked.called(float(policy.problem.epsilon))
        called |= {"recommended": names.first, "possible": "undecided", "ruled out": names.second or "ruled out"}
        called["aside"] = names.neither or called["aside"]
        return called
    if not stopped:
        called["recommended"] = "best so far"
    if not policy.traits.eliminates:
        called["ruled out"] = "no better by more than the tolerance" if proved else "set aside"
    elif not proved:
        called["ruled out"] = "dropped by the rule"
    return called


def _lines(policy: Policy[Any], ids: tuple[str, ...], means: FloatArray, sign: float) -> tuple[tuple[float, str], ...]:
    """What the means are compared with, where the question is not which one is the best."""
    asked, arms = policy.problem.question, policy.problem.arms
    if asked is None or (asked.splits and arms is not None and arms.segments is not None):
        return ()
    told = {name: mean for name, mean in zip(ids, means.tolist(), strict=True) if np.isfinite(mean)}
    return tuple(asked.lines(told, sign, float(policy.problem.epsilon))) if told else ()


def _plain(values: FloatArray) -> list[float | None]:
    """The numbers, None in place of those that are not known."""
    return [value if known else None for value, known in zip(values.tolist(), np.isfinite(values), strict=True)]
