"""Normal noise of unknown scale: bounds on variances at all times, and what a bet on such rewards costs."""

import numpy as np
import pytest
from bounds import failures_allowed
from scipy.special import gammaincinv
from together import of_each

import surepick as sp
from surepick.core.observations import Observations
from surepick.errors import ContractError
from surepick.estimators import noise_mgf, normal_mgf_after
from surepick.estimators.noise_mgf import NormalMgf, least_chi_squares, likely_variances, variance_bounds
from surepick.estimators.running_processes import ArmVectors, VectorProcesses

FAILURE = 0.05


def chi_square_paths(runs: int, most: int, seed: int) -> np.ndarray:
    """SS / s^2 after 2, 3, ... pulls, shape (runs, most - 1), from the rewards themselves."""
    rewards = np.random.default_rng([seed, 41]).normal(3.0, 1.0, (runs, most))
    number = np.arange(1, most + 1)
    return (np.cumsum(rewards**2, axis=1) - np.cumsum(rewards, axis=1) ** 2 / number)[:, 1:]


@pytest.mark.parametrize("failure", [0.05, 0.3])
def test_a_variance_bound_holds_after_every_pull(failure):
    paths = chi_square_paths(5000, 300, 1)
    least = least_chi_squares(np.arange(1, 300), failure)
    wrong = int(np.any(paths < least, axis=1).sum())
    print(f"\n{wrong} of 5000 below, {failures_allowed(5000, failure)} allowed")
    assert wrong <= failures_allowed(5000, failure)
    assert wrong > 0.02 * failure * 5000  # the bound is not idle


@pytest.mark.parametrize("looks", [2, 299])
def test_a_bound_for_one_look_that_is_used_after_several_is_noticed(looks):
    paths = chi_square_paths(5000, 300, 2)[:, np.unique(np.linspace(1, 298, looks).astype(int))]
    freedom = np.unique(np.linspace(1, 298, looks).astype(int)) + 1
    fixed = 2.0 * gammaincinv(0.5 * freedom, FAILURE)
    wrong = int(np.any(paths < fixed, axis=1).sum())
    print(f"\n{wrong} of 5000 below, {failures_allowed(5000, FAILURE)} allowed")
    assert wrong > failures_allowed(5000, FAILURE)


def test_bounds_are_infinite_without_repeats_and_where_all_repeats_are_equal():
    seen = Observations(np.array([0, 1, 2, 9, 9]), np.array([0, 2, 4, 27.0, 9]), np.array([0, 4, 10, 81.0, 18]))
    bounds = variance_bounds(seen, 0.01)
    assert np.isinf(bounds[:4]).all()
    assert np.isfinite(bounds[4])
    with pytest.raises(ContractError):
        variance_bounds(Observations(np.array([2]), np.array([1.0])), 0.01)


def test_a_bound_scales_with_the_rewards_and_ignores_their_mean():
    rewards = np.random.default_rng(3).normal(size=(4, 12))
    rewards[1], rewards[2] = 1e4 * rewards[0], rewards[0] + 50.0
    seen = Observations(np.full(4, 12), rewards.sum(axis=1), (rewards**2).sum(axis=1))
    bounds = variance_bounds(seen, 0.01)
    np.testing.assert_allclose(bounds[1:3] / bounds[0], [1e8, 1.0], rtol=1e-8)


def nodes(number: int) -> tuple[np.ndarray, np.ndarray]:
    """Points and weights of a standard normal variable."""
    points, weights = np.polynomial.hermite_e.hermegauss(number)
    return points, weights / weights.sum()


CASES = [(w, scale, away) for w in (0.05, 0.3, 0.8, 1.5) for scale in (0.1, 0.5, 1.0) for away in (0.0, 1.0, -4.0)]


def expectation(mgf: NormalMgf, w: float, scale: float, pulls: int) -> float:
    """E exp(w sum (r - h) - cost) for normal rewards of mean 0, by quadrature over each reward."""
    points, weights = nodes(60 if pulls < 3 else 30)
    grid = np.stack(np.meshgrid(*[scale * points] * pulls, indexing="ij")).reshape(pulls, -1)
    chance = np.prod(np.stack(np.meshgrid(*[weights] * pulls, indexing="ij")).reshape(pulls, -1), axis=0)
    batch = Observations(np.full(grid.shape[1], pulls), grid.sum(axis=0), (grid**2).sum(axis=0))
    each = NormalMgf(*(np.full(grid.shape[1], one[0]) for one in (mgf.bounds,) * 2), *wide(mgf, grid.shape[1]))
    cost = each.total(np.full(grid.shape[1], w), np.arange(grid.shape[1]), batch)
    return float(chance @ np.exp(w * batch.sums - cost))


def wide(mgf: NormalMgf, number: int) -> tuple[np.ndarray, ...]:
    return tuple(np.full(number, one[0]) for one in (mgf.variances, mgf.centres, mgf.counts))


@of_each("pulls", [1, 2, 3])
@of_each("guess", [0.01, 0.6])
def test_a_bet_costs_enough_for_every_variance_below_the_bound_and_no_more(pulls, guess):
    """With V = 1, any variance up to V, any centre and any guess, the expectation is at most 1."""
    found = []
    for w, scale, away in CASES:
        mgf = NormalMgf(*(np.array([one]) for one in (1.0, 1.0, guess, away, 5)))
        found.append(expectation(mgf, w, scale, pulls))
    assert max(found) <= 1.0 + 1e-6
    small = NormalMgf(*(np.array([one]) for one in (1.0, 1.0, guess, 0.0, 5)))
    assert expectation(small, 0.05, 0.5, pulls) > 0.999


