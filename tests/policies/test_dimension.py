"""Dimensions and costs, against enumeration."""

import math

import numpy as np
import pytest
from together import of_each

import surepick as sp
from surepick.core.plans import Design, IndependentArms
from surepick.designs import design_value, independent_design
from surepick.policies.dimension import (
    bias,
    cheapest_dimension,
    effective_dimension,
    embedding_design,
    round_cost,
    uniform_pulls,
    worst_gap,
)


class Family:
    """An embedding with given misspecifications, whose first d columns are the d-dimensional one."""

    def __init__(self, features, misspecifications):
        self.features, self.misspecifications = np.asarray(features, float), misspecifications
        self.num_arms, self.max_dim = self.features.shape[0], len(misspecifications)

    def misspecification(self, dim):
        return self.misspecifications[dim - 1]

    def at(self, dim):
        return sp.Embedding(self.features[:, :dim], self.misspecification(dim))


def test_bias_and_worst_gap_are_their_formulas():
    assert bias(0.5, 8.0, 0.125) == pytest.approx(0.5 * (2 + 3))
    assert worst_gap(0.5, 8.0, 0.125) == pytest.approx(0.5 * (16 + 8 * 3))
    assert worst_gap(0.3, 5.0, 0.1) == pytest.approx(8 * bias(0.3, 5.0, 0.1))
    assert bias(0.0, 1e9, 0.1) == 0.0


def test_round_cost():
    assert round_cost(0.0, 4.0, 0.5, 0.1) == pytest.approx(1.1 * 4 / 0.25)
    assert round_cost(0.1, 8.0, 1.0, 0.125) == pytest.approx(9.0 / 0.5**2)
    assert round_cost(0.2, 8.0, 1.0, 0.125) == math.inf  # the bias is the accuracy
    assert round_cost(0.3, 8.0, 1.0, 0.125) == math.inf
    assert round_cost(math.inf, 0.0, 1.0, 0.1) == math.inf


@of_each("seed", range(30))
def test_the_effective_dimension_is_the_first_that_reaches_epsilon(seed):
    rng = np.random.default_rng(seed)
    tails = np.sort(10.0 ** rng.uniform(-4, 0, 8))[::-1]
    slack, epsilon = float(rng.choice([0.1, 1.0])), float(10.0 ** rng.uniform(-2, 2))
    reached = [(16 + 8 * math.sqrt(4 * (1 + slack) * (d + 1))) * tails[d] <= epsilon for d in range(8)]
    family = Family(np.zeros((3, 8)), tails)
    if any(reached):
        assert effective_dimension(family, epsilon, slack=slack) == reached.index(True) + 1
    else:
        with pytest.raises(sp.errors.ContractError, match="no dimension of this embedding"):
            effective_dimension(family, epsilon, slack=slack)


def test_the_effective_dimension_at_its_very_edge():
    edge = (16 + 8 * math.sqrt(4 * 1.1 * 2)) * 0.01
    family = Family(np.zeros((3, 3)), [1.0, 0.01, 0.0])
    assert effective_dimension(family, edge * (1 + 1e-12)) == 2
    assert effective_dimension(family, edge * (1 - 1e-12)) == 3


def test_independent_arms_have_all_their_dimensions():
    assert effective_dimension(sp.IndependentEmbedding(6), 0.1) == 6
    assert cheapest_dimension(sp.IndependentEmbedding(6), np.array([1, 4]), 0.5).dim == 6


