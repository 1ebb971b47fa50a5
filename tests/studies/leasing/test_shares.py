"""Several workers at one plan: who holds which pulls."""

import pytest
from leased_studies import HOUR, IDS, tell_keys, tell_rest

import surepick as sp


def test_a_part_of_the_plan_is_leased_with_its_keys(study, clock):
    part = study.lease(max_pulls=4, worker="ann", duration="2h")
    assert part.counts.tolist() == [3, 1, 0]
    assert part.keys() == [("a", "p1.0@a"), ("a", "p1.1@a"), ("a", "p1.2@a"), ("b", "p1.0@b")]
    assert (part.lease.number, part.lease.plan, part.lease.worker) == (1, 1, "ann")
    assert part.lease.until == clock.now + 2 * HOUR
    assert part.table() == [("a", 3), ("b", 1)]


def test_a_worker_is_given_the_same_lease_again(study, clock):
    part = study.lease(max_pulls=4, worker="ann")
    clock.advance(7.9)
    assert study.lease(max_pulls=1, worker="ann", duration="1m") == part
    tell_keys(study, part.keys()[1:3], worker="ann")
    left = study.lease(worker="ann")
    assert left.lease == part.lease
    assert left.keys() == [part.keys()[0], part.keys()[3]]


def test_others_are_given_other_pulls(study):
    parts = [study.lease(max_pulls=4, worker=worker).keys() for worker in ("ann", "bob", "cy")]
    keys = [key for part in parts for _, key in part]
    assert len(keys) == len(set(keys)) == 9
    assert set(keys) == {f"p1.{ordinal}@{arm}" for arm in IDS for ordinal in range(3)}


def test_when_everything_is_out_the_total_is_zero(study):
    study.lease(worker="ann")
    nothing = study.lease(worker="bob")
    assert (nothing.total, nothing.lease) == (0, None)
    assert nothing.keys() == []
    with pytest.raises(sp.OutOfTurn, match=r"only leased pulls have keys; lease\(worker=...\)"):
        study.ask().keys()
    assert study.ask().total == 9  # what the plan is, for whoever wants to know
    assert study.progress().free == 0


def test_a_lease_that_is_done_is_followed_by_another(study):
    first = study.lease(max_pulls=2, worker="ann")
    tell_keys(study, first.keys(), worker="ann")
    second = study.lease(max_pulls=2, worker="ann")
    assert second.lease.number == 2
    assert second.keys() == [("a", "p1.2@a"), ("b", "p1.0@b")]


def test_results_without_keys_are_taken_from_the_workers_lease(study):
    study.lease(max_pulls=5, worker="ann")
    study.lease(max_pulls=4, worker="bob")
    study.tell(["a", "b"], [1.0, 1.0], worker="ann")
    assert study.lease(worker="ann").counts.tolist() == [2, 1, 0]
    assert study.lease(worker="bob").counts.tolist() == [0, 1, 3]


def test_who_gives_no_name_is_anyone(study):
    part = study.lease(max_pulls=2)
    assert part.lease.worker == "anyone"
    study.tell(["a"], [1.0])
    left = study.lease(max_pulls=2)
    assert left.lease == part.lease
    assert left.counts.tolist() == [1, 0, 0]


def test_results_of_nobodys_lease_leave_the_leases_alone(study):
    part = study.lease(max_pulls=3, worker="ann")
    study.tell(["b", "c"], [0.0, 0.0])
    assert study.lease(worker="ann") == part
    assert study.lease(worker="bob").counts.tolist() == [0, 2, 2]


def test_the_next_plan_has_keys_of_its_own(study):
    study.lease(worker="ann")
    tell_rest(study)
    part = study.lease(max_pulls=1, worker="ann")
    assert part.keys() == [("a", "p2.0@a")]
