"""A study is a fold over its log: resumed, shared and interrupted."""

import numpy as np
import pytest
from small_studies import FEATURES, IDS, Listener, make_study, rewards_of

import surepick as sp
from surepick.core.observations import Observations
from surepick.studies import Results
from surepick.studies.logs.memory import MemoryLog


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
    assert decision.seen == Observations([1, 1, 0, 0], [1.0, -3.0, 0.0, 0.0], [1.0, 9.0, 0.0, 0.0], within=[0.0] * 4)


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
