"""XY-static, XY-adaptive, LinGapE and LinGame: their parts against brute force, and their settings."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import linprog

import surepick as sp
from surepick.core.observations import Observations
from surepick.designs import design_value
from surepick.estimators import regularised_least_squares, self_normalised_radius
from surepick.policies.base import Problem, stopped
from surepick.policies.baselines.adahedge import Learner, hedged, nearest_contradiction, taught, tracked
from surepick.policies.baselines.linear import in_span, judge, next_batch, pieces, pulled_more
from surepick.policies.baselines.xy_static import CONSTANTS, fixed_design_multiplier
from surepick.policies.verdict import certificate_of

PEERS = ("xy-static", "xy-adaptive", "lingape", "lingame")
SEEDS = range(5)


def make(name, features, **changes):
    usual = {"epsilon": 0.1, "delta": 0.05, "noise": sp.SubGaussian(0.5)}
    usual |= {"norm_bound": 2.0} if name.startswith("lin") else {}
    return sp.make_policy(name, sp.Arms(features), **(usual | changes))


def drawn(seed, num_arms=7, dim=3):
    """Features, and what 40 pulls spread at random brought."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(num_arms, dim))
    counts = np.bincount(rng.integers(num_arms, size=40), minlength=num_arms)
    return features, Observations(counts, counts * rng.normal(size=num_arms))


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


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("size", [1e-200, 1.0, 1e9, 1e200])
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
        paid, unpaid = (judge(fitted, multiplier=0.0, epsilon=0.1, misspecification=each) for each in (m, 0.0))
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
    assert [next_batch(pulls, 0.1) for pulls in (0, 5, 10, 11, 1000)] == [1, 1, 1, 2, 100]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_judgement_is_the_largest_upper_bound(seed):
    features, seen = drawn(seed)
    fitted = regularised_least_squares(features, seen, regularization=1.0).fitted
    found = judge(fitted, multiplier=0.7, epsilon=0.2)
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


def multiplier(constants, *, sigma=1.0, pulls, look, num_arms, delta):
    asked = Problem(num_arms, 0.1, delta, sp.SubGaussian(sigma))
    return fixed_design_multiplier(constants, asked, pulls=pulls, look=look)


@pytest.mark.parametrize("constants", CONSTANTS)
@pytest.mark.parametrize("num_arms", [2, 3, 60])
@pytest.mark.parametrize("delta", [0.01, 0.3, 0.999])
def test_fixed_design_widths_spend_at_most_delta(constants, num_arms, delta):
    """Summed over the pairs of the best arm and 10^4 looks; what is left is below the last term times 10^4."""
    chances = [
        (num_arms - 1) * math.exp(-(multiplier(constants, pulls=n, look=n, num_arms=num_arms, delta=delta) ** 2) / 2)
        for n in range(1, 10_001)
    ]
    assert sum(chances) + 10_000 * chances[-1] <= delta * (1.0 + 1e-6)


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


def played(policy, means, *, most=400):
    """The states of a study whose rewards are the means."""
    states = [policy.init()]
    while not stopped(policy, states[-1]) and len(states) < most:
        plan = policy.ask(states[-1])
        states.append(policy.tell(states[-1], plan, Observations(plan.counts, plan.counts * means)).state)
    return states


def test_the_static_counts_depend_on_the_number_of_pulls_alone():
    features = np.random.default_rng(0).normal(size=(8, 3))
    policy = make("xy-static", features)
    one, other = (played(policy, features @ theta) for theta in (np.array([1.0, 0, 0]), np.array([0, 0.2, -0.3])))
    for left, right in zip(one, other, strict=False):
        assert np.array_equal(left.seen.counts, right.seen.counts)
    weights = one[-1].seen.counts / one[-1].pulls
    assert design_value(features, weights) <= 1.1 * sp.solve_design(features).value


def test_phases_get_more_exact_and_drop_arms():
    features = np.vstack([np.eye(3), [[0.95, 0.1, 0.0]]])
    policy = make("xy-adaptive", features, epsilon=0.001, stopping="phases")
    states = played(policy, features @ np.array([1.0, 0.0, 0.5]), most=2000)
    reached = [states[0].reached] + [late.reached for _, late in pairwise(states) if late.opened is None]
    assert len(reached) >= 3
    assert all(late <= 0.1 * early * (1 + 1e-9) for early, late in pairwise(reached))
    assert [len(state.active) for state in states][-1] == 1
    assert certificate_of(policy, states[-1]).verdict == "certified"
    assert all(state.seen.total == 0 for state in states if state.opened is None)  # each phase starts afresh


