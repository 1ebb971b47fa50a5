"""Questions with features where nobody knows the scales: few arms are measured, each often enough for a bound.

Validity rests on none of it: pulls of arms without a bound enter no evidence (docs/questions.md, line 15).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray
from surepick.core.design import Embedding
from surepick.core.observations import Observations
from surepick.core.plan import Plan
from surepick.embeddings import ArmEmbedding
from surepick.estimators import NormalMgf, least_squares
from surepick.noise import failure_probability
from surepick.policies import model_checks
from surepick.policies.base import Problem
from surepick.policies.carried import repeats
from surepick.policies.questions.outlook import Aims, Ground, Rest


def needed_repeats(problem: Problem) -> int:
    """Pulls of an arm after which its pulls may be evidence."""
    return repeats.repeats_for(failure_probability(problem.noise, problem.delta) / problem.num_arms)


def first_pulls(problem: Problem, embedded: Embedding, weights: FloatArray) -> IntArray:
    """As few arms of a design as see what all of it sees, each with the repeats for a bound, shape (K,)."""
    support = np.flatnonzero(weights)
    rows = np.sqrt(weights[support])[:, None] * embedded.features[support]
    counts = np.zeros(len(weights), np.int64)
    counts[support[repeats.spanning(rows)]] = needed_repeats(problem)
    return counts


def rest_of_few(ground: Ground, embedded: Embedding, aims: Aims, noise_mgf: NormalMgf) -> Rest:
    """What is still to be measured, without the arms that would get too few pulls for a bound."""
    rest = ground.rest(aims, noise_mgf)
    planned, needed = rest.weights * rest.pulls, needed_repeats(ground.problem)
    avoided = repeats.unworthy(planned, noise_mgf.bounded, embedded.features, needed)
    if not avoided.any():
        return rest
    rest = ground.rest(aims, _avoiding(noise_mgf, avoided))
    weights = np.where(avoided, 0.0, rest.weights)
    kept = float(weights.sum())
    cost = None if rest.cost is None else kept * rest.cost
    return Rest(weights / kept, kept * rest.pulls, None, cost)


def _avoiding(noise_mgf: NormalMgf, avoided: BoolArray) -> NormalMgf:
    """The same with arms that seem so noisy that no design wants them."""
    factor = np.where(avoided, repeats.AVOIDED**2, 1.0)
    return replace(noise_mgf, variances=factor * noise_mgf.variances)


def with_repeats(
    embedding: ArmEmbedding,
    problem: Problem,
    counts: IntArray,
    seen: Observations,
    noise_mgf: NormalMgf,
    *,
    dim: int,
    limit: int | None,
    share: float,
) -> IntArray:
    """The pulls of a plan with the repeats that bounds need, and some that a lack of fit can show in, shape (K,)."""
    needed = needed_repeats(problem)
    found = repeats.completed(counts, seen.counts, noise_mgf.bounded, needed, limit)
    if model_checks.is_saturated(embedding, dim) and embedding.num_distinct == embedding.num_arms:
        return found
    features = embedding.at(embedding.max_dim).features
    costs = problem.relative_costs
    return found + repeats.check_repeats(features, found, seen.counts, noise_mgf.bounded, needed, share, costs)


def misfits(
    embedding: ArmEmbedding, embedded: Embedding, plan: Plan, seen: Observations, after: NormalMgf, problem: Problem
) -> tuple[str, ...]:
    """What a batch says against the embedding.

    Args:
        after: bounds on the variances from everything told, the batch included.

    Source: docs/certified-elimination.md, below line 23.
    """
    seen = after.usable(seen)
    if seen.total == 0:
        return ()
    pulled, bounds = np.flatnonzero(seen.counts), after.joint_bounds
    each = np.sqrt(bounds[pulled])
    part = Embedding(embedded.features[pulled] / each[:, None], embedded.misspecification)
    fitted = least_squares(part, Observations(seen.counts[pulled], seen.sums[pulled] / each))
    weighted = replace(fitted, scores=each * fitted.scores)
    scales = np.sqrt(np.where(seen.counts > 0, bounds, 1.0))
    return model_checks.failed_checks(embedding, plan, seen, weighted, problem, scales)
