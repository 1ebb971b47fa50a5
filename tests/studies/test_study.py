"""A study is a fold over what was asked and told: no order, part or repetition of the telling changes the answer."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import surepick as sp
from surepick.core.json import to_json
from surepick.core.observations import Observations
from surepick.core.random_streams import stream
from surepick.studies import Results
from surepick.studies.logs.memory import MemoryLog

IDS = ("a", "b", "c", "d")
FEATURES = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.6], [-0.4, 0.3]])
MEANS = FEATURES @ np.array([0.9, 0.2])
OPTIONS = {"linear-embedding": {"norm_bound": 2.0}, "action-elimination": {"growth": 0.3}, "rage": {}}


def make_study(name="linear-embedding", *, noise=None, epsilon=0.3, minimize=False, log=None, **changes) -> sp.Study:
    arms = sp.Arms(FEATURES, IDS)
    noise = sp.SubGaussian(0.5) if noise is None else noise
    policy = sp.make_policy(name, arms, epsilon=epsilon, delta=0.05, noise=noise, **(OPTIONS[name] | changes))
    return sp.Study(arms, policy, minimize=minimize, log=log)


def rewards_of(plan, number, sign=1.0):
    """(ids, rewards) of every pull that the plan asks for; a function of the number of the plan."""
    ids = [name for name, pulls in plan.table() for _ in range(pulls)]
    noise = stream(7, "rewards", number).normal(0.0, 0.5, len(ids))
    return ids, sign * (np.array([MEANS[IDS.index(name)] for name in ids]) + noise)


def finish(study, sign=1.0, parts=1, shuffle=None):
    """Tell every plan to the end, in so many parts and in the order of the generator."""
    number = 0
    while (plan := study.ask()) is not None:
        ids, rewards = rewards_of(plan, number, sign)
        order = np.arange(len(ids)) if shuffle is None else shuffle.permutation(len(ids))
        for part in np.array_split(order, parts):
            study.tell([ids[row] for row in part], rewards[part])
        number += 1
    return study


@pytest.fixture(params=sorted(OPTIONS))
def name(request) -> str:
    return request.param


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


class Listener:
    """A policy that remembers what it was told."""

    def __init__(self, policy):
        self.policy = policy
        self.heard = []

    def __getattr__(self, attribute):
        return getattr(self.policy, attribute)

    def tell(self, state, plan, seen):
        self.heard.append(seen)
        return self.policy.tell(state, plan, seen)


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
    assert known == Observations([1, 1, 1, 1], [1.0] * 4, [1.0] * 4)
    assert partly.squares is mixed.squares is alone.squares is None
    assert partly == mixed == alone


def test_squares_do_not_depend_on_the_order_either():
    rewards = np.array([1e8, 1.0, 3.0, 7.0, 1e-3])
    forth, back = (
        heard_of(lambda s, part=part: s.tell([*"aaaaa", "b", "c", "d"], [*part, 0, 0, 0]))
        for part in (rewards, rewards[::-1])
    )
    assert sum((rewards**2).tolist()) != sum((rewards[::-1] ** 2).tolist())
    assert forth == back


def test_minimizing_turns_the_sums_and_not_the_squares():
    seen = heard_of(lambda s: s.tell(IDS, [1.0, 2.0, 3.0, -4.0]), minimize=True)
    assert seen == Observations([1, 1, 1, 1], [-1.0, -2.0, -3.0, 4.0], [1.0, 4.0, 9.0, 16.0])


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


# out of turn


def test_telling_before_asking_is_out_of_turn():
    study = make_study()
    for call in (
        lambda: study.tell(["a"], [1.0]),
        lambda: study.tell_totals(study.ids, [1, 0, 0, 0], [1, 0, 0, 0]),
        lambda: study.abandon("independent-of-value"),
    ):
        with pytest.raises(sp.OutOfTurn, match=r"call ask\(\) first"):
            call()


def test_telling_after_the_stop_is_out_of_turn():
    study = finish(make_study())
    before = study.certificate()
    with pytest.raises(sp.OutOfTurn, match="stopped; no more results are needed"):
        study.tell(["a"], [1.0])
    assert study.certificate() == before


# keys


def test_a_key_counts_once():
    study = make_study("action-elimination")
    study.ask()
    study.tell(["a", "b", "b"], [1.0, 2.0, 2.0], keys=["k1", "k2", "k2"])
    study.tell(["b", "a", "c"], [2.0, 1.0, 3.0], keys=["k2", "k1", "k3"])
    assert study.missing.tolist() == [0, 0, 0, 1]
    study.tell(["d"], [0.0], keys=["k4"])
    assert study.certificate().pulls == 4


def test_a_key_of_an_earlier_plan_is_not_counted_again():
    study = make_study("action-elimination")
    study.ask()
    study.tell(IDS, [1.0] * 4, keys=range(4))
    plan = study.ask()
    study.tell(IDS, [1.0] * 4, keys=range(4))
    assert study.ask() == plan
    np.testing.assert_array_equal(study.missing, plan.counts)


@pytest.mark.parametrize(("arm", "reward"), [("a", 1.5), ("b", 1.0)])
def test_a_key_told_again_with_something_else_is_refused(arm, reward):
    study = make_study("action-elimination")
    study.ask()
    study.tell(["a"], [1.0], keys=["k1"])
    with pytest.raises(sp.InvalidInput, match=r"key 'k1' was reported before.*a key names one result"):
        study.tell(["c", arm], [0.0, reward], keys=["k9", "k1"])
    assert study.missing.tolist() == [0, 1, 1, 1]


def test_keys_are_as_many_as_results():
    study = make_study()
    plan = study.ask()
    with pytest.raises(sp.InvalidInput, match="1 keys for 2 results"):
        study.tell([plan.table()[0][0]] * 2, [1.0, 2.0], keys=["k"])


def test_a_retry_after_the_plan_has_closed_is_welcome():
    """The client tells the last result, loses the answer, and tells it again."""
    study = make_study("action-elimination")
    study.ask()
    study.tell(IDS, [1.0] * 4, keys=range(4))
    study.tell(IDS, [1.0] * 4, keys=range(4))
    assert study.certificate().pulls == 4


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


# abandon


def test_what_is_missing_for_reasons_of_its_own_is_an_assumption():
    study = make_study()
    plan = study.ask()
    ids, rewards = rewards_of(plan, 0)
    study.tell(ids[: plan.total // 2], rewards[: plan.total // 2])
    study.abandon("independent-of-value")
    assert study.trace[0].pulls == plan.total // 2
    answer = finish(study).certificate()
    assert answer.verdict == "certified"
    assert any("results missing" in sentence for sentence in answer.assumptions)


def test_a_complete_study_assumes_nothing_about_missing_results():
    assert not any("missing" in sentence for sentence in finish(make_study()).certificate().assumptions)


def test_what_is_missing_for_another_reason_is_heuristic():
    study = make_study()
    ids, rewards = rewards_of(study.ask(), 0)
    study.tell(ids[:2], rewards[:2])
    study.abandon("it looked good enough")
    assert study.certificate().verdict == "not-yet"
    answer = finish(study).certificate()
    assert answer.verdict == "heuristic"
    assert "'it looked good enough'" in answer.reason
    assert not any("nothing to do" in sentence for sentence in answer.assumptions)


def test_a_plan_of_which_nothing_came_is_asked_again():
    study = make_study("action-elimination")
    study.ask()
    study.abandon("independent-of-value")
    assert study.certificate().verdict == "not-yet"
    assert study.ask().total > 0
    assert finish(study).certificate().best_arm == "a"


# the log


@pytest.mark.parametrize("kept", [1, 2, 3, 5])
def test_a_study_resumed_from_its_log_is_the_same(name, kept):
    """Whatever was asked and told so far, a new study over the same log stands where the old one stood."""
    log = MemoryLog()
    study = make_study(name, log=log)
    for number in range(kept):
        plan = study.ask()
        if plan is None:
            break
        ids, rewards = rewards_of(plan, number)
        told = len(ids) // 2 if number == kept - 1 else len(ids)
        study.tell(ids[:told], rewards[:told], keys=[f"{number}/{row}" for row in range(told)])
    again = make_study(name, log=log)
    assert again.certificate() == study.certificate()
    assert again.trace == study.trace
    assert again.stopped == study.stopped
    np.testing.assert_array_equal(again.missing, study.missing)
    plans = len(list(log.plans()))
    assert again.ask() == study.ask()
    assert len(list(log.plans())) == plans


def test_a_resumed_study_knows_the_keys_that_were_told():
    log = MemoryLog()
    make_study("action-elimination", log=log).ask()
    make_study("action-elimination", log=log).tell(["a"], [1.0], keys=["k"])
    third = make_study("action-elimination", log=log)
    third.tell(["a"], [1.0], keys=["k"])
    assert third.missing.tolist() == [0, 1, 1, 1]
    with pytest.raises(sp.InvalidInput, match="key 'k' was reported before"):
        third.tell(["a"], [2.0], keys=["k"])


def test_two_studies_over_one_log_see_each_other():
    log = MemoryLog()
    first, second = make_study("action-elimination", log=log), make_study("action-elimination", log=log)
    assert first.ask() == second.ask()
    first.tell(["a", "b"], [1.0, 1.0])
    second.tell(["c", "d"], [0.0, 0.0])
    assert first.certificate() == second.certificate()
    assert first.certificate().pulls == 4


def test_the_log_holds_what_happened_in_order():
    log = MemoryLog()
    study = make_study("action-elimination", minimize=True, log=log)
    study.ask()
    study.tell(["b", "a"], [3.0, -1.0], keys=[1, 2])
    study.abandon("lost")
    (planned,) = log.plans()
    assert (planned.number, planned.plan) == (1, study.policy.ask(study.policy.init()))
    (told,) = log.results(1)
    assert told == Results([1, 0], [1, 1], [3.0, -1.0], [9.0, 1.0], ("1", "2"))
    events = [(event.kind, event.arm, event.pulls, event.reason) for event in log.arrivals(1).events]
    assert events == [("abandoned", 2, 1, "lost"), ("abandoned", 3, 1, "lost"), ("closed", None, 0, "")]
    start, decision = log.decisions()
    assert (start.plan, start.stopped) == (0, False)
    assert decision.seen == Observations([1, 1, 0, 0], [1.0, -3.0, 0.0, 0.0], [1.0, 9.0, 0.0, 0.0])


class Stumbling(Listener):
    """A policy whose first tell fails, as it would when the process is interrupted there."""

    def tell(self, state, plan, seen):
        if not self.heard:
            self.heard.append(seen)
            raise KeyboardInterrupt
        return super().tell(state, plan, seen)


def test_an_interrupted_fold_does_not_count_twice():
    arms = sp.Arms(FEATURES, IDS)
    noise = sp.SubGaussian(0.5)
    policy = Stumbling(sp.make_policy("action-elimination", arms, epsilon=0.1, delta=0.05, noise=noise))
    study = sp.Study(arms, policy)
    study.ask()
    with pytest.raises(KeyboardInterrupt):
        study.tell(IDS, [1.0] * 4)
    assert study.certificate().pulls == 4


# what is shown


def test_the_trace_has_one_record_a_round():
    study = make_study()
    while (plan := study.ask()) is not None:
        study.tell_totals(study.ids, plan.counts, np.zeros(4))  # all alike: only the certificate ends it
    trace = study.trace
    assert [row.round for row in trace] == list(range(1, len(trace) + 1))
    assert len(trace) > 1
    assert any(row.look > 1 for row in trace)
    totals = [row.total_pulls for row in trace]
    assert totals == np.cumsum([row.pulls for row in trace]).tolist()
    assert totals[-1] == study.certificate().pulls
    assert study.certificate().rounds == trace


def test_the_trace_holds_the_active_arms():
    study = finish(make_study("action-elimination", epsilon=0.05))
    actives = [set(row.active.tolist()) for row in study.trace]
    assert actives[0] == {0, 1, 2, 3}
    assert all(after <= before for before, after in pairwise(actives))
    assert actives[-1] < actives[0]
    assert all(row.leader in row.active for row in study.trace)


def test_before_any_pull_nothing_is_claimed(name):
    study = make_study(name)
    answer = study.certificate()
    assert (answer.verdict, answer.pulls, answer.certified_gap, answer.rounds) == ("not-yet", 0, None, ())
    assert answer.best_arm in IDS
    assert not study.stopped
    assert study.trace == ()
    assert study.recommend() == answer.best_arm


def test_the_recommendation_is_the_certificates(name):
    study = finish(make_study(name))
    answer = study.certificate()
    assert study.recommend() == answer.best_arm == IDS[answer.arm] == "a"
    assert answer.verdict == "certified"
    assert answer.certified_gap <= 0.3


def test_a_policy_for_other_arms_is_refused():
    policy = make_study().policy
    with pytest.raises(sp.InvalidInput, match="the policy is for 4 arms and there are 2"):
        sp.Study(sp.Arms(FEATURES[:2]), policy)
