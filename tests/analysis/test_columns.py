"""Columns that nobody named: what is unmistakable is taken and said, all else is asked for."""

import itertools

import numpy as np
import pandas as pd
import pytest

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
    assert "each column from 'a' to 'c' is a candidate, each row an item" in columns.lines()[0]
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
