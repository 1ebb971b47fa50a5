"""The peers for questions whose answer is lists: whom each pulls, that its answer is right, what it refuses."""

import json

import numpy as np
import pytest
from together import of_each

import surepick as sp
from surepick.core.observations import Observations
from surepick.core.records import from_json, to_json
from surepick.errors import InvalidInput
from surepick.policies.base import Policy
from surepick.policies.registry import policy_options, policy_summary
from surepick_bench.policies.means import K1, ZETA_3, dealt

IDS = ("a", "b", "c", "d", "e")
MEANS = np.array([1.0, 0.9, 0.5, 0.1, 0.0])
ARMS = sp.Arms(None, IDS)
QUESTIONS = {
    "above": {"question": "above", "threshold": 0.3},
    "control": {"question": "above", "control": "d", "by": 0.2},
    "top": {"question": "top", "m": 2},
    "all-good": {"question": "all-good", "slack": 0.1},
}
ANSWERED = {
    "lucb-top": ("top",),
    "st2": ("all-good",),
    "apt": ("above",),
    "uniform-lists": ("above", "control", "top", "all-good"),
}
CASES = [(name, kind) for name, kinds in ANSWERED.items() for kind in kinds]
INSIDE = {"above": "abc", "control": "abc", "top": "ab", "all-good": "ab"}


def make(name: str, kind: str, **changes) -> Policy:
    usual = {"epsilon": 0.15, "delta": 0.05, "noise": sp.SubGaussian(0.5)} | QUESTIONS[kind]
    return sp.make_policy(name, ARMS, **(usual | changes))


def after(policy: Policy, counts, means=MEANS):
    """The state when this was seen at once."""
    state, counts = policy.init(), np.array(counts)
    return policy.tell(state, policy.ask(state), Observations(counts, counts * np.asarray(means))).state


@of_each(("name", "kind"), CASES)
def test_the_answer_of_a_small_instance_is_right(name, kind):
    environment = sp.environments.Environment(arms=ARMS, means=MEANS, noise=sp.SubGaussian(0.5))
    run = sp.simulate(make(name, kind), environment, seed=3)
    assert (run.verdict, run.success) == ("certified", True)
    assert "".join(run.certificate.lists.inside) == INSIDE[kind]
    assert run.best_arm in "ab"
    assert set(run.certificate.lists.outside) == set(IDS) - set(INSIDE[kind]) - ({"d"} if kind == "control" else set())


@of_each(("name", "kind"), CASES)
def test_the_spec_rebuilds_an_equal_policy(name, kind):
    policy = make(name, kind, growth=0.25)
    spec = json.loads(json.dumps(policy.spec))
    assert sp.make_policy(arms=ARMS, **spec) == policy
    assert {*spec} >= {"name", "epsilon", "delta", "noise", "question", "growth", "boundary", "accuracy"}
    assert policy.traits.certifies == "lists"
    state = after(policy, [9, 8, 7, 6, 5])
    assert from_json(type(state), to_json(state)) == state
    assert make(name, kind, **sp.paper_settings(name)).spec["name"] == name


@of_each(("name", "kind"), CASES)
def test_the_first_plan_pulls_every_arm_once_and_what_did_not_come_again(name, kind):
    policy = make(name, kind)
    assert policy.ask(policy.init()).counts.tolist() == [1] * 5
    state = after(policy, [1, 0, 1, 0, 1])
    assert policy.ask(state).counts.tolist() == [0, 1, 0, 1, 0]
    assert policy.claim(state).finished == ""


def test_the_names():
    assert sp.policy_names("top") == (
        *("certified-independent", "certified-kernel", "certified-linear"),
        *("lucb-top", "uniform-lists"),
    )
    assert set(ANSWERED) == set(sp.policy_names(None)) - set(sp.policy_names())
    for name, kinds in ANSWERED.items():
        assert policy_summary(name)
        assert set(QUESTIONS[kinds[0]]) <= set(policy_options(name))


def test_lucb_pulls_the_lowest_of_its_guess_and_the_highest_of_the_others():
    """a has the lowest lower bound of a and b, e the highest upper bound of the others."""
    policy = make("lucb-top", "top")
    state = after(policy, [40, 400, 400, 400, 20])
    assert policy.ask(state).counts.tolist() == [2, 0, 0, 0, 2]
    assert make("lucb-top", "top", growth=0.0).ask(state).counts.tolist() == [1, 0, 0, 0, 1]
    assert policy.claim(state).spent == pytest.approx(0.05 * ZETA_3 / K1)


@pytest.mark.parametrize(("more", "finished"), [(1e-9, "certified"), (-1e-9, "")])
def test_lucb_stops_when_no_other_can_be_better_by_epsilon(more, finished):
    """Each of five arms has 400 pulls, so t = 1,000; b and c part where their means differ by two widths - epsilon."""
    width = 0.5 * np.sqrt(2 * (np.log(K1 * 5 / 0.05) + 4 * np.log(1_000)) / 400)
    means = [1.0, 0.9, 0.9 - (2 * width - 0.15 + more), 0.0, 0.0]
    assert after(make("lucb-top", "top"), [400] * 5, means).finished == finished


