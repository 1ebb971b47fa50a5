"""A study that goes on with a table has one table, in one order, of declared noise, and its certificate says so."""

import json

import numpy as np
import pandas as pd
import pytest
from command_line import surepick

import surepick as sp
from surepick.analysis import continued
from surepick.analysis.continued import More, continue_analysis
from surepick.certificates.signature import sealed
from surepick.studies.origins import TableOrigin

MEANS = {"a": 5.0, "b": 5.05, "c": 4.0}


@pytest.fixture(autouse=True)
def _without_forecast(monkeypatch):
    """What more it takes is simulated, which has tests of its own."""
    monkeypatch.setattr(continued, "_more", lambda *_: More(1, 2, 3))


def tastes(number=25):
    rng = np.random.default_rng(12)
    rows = [(name, day, mean + 0.5 * rng.standard_normal()) for name, mean in MEANS.items() for day in range(number)]
    return pd.DataFrame(rows, columns=["recipe", "day", "taste"])


def analysis(table, **asked):
    return sp.analyze(table, id="recipe", reward="taste", **{"noise": sp.Normal(), "seed": 1, **asked})


def go_on(table, url, name="lab", epsilon=None, **asked):
    return continue_analysis(analysis(table, **asked), table, url, name, epsilon=epsilon)


def held_in(study):
    return study.progress().pulls + study.progress().told


def test_the_same_rows_in_other_orders_count_once(sqlite_url):
    table = tastes()
    begun = go_on(table, sqlite_url, epsilon=0.1)
    for seed in range(3):
        again = go_on(table.sample(frac=1.0, random_state=seed), sqlite_url)
        assert (again.used, again.missing, held_in(again.study)) == (begun.used, begun.missing, begun.used)


def with_one_more(table):
    return pd.concat([table, pd.DataFrame([("a", 25, 5.1)], columns=table.columns)])


@pytest.mark.parametrize(
    "change", [with_one_more, lambda table: table[1:], lambda table: table.assign(taste=table["taste"] + 1e-9)]
)
def test_another_table_is_refused(sqlite_url, change):
    begun = go_on(tastes(), sqlite_url, epsilon=0.1)
    with pytest.raises(sp.InvalidInput, match=r"made of another table: of 75 rows.*ask and tell"):
        go_on(change(tastes()), sqlite_url)
    assert held_in(begun.study) == begun.used


@pytest.mark.parametrize("ordered", [False, True])
def test_an_order_of_time_that_comes_or_goes_is_another_table(sqlite_url, ordered):
    words = [{"order": "day"}, {}]
    go_on(tastes(), sqlite_url, epsilon=0.1, **words[not ordered])
    with pytest.raises(sp.InvalidInput, match="made of another table"):
        go_on(tastes(), sqlite_url, **words[ordered])
    assert go_on(tastes(), sqlite_url, **words[not ordered]).used > 0


def test_grown_totals_and_items_are_refused(sqlite_url):
    def totals(number):
        return pd.DataFrame(
            {
                "recipe": list(MEANS),
                "n": number,
                "taste": [number * mean for mean in MEANS.values()],
                "squares": [number * mean**2 + 6.0 for mean in MEANS.values()],
            }
        )

    asked = {"id": "recipe", "pulls": "n", "sum": "taste", "noise": sp.Normal(), "seed": 1}
    continue_analysis(sp.analyze(totals(25), **asked), totals(25), sqlite_url, "sums", epsilon=0.1)
    with pytest.raises(sp.InvalidInput, match="made of another table"):
        continue_analysis(sp.analyze(totals(30), **asked), totals(30), sqlite_url, "sums")
    go_on(tastes(8), sqlite_url, epsilon=0.1, item="day")
    assert go_on(tastes(8)[::-1], sqlite_url, item="day").used > 0
    with pytest.raises(sp.InvalidInput, match="made of another table"):
        go_on(tastes(9), sqlite_url, item="day")


def test_a_study_without_a_table_takes_none(sqlite_url):
    policy = sp.make_policy(
        "certified-independent", sp.Arms(ids=list(MEANS)), epsilon=0.1, delta=0.05, noise=sp.Normal()
    )
    sp.create_study(sqlite_url, "own", policy)
    with pytest.raises(sp.InvalidInput, match="made without a table"):
        go_on(tastes(), sqlite_url, "own")


def test_the_seed_is_that_of_the_first_call(sqlite_url):
    begun = go_on(tastes(), sqlite_url, epsilon=0.1)
    assert go_on(tastes(), sqlite_url, seed=None).used == begun.used
    with pytest.raises(sp.InvalidInput, match="order of seed 1, and you give 2"):
        go_on(tastes(), sqlite_url, seed=2)
    assert TableOrigin.of(begun.study.study_id).seed == 1


def test_a_second_study_of_a_table_is_warned_about(sqlite_url):
    assert go_on(tastes(), sqlite_url, "one", epsilon=0.1).others == ()
    second = go_on(tastes()[::-1], sqlite_url, "two", epsilon=0.1, seed=2)
    assert second.others == ("one",)
    assert "a study of this table already ('one'): one order of its rows is one try" in str(second)


def test_noise_that_values_decided_is_refused(sqlite_url, tmp_path):
    with pytest.raises(sp.InvalidInput, match="noise that you declare"):
        go_on(tastes(), sqlite_url, epsilon=0.1, noise=None)
    found = analysis(tastes(), noise=None)
    assert sp.check_analysis(found.to_dict(), tastes()) == []
    tastes().drop(columns="day").to_csv(tmp_path / "tastes.csv", index=False)
    words = ("analyze", str(tmp_path / "tastes.csv"), "--continue", sqlite_url, "lab", "--epsilon", "0.1")
    with pytest.raises(sp.InvalidInput, match="noise that you declare"):
        surepick(*words)
    code, shown, _ = surepick(*words, "--noise", "normal")
    assert code == 0
    assert f"Registration code: {sp.open_study(sqlite_url, 'lab').registration}." in shown


@pytest.mark.parametrize(
    ("asked", "how"),
    [
        ({}, "told in an order drawn with seed 1, given by whoever asked"),
        ({"order": "day"}, "told in the order of time, and rows of one time in an order drawn with seed 1"),
    ],
)
def test_the_certificate_says_which_rows_it_rests_on(sqlite_url, tmp_path, asked, how):
    study = go_on(tastes(), sqlite_url, epsilon=0.1, **asked).study
    while study.ask() is not None:
        ids = [name for name, number in zip(study.ids, study.missing, strict=True) for _ in range(max(number, 0))]
        spread = 0.5 * np.resize([1.0, -1.0], len(ids))
        study.tell(ids, [MEANS[name] for name in ids] + spread, accept_unusual="unasked")
    said = [one for one in study.certificate().assumptions if "rows of a table" in one]
    assert len(said) == 1
    assert how in said[0]
    assert "At most 75 of its measurements" in said[0]
    assert "noise" in said[0]
    file = tmp_path / "certificate.json"
    sp.write_certificate(study, file)
    assert surepick("verify", str(file), "--registered", study.registration)[0] == 0
    document = json.loads(file.read_text())
    assert said[0] in document["assumptions"]
    document["study_id"] = document["study_id"].replace(":1:user:", ":2:user:")
    document = {name: value for name, value in document.items() if name != "sha256"}
    checked = sp.verify_certificate(sealed(document))
    assert "assumptions" in " ".join(str(line) for line in checked.lines if not line.holds)