@pytest.mark.cases(4)
@pytest.mark.parametrize("seed", range(12))
def test_the_cheapest_dimension_costs_what_the_best_of_all_costs(seed):
    rng = np.random.default_rng(seed)
    decay = 10.0 ** rng.uniform(-1.5, -0.1)
    embedding = sp.LinearEmbedding(rng.normal(size=(12, 5)) * decay ** np.arange(5), norm_bound=1.0)
    active = np.sort(rng.choice(12, int(rng.integers(2, 13)), replace=False))
    accuracy = float(rng.choice([0.5, 0.1]))

    def cost(dim, design):
        return round_cost(embedding.misspecification(dim), design.value, accuracy, 0.1)

    chosen = cheapest_dimension(embedding, active, accuracy, tolerance=1e-3, screen_tolerance=1e-3)
    all_dims = range(1, embedding.max_dim + 1)
    best = min(cost(d, embedding_design(embedding.at(d), active, tolerance=1e-3)) for d in all_dims)
    assert cost(chosen.dim, chosen.design) <= best * 1.01
    assert chosen.design.gap <= 1e-3
    usual = cheapest_dimension(embedding, active, accuracy)
    assert cost(usual.dim, usual.design) <= best * 1.25


def test_the_cheapest_dimension_can_lie_beyond_the_first_that_is_allowed():
    """At d = 1 the bias nearly fills the accuracy: one more dimension costs more per unit of room and far less."""
    features = np.random.default_rng(0).normal(size=(8, 3))
    active, accuracy = np.arange(8), 0.5
    value = embedding_design(sp.Embedding(features[:, :1], 0.0), active).value
    nearly = 0.95 * accuracy / (2 + math.sqrt(1.1 * value))
    assert cheapest_dimension(Family(features, [nearly, 1e-6, 0.0]), active, accuracy).dim == 2
    assert cheapest_dimension(Family(features, [1e-6, 1e-7, 0.0]), active, accuracy).dim == 1


def test_no_dimension_leaves_room():
    with pytest.raises(sp.errors.ContractError, match="at every dimension the bias"):
        cheapest_dimension(Family(np.random.default_rng(0).normal(size=(4, 2)), [1.0, 0.3]), np.arange(4), 0.5)


@pytest.mark.parametrize("active", [[0, 1], [1, 2, 4], [0, 1, 2, 3, 4], [3]])
def test_the_independent_design_is_the_solution_on_the_identity(active):
    closed, solved = independent_design(5, np.array(active)), sp.solve_design(np.eye(5), active)
    assert closed.value == pytest.approx(solved.value) == pytest.approx(2 * len(active) * (len(active) > 1))
    assert closed.lower_bound == closed.value
    assert closed.weights.sum() == pytest.approx(1.0)
    assert design_value(np.eye(5), closed.weights, active) == pytest.approx(closed.value)
    assert embedding_design(IndependentArms(5), np.array(active)) == closed


def test_all_arms_are_compared_when_none_are_named():
    assert independent_design(4).value == 8.0
    assert independent_design(4).weights.tolist() == [0.25] * 4


def test_uniform_pulls():
    """K = 11, sigma 1/2, epsilon .1, delta .05: n = ceil(4 * .25 * log(10 / .05) / .01) = 530 pulls an arm."""
    assert uniform_pulls(11, sigma=0.5, epsilon=0.1, delta=0.05) == 11 * 530
    assert uniform_pulls(1, sigma=1.0, epsilon=0.1, delta=0.05) == 0
    assert uniform_pulls(2, sigma=1.0, epsilon=1.0, delta=0.5) == 2 * math.ceil(4 * math.log(2))


@pytest.mark.parametrize("num_arms", [2, 40])
def test_uniform_pulls_are_enough(num_arms):
    """The union over the bad arms of the exact normal probability is below delta, and not below with half the pulls."""
    from scipy.stats import norm

    each = uniform_pulls(num_arms, sigma=1.0, epsilon=0.2, delta=0.05) / num_arms

    def union(pulls):
        return (num_arms - 1) * norm.sf(0.2 * math.sqrt(pulls / 2))

    assert union(each) <= 0.05 < union(each / 4)


