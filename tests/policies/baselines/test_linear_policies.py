"""XY-static, XY-adaptive, LinGapE and LinGame: what all of them answer, say and refuse."""

import math

import numpy as np
import pytest
from linear_baselines import make, played, played_once
from together import of_each

import surepick as sp
from surepick.core.observations import Observations
from surepick.policies.verdict import certificate_of
from surepick_bench.policies.xy import in_span

PEERS = ("xy-static", "xy-adaptive", "lingape", "lingame")


@pytest.mark.cases(2)
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


@pytest.mark.cases(4)
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


@pytest.mark.cases(4)
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


@of_each(
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
