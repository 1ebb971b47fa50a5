"""Studies of a finite set of test items: by two workers, in a database, up to a verified certificate."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from databases import first_on
from item_studies import item_table
from study_commands import surepick

import surepick as sp
from surepick.certificates.document import SCHEMA
from surepick.studies.audit import export_results
from surepick.tables.reading import read_table

SCORES = item_table(4, 60, seed=4)
NAMES = ("a", "b", "c", "d")
ITEMS = [f"q{number}" for number in range(60)]
ASKED = {"epsilon": 0.1, "delta": 0.1, "noise": "bernoulli", "items": ITEMS, "growth": 1.0, "first_batch": 4}


def policy(**changes: object) -> sp.Policy:
    return sp.make_policy("certified-items", sp.Arms(ids=NAMES), **{**ASKED, "seed": 3, **changes})


def scores(ids: list[str], items: list[str]) -> list[float]:
    return [float(SCORES[NAMES.index(name), ITEMS.index(item)]) for name, item in zip(ids, items, strict=True)]


def answered(batch: sp.Batch) -> list[float]:
    return scores(batch.pulls(), list(batch.item_ids))


@first_on("postgresql")
def test_two_workers_answer_whole_candidates_and_the_certificate_verifies(database_url, tmp_path):
    sp.create_study(database_url, "eval", policy())
    while not sp.open_study(database_url, "eval").stopped:
        study = sp.open_study(database_url, "eval")
        first = study.lease(5, worker="one")
        second = sp.open_study(database_url, "eval").lease(worker="two")
        assert not set(first.pulls()) & set(second.pulls())
        assert {first.pulls().count(name) for name in first.pulls()} == {int(first.counts.max())}
        again = sp.open_study(database_url, "eval").lease(worker="one")
        assert again.keys() == first.keys()
        study.tell(first.pulls()[:3], answered(first)[:3], [key for _, key in first.keys()][:3], worker="one")  # noqa: SIM118
        rest = sp.open_study(database_url, "eval").lease(worker="one")
        assert rest.keys() == first.keys()[3:]
        study.tell(rest, answered(rest))
        if second.total:
            study.tell(second, answered(second))
    study = sp.open_study(database_url, "eval")
    alone = sp.simulate(policy(), sp.environments.recorded_answers(SCORES, NAMES))
    assert study.certificate().pulls == alone.pulls
    assert study.certificate().best_arm == alone.best_arm == "a"
    file = sp.write_certificate(study, tmp_path / "certificate.json")
    checked = sp.verify_certificate(file, registered=study.registration)
    assert checked.holds
    document = json.loads(file.read_text())
    assert document["items"] == {"number": 60, "sha256": sp.Items(ITEMS).digest, "seed": 3, "seed_by": "user"}
    pytest.importorskip("jsonschema").validate(document, json.loads(SCHEMA.read_text()))
    assert sp.write_report(study, tmp_path / "report.html", forecast_up_to=0).stat().st_size > 10_000
    assert export_results(study, tmp_path / "answers.csv") == study.certificate().pulls
    answers = read_table(tmp_path / "answers.csv")
    keys = [
        f"item{ITEMS.index(item)}@{name}" for item, name in zip(answers.text("item"), answers.text("id"), strict=True)
    ]
    assert list(answers.text("key")) == keys


def test_an_answer_that_does_not_count_keeps_its_item(stored_at, tmp_path):
    study = sp.create_study(stored_at, "eval", policy())
    study.tell_prior(["a"], [1.0], ["item7@a"])
    assert study.log.recorded(["item7@a"]) == {}
    batch = study.ask()
    study.tell(batch, answered(batch))
    export_results(sp.open_study(stored_at, "eval"), tmp_path / "answers.csv")
    answers = read_table(tmp_path / "answers.csv")
    assert (answers.text("key")[0], answers.text("item")[0]) == ("unused item7@a", "q7")


@pytest.fixture(scope="module")
def document(tmp_path_factory) -> dict:
    run = sp.simulate(policy(), sp.environments.recorded_answers(SCORES, NAMES))
    return json.loads(sp.write_certificate(run.study, tmp_path_factory.mktemp("file") / "certificate.json").read_text())


def altered(document: dict, change: object, tmp_path: object) -> sp.certificates.verify.Verification:
    copy = json.loads(json.dumps(document))
    change(copy)
    file = tmp_path / "altered.json"
    file.write_text(json.dumps(copy))
    return sp.verify_certificate(file)


def a_better_score(document: dict) -> None:
    look = document["rounds"][0]["looks"][0]
    row = look["answers"]["scores"].index(0.0)
    look["answers"]["scores"][row] = 1.0


def another_item(document: dict) -> None:
    look = document["rounds"][0]["looks"][0]
    look["answers"]["items"][0] = next(item for item in range(60) if item not in look["answers"]["items"])


def swapped_scores(document: dict) -> None:
    """Two answers of one candidate: the totals stay the same."""
    answers = document["rounds"][-1]["looks"][-1]["answers"]
    mine = [row for row, arm in enumerate(answers["arms"]) if arm == answers["arms"][0]]
    low, high = (next(row for row in mine if answers["scores"][row] == score) for score in (0.0, 1.0))
    answers["scores"][low], answers["scores"][high] = 1.0, 0.0


def another_seed(document: dict) -> None:
    document["items"]["seed"] = 4


def another_chooser(document: dict) -> None:
    document["items"]["seed_by"] = "program"


def another_start(document: dict) -> None:
    document["rounds"][-1]["looks"][-1]["first_items"][0] = 1


@pytest.mark.parametrize(
    "change", [a_better_score, another_item, swapped_scores, another_seed, another_chooser, another_start]
)
def test_an_altered_answer_is_found(document, change, tmp_path):
    assert altered(document, lambda _: None, tmp_path).holds
    assert not altered(document, change, tmp_path).holds


def test_the_commands_take_answers_by_item(sqlite_url, tmp_path):
    (tmp_path / "arms.csv").write_text("id\n" + "\n".join(NAMES))
    (tmp_path / "items.csv").write_text("item\n" + "\n".join(ITEMS))
    goal = ["--noise", "bernoulli", "--epsilon", ".1", "--delta", ".1", "--seed", "3"]
    more = ["--option", "growth=1", "--option", "first_batch=4"]
    study = [sqlite_url, "eval"]
    named = ["--arms", str(tmp_path / "arms.csv"), "--id", "id", "--items", str(tmp_path / "items.csv")]
    code, said, errors = surepick("create", *study, *named, *goal, *more)
    assert code == 0, errors
    assert sp.open_study(*study).policy == policy()
    code, said, _ = surepick("ask", *study)
    assert "Items: " in said
    assert "id, item and reward" in said
    asked = json.loads(surepick("ask", *study, "--format", "json")[1])["measurements"]
    assert len(asked) == 16
    rows = [{"id": row["id"], "item": row["item"], "reward": scores([row["id"]], [row["item"]])[0]} for row in asked]
    write(tmp_path / "half.csv", rows[:9])
    write(tmp_path / "all.csv", rows)
    assert surepick("tell", *study, str(tmp_path / "half.csv"))[0] == 0
    code, said, _ = surepick("tell", *study, str(tmp_path / "all.csv"))
    assert "9 results told before" in said
    assert sp.open_study(*study).progress().plan == 2
    write(tmp_path / "odd.csv", [{"id": "a", "item": "q77", "reward": 1.0}])
    with pytest.raises(sp.InvalidInput, match="'q77'"):
        surepick("tell", *study, str(tmp_path / "odd.csv"))
    with pytest.raises(sp.InvalidInput, match="--items has no meaning"):
        surepick("create", sqlite_url, "other", *named, *goal, "--policy", "certified-independent")


def write(path: object, rows: list[dict]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def test_a_study_of_draws_knows_no_items(sqlite_url):
    arms = sp.Arms(ids=NAMES)
    made = sp.make_policy("certified-independent", arms, epsilon=0.1, delta=0.1, noise="bernoulli")
    study = sp.create_study(sqlite_url, "draws", made)
    assert study.ask().items is None
    assert np.all(study.ask().counts > 0)
    with pytest.raises(sp.InvalidInput, match="report 1 - score"):
        sp.create_study(sqlite_url, "small", policy(), minimize=True)
