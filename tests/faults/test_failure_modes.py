"""Known ways to a confident wrong arm: each ends in a warning, a refusal or a right answer."""

import numpy as np
import pytest
from budgets import few_and_all
from together import of_each

import surepick as sp


def answer(name, environment, *, seed=0, **options):
    policy = sp.make_policy(name, environment.arms, epsilon=0.1, delta=0.05, noise=environment.noise, **options)
    return sp.simulate(policy, environment, seed=seed)


def not_confident_and_wrong(run) -> bool:
    return run.success or run.verdict != "certified"


NORM_POLICIES = ["linear-embedding", "fixed-linear", "certified-linear"]


def in_proofs(*values):
    """A case that lies between others."""
    return pytest.param(*values, marks=pytest.mark.slow)


def seeds(number: int) -> list:
    """The first, and in the proofs the others."""
    return [0, *map(in_proofs, range(1, number))]


@pytest.mark.cases(3)
@pytest.mark.parametrize("seed", seeds(3))
@pytest.mark.parametrize("paper", [False, True])
@pytest.mark.parametrize("name", NORM_POLICIES)
@pytest.mark.parametrize("norm_bound", [1e-6, in_proofs(1e-4), in_proofs(1e-2)])
def test_a_norm_bound_far_too_small_on_digits(name, norm_bound, paper, seed):
    settings = sp.paper_settings(name) if paper else {}
    run = answer(name, sp.environments.digits(seed), seed=seed, norm_bound=norm_bound, **settings)
    assert not_confident_and_wrong(run)


