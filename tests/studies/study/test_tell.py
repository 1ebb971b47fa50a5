"""What a study is told: no order, part or spelling of the results changes a bit of what follows."""

from dataclasses import replace

import numpy as np
import pytest
from small_studies import FEATURES, IDS, MEANS, Listener, finish, make_study, rewards_of

import surepick as sp
from surepick.core.observations import Observations
from surepick.core.records import to_json
from surepick.studies.logs.memory import MemoryLog

# tell


def test_a_plan_closes_only_when_every_pull_is_in(name):
    study = make_study(name)
    plan = study.ask()
    ids, rewards = rewards_of(plan, 0)
    left = dict(plan.table())
    for row in range(len(ids) - 1):
        study.tell([ids[row]], [rewards[row]])
        left[ids[row]] -= 1
        assert study.trace == ()
        assert dict(zip(IDS, study.missing, strict=True)) == {arm: left.get(arm, 0) for arm in IDS}
        assert study.certificate().pulls == 0
    study.tell(ids[-1:], rewards[-1:])
    assert study.certificate().pulls == plan.total
    assert len(study.trace) == 1


def test_an_open_plan_shows_no_estimate():
    """A user who sees the rewards of an open batch could close it when it looks good."""
    study = make_study()
    before = (study.certificate(), study.recommend())
    ids, rewards = rewards_of(study.ask(), 0)
    study.tell(ids[:-1], rewards[:-1])
    assert (study.certificate(), study.recommend()) == before


@pytest.mark.cases(9)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("parts", [1, 3])
def test_the_order_of_arrival_changes_no_bit(name, seed, parts):
    once = finish(make_study(name))
    other = finish(make_study(name), parts=parts, shuffle=np.random.default_rng(seed))
    assert to_json(other.certificate()) == to_json(once.certificate())
    assert other.trace == once.trace


def test_a_plain_sum_would_change_with_the_order():
    """The saboteur of the test above: the rewards are such that adding them up in another order shows."""
    _, rewards = rewards_of(make_study("rage").ask(), 0)
    shuffles = (np.random.default_rng(seed).permutation(rewards) for seed in range(20))
    assert len({sum(shuffled.tolist()) for shuffled in shuffles}) > 1


def test_totals_tell_the_same_as_single_rewards(name):
    single, total = make_study(name), make_study(name)
    number = 0
    while (plan := single.ask()) is not None:
        assert total.ask() == plan
        ids, rewards = rewards_of(plan, number)
        rewards = np.round(rewards * 64) / 64  # sums and squares are exact then
        single.tell(ids, rewards)
        arms = np.array([IDS.index(arm) for arm in ids])
        sums, squares = (np.bincount(arms, weights=part, minlength=4) for part in (rewards, rewards**2))
        total.tell_totals(total.ids, plan.counts, sums, squares)
        number += 1
    assert total.certificate() == single.certificate()
    assert total.trace == single.trace


def test_totals_in_parts_tell_the_same_as_at_once(name):
    parts, once = make_study(name), make_study(name)
    for study, cuts in ((parts, 2), (once, 1)):
        plan = study.ask()
        for cut in range(cuts):
            share = plan.counts // 2 if cut == 0 and cuts == 2 else plan.counts - (plan.counts // 2) * (cuts - 1)
            study.tell_totals(study.ids, share, share * 0.25, share * 0.0625)
    assert parts.trace == once.trace
    assert parts.ask() == once.ask()


def test_totals_without_squares_are_enough(name):
    study = make_study(name)
    while (plan := study.ask()) is not None:
        study.tell_totals(study.ids, plan.counts, plan.counts * MEANS)
    answer = study.certificate()
    assert (answer.best_arm, answer.verdict) == ("a", "certified")


def heard_of(*tells, minimize=False) -> Observations:
    """What the policy hears of the first plan of action elimination: one pull of each of four arms."""
    arms = sp.Arms(FEATURES, IDS)
    noise = sp.SubGaussian(0.5)
    listener = Listener(sp.make_policy("action-elimination", arms, epsilon=0.1, delta=0.05, noise=noise))
    study = sp.Study(arms, listener, minimize=minimize)
    study.ask()
    for tell in tells:
        tell(study)
    (seen,) = listener.heard
    return seen


