"""What the peers for questions share: which arms intervals put on a list, by hand; and that they are seldom wrong."""

import math
from collections.abc import Iterator

import numpy as np
import pytest
from bounds import failures_allowed, until_clear
from together import of_each

import surepick as sp
from surepick.core.observations import Observations
from surepick.core.random_streams import stream
from surepick.errors import InvalidInput
from surepick.policies.verdict import certificate_of
from surepick.questions import Above, AllGood, TopM, wrongly_listed
from surepick_bench.policies.lists import (
    Bounds,
    bounds_of,
    check_question,
    highest_of_others,
    listed_arms,
    spent_by,
    top_of,
)

IDS = ("a", "b", "c", "d")


def problem(question, **changes) -> sp.Problem:
    usual = {"num_arms": 4, "epsilon": 0.5, "delta": 0.1, "noise": sp.SubGaussian(1.0), "arms": sp.Arms(None, IDS)}
    return sp.Problem(**(usual | changes), question=question)


def lists(question, means, radius) -> tuple[str, str]:
    inside, outside = listed_arms(problem(question), Bounds(np.array(means, float), np.array(radius, float)))
    return tuple("".join(np.array(IDS)[arms]) for arms in (inside, outside))


def test_above_a_threshold():
    """tau 1, epsilon .5: inside from a lower bound of .5 on, outside up to an upper bound of 1.5."""
    assert lists(Above(threshold=1.0), [1.0, 1.0, 1.2, 0.4], [0.5, 0.51, 0.8, 1.2]) == ("a", "")
    assert lists(Above(threshold=1.0), [1.0, 0.9, 1.2, 0.2], [0.6, 0.6, 0.2, 1.2]) == ("c", "bd")
    assert lists(Above(threshold=1.0, by=0.3), [1.0, 0.9, 1.2, 0.4], [0.3, 0.6, 0.2, 1.2]) == ("c", "abd")


def test_above_a_control():
    """The control b lies in [.8, 1.2]: inside from .7 on, outside up to 1.3; it is on neither list."""
    assert lists(Above(control="b"), [1.0, 1.0, 0.8, 0.8], [0.3, 0.2, 0.1, 0.6]) == ("ac", "")
    assert lists(Above(control="b"), [1.0, 1.0, 0.8, 0.8], [np.inf, 0.2, 0.5, 0.6]) == ("", "c")
    assert lists(Above(control="b"), [1.0, 1.0, 0.8, 0.8], [0.0, np.inf, 0.0, 0.0]) == ("", "")


def test_top():
    """The lowest lower bound of a and c against the highest upper bound of b and d less epsilon."""
    assert lists(TopM(2), [2.0, 0.9, 2.2, 0.0], [0.5, 1.1, 0.3, 1.0]) == ("ac", "bd")
    assert lists(TopM(2), [2.0, 0.9, 2.2, 0.0], [0.5, 1.11, 0.3, 1.0]) == ("", "")
    assert top_of(np.array([1.0, 2.0, 1.0, 1.0]), 2).tolist() == [True, True, False, False]


def test_all_good():
    """Epsilon .5, slack .2: inside where no other can be better by more than .7, outside where a lower bound is."""
    assert highest_of_others(np.array([1.0, 3.0, 2.0])).tolist() == [3.0, 2.0, 3.0]
    assert lists(AllGood(0.2), [2.0, 1.9, 1.2, 0.0], [0.2, 0.2, 0.05, 0.9]) == ("ab", "cd")
    assert lists(AllGood(0.2), [2.0, 1.9, 1.2, 0.0], [0.35, 0.44, 0.05, 0.9]) == ("a", "d")
    assert lists(AllGood(), [2.0, 1.4, 0.0, 0.0], [0.2, 0.19, 0.1, 0.1]) == ("ab", "cd")


def test_who_is_on_a_list_stays_there():
    """After lucky results all are on a list; those of the next round would put nobody on one."""
    policy = sp.make_policy(
        "uniform-lists",
        sp.Arms(None, IDS),
        epsilon=0.5,
        delta=0.1,
        noise="subgaussian:1",
        question="above",
        threshold=0,
    )
    counts = np.array([200, 200, 1, 1])
    state = policy.tell(
        policy.init(), policy.ask(policy.init()), Observations(counts, counts * [1.0, -1.0, 0, 0])
    ).state
    assert (state.inside.tolist(), state.active.tolist()) == ([True, False, False, False], [2, 3])
    counts = np.array([10_000, 10_000, 0, 0])
    state = policy.tell(state, policy.ask(state), Observations(counts, counts * [-1.0, 1.0, 0, 0])).state
    assert (state.inside.tolist(), state.outside.tolist()) == ([True, False, False, False], [False, True, False, False])
    certificate = certificate_of(policy, state)
    assert (certificate.lists.inside, certificate.lists.undecided, certificate.verdict) == (
        ("a",),
        ("c", "d"),
        "not-yet",
    )