def test_without_its_share_for_the_bound_a_bet_costs_too_little():
    """w^2 / 2 times the batch's own variance, as if V were 0."""
    points, weights = nodes(80)
    first, second = (one.ravel() for one in np.meshgrid(points, points))
    chance, w = np.outer(weights, weights).ravel(), 1.0
    value = np.exp(w * (first + second) - 0.5 * w**2 * (first - second) ** 2)
    assert chance @ value > 1.1


def test_the_cost_is_nearly_that_of_a_known_variance_where_repeats_are_many():
    rng, counts = np.random.default_rng(5), np.full(200, 300)
    past = _drawn(rng, counts)
    mgf, batch, w = normal_mgf_after(past, 1e-3), _drawn(rng, np.full(200, 60)), 0.1
    ratio = mgf.total(np.full(200, w), np.arange(200), batch).mean() / (0.5 * w**2 * 60 * 4.0)
    assert 0.97 < ratio < 1.08


def _drawn(rng: np.random.Generator, counts: np.ndarray) -> Observations:
    world = sp.environments.Environment(
        arms=sp.Arms(ids=range(len(counts))), means=np.zeros(len(counts)), noise=sp.SubGaussian(2.0)
    )
    return world.pull(counts, rng)


def test_guesses_of_variances_share_what_arms_have_in_common():
    rng, counts = np.random.default_rng(6), np.full(400, 5)
    equal = likely_variances(_drawn(rng, counts))
    assert np.abs(np.log(equal / 4.0)).max() < 0.5
    seen, factor = _drawn(rng, counts), 10.0 ** np.linspace(0, 2, 400)
    unequal = likely_variances(Observations(counts, seen.sums * factor**0.5, seen.squares * factor))
    assert np.median(unequal[-40:]) > 10.0 * np.median(unequal[:40])


def test_pulls_without_a_bound_are_not_bet_on():
    seen = Observations(np.array([1, 9]), np.array([1.0, 9.0]), np.array([1.0, 18.0]))
    batch = Observations(np.array([4, 4]), np.array([4.0, 4.0]), np.array([9.0, 9.0]))
    usable = normal_mgf_after(seen, 0.01).usable(batch)
    assert usable.counts.tolist() == [0, 4]
    assert usable.sums.tolist() == [0.0, 4.0]


def test_what_was_found_for_a_failure_is_kept_bit_for_bit():
    """Asked one by one or together, for the first time or again."""
    freedom = np.array([3, 17, 17, 4, 250, 9_999])
    together = least_chi_squares(freedom, 0.012345)
    alone = [float(least_chi_squares(np.array([one]), 0.0123451)[0]) for one in freedom.tolist()]
    assert together.tolist() == least_chi_squares(freedom, 0.012345).tolist()
    assert alone == least_chi_squares(freedom, 0.0123451).tolist()
    assert together.tolist() == noise_mgf._least_chi_squares(freedom, 0.012345).tolist()


@of_each("steep", [1e-9, 0.1, 1.0, 20.0])
def test_a_tempered_bet_gains_most(steep):
    """On one arm with many pulls: t w m - v (e^(t^2 w^2 V) - 1) / (2 V) for w = m / v."""
    mgf = NormalMgf(*(np.array([one]) for one in (steep, steep, 1.0, 0.0, 5)))
    share = float(mgf.tempered(np.array([[1.0]]), np.array([0]), np.array([100.0]))[0])
    tried = np.linspace(0.01, 1.0, 2000)
    gains = tried - np.expm1(tried**2 * steep) / (2.0 * steep)
    assert share == pytest.approx(tried[np.argmax(gains)], abs=1e-3)
    assert mgf.tempered(np.zeros((2, 1)), np.array([0]), np.array([100.0])).tolist() == pytest.approx([1.0, 1.0])


def test_with_features_the_evidence_of_a_batch_is_what_the_lines_say():
    """log M after a batch: the weighed rewards less what `total` says each arm costs, by hand."""
    rng, num_arms = np.random.default_rng(8), 4
    vectors = ArmVectors.of(sp.Embedding(rng.normal(size=(num_arms, 2)), 0.0), rng.normal(size=(num_arms, 2)), 1.0)
    past, batch = _drawn(rng, np.array([20, 30, 1, 12])), _drawn(rng, np.array([3, 5, 4, 2]))
    mgf = normal_mgf_after(past, 1e-3)
    usable, scales = mgf.usable(batch), mgf.noise_scales(0.3)
    assert usable.counts.tolist() == [3, 5, 0, 2]
    directions = rng.normal(size=(2, 2))
    begun = VectorProcesses.started(vectors, 0.0)
    after = begun.after(vectors, 0, np.array([1, 2]), directions, usable, scales, mgf)
    assert after.log_values[[0, 3]].tolist() == [0.0, 0.0]
    for row, arm in enumerate((1, 2)):
        gained = 0.0
        for pulled in (0, 1, 3):
            weight = float(directions[row] @ vectors.white[pulled]) / scales[pulled] ** 2
            cost = mgf.total(np.array([abs(weight)]), np.array([pulled]), usable)
            gained += weight * float(usable.sums[pulled]) - float(cost[0])
        assert after.log_values[arm] == pytest.approx(gained)
