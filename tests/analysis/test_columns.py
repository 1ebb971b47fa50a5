"""Columns that nobody named: what is unmistakable is taken and said, all else is asked for."""

import itertools

import numpy as np
import pandas as pd
import pytest
from command_line import surepick

import surepick as sp


def crossed(**columns):
    """A row for each combination of the cells of some columns, and a last column of numbers."""
    name, draw = columns.pop("last")
    rows = list(itertools.product(*columns.values()))
    return pd.DataFrame(rows, columns=list(columns)).assign(**{name: draw(np.random.default_rng(3), len(rows))})


def ones(rng, number):
    return rng.integers(0, 2, number)


def seconds(rng, number):
    return rng.gamma(5.0, 1.0, number)


MODELS, PLACES = ["a", "b", "c"], range(20)
TABLES = {
    "words and items": (crossed(model=MODELS, question=PLACES, last=("right", ones)), "model", "question"),
    "numbers by their names": (crossed(arm=range(3), item=PLACES, last=("y", seconds)), "arm", "item"),
    "items by their name": (crossed(who=MODELS, task=[f"t{i}" for i in PLACES], last=("y", seconds)), "who", "task"),
    "repeats": (crossed(kind=MODELS, last=("y", lambda rng, _: rng.gamma(5.0, 1.0, 3))), None, None),
    "rows that are numbered": (
        crossed(kind=MODELS, again=range(9), last=("y", seconds)).drop(columns="again").reset_index(),
        "kind",
        None,
    ),
    "runs that are numbered": (crossed(kind=MODELS, run=range(9), last=("y", seconds)), "kind", None),
    "seeds of its own for each": (
        crossed(method=MODELS, again=range(9), last=("y", seconds)).drop(columns="again").assign(seed=range(5, 32)),
        "method",
        None,
    ),
    "answers and other columns beside": (
        crossed(model=MODELS, question=PLACES, last=("right", ones)).assign(
            study="first", answer=lambda rows: np.resize(list("ABCD"), len(rows)), tokens=range(60)
        ),
        "model",
        "question",
    ),
    "users that are each seen once": (
        crossed(variant=MODELS, again=range(9), last=("bought", ones)).drop(columns="again").assign(user=range(27)),
        "variant",
        None,
    ),
}


@pytest.mark.parametrize("table", TABLES)
def test_a_row_a_measurement(table):
    held, who, item = TABLES[table]
    if who is None:
        with pytest.raises(sp.InvalidInput, match="which column"):
            sp.analyze(held)
        return
    found = sp.analyze(held, seed=1)
    assert (found.asked["id"], found.asked.get("item")) == (who, item)
    assert f"candidates = {who!r}" in found.lines()[0]
    assert sp.check_analysis(found.to_dict(), held) == []
    named = {"id": who, "reward": found.asked["reward"], "item": item}
    assert sp.analyze(held, **named, seed=1).evidence == found.evidence
    assert sp.analyze(held, **named, seed=1).taken is None


def test_a_column_a_candidate_and_a_row_a_candidate_say_the_same():
    table = crossed(model=MODELS, question=[f"q{i}" for i in PLACES], last=("right", ones))
    wide = table.pivot_table(index="question", columns="model", values="right", sort=False).reset_index()
    turned = table.pivot_table(index="model", columns="question", values="right", sort=False).reset_index()
    long, columns, rows = (sp.analyze(one, seed=1) for one in (table, wide, turned))
    assert columns.evidence == rows.evidence == long.evidence
    assert "each of the columns 'a', 'b', 'c' is a candidate, each row an item" in columns.lines()[0]
    assert "each row is a candidate, named by 'model'; each column of numbers is an item" in rows.lines()[0]
    assert sp.check_analysis(rows.to_dict(), turned) == []


def test_percentages_are_bounded_and_a_second_number_of_the_item_is_no_candidate():
    table = crossed(model=MODELS, question=PLACES, last=("right", lambda rng, n: 100.0 * rng.integers(0, 2, n)))
    wide = table.pivot_table(index="question", columns="model", values="right", sort=False).reset_index()
    wide.insert(0, "item", range(len(wide)))
    found, named = sp.analyze(wide, seed=1), sp.analyze(table, noise=sp.Bounded(0.0, 100.0), seed=1)
    assert found.ids == ("a", "b", "c")
    assert (found.noise, found.evidence) == (named.noise, named.evidence) == ("bounded:0.0:100.0", found.evidence)
    assert sp.analyze(table.assign(right=table["right"] + 1.0), seed=1).noise.startswith("normal")


def test_totals_by_their_names():
    table = pd.DataFrame({"variant": ["a", "b"], "impressions": [90, 80], "clicks": [9, 30]})
    found = sp.analyze(table, seed=1)
    assert (found.best, found.counts, found.noise) == ("b", (90, 80), "bernoulli")


