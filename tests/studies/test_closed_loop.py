"""find_best and Study.run: ask, measure, tell until the study stops."""

import re

import numpy as np
import pytest
from together import of_each

import surepick as sp

MEANS = {"a": 0.1, "b": 0.9, "c": 0.4}


def measure(ids):
    return [MEANS[name] for name in ids]


def find(arms=tuple(MEANS), **settings):
    settings = {"measure": measure, "epsilon": 0.3, "noise": sp.Bounded(0, 1), **settings}
    return sp.find_best(arms, **settings)


def test_the_best_is_found_and_the_study_is_at_hand():
    found = find()
    assert (found.best_arm, found.verdict) == ("b", "certified")
    assert found.certificate == found.study.certificate()
    assert found.pulls == found.certificate.pulls == sum(row.pulls for row in found.certificate.rounds)
    assert found.certificate.delta == 0.05
    assert str(found) == str(found.certificate)
    page = found._repr_html_()
    assert "✓ Certified" in page
    shown = re.findall(r'<th scope="row"><span[^>]*>.</span>(\w)<span class="unseen">, ([a-z ]+)</span>', page)
    assert [name for name, _ in shown] == ["b", "c", "a"]
    assert shown[0][1] == "recommended"
    assert "It holds if" in page
    assert "<script" not in page


def test_a_study_in_a_notebook_shows_its_closed_rounds_and_counts_of_the_open_one():
    study = sp.Study(sp.make_policy("lucb", sp.Arms(ids=list(MEANS)), epsilon=0.01, delta=0.1, noise="bernoulli"))
    assert "nothing is known before the first round is complete" in study._repr_html_().lower()
    study.tell(study.ask(), [0.0 for _ in study.ask().pulls()])
    batch = study.ask()
    before = study.candidates()
    study.tell(batch.pulls()[:1], [1.0])
    page = study._repr_html_()
    assert f"Round 2: 1 of {batch.counts.sum()} in" in page
    assert study.candidates() == before
    assert "The candidates, best mean first" in page


def test_small_rewards_can_be_good():
    assert find(minimize=True).best_arm == "a"


@of_each(
    ("options", "policy"),
    [
        ({}, "certified-independent"),
        ({"norm_bound": 1.5}, "certified-linear"),
        ({"norm_bound": 1.5, "gamma": 0.5}, "certified-kernel"),
        ({"policy": "action-elimination"}, "action-elimination"),
    ],
)
def test_the_options_say_which_policy_is_meant(options, policy):
    found = find(sp.Arms([[0.0], [1.0], [0.5]], tuple(MEANS)), **options)
    assert found.study.policy.spec["name"] == policy
    assert found.best_arm == "b"


def test_measure_gets_one_id_for_each_pull():
    calls = []

    def counted(ids):
        calls.append(ids)
        return measure(ids)

    found = find(measure=counted)
    assert all(isinstance(name, str) for ids in calls for name in ids)
    assert sum(map(len, calls)) == found.pulls


@of_each("rewards", [[0.5], 0.5, [[0.5]] * 3, "half"])
def test_another_number_of_rewards_is_refused(rewards):
    with pytest.raises(sp.InvalidInput, match="it must return one reward for each id"):
        find(measure=lambda ids: rewards)


def test_a_budget_is_not_passed_and_the_study_goes_on_afterwards():
    found = find(max_pulls=5)
    assert found.verdict == "budget-exhausted"
    assert found.pulls <= 5
    assert "budget of 5 pulls" in found.certificate.reason
    assert found.study.run(measure).best_arm == "b"


def test_what_came_of_a_call_is_stored_before_the_next(sqlite_url):
    arms = sp.Arms(ids=tuple(MEANS))
    policy = sp.make_policy("certified-independent", arms, epsilon=0.3, delta=0.05, noise="bounded:0:1")
    study, sizes = sp.create_study(sqlite_url, "paint", policy), []

    def stops_working(ids):
        sizes.append(len(ids))
        if len(sizes) == 5:
            raise KeyboardInterrupt
        return measure(ids)

    with pytest.raises(KeyboardInterrupt):
        study.run(stops_working, at_once=2)
    assert sizes[:4] == [2, 2, 2, 2]
    again = sp.open_study(sqlite_url, "paint")
    assert again.progress().pulls + again.progress().told == 8  # the fifth call gave nothing
    found = again.run(measure)
    assert found.best_arm == "b"
    assert found.certificate == find(progress=False).certificate


