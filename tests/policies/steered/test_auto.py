"""assume="auto": it costs nothing where features say nothing, and the answer stands under every class that fits."""

import numpy as np
import pytest

import surepick as sp
from surepick.policies.steered import chosen, elimination

SIGMA = 0.5
GOAL = {"epsilon": 0.3, "delta": 0.1, "noise": sp.SubGaussian(SIGMA)}


def world_of(features, means) -> sp.environments.Environment:
    return sp.environments.Environment(arms=sp.Arms(features), means=means, noise=sp.SubGaussian(SIGMA))


def wave(seed: int = 1, num_arms: int = 40) -> sp.environments.Environment:
    features = np.random.default_rng(seed).uniform(size=(num_arms, 1))
    return world_of(features, 1.5 * np.sin(5.0 * features[:, 0]))


def noise_alone(seed: int) -> sp.environments.Environment:
    rng = np.random.default_rng(seed)
    return world_of(rng.normal(size=(20, 2)), rng.normal(size=20))


@pytest.fixture
def eager(monkeypatch):
    """Features steer as soon as they fit, also where they save little."""
    monkeypatch.setattr(chosen, "LEAST_LOOKS", 1)
    monkeypatch.setattr(chosen, "HEURISTIC_LEFT", 0.0)


def played(world: sp.environments.Environment, seed: int = 0, name: str = "certified-readings", **options):
    return sp.simulate(sp.make_policy(name, world.arms, **GOAL, **options), world, seed=seed)


@pytest.mark.parametrize("seed", range(2))
def test_useless_features_cost_nothing(seed):
    world = noise_alone(seed)
    usual, found = played(world, seed, "certified-independent"), played(world, seed, assume="auto")
    assert (found.pulls, found.arm, found.verdict) == (usual.pulls, usual.arm, "certified")
    assert found.certificate.assumptions == usual.certificate.assumptions


@pytest.fixture(scope="module")
def smooth():
    """A study of a smooth truth in which features steer, and one without features."""
    world = wave(num_arms=20)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chosen, "LEAST_LOOKS", 1)
        patch.setattr(chosen, "HEURISTIC_LEFT", 0.0)
        found = played(world, assume="auto", trust="exact")
        yield found, found.study, played(world, 0, "certified-independent")  # the study is played again for it


def test_what_is_read_of_a_class_is_what_the_answer_says(smooth):
    _, study, _ = smooth
    widest = study.state.steered.standing[0]
    assert study.read(study.policy.by_features.read_under(widest)).gap == pytest.approx(widest.gap, rel=1e-9)


def test_a_smooth_truth_is_seen_and_the_answer_stands_under_each_class_that_fits(smooth):
    found, study, usual = smooth
    state = study.state
    assert state.apart is None
    assert found.success
    assert found.pulls < usual.pulls
    assert len(state.steered.standing) > 1
    assert found.certificate.certified_gap == max(one.gap for one in state.steered.standing) <= GOAL["epsilon"]
    said = found.certificate.assumptions[0]
    assert said.count("The means are") + said.count("; or the means are") == len(state.steered.standing)


@pytest.mark.usefixtures("eager")
def test_features_that_turn_out_dear_are_given_up_and_the_answer_assumes_nothing(monkeypatch):
    world = wave()
    monkeypatch.setattr(chosen, "HEURISTIC_DEAR", 0.0)
    monkeypatch.setattr(elimination, "HEURISTIC_PULLS_AN_ARM", 1)
    monkeypatch.setattr(elimination, "HEURISTIC_WHOLE", 0.0)
    found = played(world, assume="auto", trust="exact")
    state = found.study.state
    assert state.apart is not None
    assert state.apart.means.starts.min() > 1  # at its price (line 13)
    assert found.verdict == "certified"
    assert found.study.read("nothing").stands
    assert "features" not in " ".join(found.certificate.assumptions)


def test_a_study_in_a_database_is_replayed(database_url):
    world = wave(num_arms=20)
    rng = np.random.default_rng(3)
    policy = sp.make_policy("certified-readings", world.arms, assume="auto", **GOAL)
    study = sp.create_study(database_url, "auto", world.arms, policy)
    study.run(lambda ids: [world.means[int(one)] + SIGMA * rng.normal() for one in ids], progress=False)
    again = sp.open_study(database_url, "auto")
    assert again.certificate() == study.certificate()
    assert again.state.steered.standing == study.state.steered.standing