@pytest.mark.parametrize("seed", SEEDS)
def test_the_greedy_pull_leaves_the_smallest_width(seed):
    features, seen = drawn(seed)
    policy = make("lingape", features, growth=1e-9)
    state = played_once(policy, seen)
    inverse = np.linalg.inv(np.eye(3) + features.T @ np.diag(seen.counts) @ features)
    scores = features @ inverse @ features.T @ seen.sums
    leader = int(np.argmax(scores))
    log_growth = -np.linalg.slogdet(inverse)[1]
    multiplier = 0.5 * math.sqrt(2 * math.log(49 / 0.05) + log_growth) + 2.0
    upper = [
        scores[arm]
        - scores[leader]
        + multiplier * math.sqrt((features[arm] - features[leader]) @ inverse @ (features[arm] - features[leader]))
        if arm != leader
        else -math.inf
        for arm in range(7)
    ]
    away = features[leader] - features[int(np.argmax(upper))]
    widths = [away @ np.linalg.inv(np.linalg.inv(inverse) + np.outer(x, x)) @ away for x in features]
    assert np.flatnonzero(policy.ask(state).counts).tolist() == [int(np.argmin(widths))]


def played_once(policy, seen):
    """The state after one batch that brought `seen`."""
    state = policy.init()
    return policy.tell(state, policy.ask(state), seen).state


@pytest.mark.parametrize("seed", SEEDS)
def test_the_proportions_are_those_of_the_smallest_one_norm(seed):
    features, _ = drawn(seed)
    found = make("lingape", features, selection="ratio")._proportions(0, 1)
    wanted = features[0] - features[1]
    both = linprog(np.ones(14), A_eq=np.hstack([features.T, -features.T]), b_eq=wanted)
    support = np.flatnonzero(found)
    value = wanted @ np.linalg.pinv(features[support].T @ np.diag(found[support]) @ features[support]) @ wanted
    assert value == pytest.approx(both.fun**2, rel=0.011)  # Elfving: the best design's value is the squared 1-norm


@pytest.mark.parametrize("seed", SEEDS)
def test_nature_answers_with_the_closest_contradiction(seed):
    features, _ = drawn(seed)
    theta = np.random.default_rng(seed + 100).normal(size=3)
    weights = np.random.default_rng(seed + 200).dirichlet(np.ones(7))
    scores, matrix = features @ theta, features.T @ np.diag(weights) @ features
    answer = nearest_contradiction(features, scores, weights, epsilon=0.1)
    change = np.linalg.lstsq(features, answer, rcond=None)[0]  # theta - lambda
    leader = int(np.argmax(scores))
    assert np.max((features - features[leader]) @ (theta - change)) == pytest.approx(0.1, abs=1e-3)
    inverse = np.linalg.inv(matrix)
    costs = [
        (scores[leader] - scores[arm] + 0.1) ** 2 / ((x - features[leader]) @ inverse @ (x - features[leader]))
        for arm, x in enumerate(features)
        if arm != leader
    ]
    assert change @ matrix @ change == pytest.approx(min(costs), rel=1e-3)


def test_nature_has_no_answer_where_all_arms_are_equal():
    assert not nearest_contradiction(np.ones((3, 1)), np.ones(3), np.full(3, 1 / 3), epsilon=0.1).any()
    assert not nearest_contradiction(np.ones((3, 0)), np.zeros(3), np.full(3, 1 / 3), epsilon=0.1).any()


@pytest.mark.parametrize("seed", range(1, 6))
def test_the_game_keeps_its_regret_bound(seed):
    """f(average weights) >= max f - 2 mixability / turns: AdaHedge's regret against nature's best answers."""
    turns = 2000
    features = np.random.default_rng(seed).normal(size=(7, 3))
    scores = features @ np.random.default_rng(seed + 1).normal(size=3)
    leader, learner = int(np.argmax(scores)), Learner(np.zeros(7), np.zeros(7), 0.0)
    for _ in range(turns):
        weights = hedged(learner)
        assert weights.sum() == pytest.approx(1.0)
        gains = nearest_contradiction(features, scores, weights, epsilon=0.1) ** 2
        learner = taught(learner, weights, -gains, 1)
    scales = scores[leader] - scores + 0.1
    best = 1.0 / sp.designs.solve_star_design(features, leader, scales).value
    inverse = np.linalg.inv(features.T @ np.diag(learner.weights / turns) @ features)
    away = (features - features[leader]) / scales[:, None]
    reached = 1.0 / np.max(np.einsum("ij,jk,ik->i", away, inverse, away))
    assert reached >= best - 2.0 * learner.mixability / turns - 1e-4 * best
    assert reached >= 0.9 * best  # what the bound comes to on these instances