class Told:
    """Designs of which only the value is known, and which dimensions were asked for."""

    def __init__(self, value_of, num_arms: int = 5000) -> None:
        self.value_of, self.num_arms, self.asked = value_of, num_arms, []

    def __call__(self, embedded, tolerance):
        self.asked.append(embedded.dim)
        value = self.value_of(embedded.dim)
        return Design(np.full(self.num_arms, 1.0 / self.num_arms), value, value / 1.05, embedded.dim)


def chosen(value_of, misspecifications, accuracy):
    """(cost of the dimension that is taken, of the best of all, the dear ones that were asked for)."""
    designs = Told(value_of)
    family = Family(np.ones((5000, len(misspecifications))), misspecifications)
    choice = cheapest_dimension(family, np.arange(5000), accuracy, tolerance=0.05, design_of=designs)
    costs = [
        round_cost(gamma, value_of(d), accuracy, 0.1) for d, gamma in enumerate(misspecifications, 1) if d in CANDIDATES
    ]
    return costs_of(choice, misspecifications, accuracy), min(costs), [d for d in designs.asked if d >= 48]


CANDIDATES = {*range(1, 13), 15, 19, 24, 30, 38, 48, 60, 75, 94, 118, 148, 185, 200}


def costs_of(choice, misspecifications, accuracy):
    return round_cost(misspecifications[choice.dim - 1], choice.design.value, accuracy, 0.1)


@pytest.mark.parametrize("decay", [0.016, 0.02, 0.03, 0.05])
def test_few_dear_dimensions_are_tried_and_hardly_a_better_one_is_missed(decay):
    gammas = [0.3 * math.exp(-decay * d) for d in range(1, 201)]
    cost, best, dear = chosen(lambda d: d * (1.3 - 0.0007 * d), gammas, 0.3)
    assert cost <= 1.03 * best
    assert len(dear) <= 3


def test_a_dimension_that_only_just_leaves_room_is_found():
    """The guess of tau says that none does, and is wrong at 185."""
    gammas = [0.3 / (2.0 + math.sqrt(1.1 * 1.2 * d)) if d >= 185 else 1.0 for d in range(1, 201)]
    cost, best, _ = chosen(lambda d: d * (1.19 if d == 185 else 1.3), gammas, 0.3)
    assert cost == best < math.inf


@pytest.mark.parametrize("least", [1, 3, 4, 5])
def test_a_dimension_that_is_not_allowed_ends_no_search(least):
    """From d = 3 on nothing is left out, but fewer than `least` dimensions are not allowed."""
    family = Family(np.random.default_rng(0).normal(size=(30, 5)), [0.1, 0.05, 0.0, 0.0, 0.0])
    choice = cheapest_dimension(family, np.arange(30), 1.0, least_dim=least)
    assert choice.dim >= least


@of_each("seed", range(40))
def test_the_cost_is_at_most_twice_that_of_the_best_whatever_tau_does(seed):
    """The guess of tau(d) may be wrong; the lower bounds of smaller dimensions say what may be missed."""
    rng = np.random.default_rng(seed)
    values = np.arange(200.0) + np.cumsum(rng.exponential(1.0, 200) * (rng.uniform(size=200) < rng.uniform(0.05, 1.0)))
    gammas = list(np.minimum.accumulate(rng.uniform(0.0, 0.1, 200) ** rng.uniform(1, 4)))
    designs = Told(lambda d: 1.05 * max(values[d - 1], 1e-9))
    family = Family(np.ones((5000, 200)), gammas)
    costs = [round_cost(gammas[d - 1], designs.value_of(d), 0.5, 0.1) for d in CANDIDATES]
    if min(costs) == math.inf:
        with pytest.raises(sp.errors.ContractError):
            cheapest_dimension(family, np.arange(5000), 0.5, tolerance=0.05, design_of=designs)
    else:
        choice = cheapest_dimension(family, np.arange(5000), 0.5, tolerance=0.05, design_of=designs)
        assert costs_of(choice, gammas, 0.5) <= 2.0 * 1.05 * min(costs)
