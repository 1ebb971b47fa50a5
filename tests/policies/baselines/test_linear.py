"""What linear baselines share: least squares, coordinates, judgements and widths, against their formulas."""

import math
from fractions import Fraction

import numpy as np
import pytest
from linear_baselines import SEEDS, drawn, make, multiplier, played
from together import of_each

import surepick as sp
from surepick.core.observations import Observations
from surepick_bench.policies.widths import regularised_least_squares, self_normalised_radius
from surepick_bench.policies.xy import CONSTANTS, in_span, judge_pairs, next_xy_batch, pieces, pulled_more


@pytest.mark.parametrize("seed", SEEDS)
def test_regularised_least_squares_is_the_formula(seed):
    features, seen = drawn(seed)
    matrix = 0.3 * np.eye(3) + features.T @ np.diag(seen.counts) @ features
    inverse = np.linalg.inv(matrix)
    estimate = regularised_least_squares(features, seen, regularization=0.3)
    assert estimate.fitted.scores == pytest.approx(features @ inverse @ features.T @ seen.sums)
    assert estimate.log_growth == pytest.approx(np.linalg.slogdet(matrix)[1] - 3 * math.log(0.3))
    difference = features[4] - features[1]
    distance = estimate.fitted.distances(np.array([4]), np.array([1]))[0, 0]
    assert distance == pytest.approx(math.sqrt(difference @ inverse @ difference), rel=1e-6)


def test_the_self_normalised_radius_is_the_formula():
    radius = self_normalised_radius(2.0, 3.0, log_inverse_delta=math.log(20), regularization=4.0, norm_bound=1.5)
    assert radius == pytest.approx(2.0 * math.sqrt(2.0 * math.log(20) + 3.0) + 3.0)


def test_features_beside_which_the_regularisation_is_lost_are_refused():
    seen = Observations(np.array([10, 0]), np.zeros(2))
    with pytest.raises(sp.errors.ContractError, match="Divide the features"):
        regularised_least_squares(np.array([[1e9, 0.0], [0.0, 1.0]]), seen, regularization=1.0)


@pytest.mark.parametrize("seed", SEEDS)
def test_more_pulls_in_coordinates_are_more_pulls_of_the_arm(seed):
    features, seen = drawn(seed)
    before = regularised_least_squares(features, seen, regularization=1.0).fitted.coordinates
    counts = seen.counts + 9 * (np.arange(7) == 2)
    after = regularised_least_squares(features, Observations(counts, seen.sums), regularization=1.0)
    moved = pulled_more(before, 2, 9)
    for arm in range(7):
        expected = after.fitted.distances(np.array([arm]), np.array([0]))[0, 0]
        assert math.dist(moved[arm], moved[0]) == pytest.approx(expected, rel=1e-6, abs=1e-7)


def test_the_span_keeps_all_products():
    features = np.random.default_rng(1).normal(size=(9, 2)) @ np.random.default_rng(2).normal(size=(2, 5))
    span = in_span(features)
    assert span.rows.shape == (9, 2)
    assert span.rows @ span.rows.T == pytest.approx(features @ features.T)
    assert 0.0 < span.lost < 1e-13


def test_what_the_span_misses_is_told():
    """Beside 2^60 a difference of 1 is below rounding: the second column is dropped, and exactly that is missed."""
    span = in_span(np.array([[2.0**60, 0.0], [2.0**60, 1.0]]))
    assert span.rows.shape == (2, 1)
    assert span.lost >= 1.0
    assert in_span(np.zeros((3, 2))).lost == 0.0


