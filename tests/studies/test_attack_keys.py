"""Keys of answers and results, blocks and columns of keys, as an attacker or a spreadsheet writes them."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from study_commands import surepick
from together import of_each
from workbooks import write_xlsx

import surepick as sp
from surepick.cli.app import main
from surepick.errors import ContractError
from surepick.tables import write_table

ITEMS = [f"q{number}" for number in range(50)]
DRAWS = {"epsilon": 0.05, "delta": 0.05, "noise": "subgaussian:0.5"}


def of_items(**more) -> sp.Policy:
    asked = {"epsilon": 0.05, "delta": 0.05, "noise": sp.Bernoulli(), "items": ITEMS, "seed": 7, **more}
    return sp.make_policy("certified-items", sp.Arms(ids=["A", "B", "C"]), **asked)


def of_draws(ids=("A", "B", "C"), **more) -> sp.Policy:
    return sp.make_policy("certified-independent", sp.Arms(ids=ids), **{**DRAWS, **more})


@pytest.fixture
def refused(monkeypatch, capsys):
    """What the command says on standard error when it is refused, as a user meets it."""

    def run(*words) -> str:
        monkeypatch.setattr(sys, "argv", ["surepick", *map(str, words)])
        with pytest.raises(SystemExit) as end:
            main()
        assert end.value.code == 2
        return capsys.readouterr().err.partition("error: ")[2].strip()

    return run


def first_item(study) -> tuple[str, int]:
    """(id, index) of the first item that is asked."""
    name = study.ask().item_ids[0]
    return name, ITEMS.index(name)


def write(file: Path, rows: list[dict]) -> None:
    """The rows as a file of the kind that its name says."""
    if file.suffix == ".xlsx":
        write_xlsx(file, {"results": [list(rows[0]), *(list(row.values()) for row in rows)]})
    elif file.suffix == ".json":
        file.write_text(json.dumps(rows))
    else:
        write_table(file, {name: [row[name] for row in rows] for name in rows[0]})


# 1: a key of a test item is tied to its candidate


@pytest.mark.parametrize("spelling", ["item{}@zzz", "item{}@B", "item{}@", "item{}@A\u200b", "Item{}@A", "item0{}@A"])
def test_one_wrong_key_counts_no_answer_twice_and_takes_no_others_place(spelling):
    study = sp.Study(of_items())
    name, index = first_item(study)
    assert study.tell(["A"], [1.0], items=[name]).counted == 1
    with pytest.raises(sp.InvalidInput, match="Nothing of this call was stored"):
        study.tell(["A"], [0.0], keys=[spelling.format(index)])
    assert study.tell(["B"], [0.0], items=[name]).counted == 1
    assert study.tell(["A"], [1.0], keys=[f"item{index}@A"]).repeated == 1
    rest = study.free_part()
    assert study.tell(rest, [1.0] * rest.total).closed
    assert study.ask().total
    study.close()
    assert study.certificate().pulls == 2 + rest.total


def test_a_key_of_another_item_in_the_same_row_is_refused(tmp_path, refused):
    url = f"sqlite:///{tmp_path / 'lab.db'}"
    study = sp.create_study(url, "x", of_items())
    name, index = first_item(study)
    file = tmp_path / "answers.csv"
    file.write_text(f"id,item,key,reward\nA,{name},item{index}@B,1\n")
    said = refused("tell", url, "x", file)
    assert "is of a measurement of 'B', but the result is reported for 'A'" in said
    file.write_text(f"id,item,key,reward\nA,{name},item{index + 1}@A,1\n")
    assert "is not that of the item" in refused("tell", url, "x", file)
    assert study.progress().told == 0
    file.write_text(f"id,item,key,reward\nA,{name},my run 3,1\n")  # a key of one's own beside the item
    assert surepick("tell", url, "x", file)[0] == 0
    assert study.progress().told == 1


def test_a_table_with_a_row_too_many_is_refused_before_the_round_closes(tmp_path, refused):
    url, file = f"sqlite:///{tmp_path / 'lab.db'}", tmp_path / "answers.csv"
    study = sp.create_study(url, "x", of_items(first_batch=2))
    rows = [(name, int(key.partition("@")[0][4:])) for name, key in study.ask().keys()]  # noqa: SIM118
    good = [f"{name},item{item}@{name},1" for name, item in rows]
    for wrong in ("zzz", "", "B", "a"):
        file.write_text("\n".join(["id,key,reward", *good, f"A,item{rows[0][1]}@{wrong},0", ""]))
        assert "Nothing of this call was stored" in refused("tell", url, "x", file)
        assert study.progress().told == 0  # what fails with code 2 has stored nothing
    file.write_text("\n".join(["id,key,reward", *good, ""]))
    assert surepick("tell", url, "x", file)[0] == 0
    for command in ("ask", "certificate", "status", "close"):
        assert surepick(command, url, "x")[0] in (0, 3), command  # 3: not certified yet


def test_a_tell_that_is_stored_ends_well_though_the_next_plan_cannot_be_made(tmp_path, monkeypatch):
    url, file = f"sqlite:///{tmp_path / 'lab.db'}", tmp_path / "results.csv"
    study = sp.create_study(url, "x", of_draws())
    rows = [f"{name},k{place},1" for place, name in enumerate(study.ask().pulls())]
    file.write_text("\n".join(["id,key,reward", *rows, ""]))

    def broken(*_):
        raise ContractError("no number of pulls would help.")

    monkeypatch.setattr(type(study.policy), "ask", broken)
    code, said, noted = surepick("tell", url, "x", file)
    assert code == 0
    assert f"{len(rows)} results counted." in said
    assert "no number of pulls would help" in noted


# 3: the column of keys, in any spelling


HEADERS = ("key", "Key", "KEY", "keys", "Keys", " key ", "Key ", "ｋｅｙ", "\u00a0key", "\ufeffKey")
WRITTEN = [  # every spelling in one kind of file, and one in the others; all of all in the proofs
    pytest.param(header, ending, marks=() if ending == "csv" or header == HEADERS[-3] else pytest.mark.slow)
    for header in HEADERS
    for ending in ("csv", "jsonl", "parquet", "xlsx")
]


@pytest.mark.cases(7)
@pytest.mark.parametrize(("header", "ending"), WRITTEN)
def test_a_column_of_keys_is_found_however_its_name_is_written(header, ending, tmp_path):
    url, file = f"sqlite:///{tmp_path / 'lab.db'}", tmp_path / f"todo.{ending}"
    study = sp.create_study(url, "x", of_draws())
    rows = [{"id": name, header: key, "reward": 0.5} for name, key in study.lease(worker="anyone").keys()]  # noqa: SIM118
    write(file, rows)
    for counted in (f"{len(rows)} results counted", f"{len(rows)} results told before"):
        code, said, _ = surepick("tell", url, "x", file)
        assert code == 0
        assert counted in said


def test_two_columns_of_keys_are_refused(tmp_path, refused):
    url = f"sqlite:///{tmp_path / 'lab.db'}"
    sp.create_study(url, "x", of_draws()).ask()
    file = tmp_path / "results.csv"
    file.write_text("id,key,KEY,reward\nA,k1,k2,1\n")
    assert "has the columns 'key' and 'KEY', and one of them holds the keys" in refused("tell", url, "x", file)
    assert surepick("tell", url, "x", file, "--key", "KEY")[0] == 0


# 4: missing keys; 5: long numbers


@pytest.mark.cases(5)
@pytest.mark.parametrize("word", ["", " ", "NA", "nan", "NaN", "None", "null", "n/a", "#N/A"])
def test_a_word_for_no_key_in_a_table_is_none(word, tmp_path):
    url, file = f"sqlite:///{tmp_path / 'lab.db'}", tmp_path / "results.csv"
    sp.create_study(url, "x", of_draws()).ask()
    file.write_text(f"id,key,reward\nA,{word},1\nA,{word},1\nB,k,1\n")
    assert "3 results counted" in surepick("tell", url, "x", file)[1]


def test_missing_keys_of_pandas_are_none():
    pandas = pytest.importorskip("pandas")
    study = sp.Study(of_draws())
    study.ask()
    assert study.tell(["A", "A"], [1.0, 1.0], keys=[pandas.NA, pandas.NA]).counted == 2
    frame = pandas.DataFrame({"id": ["A", "A", "B"], "key": [7, None, None], "reward": [1.0, 1.0, 1.0]})
    for kind in ("Int64", "Float64", "float64", "string"):
        keys = frame["key"].astype("Int64").astype("string") if kind == "string" else frame["key"].astype(kind)
        study = sp.Study(of_draws())
        study.ask()
        assert study.tell(frame["id"], frame["reward"], keys).counted == 3
        assert study.tell(["A"], [1.0], ["7"]).repeated == 1


LONG = (12345678901234567, 12345678901234568)


@pytest.mark.parametrize("kind", ["parquet", "json", "xlsx", "xlsx of 16 digits"])
def test_long_numbers_as_keys_that_lost_digits_are_refused(kind, tmp_path, refused):
    url, file = f"sqlite:///{tmp_path / 'lab.db'}", tmp_path / f"results.{kind.partition(' ')[0]}"
    study = sp.create_study(url, "x", of_draws())
    study.ask()
    keys = [float(key) for key in LONG] if "16" not in kind else [1234567890123456.0, 1234567890123457.0]
    rows = [{"id": "A", "key": key, "reward": 1.0} for key in keys]
    write(file, rows)
    assert "of more digits than the file keeps" in refused("tell", url, "x", file)
    assert study.progress().told == 0


@pytest.mark.parametrize("ending", ["csv", "json", "parquet"])
def test_long_numbers_that_kept_their_digits_are_told_apart(ending, tmp_path):
    url, file = f"sqlite:///{tmp_path / 'lab.db'}", tmp_path / f"results.{ending}"
    sp.create_study(url, "x", of_draws()).ask()
    rows = [{"id": "A", "key": key, "reward": 1.0} for key in LONG]
    write(file, rows)
    assert "2 results counted" in surepick("tell", url, "x", file)[1]
    other = tmp_path / "again.csv"
    other.write_text("id,key,reward\n" + "".join(f"A,{key},1\n" for key in LONG))
    assert "2 results told before" in surepick("tell", url, "x", other)[1]


# 9: blocks


@of_each(
    ("one", "other"),
    [
        ("7", "7.0"),
        ("7", 7.0),
        ("7", 7),
        ("7", np.int64(7)),
        ("7", "07"),
        ("7", "007.0"),
        ("7", "7\u200b"),
        ("7", "+7"),
        ("7", "7,0"),
        ("1000", "1e3"),
        ("100000", "1E+05"),
        ("a b", "a\u00a0b"),
        ("a b", " a  b "),
        ("é", "e\u0301"),
    ],
)
@of_each("at_once", [True, False])
def test_a_block_has_one_spelling(one, other, at_once):
    study = sp.Study(of_draws(blocks="seed", once_a_block=True))
    study.ask()
    if not at_once:
        assert study.tell(["A"], [1.0], blocks=[one]).counted == 1
    with pytest.raises(sp.InvalidInput, match="is measured twice in"):
        study.tell(["A", "A"] if at_once else ["A"], [1.0] * (2 - (not at_once)), blocks=[one, other][not at_once :])
    assert study.tell(["B"], [1.0], blocks=[other]).counted == 1


@pytest.mark.parametrize(
    ("block", "said"),
    [
        (True, "a seed is True, a bool"),
        (np.False_, "a seed is np.False_, a bool"),
        (float("nan"), "has no seed"),
        (np.datetime64("NaT"), "has no seed"),
        ("nan", "has no seed"),
        ("\u200b", "has no seed"),
        ("1.10", "which other programs write 1.1"),
        ("1,234", "which is 1234 or 1.234"),
        (1e17, "binary digits"),
    ],
)
def test_what_names_no_block(block, said):
    study = sp.Study(of_draws(blocks="seed", once_a_block=True))
    study.ask()
    with pytest.raises(sp.InvalidInput) as refused:
        study.tell(["A"], [1.0], blocks=[block])
    assert said in str(refused.value)


def test_blocks_that_ask_gives_stay_apart_in_a_spreadsheet(tmp_path):
    """A name 1.10 would come back as 1.1: none is a number."""
    pandas = pytest.importorskip("pandas")
    url, file = f"sqlite:///{tmp_path / 'lab.db'}", tmp_path / "todo.csv"
    study = sp.create_study(url, "x", of_draws(blocks="plate", block_size=3, batch_size=60))
    batch = study.ask()
    study.tell(batch, [0.5] * batch.total)
    assert surepick("ask", url, "x", "--out", file)[0] == 0
    frame = pandas.read_csv(file)
    assert frame["plate"].nunique() >= 20
    frame["reward"] = 0.5
    frame.to_csv(file, index=False)
    assert surepick("tell", url, "x", file)[0] == 0
    study.close()
    assert study.log.in_blocks(sorted(set(frame["plate"])))


# 12: two columns or two fields of one name


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.json", '[{"id": "A", "reward": 0.5, "reward": 0.7}]'),
        ("a.json", '[{"id": "A", "key": "k", "reward": 0.5, "key": "l"}]'),
        ("a.jsonl", '{"id": "A", "reward": 0.5, "reward": 0.7}\n'),
    ],
)
def test_two_fields_of_one_name_are_refused(name, content, tmp_path, refused):
    url, file = f"sqlite:///{tmp_path / 'lab.db'}", tmp_path / name
    study = sp.create_study(url, "x", of_draws())
    study.ask()
    file.write_text(content)
    assert "stands in it twice" in refused("tell", url, "x", file)
    assert study.progress().told == 0


# ids as pandas writes them


@pytest.mark.parametrize(("given", "there"), [("1.0", "1"), ("2.00", "2"), (" 3", "3"), ("1e0", "1")])
def test_an_id_that_a_program_wrote_otherwise_is_named(given, there, tmp_path):
    study = sp.Study(of_draws(ids=["1", "2", "3"]))
    study.ask()
    words = f"1 ids are not arms of this study, the first is '{given}'. Did you mean '{there}'?"
    with pytest.raises(sp.InvalidInput, match=re.escape(words)):
        study.tell([given], [1.0])


def test_of_ids_that_read_alike_none_is_named():
    study = sp.Study(of_draws(ids=["1", "1.0", "x"]))
    study.ask()
    with pytest.raises(sp.InvalidInput) as refused:
        study.tell(["1.00"], [1.0])
    assert "there is" not in str(refused.value)
