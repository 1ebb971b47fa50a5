"""Reading a study under an assumption that is named afterwards: the flows of its evidence, got by replay.

Weights are functions of the log and of the settings, so that whoever has these has the flows.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from surepick.assumptions.reading import HEURISTIC_MARGIN, Question, Reading, largest_of
from surepick.assumptions.records import LEVEL, Assumption, Linear, NoStructure, Smooth, balls, scatter_of, settled
from surepick.assumptions.texts import parse_assumption
from surepick.core.arms import Arms
from surepick.core.observations import Observations
from surepick.core.records import FloatArray
from surepick.embeddings.kernel_functions import Kernel
from surepick.errors import InvalidInput, OutOfTurn
from surepick.estimators.flows import ArmFlows, FlowLedger
from surepick.estimators.goodness_of_fit import with_least_squares
from surepick.linalg.factorisations import thin_svd
from surepick.noise import known_scale
from surepick.policies.base import Policy, name_of
from surepick.studies.replay import Closed, in_order, replay

MOST_WITNESSES = 4  # arms beside the answer against which it is looked whether others are the best


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was told to a study, and what its processes bet."""

    policy: Policy[Any]
    arms: Arms
    looks: Sequence[Closed]  # the plans that were judged, in order
    minimize: bool


def read_evidence(evidence: Evidence, *assumed: str | Assumption) -> tuple[Reading, ...]:
    """What the evidence says of the answer under assumptions, which may be named after all results are in; without any,
    under those that suit the study.

    Raises:
        InvalidInput: an assumption is none, or is about what the study does not know; or the study's policy has no
            evidence that can be read so.
        OutOfTurn: nothing was judged yet.

    Source: docs/certified-elimination.md, lines 38 to 43.
    Cost: a replay of the study; and for each assumption and batch a product of the flows with the features, or with a
    kernel matrix.
    """
    assumptions = [parse_assumption(one) for one in assumed]
    policy, arms, problem = evidence.policy, evidence.arms, evidence.policy.problem
    _check_readable(evidence)
    assumptions = assumptions or list(usual_assumptions(evidence))
    features = np.asarray(arms.features, np.float64)
    sub_gaussian = problem.noise.support is None and known_scale(problem.noise)
    scale = float(problem.scales.max()) if sub_gaussian else None
    past, leaders = _replayed(evidence, sub_gaussian=sub_gaussian)
    candidate, *witnesses = dict.fromkeys(reversed(leaders))
    seen = _pooled(evidence.looks)
    if not witnesses and arms.num_arms > 1:
        others = np.where(seen.counts > 0, seen.means, -np.inf)
        others[candidate] = -np.inf
        witnesses = [int(np.argmax(others))]
    block_name = None if policy.traits.blocks is None else policy.traits.blocks.name
    whom = candidate, tuple(witnesses[:MOST_WITNESSES])
    question = Question(features, *whom, problem.epsilon, scale, evidence.minimize, block_name)
    unscaled = scale is None or any(np.isnan(held.squares).any() for held in past)
    if unscaled and any(scatter_of(one) is not None for one in assumptions):
        raise InvalidInput(
            "another scale of the noise can be read only where subgaussian:SIGMA was declared, and not where "
            "measurements without features have blocks; leave out scatter<=..."
        )
    return tuple(_reading(evidence, settled(one, features), question, past, seen) for one in assumptions)


def usual_assumptions(evidence: Evidence) -> tuple[Assumption, ...]:
    """What is read where nobody names an assumption: the class that was steered for, the wider ones, and none."""
    own, features = evidence.policy.traits.embedding, evidence.arms.features.shape[1] > 0
    first: list[Assumption] = []
    if features and own is not None and own.traits.family == "linear":
        first = [Linear(own.norm_bound, level=False)]
    elif features and isinstance(kernel := getattr(own, "kernel", None), Kernel):
        first = [Smooth(kernel, own.norm_bound if own is not None else None, level=False)]
    wider: list[Assumption] = [Linear(), Smooth()] if features and evidence.policy.traits.blocks is None else []
    return (*first, *wider, NoStructure())


