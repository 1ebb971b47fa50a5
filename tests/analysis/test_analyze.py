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
    assert "Of these 80 items alone, without doubt: m0." in str(found)


def test_the_items_alone_and_the_population_may_have_another_best(scores):
    few = scores[scores["question"].isin([f"q{i}" for i in range(6)])]
    found = analyzed(few.assign(right=few["right"].where(few["model"] != "m1", 1.0).where(few["model"] != "m2", 1.0)))
    assert set(found.best_of_items) >= {"m1", "m2"}
    assert set(found.possible) >= {"m0", "m1", "m2"}
    assert sp.analyze(few, id="model", reward="right", seed=1).best_of_items is None
    twice = analyzed(pd.concat([scores, scores.assign(right=1.0 - scores["right"])]))  # two epochs
    assert twice.num_items == 80
    assert twice.means == pytest.approx([0.5] * 5)
    assert len(twice.best_of_items) == 5


def test_tiers_of_which_a_share_is_wrong_are_finer(scores):
    found = analyzed(scores, tiers="fdr")
    assert found.tiers[0] == ("m0",)
    assert len(found.tiers) >= len(analyzed(scores).tiers)
    assert "a share of at most delta is wrong on average" in str(found)
    assert sp.check_analysis(found.to_dict(), scores) == []
    with pytest.raises(sp.InvalidInput, match="tiers"):
        analyzed(scores, tiers="some")


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
        ({"noise": sp.SubGaussian(1.0)}, "without items or an order"),
        ({"noise": sp.SubGaussian((1.0, 2.0, 1.0, 1.0, 1.0)), "item": None}, "one number"),
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


@pytest.fixture
def totals():
    """Counts, sums and sums of squares of three candidates, the second of which leads."""
    rng = np.random.default_rng(8)
    rows = {"a": rng.normal(20.0, 1.0, 30), "b": rng.normal(23.0, 2.0, 25), "c": rng.normal(20.0, 0.5, 40)}
    held = [(name, len(one), one.sum(), (one**2).sum()) for name, one in rows.items()]
    return pd.DataFrame(held, columns=["id", "count", "total", "squares"]), rows


def test_totals_of_normal_measurements(totals):
    held, rows = totals
    asked = {"id": "id", "pulls": "count", "sum": "total", "seed": 5}
    found = sp.analyze(held, **asked, control="a", top=1)
    assert (found.best, found.possible, found.tiers[0], found.above_control) == ("b", ("b",), ("b",), ("b",))
    assert found.means == pytest.approx([one.mean() for one in rows.values()])
    assert "Rows with these totals" in str(found)
    assert sp.check_analysis(found.to_dict(), held) == []
    long = pd.DataFrame([(name, value) for name, one in rows.items() for value in one], columns=["id", "y"])
    by_rows = sp.analyze(long, id="id", reward="y", noise=sp.Normal(), seed=5)
    assert found.evidence == pytest.approx(by_rows.evidence, abs=4.0)
    parts = pd.concat([held.assign(**{name: held[name] * share for name in ("total", "squares")}) for share in (1, 0)])
    parts["count"] = [10, 10, 10, 20, 15, 30]
    assert sp.analyze(parts, **asked).counts == (30, 25, 40)  # rows of one candidate add up
    with pytest.raises(sp.InvalidInput, match="leave nothing that says how much"):
        sp.analyze(held.assign(squares=held["total"] ** 2 / held["count"]), **asked)
    with pytest.raises(sp.InvalidInput, match="totals are three"):
        sp.analyze(held.drop(columns="squares"), **asked, noise=sp.Normal())


def test_totals_of_a_declared_scale_or_range(totals):
    held, _ = totals
    asked = {"id": "id", "pulls": "count", "sum": "total", "seed": 5}
    found = sp.analyze(held, **asked, noise=sp.SubGaussian(2.0), control="a")
    assert (found.possible, found.above_control) == (("b",), ("b",))
    assert "sub-Gaussian of scale 2" in str(found)
    assert sp.check_analysis(found.to_dict(), held) == []
    wide = sp.analyze(held, **asked, noise=sp.Bounded(0.0, 40.0))
    assert len(wide.possible) == 3
    assert wide.means == pytest.approx(found.means)
    low = sp.analyze(held.assign(total=-held["total"]), **asked, noise=sp.SubGaussian(2.0), minimize=True)
    assert (low.best, low.evidence) == ("b", found.evidence)
    with pytest.raises(sp.InvalidInput, match="the sum of 'a' is none of 30"):
        sp.analyze(held, **asked, noise=sp.Bounded(0.0, 1.0))