@pytest.mark.parametrize(("boundary", "spent"), [("union", math.pi**2 / 12), ("mixture", 1.0)])
def test_what_the_intervals_spend(boundary, spent):
    asked = problem(TopM(2))
    assert spent_by(asked, boundary) == pytest.approx(0.1 * spent)
    found = bounds_of(asked, Observations(np.array([0, 1, 10, 100]), np.zeros(4)), boundary, None)
    assert found.radius[0] == np.inf
    assert found.lower[1:] == pytest.approx(-found.upper[1:])
    widths = [
        bounds_of(asked, Observations(np.full(4, 100), np.zeros(4)), boundary, accuracy).radius[0]
        for accuracy in (0.05, 0.33, 1.0)
    ]
    assert (widths[0] > widths[1] < widths[2]) == (boundary == "mixture")  # of .33: tuned to it, it is narrowest


@of_each(
    ("question", "message"),
    [
        (None, "ours answers question 'above' or 'top', not 'best'"),
        (AllGood(), "ours answers question 'above' or 'top', not 'all-good'"),
        (TopM(4), "m is 4, and there are 4 candidates"),
        (Above(control="e"), "control is 'e', and no candidate"),
    ],
)
def test_questions_that_are_not_its_own_are_refused(question, message):
    with pytest.raises(InvalidInput, match=message):
        check_question("ours", problem(question), Above, TopM)


HOSTILE = {  # every arm is barely such that one list is wrong
    "above": (Above(threshold=0.0), [-0.51, -0.51, 0.51, 0.51]),
    "control": (Above(control="a"), [0.0, -0.51, -0.51, 0.51]),
    "top": (TopM(2), [0.51, 0.51, 0.0, 0.0]),
    "all-good": (AllGood(0.25), [0.0, -0.49, -0.76, -0.76]),
}
RUNS, DELTA = 60, 0.3


def wrong_runs(name: str, kind: str, believed_sigma: float, **options) -> int:
    """Studies of `RUNS` that end with an arm on a wrong list, `until_clear`; normal rewards with sigma 1."""
    return until_clear(wrong_lists(name, kind, believed_sigma, **options), RUNS, DELTA)


def wrong_lists(name: str, kind: str, believed_sigma: float, **options) -> Iterator[bool]:
    question, truth = HOSTILE[kind]
    arms, means = sp.Arms(None, IDS), np.array(truth)
    policy = sp.make_policy(
        name, arms, epsilon=0.5, delta=DELTA, noise=sp.SubGaussian(believed_sigma), question=question, **options
    )
    for seed in range(RUNS):
        rng, state = stream(seed, "hostile lists"), policy.init()
        while not state.finished:
            plan = policy.ask(state)
            sums = plan.counts * means + np.sqrt(plan.counts) * rng.standard_normal(4)
            state = policy.tell(state, plan, Observations(plan.counts, sums)).state
        yield bool(wrongly_listed(policy.problem, certificate_of(policy, state).lists, arms, means).any())


CASES = [
    *(("uniform-lists", kind, {"growth": 0.5}) for kind in HOSTILE),
    *(("uniform-lists", kind, {"growth": 0.5, "pulled": "undecided"}) for kind in HOSTILE),
    ("lucb-top", "top", {"growth": 0.5, "boundary": "mixture"}),
    ("lucb-top", "top", {"growth": 0.5}),
    ("st2", "all-good", {"growth": 0.5}),
    ("apt", "above", {"growth": 0.5}),
]


@pytest.mark.cases(6)
@pytest.mark.parametrize(("name", "kind", "options"), CASES)
def test_wrong_lists_stay_within_delta(name, kind, options):
    assert wrong_runs(name, kind, 1.0, **options) <= failures_allowed(RUNS, DELTA)


@pytest.mark.cases(6)
@pytest.mark.parametrize(("name", "kind", "options"), CASES)
def test_the_test_would_notice_an_eighth_of_the_widths(name, kind, options):
    """The saboteur."""
    assert wrong_runs(name, kind, 0.125, **options) > failures_allowed(RUNS, DELTA)