def _check_readable(evidence: Evidence) -> None:
    policy = evidence.policy
    if policy.traits.weigh is None:
        raise InvalidInput(
            f"{name_of(policy)} keeps no evidence that can be read under other assumptions; certified-linear, "
            "certified-kernel and certified-independent with evidence='carried' do."
        )
    if policy.traits.later or any(look.deviations.relists for look in evidence.looks):
        raise InvalidInput("candidates came or went during this study, and such studies cannot be read so far.")
    if any(look.past for look in evidence.looks):
        raise InvalidInput("results of this study were corrected, and such studies cannot be read.")
    if sum(look.seen.total for look in evidence.looks) == 0:
        raise OutOfTurn("no round is complete, so there is nothing to read yet.")


def _replayed(evidence: Evidence, *, sub_gaussian: bool) -> tuple[list[ArmFlows], list[int]]:
    """(the flows after each batch, of the rows that changed; candidates and leaders so far, the last one now)."""
    policy, looks, num_arms = evidence.policy, evidence.looks, evidence.arms.num_arms
    pulled = np.flatnonzero(sum(look.seen.counts for look in looks))
    ledger = FlowLedger(num_arms, pulled, len(looks), policy.problem.scales if sub_gaussian else None)
    past: list[ArmFlows] = []
    leaders: list[int] = []
    for judged in replay(policy, in_order(looks)):
        closed = judged.closed
        weighed = policy.traits.weigh(judged.before, closed.plan, closed.seen) if policy.traits.weigh else None
        if weighed is not None:
            past = past or [ArmFlows.nothing(num_arms, len(looks), weighed.threshold)]
            past.append(ledger.held(weighed.threshold, ledger.add(weighed, closed.seen.means)))
        leaders += [] if closed.plan.candidate is None else [closed.plan.candidate]
        leaders.append(judged.step.record.leader)
    leaders.append(policy.claim(judged.step.state).leader)
    return past, leaders


def _pooled(looks: Sequence[Closed]) -> Observations:
    """All results, in the policy's sign."""
    first, *others = (with_least_squares(look.seen) for look in looks)
    for other in others:
        first = first.plus(other)
    return first


def _reading(
    evidence: Evidence, assumption: Assumption, question: Question, past: list[ArmFlows], seen: Observations
) -> Reading:
    arms, problem, found = evidence.arms, evidence.policy.problem, balls(assumption)
    repeats = noise_scale(seen, np.inf)
    sigma = noise_scale(seen, problem.sigma if known_scale(problem.noise) else np.inf)
    suggested = None
    if found and np.isfinite(sigma) and question.block_name is None:
        suggested = likely_norm(found[0], question.features, seen, sigma, problem.epsilon)
    unnamed = sum(one.norm is None for one in found)
    if unnamed > 1 or (unnamed and (found[0].norm is not None or suggested is None)):
        raise InvalidInput(
            f"{str(assumption)!r} lacks a norm that results suggest of one class alone, measured without blocks; write "
            f"{found[-1]}{',' if ':' in str(found[-1]) else ':'}norm=10, say."
        )
    if unnamed:
        assumption = settled(assumption, question.features, _rounded_up(HEURISTIC_MARGIN * (suggested or 0.0)))
    norm = balls(assumption)[0].norm if found else None
    largest, centre = largest_of(question, assumption, past), question.candidate
    rivals = np.delete(np.where(largest.beaten, 0.0, np.maximum(largest.bounds, 0.0)), centre)
    gap, scatter = float(rivals.max(initial=0.0)), scatter_of(assumption)
    scale = question.scale if scatter is None else scatter
    factor = largest.least(largest.scatters, centre)
    return Reading(
        assumption=assumption,
        candidate=arms.ids[centre],
        epsilon=problem.epsilon,
        delta=problem.delta,
        gap=gap if np.isfinite(gap) else None,
        beaten=tuple(arms.ids[arm] for arm in np.flatnonzero(largest.beaten)),
        refuted=bool(largest.beaten.all()),
        norm=norm,
        norm_named=bool(found) and not unnamed,
        suggested_norm=suggested,
        largest_norm=_positive(largest.least(largest.norms, centre)) if found else None,
        least_norm=_positive(float(largest.norms[1].min())) if found else None,
        largest_misspecification=_positive(largest.least(largest.misses, centre)) if found else None,
        largest_scatter=None if scale is None or not factor > 0.0 else scale * float(np.sqrt(factor)),
        declared_scatter=scale,
        suggested_scatter=repeats if np.isfinite(repeats) else None,
    )