@of_each("seed", SEEDS)
@of_each("size", [1e-200, 1.0, 1e9, 1e200])
def test_no_coordinates_miss_more_than_is_told(seed, size):
    """Against rational arithmetic: the shortest ||x - W'u|| for any W is at least what the Gram matrices differ by."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(6, 3)) * size * np.array([1.0, 10.0 ** -rng.integers(20), 10.0 ** -rng.integers(20)])
    span = in_span(features)
    exact, kept = ([[Fraction(value / size) for value in row] for row in matrix] for matrix in (features, span.rows))
    lost = Fraction(span.lost / size)
    for row, image in zip(exact, kept, strict=True):
        left, right = sum(value**2 for value in row), sum(value**2 for value in image)
        assert abs(math.sqrt(left) - math.sqrt(right)) <= lost


@pytest.mark.parametrize("seed", SEEDS)
def test_a_judgement_pays_for_means_that_are_not_linear(seed):
    """Noiseless means off by m in the worst direction: no gap is below the true one, and without m some is."""
    m, rng = 0.3, np.random.default_rng(seed)
    features = rng.normal(size=(7, 3))
    theta, counts = 0.1 * rng.normal(size=3), rng.integers(1, 2000, size=7)
    short = False
    for _ in range(200):
        means = features @ theta + m * rng.choice([-1.0, 1.0], size=7)
        told = Observations(counts, counts * means)
        fitted = regularised_least_squares(features, told, regularization=1e-9).fitted
        paid, unpaid = (judge_pairs(fitted, multiplier=0.0, epsilon=0.1, misspecification=each) for each in (m, 0.0))
        missing = np.max(means) - means[paid.leader]
        assert missing <= paid.gap + 1e-6
        short = short or missing > unpaid.gap + 1e-6
    assert short


@pytest.mark.parametrize(("total", "most"), [(1, 16), (15, 16), (17, 16), (1000, 64), (129, 64)])
def test_a_batch_falls_into_pieces(total, most):
    parts = pieces(total, most)
    assert parts.sum() == total
    assert len(parts) == min(total, most)
    assert parts.max() - parts.min() <= 1


def test_batches_grow_by_a_share():
    assert [next_xy_batch(pulls, 0.1) for pulls in (0, 5, 10, 11, 1000)] == [1, 1, 1, 2, 100]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_judgement_is_the_largest_upper_bound(seed):
    features, seen = drawn(seed)
    fitted = regularised_least_squares(features, seen, regularization=1.0).fitted
    found = judge_pairs(fitted, multiplier=0.7, epsilon=0.2)
    leader = int(np.argmax(fitted.scores))
    ahead = [
        fitted.scores[arm]
        - fitted.scores[leader]
        + 0.7 * math.dist(fitted.coordinates[arm], fitted.coordinates[leader])
        for arm in range(7)
    ]
    assert found.leader == leader
    assert found.gap == pytest.approx(max(0.0, *(ahead[arm] for arm in range(7) if arm != leader)), rel=1e-6)
    assert set(found.active) == {leader, *(arm for arm in range(7) if ahead[arm] > 0.2)}


@pytest.mark.cases(9)
@pytest.mark.parametrize("constants", CONSTANTS)
@pytest.mark.parametrize("num_arms", [2, 3, 60])
@pytest.mark.parametrize("delta", [0.01, 0.3, 0.999])
def test_fixed_design_widths_spend_at_most_delta(constants, num_arms, delta):
    """Summed over the pairs of the best arm and 10^3 looks; what is left is below the last term times 10^3."""
    chances = [
        (num_arms - 1) * math.exp(-(multiplier(constants, pulls=n, look=n, num_arms=num_arms, delta=delta) ** 2) / 2)
        for n in range(1, 1_001)
    ]
    assert sum(chances) + 1_000 * chances[-1] <= delta * (1.0 + 1e-6)


def test_the_papers_width_is_the_formula():
    found = multiplier("paper", sigma=0.5, pulls=100, look=7, num_arms=6, delta=0.05)
    assert found == pytest.approx(2 * math.sqrt(2) * 0.5 * math.sqrt(math.log(6 / math.pi**2 * 100**2 * 36 / 0.05)))


def test_the_width_of_the_published_code_is_the_formula_and_counts_looks():
    found = multiplier("published-code", sigma=0.5, pulls=100, look=7, num_arms=6, delta=0.05)
    assert found == pytest.approx(0.5 * math.sqrt(2 * math.log(2 * math.pi**2 * 36 * 7**2 / (6 * 0.05))))
    assert multiplier("published-code", sigma=0.5, pulls=10**6, look=7, num_arms=6, delta=0.05) == found


@pytest.mark.parametrize(
    ("name", "stopping"), [("xy-static", None), ("xy-adaptive", "certified"), ("xy-adaptive", "phases")]
)
def test_looks_are_counted_where_something_can_be_decided(name, stopping):
    features = np.vstack([np.eye(3), [[0.95, 0.1, 0.0]]])
    options = {"stopping": stopping} if stopping else {}
    policy = make(name, features, epsilon=0.001, constants="published-code", noise=sp.SubGaussian(5.0), **options)
    states = played(policy, features @ np.array([1.0, 0.0, 0.5]), most=2000)
    looks = [after.opened is None for after in states[1:]] if stopping == "phases" else [True] * (len(states) - 1)
    assert [state.looks for state in states] == [0, *np.cumsum(looks)]
    assert states[-1].looks >= 3
    uncounted = make(name, features, **options)  # states of stored studies have no number of looks
    assert {state.looks for state in played(uncounted, features @ np.array([1.0, 0.0, 0.5]), most=20)} == {0}


def test_the_dimension_radius_is_never_the_smaller_one():
    features, seen = drawn(0)
    for total in (1, 10, 10_000):
        scaled = Observations(seen.counts * total, seen.sums * total)
        growth = regularised_least_squares(features, scaled, regularization=1.0).log_growth
        small, large = (
            make("lingape", features, radius=radius)._multiplier(features, scaled.total, growth)
            for radius in ("determinant", "dimension")
        )
        assert small <= large
