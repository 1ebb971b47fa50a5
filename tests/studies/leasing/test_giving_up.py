"""Results that will never come, and studies that are closed early."""

import pytest
from leased_studies import SECRET, finish, tell_keys, tell_rest

import surepick as sp

# results that will never come


def tell_some(study: sp.Study) -> None:
    study.tell(["a", "a", "b", "c"], [1.5, 1.5, 0.25, 0.0])


def test_the_rest_is_given_up_for_a_reason_of_its_own(study):
    tell_some(study)
    study.abandon(" independent-of-value ")
    assert [row.pulls for row in study.trace] == [4]
    answer = finish(study)
    assert answer.verdict == "certified"
    assert any("Plans closed with results missing: 1; which ones" in said for said in answer.assumptions)


def test_the_rest_of_some_arms_is_given_up(study):
    tell_some(study)
    study.abandon("independent-of-value", ["b", "c"])
    assert study.missing.tolist() == [1, 0, 0]
    assert not study.trace
    assert study.lease(worker="ann").counts.tolist() == [1, 0, 0]
    study.tell(["a"], [1.5])
    assert [row.pulls for row in study.trace] == [5]


def test_giving_up_nothing_is_nothing(study):
    study.tell(["a"] * 3, [1.5] * 3)
    study.abandon("the drive is broken", ["a"])
    tell_rest(study)
    assert finish(study).verdict == "certified"


def test_another_reason_takes_the_theorem_away(study):
    tell_some(study)
    study.abandon("independent-of-value", ["b"])
    study.abandon("nobody has the time", ["a", "c"])
    answer = finish(study)
    assert answer.verdict == "heuristic"
    assert "A plan was closed short ('nobody has the time'), which may depend on the values." in answer.reason
    assert not any("nothing to do with their values" in said for said in answer.assumptions)


def test_pulls_that_were_given_up_and_came_are_counted_or_late(study):
    part = study.lease(max_pulls=3, worker="ann")
    study.abandon("independent-of-value", ["a"])
    assert study.lease(worker="bob").counts.tolist() == [0, 3, 3]
    assert tell_keys(study, part.keys()[:1], worker="ann").counted == 1
    study.abandon("independent-of-value")
    study.ask()
    assert tell_keys(study, part.keys()[1:], worker="ann").late == 2


# closing early


def test_a_study_closed_early_says_what_it_would_have_taken(study):
    while study.ask().predicted_pulls is None:
        tell_rest(study)
    plan, before = study.ask(), study.trace[-1].total_pulls
    study.tell(["a"], [SECRET], accept_unusual=True)
    study.close("the money is spent")
    answer = study.certificate()
    assert (answer.verdict, answer.pulls, study.stopped, study.ask()) == ("not-yet", before, True, None)
    assert study.lease(worker="ann") is None
    assert "(the money is spent)" in answer.reason
    assert f"would have taken {plan.total - 1} more measurements, and about " in answer.reason
    assert f"{plan.predicted_pulls:,.0f} were predicted to be enough" in answer.reason
    with pytest.raises(sp.OutOfTurn, match=r"closed on .*the money is spent\). No more results are needed"):
        study.tell(["a"], [1.0])
    with pytest.raises(sp.OutOfTurn, match="the study was closed on"):
        study.abandon("independent-of-value")
    study.close("again")
    assert study.certificate() == answer


def test_results_after_the_close_are_late(study):
    part = study.lease(max_pulls=1, worker="ann")
    study.close()
    assert tell_keys(study, part.keys()).late == 1
    assert study.certificate().pulls == 0


def test_a_study_that_stopped_is_not_closed(study):
    answer = finish(study)
    study.close("for nothing")
    assert study.certificate() == answer