def _rounded_up(number: float) -> float:
    """A number of two digits that is not smaller."""
    unit = 10.0 ** (math.floor(math.log10(number)) - 1)
    return float(f"{math.ceil(number / unit * (1.0 - 1e-12)) * unit:.3g}")


def _positive(number: float) -> float | None:
    return number if number > 0.0 else None


# --- The norm that results suggest of the mean rewards: a fit that shrinks has one near 0 after a few results, which an
# answer survives many times over; so we take the largest prior scale that they do not speak against, and what is open.

MOST_ARMS = 1_000  # among which directions are looked for; all that were measured, and some of the others
HEURISTIC_NATS = 1.5  # of log marginal likelihood, by which a prior scale may be worse than the best
HEURISTIC_LEAST_REPEATS = 10  # degrees of freedom from which repeats say how much rewards vary
SCALES = np.geomspace(1e-4, 1e4, 321)


def noise_scale(seen: Observations, declared: float) -> float:
    """How much a reward varies around the mean of its arm: by repeats, but no more than declared."""
    known = seen.within is not None or seen.squares is not None
    freedom = int(np.maximum(seen.counts - 1, 0).sum())
    if not known or freedom < HEURISTIC_LEAST_REPEATS:
        return declared
    repeated = seen.counts > 1
    found = float(np.sqrt(np.maximum(seen.deviations[repeated].sum(), 0.0) / freedom))
    return min(declared, found) if found > 0.0 else declared


def likely_norm(
    assumption: Linear | Smooth, features: FloatArray, seen: Observations, sigma: float, epsilon: float
) -> float:
    """The upper norm, at least about epsilon / 2, in reward units: ours, empirical Bayes; a reward has scale sigma.

        theta ~ N(0, tau^2 I),   tau' = the largest tau whose log marginal likelihood is within 1.5 nats of the best
        norm^2 = |E theta|^2 + sum of Var theta_k over the directions k that can move an arm by epsilon / 13 at tau'

    It is no bound: differences that nobody measured, or that are below the noise, may have any norm. Cost: O(n^3) for n
    of the arms, at most those that were measured and about 1,000 more.
    """
    measured = np.flatnonzero(seen.counts)
    others = np.flatnonzero(seen.counts == 0)
    arms = np.concatenate([measured, others[:: max(1, -(-len(others) // MOST_ARMS))]])
    coordinates = assumption.coordinates(features[arms])
    size = float(np.sqrt(np.mean(np.sum(coordinates**2, axis=1)))) or 1.0
    if assumption.level:
        coordinates = np.column_stack([coordinates, np.full(len(arms), LEVEL)])
    weights = np.sqrt(seen.counts[measured]) / sigma
    rows, means = coordinates[: len(measured)] * weights[:, None], seen.means[measured] * weights
    left, singular, right = thin_svd(rows)
    along = left.T @ means
    middle = max(float(np.ptp(seen.means[measured])), sigma, epsilon) / size
    scales = np.maximum(SCALES * middle, 0.5 * epsilon / size)
    grown = 1.0 + (scales[:, None] * singular) ** 2
    likelihood = 0.5 * np.sum(along**2 * (1.0 - 1.0 / grown) - np.log(grown), axis=1)
    tau = float(scales[likelihood >= likelihood.max() - HEURISTIC_NATS].max())
    shrunk = singular / (singular**2 + tau**-2) * along
    moved = tau**2 * np.mean(coordinates**2, axis=0) >= (0.25 * epsilon) ** 2 / 10.0
    reduced = 1.0 / (singular**2 + tau**-2) - tau**2  # of the variance along each row of V'
    open_variance = tau**2 + reduced @ right**2
    return float(np.sqrt(np.sum(shrunk**2) + np.sum(np.maximum(open_variance[moved], 0.0))))
