"""What is preferred: how it is given, when a study goes on for it, and what is named in the end."""

import math

import numpy as np
import pytest

import surepick as sp
from surepick.policies.preference import liked_better
from surepick.policies.sequential import state as states

THREE = sp.Arms(ids=["a", "b", "c"])
ASKED = {"epsilon": 0.1, "delta": 0.05, "noise": sp.SubGaussian(0.3)}
DEAR_FIRST = {"a": 3.0, "b": 2.0, "c": 1.0}
DEAR_FIRST_OF_ALL = tuple(DEAR_FIRST.values())


def policy(arms=THREE, name="certified-independent", **options):
    return sp.make_policy(name, arms, **{**ASKED, **options})


def played(made, means, seed=0, scale=0.3):
    """A study of these means that came to its end."""
    rng, study = np.random.default_rng(seed), sp.Study(made)
    study.run(lambda ids: [means[name] + rng.normal(0.0, scale) for name in ids], max_pulls=math.inf)
    return study


# --- how it is given


@pytest.mark.parametrize(
    "given",
    [[3, 2.0, 1], (3.0, 2.0, 1.0), np.array([3.0, 2.0, 1.0]), {"c": 1, "a": 3, "b": np.float64(2.0), "other": -1}],
)
def test_it_is_stored_by_candidate(given):
    made = policy(prefer=given)
    assert made.spec["prefer"] == made.prefer == (3.0, 2.0, 1.0)
    assert sp.make_policy(arms=THREE, **made.spec) == made


def test_it_is_part_of_the_registration_and_absent_where_nothing_is_preferred():
    codes = {
        sp.Study(policy(**options), study_id="x").registration
        for options in ({}, {"prefer": None}, {"prefer": DEAR_FIRST}, {"prefer": [1, 2, 3]})
    }
    assert len(codes) == 3
    assert "prefer" not in policy().spec


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([1, 2], "for each of the 3 candidates"),
        ([1, 2, math.nan], "a finite number"),
        ([1, 2, "dear"], "not numbers"),
        ({"a": 1, "b": 2}, "'c' is not among prefer"),
        (7, "for each of the 3 candidates"),
    ],
)
def test_what_is_no_preference_is_refused(given, said):
    with pytest.raises(sp.InvalidInput, match=said):
        policy(prefer=given)


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("certified-independent", {"question": "all-good"}, "no option 'prefer'"),
        ("certified-independent", {"question": "one-of", "share": 0.9}, "leave prefer out"),
        ("linear-embedding", {"norm_bound": 1.0}, "no option 'prefer'"),
    ],
)
def test_who_does_not_name_one_of_several_refuses_it(name, options, said):
    arms = sp.Arms(np.eye(3), ids=THREE.ids)
    with pytest.raises(sp.InvalidInput, match=said):
        policy(arms, name, prefer=DEAR_FIRST, **options)


# --- what it does


EVIDENCE = [
    pytest.param(4, {}, id="mixtures"),
    pytest.param(7, {}, id="carried"),
    pytest.param(4, {"noise": sp.Normal()}, id="scales unknown"),
]


@pytest.mark.parametrize(("number", "options"), EVIDENCE)
def test_a_study_goes_on_for_a_cheaper_candidate_after_it_would_have_ended(number, options):
    """Up to there it measures what it would have measured anyway."""
    arms = sp.Arms(ids=range(number))
    means = {name: -0.02 if name == 1 else -0.4 * place for place, name in enumerate(range(number))}
    cheap = [2.0, 1.0] + [0.0] * (number - 2)
    rewards = np.random.default_rng(1).normal(0.0, 0.3, (number, 5_000))

    def study(**preference):
        told = dict.fromkeys(means, 0)

        def measure(ids):
            found = []
            for name in ids:
                found.append(means[name] + rewards[name, told[name]])
                told[name] += 1
            return found

        kept = sp.Study(policy(arms, **options, **preference))
        kept.run(measure, max_pulls=math.inf)
        return kept

    usual, chosen = study(), study(prefer=cheap)
    first, then = ([row.pulls for row in one.trace] for one in (usual, chosen))
    assert then[: len(first)] == first
    answer = chosen.certificate()
    assert (usual.certificate().best_arm, answer.best_arm, answer.verdict) == ("0", "1", "certified")
    assert answer.certified_gap <= 0.1
    assert (
        "It is named because it is the cheapest of" in answer.reason
        or "the only one that is certified" in answer.reason
    )


def test_a_cheap_candidate_that_is_far_worse_costs_nothing():
    means = {"a": 0.0, "b": -0.5, "c": -0.6}
    usual, chosen = played(policy(), means), played(policy(prefer=DEAR_FIRST), means)
    assert chosen.certificate().best_arm == "a"
    assert [row.pulls for row in chosen.trace] == [row.pulls for row in usual.trace]


@pytest.mark.parametrize("seed", range(6))
def test_the_certificate_says_of_how_many_that_are_certified_it_is_the_cheapest(seed):
    study = played(policy(prefer=DEAR_FIRST, epsilon=0.4), {"a": 0.0, "b": 0.0, "c": 0.0}, seed=seed)
    why, good = states.good_enough(study.state, 0.4)
    answer = study.certificate()
    assert why == "certified"
    assert answer.arm == max(good)  # the last are the cheapest
    number = len(good)
    assert (f"the cheapest of {number} that are certified" in answer.reason) == (number > 1)
    assert ("It is the only one that is certified" in answer.reason) == (number == 1)