def test_st2_pulls_three():
    """c is the doubtful arm that looks good with the lowest lower bound, d looks bad, and a is highest."""
    policy = make("st2", "all-good", epsilon=0.5)
    state = after(policy, [50, 400, 100, 60, 100_000])
    assert state.outside.tolist() == [False, False, False, False, True]
    assert policy.ask(state).counts.tolist() == [5, 0, 5, 5, 0]
    assert make("st2", "all-good", epsilon=0.5, growth=0.0).ask(state).counts.tolist() == [1, 0, 1, 1, 0]


def test_apt_pulls_what_is_nearest_to_the_threshold():
    """Index sqrt(n) (|mean - .32| + .15): 2.62, 2.31, 1.04, 1.17, 1.49; after 30 pulls of c, d and e all are 1.69."""
    policy = make("apt", "above", threshold=0.32, growth=0.0)
    state = after(policy, [10, 10, 10, 10, 10])
    assert policy.ask(state).counts.tolist() == [0, 0, 1, 0, 0]
    assert make("apt", "above", threshold=0.32, growth=0.6).ask(state).counts.tolist() == [0, 0, 16, 11, 3]
    done = after(policy, [100_000, 5, 10, 10, 10])
    assert done.active.tolist() == [1, 2, 3, 4]
    assert policy.ask(after(policy, [10, 10, 100_000, 10, 10])).counts.tolist() == [0, 0, 0, 1, 0]


@of_each("total", [1, 2, 7, 40, 1001])
def test_pulls_are_dealt_as_single_pulls_would_be(total):
    counts, gaps = np.array([5, 1, 30, 12]), np.array([0.3, 1.1, 0.2, 0.5])
    single = counts.copy()
    for _ in range(total):
        single[np.argmin(np.sqrt(single) * gaps)] += 1
    assert dealt(counts, gaps, total).tolist() == (single - counts).tolist()


def test_uniform_pulls_all_or_the_undecided():
    policy = make("uniform-lists", "above")
    state = after(policy, [100_000, 5, 25, 10, 10])
    assert policy.ask(state).counts.tolist() == [10_000, 1, 3, 1, 1]
    assert make("uniform-lists", "above", pulled="undecided").ask(state).counts.tolist() == [0, 1, 3, 1, 1]


@pytest.mark.parametrize(
    ("kind", "epsilon", "counts", "pulled"),
    [
        ("control", 0.05, [1000, 1000, 100, 10_000, 1000], "cd"),  # c is undecided, and d is the control
        ("top", 0.05, [1000, 200, 100, 10_000, 10_000], "bc"),  # the others are parted from all across the cut
        ("all-good", 0.3, [1000, 300, 100, 10_000, 10_000], "ac"),  # a sets both thresholds for c
    ],
)
def test_uniform_pulls_what_the_undecided_rest_on(kind, epsilon, counts, pulled):
    policy = make("uniform-lists", kind, pulled="undecided", epsilon=epsilon)
    chosen = policy.ask(after(policy, counts)).counts > 0
    assert "".join(np.array(IDS)[chosen]) == pulled


@of_each(
    ("name", "asked", "message"),
    [
        ("apt", {"question": "above", "control": "a"}, "apt compares with a threshold that is known"),
        ("apt", {"question": "top", "m": 2}, "apt answers question 'above', not 'top'; certified-independent answers"),
        ("apt", {}, "apt answers question 'above', not 'best'"),
        ("lucb-top", {"question": "top"}, "question 'top' needs m"),
        ("lucb-top", {"question": "top", "m": 5}, "m is 5, and there are 5 candidates"),
        ("lucb-top", {"question": "top", "m": 2, "boundary": "union"}, "boundary"),
        ("st2", {"question": "all-good", "m": 3}, "st2 has no option 'm'; it knows accuracy, boundary"),
        ("st2", {"question": "all-good", "growth": -1.0}, "growth is -1.0"),
        ("uniform-lists", {}, "uniform-lists answers question 'above' or 'top' or 'all-good', not 'best'"),
        ("uniform-lists", {"question": "top", "m": 2, "growth": 0.0}, "growth is 0.0"),
        ("uniform-lists", {"question": "top", "m": 2, "pulled": "some"}, "pulled"),
        ("uniform-lists", {"question": "top", "m": 2, "accuracy": 0.0}, "accuracy is 0.0"),
        ("uniform-lists", {"question": "one-of", "share": 0.1}, "not 'one-of'"),
        ("lucb", {"question": "top", "m": 2}, "lucb answers question 'best', not 'top'"),
        ("lucb", {"m": 2}, "lucb has no option 'm'"),
    ],
)
def test_what_has_no_meaning_is_refused(name, asked, message):
    with pytest.raises(InvalidInput, match=message):
        sp.make_policy(name, ARMS, epsilon=0.1, delta=0.05, noise="subgaussian:1", **asked)


@of_each("name", ANSWERED)
def test_a_noise_of_unknown_scale_is_refused(name):
    with pytest.raises(InvalidInput, match="certified-independent"):
        make(name, ANSWERED[name][0], noise=sp.Normal())
