"""What a study asks: the same until it is told, and nothing once it stopped."""

import pytest
from small_studies import FEATURES, IDS, finish, make_study, rewards_of

import surepick as sp

# ask


def test_asking_twice_gives_the_same_plan(name):
    study = make_study(name)
    plan = study.ask()
    assert study.ask() == plan
    ids, rewards = rewards_of(plan, 0)
    study.tell(ids[:1], rewards[:1])
    assert study.ask() == plan


def test_the_plan_names_the_arms(name):
    plan = make_study(name).ask()
    table = plan.table()
    assert all(pulls > 0 for _, pulls in table)
    assert dict(table) == {IDS[arm]: plan.counts[arm] for arm in range(4) if plan.counts[arm] > 0}
    assert sum(pulls for _, pulls in table) == plan.total == plan.counts.sum()


def test_a_stopped_study_asks_nothing(name):
    study = finish(make_study(name))
    assert study.stopped
    assert study.ask() is None
    assert not study.missing.any()


def test_one_arm_is_answered_at_once():
    arms = sp.Arms([[1.0, 2.0]], ["only"])
    study = sp.Study(arms, sp.make_policy("rage", arms, epsilon=0.1, delta=0.05, noise=sp.Bernoulli()))
    answer = study.certificate()
    assert study.ask() is None
    assert (answer.best_arm, answer.pulls, answer.verdict, answer.assumptions) == ("only", 0, "certified", ())
    assert study.recommend() == "only"


# what is shown


def test_a_policy_for_other_arms_is_refused():
    policy = make_study().policy
    with pytest.raises(sp.InvalidInput, match="the policy is for 4 arms and there are 2"):
        sp.Study(sp.Arms(FEATURES[:2]), policy)