@pytest.mark.parametrize("gap", [0.0, 0.3, 2.0])
def test_the_arm_sought_is_the_one_liked_best_within_half_of_epsilon(gap):
    """Among arms that are there; the better one of those that are liked alike."""
    scores, away = np.array([1.0, 1.0 - gap, 0.9, 0.9]), np.array([False, False, False, True])
    found = liked_better(0, (5.0, 1.0, 1.0, 0.0), (scores, np.zeros(4)), away, 1.0)
    assert found == (1 if gap == 0.0 else 2)
    assert liked_better(2, (5.0, 1.0, 1.0, 0.0), (scores, np.zeros(4)), away, 1.0) is None


def test_what_is_not_known_yet_is_measured():
    """A standard error is in favour of who is liked."""
    scores, errors, away = np.array([1.0, 0.3]), np.array([0.1, 0.5]), np.zeros(2, bool)
    assert liked_better(0, (2.0, 1.0), (scores, errors), away, 1.0) == 1
    assert liked_better(0, (2.0, 1.0), (scores, errors / 2), away, 1.0) is None


def test_where_all_are_good_beforehand_the_cheapest_is_named():
    answer = sp.Study(policy(prefer=DEAR_FIRST, gap_bound=0.05)).certificate()
    assert (answer.best_arm, answer.verdict, answer.pulls) == ("c", "certified", 0)
    assert "cheapest of 3" in answer.reason


def test_while_a_cheaper_one_is_sought_the_certificate_says_what_is_known():
    """Somebody whose budget ends then has a gap that is small enough."""
    rng, means = np.random.default_rng(0), {"a": 0.0, "b": -0.02, "c": -0.9}
    study = sp.Study(policy(prefer=DEAR_FIRST))
    while (
        states.sought(study.state, 0.1, DEAR_FIRST_OF_ALL, lambda: study.policy._posterior(study.state).looks) is None
    ):
        batch = study.ask()
        study.tell(batch, [means[name] + rng.normal(0.0, 0.3) for name in batch.pulls()])
    answer = study.certificate()
    assert (answer.best_arm, answer.verdict) == ("a", "not-yet")
    assert answer.certified_gap <= 0.1
    assert answer.reason.startswith("No other candidate can be better by more than 0.0")
    assert answer.reason.endswith(
        "and the study goes on. One that is preferred may be good enough, too: so it is measured on."
    )


def test_with_a_budget_a_certified_one_is_named_though_another_is_sought():
    """Without a tolerance nobody can say who is good enough."""
    means = {"a": 0.0, "b": -0.02, "c": -0.9}
    ends = [played(policy(prefer=DEAR_FIRST, budget=budget), means).certificate() for budget in (60, 300, 2_000)]
    assert [one.verdict for one in ends] == ["budget-exhausted", "certified", "certified"]
    assert [one.best_arm for one in ends[1:]] == ["a", "b"]
    with pytest.raises(sp.InvalidInput, match="give epsilon, or leave prefer out"):
        policy(prefer=DEAR_FIRST, budget=60, epsilon=None)


def test_when_no_batch_is_left_a_certified_one_is_named():
    """Though the study would have gone on for another one."""
    means = {"a": 0.0, "b": -0.02, "c": -0.9}
    ends = [played(policy(prefer=DEAR_FIRST, max_batches=most), means) for most in range(2, 12)]
    found = [(one.certificate().best_arm, one.certificate().verdict) for one in ends]
    assert ("a", "certified") in found
    assert ("c", "certified") not in found
    assert all(verdict == "certified" for _, verdict in found[-2:])


def test_of_test_items_the_cheapest_of_the_certified_is_named():
    right = np.random.default_rng(0).random((3, 60)) < np.array([[0.8], [0.8], [0.2]])
    right[1] = right[0]
    items = [f"q{place}" for place in range(60)]
    found = sp.find_best(
        ["dear", "cheap", "bad"],
        lambda ids, asked: [
            float(right[["dear", "cheap", "bad"].index(one), items.index(item)])
            for one, item in zip(ids, asked, strict=True)
        ],
        items=items,
        seed=1,
        epsilon=0.25,
        noise="bernoulli",
        prefer={"dear": 9.0, "cheap": 1.0, "bad": 0.0},
    )
    assert (found.best_arm, found.verdict) == ("cheap", "certified")
    assert "certified within epsilon" in found.certificate.reason


def test_a_certificate_is_computed_again_with_what_was_preferred(tmp_path):
    study, path = played(policy(prefer=DEAR_FIRST), {"a": 0.0, "b": 0.02, "c": -0.9}), tmp_path / "c.json"
    sp.write_certificate(study, path)
    assert sp.verify_certificate(path).holds
    assert study.certificate().best_arm == "b"
    path.write_text(path.read_text("utf-8").replace("3.0,", "0.5,"), "utf-8")
    assert not sp.verify_certificate(path).holds