def test_squares_are_unknown_when_any_part_has_none():
    first, second = [1, 1, 0, 0], [0, 0, 1, 1]
    known = heard_of(
        lambda s: s.tell_totals(s.ids, first, first, first), lambda s: s.tell_totals(s.ids, second, second, second)
    )
    partly = heard_of(
        lambda s: s.tell_totals(s.ids, first, first), lambda s: s.tell_totals(s.ids, second, second, second)
    )
    mixed = heard_of(lambda s: s.tell_totals(s.ids, first, first), lambda s: s.tell(["c", "d"], [1, 1]))
    alone = heard_of(lambda s: s.tell_totals(s.ids, [1, 1, 1, 1], [1, 1, 1, 1]))
    assert known == Observations([1, 1, 1, 1], [1.0] * 4, [1.0] * 4, within=[0.0] * 4)
    assert partly.squares is mixed.squares is alone.squares is None
    assert partly == mixed == alone


def test_squares_do_not_depend_on_the_order_either():
    rewards = np.array([1e8, 1.0, 3.0, 7.0, 1e-3])
    forth, back = (
        heard_of(lambda s, part=part: s.tell([*"aaaaa", "b", "c", "d"], [*part, 0, 0, 0], accept_unusual=True))
        for part in (rewards, rewards[::-1])
    )
    assert sum((rewards**2).tolist()) != sum((rewards[::-1] ** 2).tolist())
    assert forth == back


def test_minimizing_turns_the_sums_and_not_the_squares():
    seen = heard_of(lambda s: s.tell(IDS, [1.0, 2.0, 3.0, -4.0]), minimize=True)
    assert seen == Observations([1, 1, 1, 1], [-1.0, -2.0, -3.0, 4.0], [1.0, 4.0, 9.0, 16.0], within=[0.0] * 4)


def test_more_results_than_asked_are_counted():
    seen = heard_of(lambda s: s.tell(["a", "a", "b", "c"], [1.0, 3.0, 2.0, 2.0]), lambda s: s.tell(["d"], [0.5]))
    assert seen.counts.tolist() == [2, 1, 1, 1]
    assert seen.sums.tolist() == [4.0, 2.0, 2.0, 0.5]
    study = make_study("action-elimination")
    study.ask()
    study.tell(["a", "a"], [1.0, 1.0])
    assert study.missing.tolist() == [0, 1, 1, 1]
    study.tell(IDS[1:], [1.0] * 3)
    assert study.certificate().pulls == 5


def test_ids_may_be_anything_that_prints_as_the_id():
    arms = sp.Arms(FEATURES)
    study = sp.Study(arms, sp.make_policy("rage", arms, epsilon=0.3, delta=0.05, noise=sp.SubGaussian(0.5)))
    plan = study.ask()
    asked = np.repeat(np.arange(4), plan.counts)
    study.tell(asked, np.zeros(len(asked)))
    assert study.trace[0].pulls == plan.total


def test_nothing_told_is_nothing_recorded():
    log = MemoryLog()
    study = make_study(log=log)
    study.ask()
    study.tell([], [])
    study.tell_totals(study.ids, np.zeros(4), np.zeros(4), np.zeros(4))
    assert log.results(1) == []


# minimize


def test_minimizing_mirrors_maximizing(name):
    up, down = finish(make_study(name)), finish(make_study(name, minimize=True), sign=-1.0)
    assert down.certificate().minimize
    assert replace(down.certificate(), minimize=False) == up.certificate()
    assert down.trace == up.trace


def test_minimizing_finds_the_smallest():
    study = make_study("action-elimination", minimize=True)
    while (plan := study.ask()) is not None:
        study.tell_totals(study.ids, plan.counts, plan.counts * MEANS)
    answer = study.certificate()
    assert (answer.best_arm, answer.verdict) == (IDS[int(np.argmin(MEANS))], "certified")


def test_bounds_are_checked_in_the_users_sign():
    study = make_study("rage", noise=sp.Bounded(2.0, 10.0), epsilon=1.0, minimize=True)
    plan = study.ask()
    (arm, *_), *_ = plan.table()
    study.tell([arm], [3.0])
    with pytest.raises(sp.InvalidInput, match=r"outside what was declared \(bounded:2.0:10.0\).* -3 of arm"):
        study.tell([arm], [-3.0])
    with pytest.raises(sp.InvalidInput, match=r"are outside bounded:2\.0:10\.0"):
        study.tell_totals(study.ids, plan.counts, -3.0 * plan.counts)
    study.tell_totals(study.ids, plan.counts, 3.0 * plan.counts)
    assert study.trace[0].pulls == plan.total + 1
