"""The last round of a search: scores choose the finalists, and new results alone say which is the best."""

import math
import sys

import numpy as np
import pandas as pd
import pytest

import surepick as sp
from surepick.find_best import Finalists
from surepick.studies.program import RowCommand

MEANS = {"a": 0.1, "b": 0.9, "c": 0.5, "d": 0.7}
LUCKY = [5.0, 0.9, math.nan, 0.7]  # the worst had the best score of all
ASKED = {"epsilon": 0.3, "noise": sp.SubGaussian(0.1)}


def measuring(asked: list):
    def measure(ids):
        asked.extend(ids)
        return [MEANS[name] for name in ids]

    return measure


# --- who is a finalist


@pytest.mark.parametrize(
    ("scores", "top", "minimize", "chosen", "tried"),
    [
        (LUCKY, 2, False, ("a", "b"), 3),
        (LUCKY, 1, True, ("d",), 3),
        (LUCKY, None, False, ("a", "b", "d"), 3),
        ([1, 2, 2, 2], 2, False, ("b", "c"), 4),
        (None, None, False, tuple(MEANS), 0),
    ],
)
def test_those_with_the_best_scores(scores, top, minimize, chosen, tried):
    """The first of equal ones; none without a score; ten where nobody says how many."""
    found = Finalists.of(sp.Arms(ids=list(MEANS)), scores, top, minimize=minimize)
    assert (found.arms.ids, found.tried) == (chosen, tried)


@pytest.mark.parametrize(
    ("scores", "top", "said"),
    [
        (None, 3, "nothing says whose scores are best"),
        ([1, 2], 1, "must be \\(4,\\)"),
        ([math.nan] * 4, 1, "none is a finalist"),
        (LUCKY, 0, "top"),
    ],
)
def test_what_chooses_no_finalists_is_refused(scores, top, said):
    with pytest.raises(sp.InvalidInput, match=said):
        sp.confirm(list(MEANS), measuring([]), scores=scores, top=top, **ASKED)


# --- what they are found to be


def test_a_lucky_score_does_not_count():
    asked = []
    found = sp.confirm(list(MEANS), measuring(asked), scores=LUCKY, top=3, **ASKED)
    assert (found.best_arm, found.verdict) == ("b", "certified")
    assert set(asked) == {"a", "b", "d"}
    assert found.pulls == len(asked)
    assert str(found).endswith(
        "All results that count are new: the scores of 3 candidates chose the finalists, and do not count. What is "
        "promised is about 3 finalists, not about others that were or could be tried."
    )


def test_the_answer_is_that_of_find_best_on_the_finalists():
    mine, usual = [], []
    found = sp.confirm(list(MEANS), measuring(mine), scores=LUCKY, top=3, prefer=MEANS, **ASKED)
    same = sp.find_best(["a", "b", "d"], measuring(usual), prefer=[0.1, 0.9, 0.7], **ASKED)
    assert found.certificate == same.certificate
    assert mine == usual


def test_a_budget_stands_in_place_of_a_tolerance():
    found = sp.confirm(list(MEANS), measuring([]), scores=LUCKY, top=3, budget=60, noise="subgaussian:0.1")
    assert (found.best_arm, found.verdict, found.pulls <= 60) == ("b", "certified", True)


def test_a_data_frame_has_its_scores_in_a_column():
    trials = pd.DataFrame({"number": [7, 8, 9], "value": [0.2, 0.9, 0.8], "lr": [0.1, 0.2, 0.3]})
    means = {7: 0.9, 8: 0.5, 9: 0.8}
    found = sp.confirm(
        trials, lambda ids: [means[one] for one in ids], id="number", scores="value", top=2, epsilon=0.2,
        noise="subgaussian:0.1",
    )  # fmt: skip
    assert found.best_arm == 9
    with pytest.raises(sp.InvalidInput, match=r"no column 'values', of scores\. Did you mean 'value'"):
        sp.confirm(trials, len, scores="values", epsilon=0.2)
    with pytest.raises(sp.InvalidInput, match="the column of a data frame"):
        sp.confirm(["a", "b"], len, scores="value", epsilon=0.2)


# --- programs that are given the row of a candidate

ROWS = {"t1": {"lr": "0.1", "depth": "4", "note": ""}, "t2": {"lr": "-0.2", "depth": "2", "note": "-v"}}


def command(template: str, **more) -> RowCommand:
    return RowCommand(template, None, ROWS, **more)


def test_cells_stand_where_their_columns_are_named():
    made = command("train '{depth} and {lr}' --id={id} --json={\"lr\":{lr}} {other thing:1}")
    assert made.arguments("t2", 1) == ["train", "2 and -0.2", "--id=t2", "--json={lr:-0.2}", "{other", "thing:1}"]


def test_each_measurement_has_a_seed_of_its_own_and_each_block_has_one_for_all():
    made, other = command("train {lr} {seed}", study_id="x"), command("train {lr} {seed}", study_id="y")
    alone = {made.arguments("t1", 1, key=key)[2] for key in ("p1.0@t1", "p1.1@t1", "p2.0@t1")}
    assert len(alone) == 3
    assert made.arguments("t1", 1, "s1", "p1.0@t1")[2] == made.arguments("t2", 1, "s1", "p1.3@t2")[2]
    assert made.arguments("t1", 1, "s1")[2] != other.arguments("t1", 1, "s1")[2]
    assert all(0 <= int(seed) < 2**31 for seed in alone)
    assert made.takes_blocks
    assert not command("train {lr}").takes_blocks


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("train {lrr}", "no such column.*Did you mean 'lr'"),
        ("train 5", "which candidate is measured"),
        ("train {lr} {pulls} {seed}", "Leave {pulls} out"),
        ("train {note}", "'note' is empty for candidate 't1'"),
        ("", "which candidate is measured"),
    ],
)
def test_a_command_that_cannot_be_is_refused(template, said):
    with pytest.raises(sp.InvalidInput, match=said):
        command(template)


def test_a_cell_that_may_be_taken_for_an_option_is_refused():
    """A negative number is none."""
    rows = {"t1": {"lr": "-0.1", "mode": "--fast"}}
    RowCommand("train {lr}", None, rows).check(["t1"])
    RowCommand("train --mode={mode}", None, rows).check(["t1"])
    RowCommand("train -- {mode}", None, rows).check(["t1"])
    with pytest.raises(sp.InvalidInput, match="'--fast', which a program can take for an option"):
        RowCommand("train {mode}", None, rows).check(["t1"])


def test_a_program_is_called_with_its_row(tmp_path):
    path = tmp_path / "measure.py"
    path.write_text("import sys\nprint(float(sys.argv[1]) + int(sys.argv[2]))\n")
    found = command(f"{sys.executable} -ISE {path} {{lr}} {{depth}}").measure(["t2"], keys=["p1.0@t2"])
    assert np.allclose(found.rewards, 1.8)
