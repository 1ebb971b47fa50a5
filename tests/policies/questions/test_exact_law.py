"""The mean of a batch's e-value on the border of its null, all outcomes enumerated: at most 1, whatever is compared."""

import itertools

import numpy as np
import pytest
from budgets import few_and_all
from scipy.stats import binom

import surepick as sp
from surepick.core.observations import Observations
from surepick.estimators.posterior import NUMBER
from surepick.questions.protocol import Bet

CASES = 12
RANGES = {"certified-independent": (0.0, 1.0), "certified-linear": (-1.0, 1.0)}


def told(counts, ones, low):
    """Rewards of which so many are 1, and the others low."""
    zeros = counts - ones
    return Observations(counts, low * zeros + ones, low**2 * zeros + 1.0 * ones)


def means_of_e_values(name: str, *, number: bool, high: bool, beyond: float = 0.0, cases: int = CASES) -> list[float]:
    """E exp(gain) of random cases in which the difference is the margin plus `beyond`; cases without a bet are skipped.

    Means, features, the past and the counts are drawn; bets are the policy's own.
    """
    rng, found, low = np.random.default_rng(7), [], RANGES[name][0]
    while len(found) < cases:
        num_arms, theta = int(rng.integers(2, 5)), rng.uniform(-0.4, 0.4, 2)
        features = rng.uniform(-1.0, 1.0, (num_arms, 2))
        means = features @ theta if name == "certified-linear" else rng.uniform(0.1, 0.9, num_arms)
        chances = (means - low) / (1.0 - low)
        tau = means[0] + rng.uniform(-0.3, 0.3) if number else means[0]
        asked = {"threshold": float(np.clip(tau, low, 1.0))} if number else {"control": "0"}
        options = {"norm_bound": float(np.linalg.norm(theta)) + 1e-9} if name == "certified-linear" else {}
        settings = {"epsilon": 0.2, "delta": 0.1, "noise": f"bounded:{low}:1", "question": "above"}
        policy = sp.make_policy(name, sp.Arms(features, range(num_arms)), **settings, **asked, **options)
        centre, level, arm = (NUMBER, asked["threshold"], 0) if number else (0, means[0], num_arms - 1)
        lead = level - means[arm] if high else means[arm] - level
        earlier = rng.integers(1, 4, num_arms)
        past = told(earlier, rng.binomial(earlier, chances), low)
        counts = rng.integers(0, 4, num_arms)
        bet = Bet("any", centre, float(lead - beyond), high, np.arange(num_arms) == arm, np.full(num_arms, 3.0))
        ground = policy._ground(2 if name == "certified-linear" else num_arms)
        outlook, total, bets = ground.posterior(past), 0.0, False
        for ones in itertools.product(*(range(most + 1) for most in counts)):
            batch = told(counts, np.array(ones), low)
            gain = ground.gains(bet, past, batch, outlook)[arm] if batch.total else 0.0
            total, bets = total + float(np.prod(binom.pmf(ones, counts, chances)) * np.exp(gain)), bets or gain != 0.0
        if bets:
            found.append(total)
    return found


@pytest.mark.cases(3)
@pytest.mark.parametrize("name", RANGES)
@pytest.mark.parametrize("number", [True, False], ids=["threshold", "control"])
@pytest.mark.parametrize("high", [True, False], ids=["above", "below"])
@few_and_all("cases", CASES, 40)
def test_no_batch_is_evidence_against_a_true_null_on_average(name, number, high, cases):
    assert max(means_of_e_values(name, number=number, high=high, cases=cases)) <= 1.0 + 1e-9


@pytest.mark.parametrize("name", RANGES)
def test_a_margin_that_the_truth_is_not_on_is_caught(name):
    assert max(means_of_e_values(name, number=True, high=True, beyond=-0.3)) > 1.0


def test_a_threshold_beside_features_and_rewards_with_a_range_is_answered():
    """The number stands as an arm more beside the others, of which nothing is told."""
    features = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.6]])
    settings = {"epsilon": 0.2, "delta": 0.1, "noise": sp.Bounded(0.0, 1.0), "norm_bound": 1.5}
    arms = sp.Arms(features, list("abc"))
    world = sp.environments.Environment(arms=arms, means=features @ [0.9, 0.2], noise=sp.Bounded(0.0, 1.0))
    policy = sp.make_policy("certified-linear", arms, question="above", threshold=0.5, **settings)
    assert sp.simulate(policy, world, seed=1, max_pulls=20_000).right