def test_a_bar_is_drawn_where_it_is_wanted(capsys):
    find(progress=True)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert find(progress=False).best_arm == "b"
    assert capsys.readouterr().err == ""


def test_a_policy_knows_its_arms():
    arms = sp.Arms([[0.0], [1.0]], ["x", "y"])
    policy = sp.make_policy("certified-linear", arms, epsilon=0.1, delta=0.1, noise="bernoulli", norm_bound=1.0)
    study = sp.Study(policy, study_id="x")
    assert study.arms is arms
    assert study.ask() == sp.Study(arms, policy).ask()
    assert study.registration == sp.Study(arms, policy, study_id="x").registration


def test_a_policy_built_by_hand_does_not():
    arms = sp.Arms(ids=["x", "y"])
    made = sp.make_policy("lucb", arms, epsilon=0.1, delta=0.1, noise="bernoulli")
    by_hand = type(made)(sp.Problem(2, 0.1, 0.1, sp.Bernoulli()))
    with pytest.raises(sp.InvalidInput, match="does not know its arms"):
        sp.Study(by_hand)
    assert sp.Study(arms, by_hand).ask() is not None


def two_arms():
    return sp.Study(sp.make_policy("lucb", sp.Arms(ids=["x", "y"]), epsilon=0.1, delta=0.1, noise="bernoulli"))


def test_rewards_are_told_of_a_batch():
    by_batch, by_ids = two_arms(), two_arms()
    for _ in range(3):
        batch = by_batch.ask()
        rewards = np.arange(batch.total) % 2
        assert by_batch.tell(batch, rewards).closed
        by_ids.ask()
        by_ids.tell(batch.pulls(), rewards)
    assert by_batch.certificate() == by_ids.certificate()


def test_a_leased_batch_has_its_keys_and_its_worker():
    study = two_arms()
    part = study.lease(1, worker="ann")
    assert study.tell(part, [1.0]).counted == 1
    assert study.tell(part, [1.0]).repeated == 1
    with pytest.raises(sp.InvalidInput, match="have keys already"):
        study.tell(part, [1.0], keys=["mine"])
    assert study.progress().out == ()


def test_a_batch_of_a_plan_that_closed_is_late():
    study = two_arms()
    batch = study.ask()
    study.tell(batch, [1.0] * batch.total)
    study.ask()
    assert study.tell(batch, [1.0] * batch.total).late == batch.total


def test_a_batch_of_another_study_is_refused():
    other = sp.Study(sp.make_policy("lucb", sp.Arms(ids=["x", "z"]), epsilon=0.1, delta=0.1, noise="bernoulli"))
    study = two_arms()
    study.ask()
    with pytest.raises(sp.InvalidInput, match="of another study"):
        study.tell(other.ask(), [1.0, 0.0])


def test_totals_are_told_of_a_batch():
    study, other = two_arms(), two_arms()
    batch = study.ask()
    sums = np.array([1.0, 0.0])
    assert study.tell_totals(batch, batch.counts, sums, sums).closed
    other.ask()
    other.tell_totals(["y", "x"], batch.counts[::-1], sums[::-1], sums[::-1])
    assert study.certificate() == other.certificate()


def test_asking_takes_no_part():
    study = two_arms()
    whole = study.ask()
    study.lease(1, worker="ann")
    assert study.ask() == whole


def test_reprs_are_one_line():
    """Of a study, a result, and what a policy says of itself: notebooks and debuggers print them."""
    found = find()
    for one, words in (
        (found, "certified"),
        (found.study, "candidates, certified-independent, epsilon 0.3, delta 0.05"),
        (found.study.policy.traits, "certifies='candidate'"),
        (found.study.policy, "<certified-independent: 3 candidates, epsilon 0.3, delta 0.05, noise bounded:0.0:1.0>"),
        (sp.forecast(found.study.policy), "measurements in"),
    ):
        assert words in repr(one)
        assert len(repr(one)) < 200
        assert "\n" not in repr(one)