@pytest.fixture(scope="module")
def mnist(mnist_directory):
    """So many of its 200 images, of each digit alike."""
    whole = sp.bench.datasets.mnist(mnist_directory)

    def of_images(number: int) -> sp.environments.Environment:
        rows = np.arange(0, 200, 200 // number)
        arms = sp.Arms(whole.arms.features[rows])
        return sp.environments.Environment(arms=arms, means=whole.means[rows], noise=whole.noise)

    return of_images


@pytest.mark.parametrize("paper", [False, True])
@pytest.mark.parametrize("name", NORM_POLICIES)
@few_and_all("images", 60, 200)
def test_a_norm_bound_far_too_small_on_mnist(name, paper, images, mnist):
    settings = sp.paper_settings(name) if paper else {}
    run = answer(name, mnist(images), norm_bound=1e-6, **settings)
    assert not_confident_and_wrong(run)
    if settings:  # compressed by its literal rule, and caught by it
        assert run.verdict == "heuristic"
        assert "speak against the embedding" in run.certificate.reason
    else:  # so small a norm is no reason to compress: the pulls are spent, and the answer is right
        assert (run.success, run.verdict) == (True, "certified")


@pytest.mark.cases(3)
@pytest.mark.parametrize("seed", seeds(2))
@pytest.mark.parametrize("gamma", [1e-8, in_proofs(1e-6), in_proofs(1e-5), 1e-4])
@pytest.mark.parametrize("name", ["kernel-embedding", "fixed-kernel", "certified-kernel"])
def test_a_kernel_far_too_flat_on_digits(name, gamma, seed):
    run = answer(name, sp.environments.digits(seed), seed=seed, norm_bound=1.0, gamma=gamma)
    assert not_confident_and_wrong(run)


@pytest.mark.parametrize("name", ["linear-embedding", "certified-linear"])
def test_one_dimension_by_force_is_heuristic(name):
    run = answer(name, sp.environments.digits(0), norm_bound=1e-6, dim=1)
    assert run.verdict == "heuristic"
    assert "collapse" in run.certificate.reason or "too small" in run.certificate.reason


@pytest.mark.parametrize("name", ["linear-embedding", "certified-linear"])
def test_features_of_one_column_are_no_collapse(name):
    environment = sp.environments.Environment(
        arms=sp.Arms(np.linspace(0.1, 1.0, 8)[:, None]), means=np.linspace(0.1, 1.0, 8), noise=sp.SubGaussian(0.5)
    )
    run = answer(name, environment, norm_bound=1.0)
    assert (run.success, run.verdict) == (True, "certified")


@pytest.mark.parametrize(("name", "options"), [("rage", {}), ("certified-linear", {"norm_bound": 3.0})])
def test_rewards_that_are_not_linear_take_the_certificate_away(name, options):
    rng = np.random.default_rng(0)
    features = rng.normal(size=(40, 3))
    means = np.abs(features[:, 0])
    environment = sp.environments.Environment(arms=sp.Arms(features), means=means, noise=sp.SubGaussian(0.1))
    assert not_confident_and_wrong(answer(name, environment, **options))


@pytest.mark.parametrize("name", ["linear-embedding", "certified-linear"])
def test_near_duplicates_of_the_best_arm_do_not_split_for_ever(name):
    features = np.eye(3)[[0, 0, 1, 2]] + 0.0
    environment = sp.environments.Environment(
        arms=sp.Arms(features), means=features @ [0.9, 0.4, 0.2], noise=sp.SubGaussian(0.5)
    )
    run = answer(name, environment, norm_bound=1.0)
    assert (run.success, run.verdict) == (True, "certified")


def test_active_differences_in_the_range_are_enough():
    """A design for two arms is singular in three dimensions and still tells them apart."""
    design = sp.solve_design(np.eye(3), active=[0, 1])
    assert design.value == pytest.approx(4.0)
    assert design.weights[2] == 0.0


@pytest.mark.parametrize("gamma", [in_proofs(1e-16), 1e-12])
def test_a_kernel_so_flat_that_its_rank_is_lost_to_rounding(gamma):
    environment = sp.environments.digits(0)
    for name in ("kernel-embedding", "fixed-kernel", "certified-kernel"):
        run = answer(name, environment, norm_bound=1.0, gamma=gamma)
        assert not_confident_and_wrong(run)


@of_each("name", NORM_POLICIES)
@of_each("norm_bound", [1e-6, 1e-2])
def test_two_arms_and_a_norm_bound_far_too_small(name, norm_bound):
    environment = sp.environments.Environment(arms=sp.Arms(np.eye(2)), means=[0.0, 1.0], noise=sp.SubGaussian(0.5))
    for seed in range(5):
        assert not_confident_and_wrong(answer(name, environment, seed=seed, norm_bound=norm_bound))


@pytest.mark.parametrize("name", NORM_POLICIES)
def test_equal_features_are_taken_for_equal_means_aloud_and_doubted_when_they_are_not(name):
    """A warning before, an assumption in the certificate, and an alarm when the means are ten noise scales apart."""
    features = np.eye(2)[[0, 0, 1, 1]]
    environment = sp.environments.Environment(
        arms=sp.Arms(features), means=[0.0, 3.0, 0.2, 0.3], noise=sp.SubGaussian(0.3)
    )
    policy = sp.make_policy(name, environment.arms, epsilon=0.1, delta=0.05, noise=environment.noise, norm_bound=4.0)
    assert any("equal features" in sentence for sentence in policy.traits.caveats)
    run = sp.simulate(policy, environment)
    implied = ("equal features", "is a linear function of the 2 features")  # the second implies the first
    assert any(words in sentence for sentence in run.certificate.assumptions for words in implied)
    assert not_confident_and_wrong(run)


def test_an_honest_norm_that_leaves_little_to_find_stays_certified():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(20, 3))
    features /= 2 * np.linalg.norm(features, axis=1, keepdims=True)
    theta = rng.normal(size=3)
    means = features @ (theta / np.linalg.norm(theta))
    environment = sp.environments.Environment(arms=sp.Arms(features), means=means, noise=sp.SubGaussian(0.5))
    for name in NORM_POLICIES:
        settings = {"epsilon": 1.0, "delta": 0.05, "noise": environment.noise, "norm_bound": 1.0}
        policy = sp.make_policy(name, environment.arms, **settings)
        assert sp.simulate(policy, environment).verdict == "certified"
