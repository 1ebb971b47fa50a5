"""Where a study stands, in one sentence that needs no statistics."""

from dataclasses import replace

import pytest
from together import of_each

from surepick.studies.logs.base import format_time
from surepick.studies.progress import Progress

FRESH = Progress(
    judged=0,
    rounds=0,
    pulls=0,
    candidates=1000,
    left=1000,
    leader=None,
    certified_gap=None,
    stopped=False,
    verdict="not-yet",
    ended=None,
    plan=1,
    round=1,
    asked=2000,
    free=2000,
    opened_at=1_000.0,
    now=1_000.0,
)
LATER = replace(
    FRESH,
    judged=2,
    rounds=2,
    pulls=4321,
    left=7,
    leader="sku-4",
    certified_gap=0.2449,
    delta=0.05,
    plan=3,
    round=3,
    asked=30,
    told=12,
)
JARGON = ("arm", "misspecif", "posterior", "sigma", "delta", "epsilon", "estimator", "None", "nan", "inf")


def test_nothing_is_in():
    assert str(FRESH) == (
        "round 1; 1,000 of 1,000 candidates left; 0 of 2,000 pulls in; nothing is known before the first round is "
        "complete."
    )
    assert FRESH.done_by is None


def test_the_pace_so_far_says_when_the_round_is_done():
    progress = replace(FRESH, told=500, now=1_000.0 + 3_600.0)
    assert progress.done_by == pytest.approx(4_600.0 + 3 * 3_600.0)
    assert f"500 of 2,000 pulls in; at this pace done by {format_time(4_600.0 + 10_800.0)};" in str(progress)


@of_each(
    "progress",
    [
        replace(FRESH, told=500),  # no time has passed
        replace(FRESH, told=500, now=900.0),  # the clock was set back
        replace(FRESH, told=2000, complete=True, now=2_000.0),
        replace(FRESH, plan=0, now=2_000.0),
    ],
)
def test_no_end_is_predicted_where_there_is_no_pace(progress):
    assert progress.done_by is None
    assert "at this pace" not in str(progress)


def test_surplus_results_do_not_predict_an_end_in_the_past():
    progress = replace(FRESH, told=2500, now=5_000.0)
    assert progress.done_by == 5_000.0


def test_the_best_of_the_closed_rounds():
    assert str(LATER) == (
        "round 3; 7 of 1,000 candidates left; 12 of 30 pulls in; best of the closed rounds sku-4, with 95% confidence "
        "at most 0.25 worse than the best."
    )
    assert "best of the closed rounds sku-4, nothing is proved about it yet" in str(replace(LATER, certified_gap=None))


def test_candidates_that_are_out_for_good_are_counted_in_place_of_those_left():
    ruling_out = replace(LATER, ruled_out=993)
    assert str(ruling_out) == (
        "round 3; 12 of 30 pulls in; best of the closed rounds sku-4, with 95% confidence at most 0.25 worse than the "
        "best; 993 of 1,000 candidates are ruled out as the best."
    )
    assert str(replace(LATER, ruled_out=1)).endswith("; 1 of 1,000 candidates is ruled out as the best.")
    assert str(replace(LATER, ruled_out=0)).endswith("; no candidate is ruled out as the best yet.")
    unknown = replace(ruling_out, certified_gap=None)
    assert str(unknown).endswith(
        "sku-4, nothing is proved about it yet; 993 of 1,000 candidates are ruled out as the best."
    )
    assert str(replace(unknown, ruled_out=0)).endswith("sku-4, nothing is proved about it yet.")


@of_each(("delta", "sure"), [(0.07, "93%"), (1e-6, "99.9999%"), (1e-20, "99.999999999999999999%"), (0.5, "50%")])
def test_the_confidence_has_all_its_digits(delta, sure):
    assert f"with {sure} confidence" in replace(LATER, delta=delta).proved
    assert replace(LATER, delta=delta).confidence == pytest.approx(1 - delta, abs=1e-15)


@of_each(("gap", "said"), [(0.2449, "0.25"), (0.24, "0.24"), (1.01, "1.1"), (121.0, "130"), (3.01e-7, "3.1e-07")])
def test_a_bound_is_rounded_up(gap, said):
    assert f"at most {said} worse than" in replace(LATER, certified_gap=gap).proved


def test_a_leader_that_is_the_best_is_no_worse():
    assert "with 95% confidence no worse than the best" in str(replace(LATER, certified_gap=0.0))


def test_a_known_number_of_rounds_and_the_part_of_a_round():
    assert str(replace(LATER, most_rounds=5)).startswith("round 3 of at most 5; ")
    assert str(replace(LATER, most_rounds=5, look=2, looks=8)).startswith("round 3 of at most 5, part 2 of 8; ")
    assert str(replace(LATER, most_rounds=2)).startswith("round 3; ")  # abandoned results made it longer


def test_complete_and_waiting():
    progress = replace(LATER, told=30, complete=True)
    assert "; all 30 pulls in, to be judged by the next command that needs it; " in str(progress)


def test_between_two_rounds():
    progress = replace(LATER, plan=0, round=0, asked=0, told=0)
    assert str(progress).startswith("round 3 is about to be planned (`surepick ask` does it); best of the closed")


def test_done():
    progress = replace(LATER, stopped=True, verdict="certified", plan=0)
    answer = "done after 2 rounds and 4,321 measurements: sku-4 is the answer, certified"
    assert str(progress) == f"{answer}: with 95% confidence at most 0.25 worse than the best."
    assert str(replace(progress, ruled_out=7)).endswith("; 7 of 1,000 candidates are ruled out as the best.")
    assert str(replace(progress, ruled_out=0)).endswith("worse than the best.")
    assert str(replace(progress, certified_gap=None, delta=None)) == f"{answer}."
    one = replace(progress, rounds=1, pulls=1, verdict="heuristic", certified_gap=None, delta=None)
    assert str(one) == "done after 1 round and 1 measurement: sku-4 is the answer, heuristic."


def test_closed_early():
    said = "after 2 rounds; best of the closed rounds sku-4, with 95% confidence at most 0.25 worse than the best."
    assert str(replace(LATER, ended="no more paint")) == f"closed early (no more paint) {said}"
    assert str(replace(LATER, ended="")) == f"closed early {said}"
    assert (
        str(replace(FRESH, ended=""))
        == "closed early after 0 rounds; nothing is known before the first round is complete."
    )


@of_each("told", [0, 12, 30])
@of_each("base", [FRESH, LATER])
def test_no_sentence_needs_statistics(base, told):
    variants = (
        replace(base, told=told, now=9_000.0),
        replace(base, told=told, complete=True),
        replace(base, plan=0),
        replace(base, ended="why"),
        replace(base, stopped=True, leader="x"),
    )
    for progress in variants:
        assert str(progress).endswith(".")
        assert not any(word in str(progress) for word in JARGON)