MISTAKABLE = {
    "settings beside": crossed(model=MODELS, question=PLACES, heat=["low", "high"], last=("right", ones)),
    "two measurements": crossed(model=MODELS, question=PLACES, last=("seconds", seconds)).assign(cost=1.5),
    "two columns of words": crossed(kind=MODELS, colour=["red", "blue"], last=("y", seconds)),
    "a row a candidate, with features": pd.DataFrame({"recipe": MODELS, "sugar": [1, 2, 3], "taste": [5.0, 6.0, 7.0]}),
    "shares of what": pd.DataFrame({"recipe": MODELS, "sugar": [0.1, 0.2, 0.3], "taste": [0.5, 0.6, 0.7]}),
    "settings that are numbers": crossed(dose=range(3), last=("y", lambda rng, _: rng.gamma(5.0, 1.0, 3))),
}


@pytest.mark.parametrize("table", MISTAKABLE)
def test_what_could_be_meant_otherwise_is_asked_for(table):
    with pytest.raises(sp.InvalidInput, match="which column"):
        sp.analyze(MISTAKABLE[table], seed=1)


def side_by_side(**columns):
    """Three candidates in columns, as no shares, and other columns."""
    rng = np.random.default_rng(6)
    values = rng.gamma(5.0, 1.0, (20, 3)) + np.array([0.0, 0.0, 9.0])
    return pd.DataFrame(columns | dict(zip(["A", "B", "C"], values.T, strict=True)))


BESIDE = {
    "an index": {"index": range(20)},
    "one without a name": {"Unnamed: 0": range(20)},
    "runs": {"run": range(1, 21)},
    "one cell throughout": {"temperature": 100.0},
    "dates as texts": {"when": [f"2026-01-{day:02}" for day in range(1, 21)]},
    "dates of a data frame": {"when": pd.date_range("2026-01-01", periods=20)},
    "dates as numbers": {"date": range(20260101, 20260121)},
    "years": {"year": np.resize([2024, 2025], 20)},
    "questions": {"question": range(500, 520)},
}


@pytest.mark.parametrize("beside", BESIDE)
def test_all_columns_are_those_that_may_be_candidates(beside):
    table = side_by_side(**BESIDE[beside])
    found = sp.analyze(table, across="all", seed=1)
    assert found.ids == ("A", "B", "C")
    first = found.lines()[0]
    assert "each of the columns 'A', 'B', 'C' is a candidate, each row an item" in first
    assert f"passed over: {next(iter(BESIDE[beside]))!r}" in first
    assert "large ones are good (--minimize: small ones)" in first
    assert sp.check_analysis(found.to_dict(), table) == []


def test_who_is_always_right_is_a_candidate():
    table = pd.DataFrame({"A": np.resize([0, 1], 20), "B": 1, "C": np.resize([0, 0, 1], 20)})
    assert sp.analyze(table.assign(heat=0.7), across="all", seed=1).ids == ("A", "B", "C")
    assert sp.analyze(table, across="all", seed=1).best == "B"
    with pytest.raises(sp.InvalidInput, match="of its columns 'A' may be a candidate"):
        sp.analyze(side_by_side()[["A"]].assign(index=range(20)), across="all")


@pytest.mark.parametrize("name", ["time", "cost", "val_loss", "error rate", "latency", "Seconds", "time_ms"])
def test_where_small_ones_may_be_good_the_direction_is_asked_for(name, tmp_path):
    table = crossed(solver=MODELS, instance=PLACES, last=(name, seconds))
    table.to_csv(tmp_path / "table.csv", index=False)
    for asked in ({}, {"id": "solver", "reward": name}):
        with pytest.raises(sp.InvalidInput, match="Say --minimize or --maximize"):
            sp.analyze(table, **asked)
    small, large = (sp.analyze(table, minimize=one, seed=1) for one in (True, False))
    assert small.best != large.best
    for flag, found in (("--minimize", small), ("--maximize", large)):
        code, shown, _ = surepick("analyze", str(tmp_path / "table.csv"), flag, "--seed", "1")
        assert (code, f"Best: {found.best} " in shown) == (0, True)
    assert sp.check_analysis(large.to_dict(), table) == []


@pytest.mark.parametrize("named", [{}, {"id": "method"}])
@pytest.mark.parametrize("columns", [("n", "sum", "squares"), ("count", "mean", "sd")])
def test_where_columns_look_like_totals_their_options_are_named(columns, named):
    table = pd.DataFrame({"method": ["a", "b"]} | dict.fromkeys(columns, 3.0))
    with pytest.raises(sp.InvalidInput, match=r"which column .* totals\? Then say --id, --pulls .* --sum .* --squares"):
        sp.analyze(table, **named)