def test_a_single_loss_moves_the_learner_away():
    learner = taught(Learner(np.zeros(2), np.zeros(2), 0.0), np.array([0.5, 0.5]), np.array([1.0, 0.0]), 1)
    assert learner.mixability == pytest.approx(0.5)
    assert hedged(learner)[1] > 0.5
    assert learner.weights.tolist() == [0.5, 0.5]


@pytest.mark.parametrize("seed", SEEDS)
def test_tracking_asks_for_exactly_the_batch_and_for_what_lags(seed):
    rng = np.random.default_rng(seed)
    counts = rng.integers(20, size=6)
    weights = rng.dirichlet(np.ones(6)) * (counts.sum() + 13)
    pulls = tracked(weights, counts, 13)
    assert pulls.sum() == 13
    assert not pulls[weights <= counts].any()
    assert tracked(np.zeros(4), np.zeros(4, np.int64), 2).sum() == 2


@pytest.mark.parametrize("name", PEERS)
def test_turned_and_redundant_coordinates_lead_to_the_same_answer(name):
    rng = np.random.default_rng(3)
    features, theta = rng.normal(size=(6, 3)), np.array([0.8, -0.3, 0.4])
    turned = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    redundant = np.hstack([features, features]) / math.sqrt(2.0)
    means = features @ theta
    ends = [played(make(name, each), means, most=3000)[-1] for each in (features, features @ turned, redundant)]
    assert {end.finished for end in ends} <= {"certified", "single"}, [end.finished for end in ends]
    assert {end.leader for end in ends} == {int(np.argmax(means))}


@pytest.mark.parametrize("name", ["lingape", "lingame"])
@pytest.mark.parametrize("num_arms", [10, 300])
@pytest.mark.parametrize("size", [1e12, 1e14, 1.7e18])
def test_features_beside_which_others_are_lost_in_rounding_are_refused(name, num_arms, size):
    """A time stamp beside features that matter; with the columns rescaled the same arms are told apart."""
    rng = np.random.default_rng(0)
    features = np.column_stack([size * (1.0 + rng.random(num_arms)), rng.random((num_arms, 2))])
    with pytest.raises(sp.InvalidInput, match="lost in rounding, which norm_bound 2 lets change a gap"):
        make(name, features)
    theta = np.array([0.0, 1.0, 1.0])
    rescaled = features / features.max(axis=0)
    end = played(make(name, rescaled), rescaled @ theta, most=3000)[-1]
    assert end.finished == "certified"
    assert np.max(rescaled @ theta) - (rescaled @ theta)[end.leader] <= 0.1


@pytest.mark.parametrize("name", ["lingape", "lingame"])
def test_what_rounding_hides_is_paid_for_where_it_is_not_refused(name):
    """A column of 3e-17 is dropped beside one of 1; with norm_bound 2e12 the true gap may be 6e-5."""
    features = np.array([[1.0, 0.0], [1.0, 3e-17]])
    policy = make(name, features, norm_bound=2e12, noise=sp.SubGaussian(1e-6))
    assert in_span(features).rows.shape == (2, 1)
    state = played_once(policy, Observations(np.array([10**6, 10**6]), np.zeros(2)))
    assert 2e12 * 3e-17 <= state.gap < 0.1


@pytest.mark.parametrize("name", PEERS)
@pytest.mark.parametrize("size", [1, 1000])
def test_dependent_columns_of_whole_numbers_and_equal_columns_are_no_obstacle(name, size):
    rng = np.random.default_rng(0)
    whole = np.vstack([np.eye(3, dtype=np.int64), rng.integers(1, 3, size=(5, 3))]) * size
    features = np.hstack([whole, whole[:, :1] + 2 * whole[:, 1:2], whole[:, 2:]])
    means = features @ np.array([1.0, -0.5, 0.2, 0.0, 0.1]) / size
    end = played(make(name, features), means, most=3000)[-1]
    assert end.finished in ("certified", "single")
    assert np.max(means) - means[end.leader] <= 0.1


