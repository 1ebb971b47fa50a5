"""The linear peers keep (epsilon, delta): wrong answers stay within the exact binomial bound."""

import numpy as np
import pytest
from bounds import failures_allowed, trials_to_notice, until_clear

import surepick as sp

EPSILON, DELTA, TRIALS = 0.5, 0.05, 60
FEW = trials_to_notice(DELTA, 0.7)
THETA = 0.51 * EPSILON * np.array([1.0, -1.0, -1.0, -1.0])
NORM = {"norm_bound": 1.02 * EPSILON}  # exactly that of THETA
SHORT_PHASES = {"shrinkage": 0.5}  # so that a study goes through several
PEERS = [  # the last entry: the share of the noise that the saboteur believes in
    pytest.param("xy-static", {"constants": "paper"}, 0.1, id="xy-static"),
    pytest.param("xy-static", {"constants": "sub-gaussian"}, 0.25, id="xy-static, sub-gaussian"),
    pytest.param("xy-static", {"constants": "published-code"}, 0.25, id="xy-static, published-code"),
    pytest.param("xy-adaptive", SHORT_PHASES | {"constants": "paper"}, 0.1, id="xy-adaptive"),
    pytest.param("xy-adaptive", SHORT_PHASES | {"constants": "sub-gaussian"}, 0.25, id="xy-adaptive, sub-gaussian"),
    pytest.param("xy-adaptive", SHORT_PHASES | {"constants": "published-code"}, 0.25, id="xy-adaptive, published-code"),
    pytest.param("lingape", NORM, 0.1, id="lingape"),
    pytest.param("lingame", NORM | {"play": "learner"}, 0.1, id="lingame"),  # the stopping rule is that of "solved"
]


def hard_instance() -> sp.environments.Environment:
    """One best arm, three worse by 2 % more than epsilon, and the worst arm, which tells of all four."""
    features = np.vstack([np.eye(4), [[-0.5, 0.5, 0.5, 0.5]]])
    return sp.environments.Environment(arms=sp.Arms(features), means=features @ THETA, noise=sp.SubGaussian(1.0))


def wrong_answers(name: str, options: dict[str, object], *, believed_sigma: float, trials: int = TRIALS) -> int:
    """Runs out of `trials` with a wrong answer, for a policy that believes this noise scale; `until_clear`."""
    environment, noise = hard_instance(), sp.SubGaussian(believed_sigma)
    policy = sp.make_policy(name, environment.arms, epsilon=EPSILON, delta=DELTA, noise=noise, growth=0.5, **options)
    wrong = (not sp.simulate(policy, environment, seed=seed).success for seed in range(trials))
    return until_clear(wrong, trials, DELTA)


def alike(peers):
    """Of those that differ in the constants alone one in `make test`; the saboteur below has all of them there."""
    for peer in peers:
        marks = [pytest.mark.slow] if peer.values[1].get("constants", "sub-gaussian") != "sub-gaussian" else []
        yield pytest.param(*peer.values, id=peer.id, marks=marks)


@pytest.mark.parametrize(("name", "options", "_saboteur"), list(alike(PEERS)))
def test_wrong_answers_stay_within_delta(name, options, _saboteur):
    assert wrong_answers(name, options, believed_sigma=1.0, trials=FEW) <= failures_allowed(FEW, DELTA)


@pytest.mark.parametrize(("name", "options", "saboteur"), PEERS)
def test_the_error_test_would_notice_widths_that_are_too_small(name, options, saboteur):
    """The saboteur. The published unions are so generous that only far smaller widths lose delta."""
    assert wrong_answers(name, options, believed_sigma=saboteur) > failures_allowed(TRIALS, DELTA)


@pytest.mark.slow
@pytest.mark.parametrize("delta", [0.05, 0.3])
@pytest.mark.parametrize(("name", "options", "_saboteur"), PEERS)
def test_wrong_answers_stay_within_delta_over_2000_runs(name, options, _saboteur, delta):
    environment = hard_instance()
    policy = sp.make_policy(
        name, environment.arms, epsilon=EPSILON, delta=delta, noise=environment.noise, growth=0.5, **options
    )
    wrong = sum(not sp.simulate(policy, environment, seed=seed).success for seed in range(2000))
    print(f"\n{name} at delta {delta}: {wrong} wrong of 2000")
    assert wrong <= failures_allowed(2000, delta)
