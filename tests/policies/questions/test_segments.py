"""Questions of each segment: what shares delta, what is compared with what, and what stays once it is decided."""

import math

import numpy as np
import pytest
from budgets import budget
from hypothesis import given, settings, strategies as st

import surepick as sp
from surepick.core.certificate import Listed
from surepick.estimators.e_values import processes_of, with_processes
from surepick.estimators.posterior import Posterior
from surepick.questions import TopM, inquiry_of, wrongly_listed
from surepick.questions.protocol import Lists, View

EPSILON, DELTA = 0.5, 0.1
ASKED = {"epsilon": EPSILON, "delta": DELTA, "noise": "subgaussian:0.2"}


def policy_of(segments, name="certified-independent", **question):
    arms = sp.Arms(ids=[f"arm {arm}" for arm in range(len(segments))], segments=[*segments])
    return sp.make_policy(name, arms, **ASKED, **question)


def outlook(scores) -> Posterior:
    scores = np.array(scores, float)
    return Posterior(scores, lambda _: np.full(len(scores), 0.1), 0.0)


def test_the_best_of_each_segment_is_the_usual_question():
    policy = policy_of("aabbb")
    assert policy.problem.question == TopM(1)
    assert sp.make_policy(arms=policy.problem.arms, **policy.spec) == policy
    assert policy_of("aabbb", question="top", m=2) != policy


@pytest.mark.parametrize(
    ("question", "nulls"), [({}, 1 + 2), ({"question": "top", "m": 2}, 2), ({"question": "all-good"}, 2 + 3)]
)
def test_segments_share_delta_by_their_nulls_so_that_all_have_one_threshold(question, nulls):
    problem = policy_of(["b", "a", "a", "b", "c", "a"], **question).problem
    asked = inquiry_of(problem)
    view = View(problem, DELTA, (), Lists.empty(6), outlook(np.zeros(6)))
    found = [inner for _, inner in asked._open(view)]
    assert sum(inner.delta for inner in found) == pytest.approx(DELTA)
    assert [problem.question.threshold(inner) for inner in found] == pytest.approx(
        [math.log(nulls / DELTA)] * len(found)
    )


@pytest.mark.parametrize("question", [{}, {"question": "top", "m": 2}, {"question": "all-good"}])
@settings(max_examples=budget(60))
@given(seed=st.integers(0, 10**6))
def test_arms_are_compared_within_their_segment_and_a_decided_one_rests(question, seed):
    """Evidence grows by random gains on what is bet, whatever the guesses say; what is aimed at is bet on."""
    rng = np.random.default_rng(seed)
    segments = ["a", "a", "a", *rng.choice(list("abcd"), int(rng.integers(1, 7))).tolist()]
    rng.shuffle(segments)
    problem, num_arms, codes = policy_of(segments, **question).problem, len(segments), np.array(segments)
    asked = inquiry_of(problem)
    sheets, lists, guesses = (), Lists.empty(num_arms), outlook(rng.normal(0.0, 0.5, num_arms))
    for _ in range(15):
        view = View(problem, DELTA, sheets, lists, guesses)
        if lists.decided.all():
            break
        bets, aims = asked.bets(view), asked.aims(view)
        assert len(aims.first) == len(aims.second) == len(aims.leads) == len(aims.needs) > 0
        for arm, centre in zip(aims.first.tolist(), aims.second.tolist(), strict=True):
            assert arm != centre
            assert any(bet.centre == centre and bet.arms[arm] for bet in bets)
        seen: set[tuple[str, int]] = set()
        for bet in bets:
            own = codes == codes[bet.centre]
            assert not np.any(bet.arms & ~own)
            assert not np.any(bet.needs[~own])
            assert not lists.decided[own].all()
            pairs = {(bet.name, arm) for arm in np.flatnonzero(bet.arms).tolist()}
            assert not pairs & seen  # no process bets twice in a batch
            seen |= pairs
            gains = np.where(bet.arms, rng.normal(1.0, 1.0, num_arms), 0.0)
            sheets = with_processes(sheets, processes_of(sheets, bet.name, num_arms, bet.start).after(gains))
        guesses = outlook(rng.normal(0.0, 0.5, num_arms))
        after = asked.decided(View(problem, DELTA, sheets, lists, guesses))
        assert not np.any(after.inside & after.outside)
        assert np.all(after.inside[lists.inside])
        assert np.all(after.outside[lists.outside])
        lists = after


