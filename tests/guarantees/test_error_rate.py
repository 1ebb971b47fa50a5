"""(epsilon, delta): wrong answers on an instance just outside epsilon stay within the exact binomial bound."""

import numpy as np
import pytest
from bounds import failures_allowed, trials_to_notice, until_clear
from budgets import few_and_all

import surepick as sp

EPSILON, DELTA = 0.1, 0.05
FEW = 50  # with which half the width is noticed, and of RAGE a quarter
TRIALS = [FEW, pytest.param(400, marks=pytest.mark.slow)]
OF_ALL_ARMS = trials_to_notice(DELTA, 0.6)  # of action elimination, whose saboteur is wrong in .64 of its studies
LINEAR = {"norm_bound": 1.0}
POLICIES = [
    pytest.param("linear-embedding", LINEAR, id="adaptive"),
    pytest.param("fixed-linear", LINEAR, id="fixed"),
    pytest.param("rage", {}, id="rage"),
    pytest.param("action-elimination", {"growth": 0.25}, id="action-elimination"),
]


def trials_of(policies):
    """Each with the numbers of its studies: the least that notice its saboteur, and 400 in `make prove`."""
    for policy in policies:
        name, options = policy.values
        few = OF_ALL_ARMS if name == "action-elimination" else FEW
        yield pytest.param(name, options, few, id=f"{policy.id}-{few}")
        yield pytest.param(name, options, 400, id=f"{policy.id}-400", marks=pytest.mark.slow)


def boundary_instance() -> sp.environments.Environment:
    """Five arms that share nothing: one best, four worse by 2 % more than epsilon."""
    means = np.full(5, 0.5 - 1.02 * EPSILON)
    means[0] = 0.5
    return sp.environments.Environment(arms=sp.Arms(np.eye(5)), means=means, noise=sp.SubGaussian(1.0))


def wrong_answers(name: str, options: dict[str, object], *, believed_sigma: float, trials: int) -> int:
    """Runs out of `trials` with a wrong answer, for a policy that believes this noise scale; `until_clear`."""
    environment = boundary_instance()
    noise = sp.SubGaussian(believed_sigma)
    policy = sp.make_policy(name, environment.arms, epsilon=EPSILON, delta=DELTA, noise=noise, gap_bound=0.4, **options)
    wrong = (not sp.simulate(policy, environment, seed=seed).success for seed in range(trials))
    return until_clear(wrong, trials, DELTA)


@pytest.mark.parametrize(("name", "options", "trials"), list(trials_of(POLICIES)))
def test_wrong_answers_stay_within_delta(name, options, trials):
    assert wrong_answers(name, options, believed_sigma=1.0, trials=trials) <= failures_allowed(trials, DELTA)


@pytest.mark.parametrize("trials", TRIALS)
@pytest.mark.parametrize(("name", "options"), POLICIES[:2])
def test_the_error_test_would_notice_half_the_width(name, options, trials):
    """The saboteur: believing half the noise halves every width."""
    assert wrong_answers(name, options, believed_sigma=0.5, trials=trials) > failures_allowed(trials, DELTA)


@pytest.mark.parametrize(("name", "options", "trials"), list(trials_of(POLICIES[2:])))
def test_the_error_test_would_notice_a_quarter_of_the_width(name, options, trials):
    """The unions of RAGE and of action elimination are so generous that half the width still keeps delta."""
    assert wrong_answers(name, options, believed_sigma=0.25, trials=trials) > failures_allowed(trials, DELTA)


@few_and_all("trials", 8, 100)
def test_a_misspecified_instance_at_its_declared_bound_is_answered_right(trials):
    """Coefficients of exactly the declared norm, embedded in fewer dimensions: the bias is inside the widths."""
    rng = np.random.default_rng(5)
    features = np.concatenate([rng.normal(size=(40, 2)), 0.01 * rng.normal(size=(40, 6))], axis=1)
    theta = rng.normal(size=8)
    theta /= np.linalg.norm(theta)
    means = features @ theta
    environment = sp.environments.Environment(arms=sp.Arms(features), means=means, noise=sp.SubGaussian(0.3))
    policy = sp.make_policy(
        "linear-embedding", environment.arms, epsilon=0.5, delta=DELTA, noise=sp.SubGaussian(0.3), norm_bound=1.0
    )
    runs = [sp.simulate(policy, environment, seed=seed) for seed in range(trials)]
    assert sum(not run.success for run in runs) <= failures_allowed(trials, DELTA)
    assert all(run.rounds[0].dim < 8 for run in runs)


@pytest.mark.slow
@pytest.mark.parametrize("delta", [0.05, 0.3])
@pytest.mark.parametrize(("name", "options"), POLICIES)
def test_wrong_answers_stay_within_delta_over_2000_runs(name, options, delta):
    environment = boundary_instance()
    noise = sp.SubGaussian(1.0)
    policy = sp.make_policy(name, environment.arms, epsilon=EPSILON, delta=delta, noise=noise, gap_bound=0.4, **options)
    wrong = sum(not sp.simulate(policy, environment, seed=seed).success for seed in range(2000))
    print(f"\n{name} at delta {delta}: {wrong} wrong of 2000")
    assert wrong <= failures_allowed(2000, delta)
