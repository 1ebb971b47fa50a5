"""Measurements that fail, and pulls that a worker gives back."""

import pytest
from leased_studies import tell_keys, tell_rest

import surepick as sp

# measurements that fail


def test_a_failed_pull_is_offered_again_at_once(study):
    keys = study.lease(worker="ann").keys()
    assert study.lease(worker="bob").total == 0
    receipt = study.fail(["b"], keys=["p1.1@b"], worker="ann")
    assert (receipt.plan, receipt.failed) == (1, 1)
    again = study.lease(worker="bob")
    assert again.keys() == [("b", "p1.3@b")]
    tell_keys(study, [pair for pair in keys if pair[1] != "p1.1@b"], worker="ann")
    assert not study.trace
    assert tell_keys(study, again.keys(), worker="bob").closed
    answer = study.certificate()
    assert answer.pulls == 9
    assert any("failed or did not come in time and were asked again: 1;" in said for said in answer.assumptions)


def test_a_failure_without_a_key_is_of_the_running_lease(study, clock):
    study.lease(max_pulls=3, worker="ann", duration="1h")
    clock.advance(2)
    assert study.lease(worker="ann").total == 9
    study.fail(["a"], worker="ann")
    assert study.lease(worker="bob").keys() == [("a", "p1.6@a")]


def test_results_without_keys_fill_the_running_lease_first(study, clock):
    study.lease(max_pulls=3, worker="ann", duration="1h")
    clock.advance(2)
    study.lease(max_pulls=2, worker="ann")
    study.tell(["a"] * 2, [1.0] * 2, worker="ann")
    assert study.lease(max_pulls=1, worker="ann").lease.number == 3


def test_a_failure_of_a_closed_plan_is_nothing(study):
    study.lease(worker="ann")
    tell_rest(study)
    plan = study.ask()
    study.fail(["a"], keys=["p1.0@a"], worker="ann")
    tell_rest(study)
    answer = study.certificate()
    assert answer.pulls == 9 + plan.total
    assert not any("asked again" in said for said in answer.assumptions)


# what is refused, and how


def test_failing_again_is_not_failing_twice(study):
    """The client reports a failure, loses the answer, and reports it again: one pull comes back, not two."""
    study.lease(worker="ann")
    for _ in range(2):
        study.fail(["b"], keys=["p1.1@b"], worker="ann")
    assert study.lease(worker="bob").keys() == [("b", "p1.3@b")]


def test_a_failure_that_is_refused_frees_nothing(study):
    study.lease(worker="ann")
    with pytest.raises(sp.InvalidInput, match="this study never gave it"):
        study.fail(["a", "a"], keys=["p1.0@a", "p1.99@a"], worker="ann")
    assert study.lease(worker="bob").total == 0


def test_what_nobody_leased_can_fail_too(study):
    """It is free as before; that it failed is said."""
    study.ask()
    free = study.free_part().counts
    assert study.fail(["a"]).failed == 1
    assert study.free_part().counts.tolist() == free.tolist()
    tell_rest(study)
    assert any("were asked again: 1;" in sentence for sentence in study.certificate().assumptions)


def test_what_a_worker_will_not_do_is_given_back(study):
    """At once, not when the lease runs out; and what comes after all counts."""
    leased = study.lease(worker="zoe/1")
    assert study.lease(worker="ann").total == 0
    assert study.release("ann") == 0
    assert study.release("zoe") == leased.total
    again = study.lease(worker="ann")
    assert again.total == leased.total
    assert not {key for _, key in leased.keys()} & {key for _, key in again.keys()}  # noqa: SIM118
    assert tell_keys(study, leased.keys()[:1]).counted == 1
    tell_rest(study)
    assert any("were asked again: 9;" in sentence for sentence in study.certificate().assumptions)


def test_two_failures_without_keys_give_two_pulls_back(study):
    leased = study.lease(worker="ann")
    arm = int(leased.counts.argmax())
    name = leased.table()[arm][0]
    assert leased.counts[arm] >= 2
    study.fail([name, name], worker="ann")
    assert study.lease(worker="bob").counts[arm] == 2