@settings(max_examples=budget(60))
@given(seed=st.integers(0, 10**6))
def test_a_process_is_of_one_pair_for_ever(seed):
    """What a sheet holds of an arm is evidence against one centre, though segments share the sheet."""
    rng = np.random.default_rng(seed)
    segments = rng.permutation(list("aaabbbbccd")).tolist()
    problem, sheets, centres = policy_of(segments).problem, (), {}
    asked = inquiry_of(problem)
    lists = Lists.empty(10)
    for _ in range(8):
        if lists.decided.all():
            break
        view = View(problem, DELTA, sheets, lists, outlook(rng.normal(0.0, 0.5, 10)))
        for bet in asked.bets(view):
            for arm in np.flatnonzero(bet.arms).tolist():
                assert centres.setdefault((bet.name, arm), bet.centre) == bet.centre
            gains = np.where(bet.arms, rng.normal(0.5, 1.0, 10), 0.0)
            sheets = with_processes(sheets, processes_of(sheets, bet.name, 10, bet.start).after(gains))
        lists = asked.decided(View(problem, DELTA, sheets, lists, outlook(rng.normal(0.0, 0.5, 10))))


def test_a_segment_of_no_more_than_m_is_whole_on_the_first_list():
    found = sp.find_best(
        sp.Arms(ids=[*"abcde"], segments=["x", "x", "x", "y", "y"]),
        lambda ids: [float(one in "ae") for one in ids],
        question="top",
        m=2,
        policy="certified-independent",
        **{**ASKED, "epsilon": 0.2},
    )
    by_name = {one.name: one for one in found.certificate.lists.segments}
    assert by_name["y"].inside == ("d", "e")
    assert len(by_name["x"].inside) == 2
    assert "a" in by_name["x"].inside


@pytest.mark.parametrize(
    ("segments", "more", "says"),
    [
        ("ab", {}, "no segment has more than 1 of the 2 candidates"),
        ("aabb", {"question": "top", "m": 2}, "no segment has more than 2"),
        ("aab", {"question": "one-of", "share": 0.3}, "'one-of' is not asked of segments"),
        ("aab", {"question": "above", "threshold": 0.0, "errors": "discovery"}, "errors='family'"),
        ("aab", {"question": "all-good", "name": "st2"}, "st2 answers for the whole list"),
        ("aab", {"name": "linear-embedding", "norm_bound": 1.0}, "linear-embedding answers for the whole list"),
    ],
)
def test_what_cannot_be_asked_of_segments_is_refused(segments, more, says):
    with pytest.raises(sp.InvalidInput, match=says):
        policy_of(segments, **more)


@pytest.mark.parametrize("segments", [["a"], ["a", ""], ["a", None], "a"])
def test_segments_are_one_name_an_arm(segments):
    with pytest.raises(sp.InvalidInput, match="segment"):
        sp.Arms(ids=[*"xy"], segments=segments)


def test_a_threshold_is_asked_as_ever_and_shown_by_segment():
    means = {"a": 1.0, "b": -1.0, "c": 1.0}
    found, plain = (
        sp.find_best(
            sp.Arms(ids=[*"abc"], segments=segments),
            lambda ids: [means[one] for one in ids],
            question="above",
            threshold=0.0,
            policy="certified-independent",
            **ASKED,
        )
        for segments in (["x", "x", "y"], None)
    )
    assert (found.pulls, found.certificate.lists.inside) == (plain.pulls, plain.certificate.lists.inside)
    assert [(one.name, one.inside, one.outside) for one in found.certificate.lists.segments] == [
        ("x", ("a",), ("b",)),
        ("y", ("c",), ()),
    ]
    assert plain.certificate.lists.segments is None
    assert found.certificate.headline == "x: a; y: c"


def test_the_truth_is_judged_by_segment():
    policy = policy_of("aabb")
    arms, means = policy.problem.arms, np.array([5.0, 4.0, 1.0, 0.0])
    listed = Listed("", "", "", ("arm 0", "arm 3"), ("arm 1", "arm 2"), (), "")
    assert wrongly_listed(policy.problem, listed, arms, means).tolist() == [False, False, False, True]
    listed = Listed("", "", "", ("arm 0", "arm 2"), ("arm 1", "arm 3"), (), "")
    assert not wrongly_listed(policy.problem, listed, arms, means).any()


def test_features_are_shared_by_the_segments():
    """Two segments on one line: what is measured in one says where the other's best is."""
    rng = np.random.default_rng(0)
    features = np.repeat(np.linspace(-1.0, 1.0, 10), 2)[:, None]
    arms = sp.Arms(features, segments=["left", "right"] * 10)

    def measure(ids):
        return [features[int(one), 0] + 0.2 * rng.standard_normal() for one in ids]

    asked = {"epsilon": 0.3, "delta": 0.1, "noise": "subgaussian:0.2"}
    found = sp.find_best(arms, measure, policy="certified-linear", norm_bound=2.0, **asked)
    alone = sp.find_best(arms, measure, policy="certified-independent", **asked)
    assert found.verdict == alone.verdict == "certified"
    for one in found.certificate.lists.segments:
        assert features[int(one.inside[0]), 0] >= 1.0 - 0.3
    assert found.pulls < 0.5 * alone.pulls
