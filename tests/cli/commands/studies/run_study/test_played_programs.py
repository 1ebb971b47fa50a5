"""The loop of run-study, with a program that is played."""

from dataclasses import dataclass

import pytest
from run_study_lab import rewards

from surepick.errors import MeasurementFailed
from surepick.studies.database import open_stored_study
from surepick.studies.program import Loop, Outcome


@dataclass
class Played:
    """A program in this process: an outcome for each call."""

    play: object

    def check(self, ids):
        pass

    def share(self, pairs):
        return [pair for pair in pairs if pair[0] == pairs[0][0]]

    def measure(self, names, running):
        return self.play(names[0], len(names))


@pytest.mark.parametrize("outcome", [Outcome((0.5,)), Outcome(failure="it was cut off")])
def test_a_study_that_is_closed_during_a_call(lab, outcome):
    def closes(name, pulls):
        open_stored_study(lab.url, "x").close("no more paint")
        return outcome

    assert Loop(open_stored_study(lab.url, "x"), Played(closes), "ann", retries=0).run() is True
    assert lab.stored() == []
    assert "no more paint" in open_stored_study(lab.url, "x").certificate().reason


def test_results_that_come_when_the_study_is_closed_are_late(lab):
    def closes(name, pulls):
        open_stored_study(lab.url, "x").close("enough")
        return Outcome((0.5,) * pulls)

    receipts = []
    Loop(
        open_stored_study(lab.url, "x"), Played(closes), "ann", heard=lambda _, receipt: receipts.append(receipt)
    ).run()
    assert [receipt.late for receipt in receipts] == [1]


def test_a_round_beyond_the_budget_is_not_begun_whoever_closed_the_last(lab):
    calls = []

    def counts(name, pulls):
        calls.append(name)
        return Outcome(tuple(rewards(name, pulls)))

    assert (
        Loop(open_stored_study(lab.url, "x"), Played(counts), "ann", most=3).run() is False
    )  # nobody hears, nobody plans
    assert len(calls) == 3


def test_it_says_for_whom_it_waits(lab):
    other = open_stored_study(lab.url, "x")
    plan = other.lease(worker="bob", duration=2.0)
    assert plan.total == 3
    code, _, errors = lab.run()
    assert code == 0
    assert errors.count("waiting for measurements that are out: 3 with bob until 20") == 1
    assert len(lab.stored()) == other.certificate().pulls  # bob's were measured here once his lease had run out


def test_two_loops_of_one_name_are_told_so(lab):
    def other_loop_is_faster(name, pulls):
        other = open_stored_study(lab.url, "x")
        part = other.lease(1, worker="ann/1")
        other.tell([name], [0.125], [part.keys()[0][1]], worker="ann/1")
        return Outcome(tuple(rewards(name, pulls)))

    with pytest.raises(MeasurementFailed, match=r"give each of them a name of its own \(--worker\)"):
        Loop(open_stored_study(lab.url, "x"), Played(other_loop_is_faster), "ann").run()
