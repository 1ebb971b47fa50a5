"""The record of an environment: arms, means, gaps and what is refused."""

import subprocess
import sys

import numpy as np
import pytest
from sampled_rewards import environment
from together import of_each

from surepick import environments
from surepick.core.arms import Arms
from surepick.errors import InvalidInput
from surepick.noise import Bernoulli, Bounded, SubGaussian


def test_importing_the_environments_loads_neither_sklearn_nor_pyarrow():
    code = "import sys, surepick.environments; print([m for m in ('sklearn', 'pyarrow', 'torch') if m in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "[]"


def test_the_best_arm_and_the_gaps():
    env = environment()
    assert (env.num_arms, env.best) == (3, 1)
    np.testing.assert_allclose(env.gaps, [0.7, 0, 0.1])


def test_minimizing_turns_the_gaps_but_not_the_rewards():
    env = environment(minimize=True)
    assert env.best == 0
    np.testing.assert_allclose(env.gaps, [0, 0.7, 0.6])
    seen = env.pull([1000, 1000, 1000], np.random.default_rng(0))
    assert np.all(seen.sums > 0)


def test_of_equal_arms_the_first_is_best():
    assert environment((0.1, 0.5, 0.5)).best == 1


def test_an_arm_exactly_epsilon_away_is_epsilon_best():
    env = environment((0.8, 0.7, 0.69))  # .8 - .7 is .10000000000000009
    assert env.gaps[1] > 0.1
    assert [env.is_epsilon_best(arm, 0.1) for arm in range(3)] == [True, True, False]
    assert not env.is_epsilon_best(1, 0.1, rounding=0.0)


def test_the_means_are_a_read_only_copy():
    means = np.array([0.2, 0.4])
    env = environment(means)
    means[0] = 0.9
    assert env.means[0] == 0.2
    with pytest.raises(ValueError, match="read-only"):
        env.means[0] = 0.9


def test_the_constructor_is_keyword_only():
    with pytest.raises(TypeError):
        environments.Environment(Arms([[1.0]]), [0.5], Bernoulli())


@of_each(
    ("means", "noise", "words"),
    [
        ([[0.1]], Bernoulli(), r"means have shape \(1, 1\) for 1 arms"),
        (["x"], Bernoulli(), "not an array of numbers"),
        ([0.1, np.nan], Bernoulli(), "1 of 2 means are not finite .*'a1'"),
        ([0.1, 1.5], Bernoulli(), r"1 of 2 mean rewards lie outside \[0, 1\].*'bernoulli'.*1.5, arm 1"),
        ([-3.0, 1.5], Bounded(-2, 2), r"outside \[-2, 2\].*-3, arm 0"),
        ([0.1, 1.5], SubGaussian([1.0, 2.0, 3.0]), "3 scales for 2 arms"),
    ],
)
def test_an_impossible_truth_is_refused(means, noise, words):
    with pytest.raises(InvalidInput, match=words):
        environment(means, noise)


@of_each("counts", [[1, 2], [1, 2, -1], [1.0, 2.0, 3.0], [[1, 2, 3]]])
def test_counts_that_are_not_whole_numbers_per_arm_are_refused(counts):
    with pytest.raises(InvalidInput, match="one non-negative integer per arm"):
        environment().pull(counts, np.random.default_rng(0))
