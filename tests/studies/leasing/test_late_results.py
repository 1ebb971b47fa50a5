"""Leases that run out, and results that come after that."""

import pytest
from leased_studies import SECRET, finish, make_study, tell_keys, tell_rest

import surepick as sp


def test_pulls_return_to_the_pool_with_new_keys(study, clock):
    old = study.lease(max_pulls=3, worker="ann", duration="1h")
    clock.advance(1.0)
    new = study.lease(worker="bob")
    assert new.counts.tolist() == [3, 3, 3]
    keys = new.keys()
    assert keys[:3] == [("a", "p1.3@a"), ("a", "p1.4@a"), ("a", "p1.5@a")]
    assert not set(old.keys()) & set(keys)
    assert new.lease.number == 2


def test_a_lease_holds_until_its_last_second(study, clock):
    study.lease(worker="ann", duration=10)
    clock.now += 9.99
    assert study.lease(worker="bob").total == 0
    clock.now += 0.01
    assert study.lease(worker="bob").total == 9


def test_what_comes_late_counts_while_the_plan_is_open(study, clock):
    """Even beyond what was asked: which result comes second has nothing to do with its value."""
    old = study.lease(max_pulls=3, worker="ann", duration="1h")
    clock.advance(2)
    new = study.lease(worker="bob")
    assert tell_keys(study, old.keys(), worker="ann").counted == 3
    assert tell_keys(study, new.keys()[:4], worker="bob").counted == 4  # three of arm "a" again
    assert study.missing.tolist() == [0, 2, 3]
    receipt = tell_keys(study, new.keys()[4:], worker="bob")
    assert (receipt.counted, receipt.closed) == (5, True)
    answer = study.certificate()
    assert answer.pulls == 12
    assert any("More results came than were asked, in 1 plan" in said for said in answer.assumptions)
    assert any("asked again: 3; whether one fails or is late" in said for said in answer.assumptions)


def test_nothing_is_said_of_workers_who_keep_their_time(study, clock):
    for worker in ("ann", "bob"):
        tell_keys(study, study.lease(max_pulls=5, worker=worker).keys(), worker=worker)
        clock.advance(1)
    answer = study.certificate()
    assert answer.pulls == 9
    assert not any("asked again" in said or "More results" in said for said in answer.assumptions)


@pytest.mark.parametrize("by", ["key", "worker", "plan"])
def test_results_of_a_closed_plan_are_kept_and_never_used(study, clock, by):
    part = study.lease(max_pulls=3, worker="ann")
    tell_rest(study)
    plan, before = study.ask(), study.certificate()
    said = {"key": {"keys": ["p1.0@a"]}, "worker": {"worker": "ann"}, "plan": {"plan": 1}}[by]
    receipt = study.tell(["a"], [SECRET], **said)
    assert (receipt.plan, receipt.counted, receipt.late) == (2, 0, 1)
    assert study.missing.tolist() == plan.counts.tolist()
    assert study.progress().set_aside == (1, 0)
    assert study.certificate() == before
    assert part.lease.plan == 1
    tell_rest(study)
    assert study.certificate().pulls == 9 + plan.total


def test_after_the_stop_late_results_are_still_kept(study):
    study.lease(max_pulls=1, worker="ann")
    answer = finish(study)
    assert study.tell(["a"], [SECRET], keys=["p1.0@a"]).late == 1
    assert study.certificate() == answer


def test_a_call_may_bring_results_of_two_plans(study):
    tell_rest(study)
    study.lease(worker="ann")
    receipt = study.tell(["a", "a"], [1.0, 1.0], keys=["p1.0@a", "p2.0@a"])
    assert (receipt.counted, receipt.late) == (1, 1)


@pytest.mark.parametrize("key", ["p7.0@a", "p1.99@a"])
def test_a_key_that_was_never_given_is_refused(study, key):
    """It would collide with the pull that is given this key later; a restored backup has such keys."""
    study.lease(worker="ann")
    with pytest.raises(sp.InvalidInput, match=r"looks like one that ask gave.*Give the results keys of their own"):
        study.tell(["a"], [1.0], keys=[key])
    assert study.tell(["a"], [1.0], keys=["mine"]).counted == 1


def test_who_owes_nothing_tells_of_the_open_plan(study):
    """A lease of an earlier plan that was answered in full does not make results of the open one late."""
    tell_keys(study, study.lease(worker="ann").keys(), worker="ann")
    study.ask()
    assert study.tell(["a"], [1.0], worker="ann").counted == 1


def test_who_owes_something_tells_of_the_plan_that_waits_for_it(study, clock):
    held = study.lease(max_pulls=1, worker="ann", duration="1h")
    clock.advance(2)
    tell_keys(study, study.lease(worker="bob").keys(), worker="bob")
    study.ask()
    name = held.table()[0][0]
    assert study.tell([name], [1.0], worker="ann").late == 1


def test_a_refused_call_stores_nothing(clock):
    """Late results and one of an arm that was not asked, in one call."""
    study = make_study(clock, sigma=1.0, name="lucb")
    study.ask()
    tell_rest(study)
    assert study.ask().counts.tolist() == [1, 1, 0]
    with pytest.raises(sp.InvalidInput, match="Nothing of this call was stored"):
        study.tell(["a", "c"], [1.0, 1.0], keys=["p1.0@a", "mine"])
    assert study.progress().set_aside == (0, 0)
    assert study.tell(["a"], [1.0], keys=["p1.0@a"]).late == 1


def test_no_lease_is_judged_by_a_clock_that_was_moved_back(study, clock):
    study.lease(max_pulls=1, worker="ann")
    clock.advance(-1)
    with pytest.raises(sp.OutOfTurn, match=r"Clock skew.* Fix the clock \(results can still be reported"):
        study.lease(worker="bob")
    assert study.tell(["a"], [1.0]).counted == 1
