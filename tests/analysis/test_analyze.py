"""`analyze` on tables of all layouts: answers, files that are computed again, and what is refused."""

import json

import numpy as np
import pandas as pd
import pytest

import surepick as sp


@pytest.fixture
def scores():
    """Five models of falling skill on 80 questions, a row an answer."""
    rng = np.random.default_rng(2)
    right = rng.random((5, 80)) < np.array([0.95, 0.6, 0.55, 0.2, 0.1])[:, None]
    places = [(model, question) for model in range(5) for question in range(80)]
    return pd.DataFrame(
        [(f"m{model}", f"q{question}", float(right[model, question])) for model, question in places],
        columns=["model", "question", "right"],
    )


def analyzed(table, **asked):
    return sp.analyze(table, **{"id": "model", "reward": "right", "item": "question", "seed": 1} | asked)


def test_items_in_common(scores, tmp_path):
    found = analyzed(scores, control="m2", top=3)
    assert (found.best, found.certified_gap, found.possible) == ("m0", 0.0, ("m0",))
    assert found.tiers[0] == ("m0",)
    assert set(found.tiers[1]) >= {"m1", "m2"}
    assert (found.above_control, set(found.below_control)) == (("m0",), {"m3", "m4"})
    assert {"m3", "m4"} >= set(found.not_in_top)
    assert "m0" in found.in_top
    scores.to_csv(tmp_path / "scores.csv", index=False)
    assert analyzed(tmp_path / "scores.csv", control="m2", top=3).evidence == found.evidence
    assert "May still be the best (1 of 5): m0." in str(found)


def test_a_column_a_candidate_says_the_same(scores):
    wide = scores.pivot_table(index="question", columns="model", values="right", sort=False).reset_index()
    found, long = sp.analyze(wide, across="all", item="question", seed=1), analyzed(scores)
    assert (found.best, found.possible, found.tiers) == (long.best, long.possible, long.tiers)


def test_repeats_of_0_and_1_and_their_totals(scores):
    rows = sp.analyze(scores, id="model", reward="right", seed=1)
    totals = scores.groupby("model", sort=False)["right"].agg(["count", "sum"]).reset_index()
    totals = sp.analyze(totals, id="model", pulls="count", sum="sum", seed=1)
    assert rows.best == totals.best == "m0"
    assert rows.means == pytest.approx(totals.means)
    assert totals.layout == "repeats"
    assert totals.noise == "bernoulli"


def test_small_normal_measurements(scores):
    scores["right"] = 100.0 - 10.0 * scores["right"] + np.random.default_rng(1).standard_normal(len(scores))
    found = sp.analyze(scores, id="model", reward="right", minimize=True, seed=1)
    assert (found.best, found.possible) == ("m0", ("m0",))
    assert found.noise.startswith("normal")
    assert found.means[0] == pytest.approx(scores["right"][:80].mean())
    assert found.tiers[0] == ("m0",)


def test_in_time_no_order_is_drawn(scores):
    scores["day"] = np.tile(np.arange(80), 5)
    one, other = (analyzed(scores.sample(frac=1.0, random_state=seed), order="day", seed=seed) for seed in (1, 2))
    by_id = [dict(zip(found.ids, found.evidence, strict=True)) for found in (one, other)]
    assert by_id[0] == pytest.approx(by_id[1])


def test_a_file_is_computed_again_and_changes_are_seen(scores, tmp_path):
    found = analyzed(scores, seed=None, top=2, control="m1")
    assert found.seed_by == "program"
    path = found.write(tmp_path / "verdict.json")
    assert sp.check_analysis(path, scores) == []
    stored = json.loads(path.read_text())
    stored["possible"] = ["m1"]
    assert sp.check_analysis(stored, scores) == ["possible", "sha256"]
    scores.loc[3, "right"] = 1.0 - scores.loc[3, "right"]
    assert "results_sha256" in sp.check_analysis(path, scores)
    with pytest.raises(sp.InvalidInput, match="no result of analyze"):
        sp.check_analysis({"format": "another"}, scores)


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"id": None, "item": None, "reward": "model"}, "names the candidates"),
        ({"metric": "acc"}, "are for files of a program"),
        ({"control": "m9"}, "is no candidate"),
        ({"top": 5}, "all of them are among so many"),
        ({"noise": sp.SubGaussian(1.0)}, "bernoulli, bounded:LOW:HIGH or normal"),
        ({"noise": sp.Bounded(0.0, 0.5)}, "lies outside"),
        ({"delta": 1.5}, "delta"),
        ({"across": "all"}, "leave out id"),
        ({"pulls": "right"}, "totals are two columns"),
    ],
)
def test_what_is_refused(scores, asked, why):
    with pytest.raises(sp.InvalidInput, match=why):
        analyzed(scores, **asked)


def test_items_that_miss_a_candidate_are_refused_or_left_out(scores):
    short = scores.drop(index=[81, 325])  # question 1 of m1, question 5 of m4
    with pytest.raises(sp.InvalidInput, match="2 of 80 items miss a candidate"):
        analyzed(short)
    assert analyzed(short, drop_missing=True).num_items == 78
    with pytest.raises(sp.InvalidInput, match="one candidate"):
        analyzed(scores[:80])
