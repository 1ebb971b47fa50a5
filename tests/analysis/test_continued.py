"""A study that goes on with a finished table: its rows count once, new measurements complete it, and it verifies."""

import numpy as np
import pandas as pd
import pytest
from command_line import surepick

import surepick as sp
from surepick.analysis import continued
from surepick.analysis.columns import Columns
from surepick.analysis.continued import continue_analysis
from surepick.analysis.table import judged_table

MEANS = {"a": 1.0, "b": 0.7, "c": 0.2}


def repeats(number=12, seed=1):
    rng = np.random.default_rng(seed)
    rows = [(name, mean + 0.5 * rng.standard_normal()) for name, mean in MEANS.items() for _ in range(number)]
    return pd.DataFrame(rows, columns=["model", "score"])


def tasks(number=8):
    """Differences on a task are normal, and tasks vary far more."""
    rng = np.random.default_rng(3)
    levels = 20.0 * rng.standard_normal(number)
    rows = [
        (name, f"t{i}", level + mean + 0.3 * rng.standard_normal())
        for name, mean in MEANS.items()
        for i, level in enumerate(levels)
    ]
    return pd.DataFrame(rows, columns=["model", "task", "score"])


def measured_until_it_stops(study, seed=5):
    """The number of new measurements."""
    rng, new = np.random.default_rng(seed), 0
    while (batch := study.ask()) is not None:
        ids = [name for name, number in zip(study.ids, study.missing, strict=True) for _ in range(max(number, 0))]
        level = {}
        blocks = {}
        if batch.blocks:
            counts = dict.fromkeys(ids, 0)
            names = []
            for name in ids:
                names.append(f"new {batch.number}.{counts[name]}")
                counts[name] += 1
            level, blocks = {block: 20.0 * rng.standard_normal() for block in names}, {"blocks": names}
        rewards = [
            MEANS[name] + 0.4 * rng.standard_normal() + (level[blocks["blocks"][row]] if level else 0.0)
            for row, name in enumerate(ids)
        ]
        study.tell(ids, rewards, accept_unusual="unasked", **blocks)
        new += len(ids)
    return new


@pytest.mark.parametrize("table", ["repeats", "tasks", "totals"])
def test_a_study_goes_on_with_a_table_and_verifies(table, sqlite_url, tmp_path):
    held = {"repeats": repeats(), "tasks": tasks(), "totals": totals_of(repeats())}[table]
    asked = {"id": "model", "noise": sp.Normal(), "seed": 3}
    asked |= {"pulls": "count", "sum": "total"} if table == "totals" else {"reward": "score"}
    asked |= {"item": "task"} if table == "tasks" else {}
    found = sp.analyze(held, **asked)
    begun = continue_analysis(found, held, sqlite_url, "goes on", epsilon=0.1)
    assert 0 < begun.used <= begun.rows == sum(found.counts)
    assert "If candidates are as in the table" in str(begun)
    study = begun.study
    assert study.progress().pulls + study.progress().told == begun.used
    new = measured_until_it_stops(study)
    assert new > 0
    assert study.recommend() == "a"
    file = tmp_path / "certificate.json"
    sp.write_certificate(study, file)
    assert surepick("verify", str(file))[0] == 0
    assert study.progress().pulls == begun.used + new


def totals_of(rows):
    rows = rows.assign(square=rows["score"] ** 2).groupby("model", sort=False)
    return rows.agg(count=("score", "size"), total=("score", "sum"), squares=("square", "sum")).reset_index()


def test_rows_that_are_left_answer_later_rounds_once(sqlite_url):
    held = repeats(number=40)
    held = held[(held["model"] != "a") | (held.index % 8 == 0)]  # few of the best
    found = sp.analyze(held, id="model", reward="score", noise=sp.SubGaussian(0.5), seed=3)
    begun = continue_analysis(found, held, sqlite_url, "lab", epsilon=0.3)
    again = continue_analysis(found, held, sqlite_url, "lab")
    assert (again.used, again.missing) == (begun.used, begun.missing)  # each counts once
    study = again.study
    assert again.used < again.rows
    later = again
    while later.used == again.used:
        counts = np.maximum(study.missing, 0)
        ids = [name for name, number in zip(study.ids, counts, strict=True) for _ in range(number)]
        spread = 0.5 * np.resize([1.0, -1.0], len(ids))
        study.tell(ids, [MEANS[name] for name in ids] + spread, accept_unusual="unasked")
        later = continue_analysis(found, held, sqlite_url, "lab")
        study = later.study
    assert again.used < later.used <= later.rows


def test_a_clear_winner_needs_nothing_more(sqlite_url):
    held = repeats(number=30).assign(score=lambda rows: rows["score"] + 9.0 * (rows["model"] == "b"))
    found = sp.analyze(held, id="model", reward="score", noise=sp.Normal(), seed=3)
    ended = continue_analysis(found, held, sqlite_url, "clear", epsilon=0.5)
    assert ended.study.stopped
    assert (ended.missing, ended.more) == (0, None)
    assert "needs no more measurements" in str(ended)


