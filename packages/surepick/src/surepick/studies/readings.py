"""Reading a study under an assumption that is named afterwards: the flows of its evidence, got by replay.

Weights are functions of the log and of the settings, so that whoever has these has the flows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from surepick.assumptions.likely_norm import noise_scale, with_likely_norm
from surepick.assumptions.reading import Question, Reading, compared, largest_of
from surepick.assumptions.records import Assumption, Linear, Near, NoStructure, Smooth, balls, scatter_of, settled
from surepick.assumptions.texts import parse_assumption
from surepick.core.arms import Arms
from surepick.core.observations import Observations
from surepick.embeddings.kernel_functions import Kernel
from surepick.errors import InvalidInput, OutOfTurn
from surepick.estimators.flows import ArmFlows, Told, flows_of
from surepick.estimators.goodness_of_fit import with_least_squares
from surepick.noise import known_scale
from surepick.policies.base import Policy, name_of
from surepick.studies.replay import Closed, in_order, replay

MOST_ROWS_READ = 3_000  # arms times batches of a study that is read for whoever sees its answer: some seconds


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
    seen = all_results(evidence.looks, arms.num_arms)
    whom = compared(leaders, seen)
    block_name = None if policy.traits.blocks is None else policy.traits.blocks.name
    question = Question(features, *whom, problem.epsilon, scale, evidence.minimize, block_name)
    unscaled = scale is None or any(np.isnan(held.squares).any() for held in past)
    if unscaled and any(scatter_of(one) is not None for one in assumptions):
        raise InvalidInput(
            "another scale of the noise can be read only where subgaussian:SIGMA was declared, and not where "
            "measurements without features have blocks; leave out scatter<=..."
        )
    return tuple(_reading(evidence, settled(one, features), question, past, seen) for one in assumptions)


def shown_readings(study: Any) -> tuple[Reading, ...]:
    """What is shown beside the answer of a `Study` that uses features: under the class that was steered
    for, wider ones under which it stands, and none; () where that is not known, or takes long."""
    policy = study.policy
    if study.elsewhere is not None or policy.traits.weigh is None or not policy.traits.uses_features:
        return ()
    if study.arms.num_arms * study.progress().judged > MOST_ROWS_READ:
        return ()
    try:
        *found, bare = study.readings()
    except (InvalidInput, OutOfTurn):
        return ()
    named = max(len(policy.traits.assumed), 1)
    return (*(one for number, one in enumerate(found) if number < named or one.stands), bare)


def standing_so_far(study: Any) -> list[str]:
    """Up to where the answer of a `Study` stands so far, under the class that it steers for, and what more takes."""
    traits, epsilon = study.policy.traits, study.policy.problem.epsilon
    if traits.until is None or not traits.assumed:
        return []
    first, state = traits.assumed[0], study.state
    said = [study.read(first.assumption if isinstance(first, Near) else first).survives]
    if not study.stopped:
        wider = [share * epsilon for share in (0.5, 1.0, 2.0)]
        pulls = np.maximum.accumulate([traits.until(state, off) for off in wider])  # a wider one takes no fewer
        more = ", ".join(f"{off:g}: {float(f'{one:.2g}'):,.0f}" for off, one in zip(wider, pulls, strict=True))
        said.append(f"more measurements until each mean may be off by so much, at least about: {more}")
    return said


def usual_assumptions(evidence: Evidence) -> tuple[Assumption, ...]:
    """What is read where nobody names an assumption: the class that was steered for, the wider ones, and none."""
    own, features = evidence.policy.traits.embedding, evidence.arms.features.shape[1] > 0
    first: list[Assumption] = list(evidence.policy.traits.assumed)
    if features and own is not None and own.traits.family == "linear":
        first = [Linear(own.norm_bound, level=False)]
    elif features and isinstance(kernel := getattr(own, "kernel", None), Kernel):
        first = [Smooth(kernel, own.norm_bound if own is not None else None, level=False)]
    wider: list[Assumption] = [Linear(), Smooth()] if features and evidence.policy.traits.blocks is None else []
    levelled = {type(ball) for one in first for ball in balls(one) if ball.level}
    return (*first, *(one for one in wider if type(one) not in levelled), NoStructure())


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
    told: list[Told] = []
    leaders: list[int] = []
    for judged in replay(policy, in_order(looks)):
        closed = judged.closed
        weighed = policy.traits.weigh(judged.before, closed.plan, closed.seen) if policy.traits.weigh else None
        told += [] if weighed is None else [Told(weighed, closed.seen.means)]
        leaders += [] if closed.plan.candidate is None else [closed.plan.candidate]
        leaders.append(judged.step.record.leader)
    leaders.append(policy.claim(judged.step.state).leader)
    pulled = np.flatnonzero(sum(look.seen.counts for look in looks))
    scales = policy.problem.scales if sub_gaussian else None
    return list(flows_of(told, num_arms, pulled, scales, batches=len(looks))), leaders


def all_results(looks: Sequence[Closed], num_arms: int) -> Observations:
    """All of them together, in the policy's sign."""
    return Observations.together([with_least_squares(look.seen) for look in looks], num_arms)


def _reading(
    evidence: Evidence, assumption: Assumption, question: Question, past: list[ArmFlows], seen: Observations
) -> Reading:
    arms, problem, found = evidence.arms, evidence.policy.problem, balls(assumption)
    repeats = noise_scale(seen, np.inf)
    sigma = noise_scale(seen, problem.sigma if known_scale(problem.noise) else np.inf)
    guessable = np.isfinite(sigma) and question.block_name is None
    filled = with_likely_norm(assumption, question.features, seen, sigma if guessable else None, problem.epsilon)
    assumption, suggested = filled.assumption, filled.suggested
    norm = balls(assumption)[0].norm if found else None
    largest, centre = largest_of(question, assumption, past), question.candidate
    gap, scatter = largest.gap(centre), scatter_of(assumption)
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
        norm_named=bool(found) and not filled.by_results,
        suggested_norm=suggested,
        largest_norm=_positive(largest.least(largest.norms, centre)) if found else None,
        least_norm=_positive(float(largest.norms[1].min())) if found else None,
        largest_misspecification=_positive(largest.least(largest.misses, centre)) if found else None,
        largest_scatter=None if scale is None or not factor > 0.0 else scale * float(np.sqrt(factor)),
        declared_scatter=scale,
        suggested_scatter=repeats if np.isfinite(repeats) else None,
    )


def _positive(number: float) -> float | None:
    return number if number > 0.0 else None