def test_phases_end_when_only_equal_features_are_left():
    features = np.vstack([np.eye(3), np.eye(3)[:1]])
    policy = make("xy-adaptive", features, stopping="phases")
    end = played(policy, features[:, 0])[-1]
    answer = certificate_of(policy, end)
    assert (answer.verdict, answer.certified_gap, end.active.tolist()) == ("certified", 0.0, [0, 3])
    alike = make("xy-adaptive", np.ones((3, 2)), stopping="phases")
    assert certificate_of(alike, played(alike, np.zeros(3))[-1]).certified_gap == 0.0


@pytest.mark.parametrize("name", PEERS)
@pytest.mark.parametrize("features", [np.zeros((3, 2)), np.ones((4, 1)), np.tile([0.1, 0.2, 0.3], (3, 1))])
def test_arms_without_a_difference_are_all_best(name, features):
    policy = make(name, features)
    end = played(policy, features.sum(axis=1))[-1]
    assert certificate_of(policy, end).verdict == "certified"
    assert end.gap == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("name", ["xy-static", "xy-adaptive"])
def test_means_that_are_not_linear_make_the_verdict_heuristic(name):
    features = np.linspace(-1.0, 1.0, 9)[:, None]
    means = np.where(features[:, 0] == 0.5, 3.0, features[:, 0])
    features = np.hstack([features, np.random.default_rng(0).normal(size=(9, 3)), np.eye(9)[:, :2]])
    policy = make(name, features, noise=sp.SubGaussian(0.05))
    end = played(policy, means, most=3000)[-1]
    assert end.alarms
    assert certificate_of(policy, end).verdict == "heuristic"


def test_the_stylised_threshold_needs_no_norm_bound_and_certifies_nothing():
    features = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    policy = make("lingame", features, threshold="stylised", norm_bound=None)
    end = played(policy, features @ np.array([1.0, 0.0]))[-1]
    answer = certificate_of(policy, end)
    assert (answer.arm, answer.verdict) == (0, "heuristic")
    assert "not proved" in answer.reason
    assert "norm" not in " ".join(answer.assumptions)


@pytest.mark.parametrize("name", ["lingape", "lingame"])
def test_a_missing_norm_bound_is_refused(name):
    with pytest.raises(sp.InvalidInput, match=f"{name} needs norm_bound"):
        make(name, np.eye(3), norm_bound=None)
    assert any("norm at most 2" in sentence for sentence in make(name, np.eye(3)).traits.assumptions)


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        *[(name, {"growth": 0.0}, "growth is 0.0") for name in PEERS],
        *[(name, {"growth": 1e20}, "at most 1000: by what share a batch adds pulls") for name in PEERS],
        ("xy-static", {"constants": "tight"}, "choose one of 'paper', 'published-code', 'sub-gaussian'"),
        ("xy-static", {"tolerance": -1.0}, "tolerance is -1.0"),
        ("xy-adaptive", {"shrinkage": 1.0}, "shrinkage is 1.0"),
        ("xy-adaptive", {"slack": 0.0}, "slack is 0.0"),
        ("xy-adaptive", {"stopping": "rounds"}, "choose one of 'certified', 'phases'"),
        ("lingape", {"selection": "both"}, "choose one of 'greedy', 'ratio'"),
        ("lingape", {"radius": "small"}, "choose one of 'determinant', 'dimension'"),
        ("lingape", {"regularization": 0.0}, "regularization is 0.0"),
        ("lingape", {"norm_bound": -1.0}, "norm_bound is -1.0"),
        ("lingame", {"play": "chess"}, "choose one of 'solved', 'learner'"),
        ("lingame", {"threshold": "loose"}, "choose one of 'proved', 'stylised'"),
        ("lingame", {"regularization": math.nan}, "regularization is nan"),
    ],
)
def test_settings_without_meaning_are_refused(name, changes, message):
    with pytest.raises(sp.InvalidInput, match=message):
        make(name, np.eye(3), **changes)


@pytest.mark.parametrize("name", PEERS)
def test_arms_without_features_are_refused(name):
    with pytest.raises(sp.InvalidInput, match="certified-independent"):
        make(name, np.zeros((3, 0)))


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
