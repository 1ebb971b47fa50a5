"""Bad results and bad designs, each with its own error: its type, what was wrong, and what to do about it."""

import numpy as np
import pytest
from refusals import ARMS, INF, NAN, make, open_study, refused
from together import of_each

import surepick as sp


def test_tell_before_ask():
    study = sp.Study(ARMS, make())
    refused(lambda: study.tell(["a"], [1.0]), "nothing has been asked yet", "call ask() first", kind=sp.OutOfTurn)


@of_each("bad", [NAN, INF, -INF, None])
def test_rewards_that_are_not_finite(bad):
    study = open_study(noise=sp.SubGaussian(1.0))
    refused(lambda: study.tell(["a", "b"], [1.0, bad]), "1 rewards are not finite", "arm 'b'", "measure again")
    assert study.missing.tolist() == [1, 1, 1]


@of_each(
    ("noise", "reward"),
    [("bernoulli", 0.5), ("bernoulli", 2.0), ("bernoulli", -1.0), ("bounded:0:1", 1.0001), ("bounded:-1:0", 0.5)],
)
def test_rewards_outside_what_was_declared(noise, reward):
    study = open_study(noise=noise)
    refused(lambda: study.tell(["c"], [reward]), "outside what was declared", f"{reward:g} of arm 'c'", "declaration")
    assert study.missing.tolist() == [1, 1, 1]


@of_each("noise", ["bernoulli", "bounded:0:1"])
@of_each("total", [1.5, -0.5])
def test_totals_outside_what_was_declared(noise, total):
    study = open_study(noise=noise)
    refused(
        lambda: study.tell_totals(study.ids, [1, 1, 1], [0.0, 0.0, total]),
        "the totals of 1 arms are outside",
        "arm 'c'",
    )
    assert study.missing.tolist() == [1, 1, 1]


def test_the_ends_of_the_range_are_inside():
    study = open_study(noise=sp.Bounded(0.1, 0.3))
    study.tell(["a", "b"], [0.1, 0.3])
    study.tell_totals(study.ids, [0, 0, 3], [0.0, 0.0, 0.1 + 0.1 + 0.1])
    assert study.trace[0].pulls == 5


def test_rewards_of_arms_that_were_not_asked():
    study = sp.Study(ARMS, make(noise=sp.Bernoulli(), epsilon=0.01))
    while (plan := study.ask()).counts[1] > 0:
        study.tell_totals(study.ids, plan.counts, plan.counts * [1.0, 0.0, 1.0])  # b is ruled out, a and c are alike
    assert plan.counts[0] > 0
    before = study.missing
    refused(lambda: study.tell(["a", "b"], [1.0, 1.0]), "1 results", "did not ask for", "'b'")
    refused(lambda: study.tell_totals(study.ids, [0, 1, 0], [0.0, 1.0, 0.0]), "did not ask for", "'b'")
    np.testing.assert_array_equal(study.missing, before)


def test_rewards_of_arms_that_do_not_exist():
    refused(lambda: open_study().tell(["a", "zebra"], [1.0, 0.0]), "1 ids are not arms of this study", "'zebra'")


@of_each("rewards", [[1.0], [1.0, 0.0, 1.0], [[1.0], [0.0]], 1.0])
def test_as_many_rewards_as_ids(rewards):
    refused(lambda: open_study().tell(["a", "b"], rewards), "2 ids", "one reward per id")


@of_each("rewards", [["high", "low"], [1j, 0], [[1], [1, 2]], [{}, {}]])
def test_rewards_that_are_not_numbers(rewards):
    refused(lambda: open_study().tell(["a", "b"], rewards), "rewards are not numbers")


@of_each(
    ("counts", "sums", "squares", "words"),
    [
        ([1, 1], [0, 0], None, "counts has shape (2,)"),
        ([1, 1, 1], [0, 0], None, "sums has shape (2,)"),
        ([1, 1, 1], [0, 0, 0], [0], "squares has shape (1,)"),
        ([1, -1, 1], [0, 0, 0], None, "whole numbers"),
        ([1, 0.5, 1], [0, 0, 0], None, "whole numbers"),
        ([1, NAN, 1], [0, 0, 0], None, "counts of arm 'b' is nan"),
        ([1, 1, 1], [0, 0, INF], None, "sums of arm 'c' is inf"),
        ([1, 1, 1], [0, 0, 0], [NAN, 0, 0], "squares of arm 'a' is nan"),
        ([1, 0, 1], [0, 1, 0], None, "belong to no pull"),
        ([2, 2, 2], [2, 0, 0], [0.5, 0, 0], "squares smaller than their totals imply"),
        ("abc", [0, 0, 0], None, "counts are not numbers"),
    ],
)
def test_totals_that_cannot_be(counts, sums, squares, words):
    study = open_study(noise=sp.SubGaussian(1.0))
    refused(lambda: study.tell_totals(study.ids, counts, sums, squares), words)
    assert study.missing.tolist() == [1, 1, 1]


# the design


@pytest.mark.parametrize("tolerance", [0.0, -0.1, NAN])
def test_a_tolerance_must_be_positive(tolerance):
    refused(lambda: sp.solve_design(np.eye(3), tolerance=tolerance), f"tolerance is {tolerance!r}", "positive")


def test_features_of_a_design_must_be_finite():
    refused(lambda: sp.solve_design([[1.0, NAN], [0.0, 1.0]]), "NaN or infinite", "drop")


def test_too_few_pulls_to_round():
    refused(lambda: sp.round_design([0.5, 0.3, 0.2], 2), "2 pulls", "at least 3")
