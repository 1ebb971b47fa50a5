"""How many pulls a batch of a question has. Validity rests on none of it."""

from __future__ import annotations

import math

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.design import IndependentArms
from surepick.core.observations import Observations
from surepick.embeddings import ArmEmbedding
from surepick.noise import known_scale
from surepick.policies import model_checks
from surepick.policies.base import Problem
from surepick.policies.carried.batch_sizes import BatchSizes, Grid, rounded
from surepick.policies.certified import sampling_rule
from surepick.policies.certified.conclusion import delta_for_test
from surepick.policies.questions.outlook import Ground, Rest

HEURISTIC_LAST = 2.5  # of the predicted rest: after the last batch that is allowed nothing can be made up for


def total_of(
    sizes: BatchSizes, problem: Problem, rest: Rest, seen: Observations, round_number: int, grid: Grid | None
) -> int:
    """Pulls of the next batch.

    Args:
        sizes: what a user says of batches.
        problem: what is asked.
        rest: what is predicted to be enough.
        seen: everything told so far, at least one pull.
        round_number: of the batch.
        grid: how measurements grow where few batches are allowed; None: nothing is known of it.
    """
    if sizes.exact is not None:
        return sizes.exact
    if sizes.most is None and sizes.fixed == 0.0:
        return sampling_rule.batch_total(rest.pulls, seen.total)
    costs = problem.relative_costs
    price = 1.0 if costs is None else float(seen.counts @ costs) / seen.total
    spent = price * seen.total
    money = rest.pulls if rest.cost is None else rest.cost / problem.cheapest_cost
    if sizes.is_last(round_number):
        return max(1, math.ceil(HEURISTIC_LAST * rest.pulls))
    scaled = Grid(1.0, 1.0) if grid is None else Grid(price * grid.start, price * grid.end)
    wanted = sizes.testing(round_number, spent, money, scaled)
    return max(1, math.ceil(wanted * rest.pulls / money))


def grid_of(ground: Ground, seen: Observations | None) -> Grid | None:
    """How measurements grow where only few batches are allowed; None: nobody knows the scale of the noise yet.

    Args:
        ground: the arms as they are compared.
        seen: everything told so far; None: nothing.
    """
    problem, embedded = ground.problem, ground.embedded
    if known_scale(problem.noise):
        sigma = problem.sigma
    elif seen is None:
        return None
    else:
        squares = ground.noise_mgf(seen).typical_scales(problem.epsilon) ** 2
        sigma = math.sqrt(float(seen.counts @ squares) / seen.total)
    size = embedded.num_arms if isinstance(embedded, IndependentArms) else embedded.dim
    threshold = math.log(problem.num_arms / delta_for_test(problem))
    return Grid.of(size, max(2 * size, 4), sigma=sigma, epsilon=problem.epsilon, threshold=threshold)


def exactly(
    weights: FloatArray,
    total: int,
    round_number: int,
    costs: FloatArray | None,
    checked: tuple[ArmEmbedding, int, float] | None,
) -> IntArray:
    """Exactly so many pulls in these proportions, shape (K,).

    Args:
        weights: shape (K,).
        total: at least 1.
        round_number: of the batch.
        costs: of a pull of each arm, shape (K,); None: all alike.
        checked: (embedding, dimension, share of the pulls that are spread so that a lack of fit can show); None: arms
            share nothing.
    """
    if checked is None:
        return rounded(weights, total, round_number)
    embedding, dim, share = checked

    def spread(pulls: int) -> IntArray:
        return model_checks.spread_over_equals(embedding, rounded(weights, pulls, round_number), costs)

    extra = model_checks.check_pulls(embedding, dim, spread(max(1, int(total / (1.0 + share)))), share, costs)
    return np.asarray(spread(total - int(extra.sum())) + extra)