def answers(models, items):
    """What models score on items of one set."""
    skill = {"a": 0.8, "b": 0.55, "c": 0.5}
    return [float(np.random.default_rng([ord(m), int(i[1:])]).random() < skill[m]) for m in models for i in items]


def test_one_set_of_items_is_gone_on_with(sqlite_url, tmp_path, monkeypatch):
    monkeypatch.setattr(continued, "SETS", 1)
    items, models = [f"q{i}" for i in range(120)], list(MEANS)
    some = sorted(np.random.default_rng(6).permutation(items)[:90].tolist())
    rows = [(model, item) for model in models for item in some]
    held = pd.DataFrame(rows, columns=["model", "question"]).assign(right=answers(models, some))
    found = sp.analyze(held, noise=sp.Bounded(0.0, 1.0), seed=3)
    begun = continue_analysis(found, held, sqlite_url, "set", epsilon=0.1, items=items)
    columns = Columns(id="model", reward="right", item="question")
    table = judged_table(held, columns, None, None, noise=sp.Bounded(0.0, 1.0), minimize=False)
    study, new, used = begun.study, 0, begun.used
    assert used + begun.missing > 0
    if not study.stopped:
        assert begun.more.lowest <= begun.more.usual <= begun.more.highest
    while (batch := study.ask()) is not None:
        asked = zip(batch.pulls(), batch.item_ids, strict=True)
        wanted = [(model, item) for model, item in asked if item not in some]
        scores = [answers([model], [item])[0] for model, item in wanted]
        study.tell([model for model, _ in wanted], scores, items=[item for _, item in wanted])
        new += len(wanted)
        used = continued.answered(study, table)
    assert continue_analysis(found, held, sqlite_url, "set").used == used
    assert study.progress().pulls == used + new
    file = tmp_path / "certificate.json"
    sp.write_certificate(study, file)
    assert surepick("verify", str(file))[0] == 0
    with pytest.raises(sp.InvalidInput, match="1 of 90 items of the table are not among"):
        continue_analysis(
            found, held, sqlite_url, "other", epsilon=0.05, items=[one for one in items if one != some[0]]
        )
    found = sp.analyze(repeats(), noise=sp.Normal(), seed=3)
    with pytest.raises(sp.InvalidInput, match="scores from 0 to 1"):
        continue_analysis(found, repeats(), sqlite_url, "other", epsilon=0.05, items=items)


def test_the_command_says_what_more_it_takes(sqlite_url, tmp_path):
    repeats().to_csv(tmp_path / "scores.csv", index=False)
    words = ("analyze", str(tmp_path / "scores.csv"), "--noise", "subgaussian:0.5", "--seed", "3")
    code, shown, error = surepick(*words, "--continue", sqlite_url, "lab", "--epsilon", "0.1")
    assert code == 0, error
    assert "more measurements settle the first place" in shown
    assert "surepick ask" in shown
    code, shown, _ = surepick(*words, "--continue", sqlite_url, "lab", "--format", "json")
    assert code == 0
    assert '"used"' in shown
    with pytest.raises(sp.InvalidInput, match="name it with --continue"):
        surepick(*words, "--epsilon", "0.1")


def test_what_cannot_be_gone_on_with_is_refused(sqlite_url):
    held = repeats()
    found = sp.analyze(held, id="model", reward="score", noise=sp.Normal(), seed=3)
    changed = held.assign(score=held["score"] + 1.0)
    with pytest.raises(sp.InvalidInput, match="another table"):
        continue_analysis(found, changed, sqlite_url, "x", epsilon=0.1)
    with pytest.raises(sp.InvalidInput, match="in a database"):
        continue_analysis(found, held, "https://lab.example", "x", epsilon=0.1)
    answers = tasks().assign(score=lambda rows: (rows["score"] > 0).astype(float))
    ones = sp.analyze(answers, id="model", reward="score", item="task", noise=sp.Bounded(0.0, 1.0), seed=3)
    with pytest.raises(sp.InvalidInput, match="normal differences only"):
        continue_analysis(ones, answers, sqlite_url, "x", epsilon=0.1)
    sums = totals_of(held)
    wide = sp.analyze(sums, id="model", pulls="count", sum="total", noise=sp.SubGaussian(0.5), seed=3)
    with pytest.raises(sp.InvalidInput, match="are no rows"):
        continue_analysis(wide, sums, sqlite_url, "x", epsilon=0.1)
    known = sp.analyze(sums, id="model", pulls="count", sum="total", noise=sp.Normal(), seed=3)
    continue_analysis(known, sums, sqlite_url, "drawn", epsilon=0.1)
    with pytest.raises(sp.InvalidInput, match="were drawn when the study was begun"):
        continue_analysis(known, sums, sqlite_url, "drawn")
    other = held.replace({"model": {"c": "d"}})
    renamed = sp.analyze(other, id="model", reward="score", noise=sp.Normal(), seed=3)
    with pytest.raises(sp.InvalidInput, match="was made of another table"):
        continue_analysis(renamed, other, sqlite_url, "drawn")
