"""Durable studies from the command line: from create to the certificate, and the ways in which a table is wrong."""

import csv
import importlib.util
import json
import sqlite3
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from typer.testing import CliRunner
from workbooks import csv_rows

import surepick as sp
from surepick.certificates.document import certificate_document
from surepick.cli.app import app, main
from surepick.studies.database import resume_study
from surepick.studies.logs.sql.log import SqlLog

IDS = ("a b", "c,d", 'e"f', "é/ü", "-x $(y)")
MEANS = dict(zip(IDS, (0.9, 0.2, 0.55, 0.1, 0.4), strict=True))
NOISE, EPSILON = "bounded:0:1", 0.8
FORMATS = ("csv", "parquet", "jsonl")


@dataclass(frozen=True)
class Lab:
    """A database, a folder for tables, and the study "paint" in it."""

    url: str
    folder: Path

    def __call__(self, command, *words) -> tuple[int, str, str]:
        """(exit code, standard output, standard error) of a command on the study, in this process."""
        return surepick(command, self.url, "paint", *words)

    def done(self, command, *words) -> str:
        """The standard output of a command that ends well."""
        code, output, _ = self(command, *words)
        assert code == 0, output
        return output

    def json(self, command, *words, code=0) -> dict:
        """The answer of a command that ends with this code."""
        found, output, _ = self(command, *words, "--format", "json")
        assert found == code
        return json.loads(output)

    def create(self, *options, ids=IDS) -> str:
        arms = write_rows(self.folder / "arms.csv", [{"sku": name, "x": place} for place, name in enumerate(ids)])
        words = ("--arms", arms, "--id", "sku", "--noise", NOISE, "--epsilon", EPSILON)
        return self.done("create", *words, *options)

    def told(self, rows, *words, name="results.jsonl", code=0) -> dict:
        """The receipt of these rows."""
        return self.json("tell", write_rows(self.folder / name, rows), *words, code=code)

    def filled(self, name="todo.csv", *words, rewards=MEANS) -> Path:
        """A file of leased measurements with the rewards filled in."""
        path = self.folder / name
        self.done("ask", "--out", path, *words)
        return write_rows(path, [row | {"reward": rewards[row["id"]]} for row in read_rows(path)])


def surepick(*arguments) -> tuple[int, str, str]:
    words = [str(argument) for argument in arguments]
    result = CliRunner(env={"COLUMNS": "80", "TERM": "dumb"}).invoke(app, words, catch_exceptions=False)
    return result.exit_code, result.stdout, result.stderr


def read_rows(path: Path) -> list[dict]:
    """A table read by other means than the library's."""
    if path.suffix == ".parquet":
        return pyarrow.parquet.read_table(path).to_pylist()
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return csv_rows(path)


def write_rows(path: Path, rows: list[dict]) -> Path:
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(pa.Table.from_pylist(rows), path)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    else:
        with path.open("w", encoding="utf-8", newline="") as lines:
            table = csv.DictWriter(lines, rows[0])
            table.writeheader()
            table.writerows(rows)
    return path


def by_hand() -> dict:
    """The certificate of the same study in memory."""
    arms = sp.Arms([[float(place)] for place in range(len(IDS))], IDS, columns=("x",))
    study = sp.Study(
        arms, sp.make_policy("certified-independent", arms, epsilon=EPSILON, delta=0.05, noise=sp.Bounded(0, 1))
    )
    while (plan := study.ask()) is not None:
        for name, pulls in plan.table():
            study.tell([name] * pulls, [MEANS[name]] * pulls)
    return certificate_document(study, "paint")


@pytest.fixture
def lab(sqlite_url, tmp_path) -> Lab:
    return Lab(sqlite_url, tmp_path)


@pytest.fixture
def paint(lab) -> Lab:
    lab.create()
    return lab


@pytest.fixture
def refused(monkeypatch, capsys):
    """What the command says on standard error when it ends with this code, as a user meets it."""

    def run(*words, code=2) -> str:
        monkeypatch.setattr(sys, "argv", ["surepick", *map(str, words)])
        with pytest.raises(SystemExit) as end:
            main()
        captured = capsys.readouterr()
        assert end.value.code == code, captured
        assert captured.err.count("error: ") == 1
        assert captured.err.rstrip().endswith((".", ")", ']".'))
        assert "Traceback" not in captured.err
        return captured.err.partition("error: ")[2]

    return run


# a whole study


def whole_study(lab: Lab, kind: str) -> None:
    """From create to the certificate, every file of this kind."""
    said = lab.create()
    assert "5 candidates, policy certified-independent" in said
    assert "Asked: one within 0.8 of the best, wrong with probability at most 0.05." in said
    code, output, _ = lab("certificate")
    assert (code, "No round is complete, so there is no answer yet." in output) == (3, True)
    for _ in range(100):
        asked = lab.json("ask")
        if asked["stopped"]:
            break
        assert all(row.keys() == {"id", "pulls"} for row in asked["table"])
        assert sum(row["pulls"] for row in asked["table"]) == asked["pulls"]
        path = lab.filled(f"todo.{kind}")
        receipt = lab.json("tell", path)
        assert (receipt["counted"], receipt["closed"]) == (asked["pulls"], True)
    assert lab.json("tell", path)["repeated"] == receipt["counted"]  # the same file again counts nothing
    assert asked["table"] == []
    assert lab.json("certificate") == by_hand()
    assert lab.json("recommend")["best_arm"] == "a b"
    assert lab.json("status")["verdict"] == "certified"
    assert lab("recommend")[:2] == (0, "a b   certified\n")
    assert "Recommended: a b   certified" in lab.done("certificate")
    assert "a b is the answer, certified." in lab.done("status")
    assert lab.done("ask").startswith("Nothing to measure. paint: done after ")


@pytest.mark.parametrize("kind", FORMATS)
def test_a_whole_study(lab, kind):
    whole_study(lab, kind)


def test_a_whole_study_on_postgresql(postgres_url, tmp_path):
    whole_study(Lab(postgres_url, tmp_path), "csv")


def test_minimise(lab):
    lab.create("--minimize")
    while not lab.json("ask")["stopped"]:
        lab.done("tell", lab.filled())
    answer = lab.json("certificate")
    assert (answer["best_arm"], answer["minimize"]) == ("é/ü", True)
    assert "smallest" in lab.done("certificate")


def test_composite_ids(lab):
    rows = [{"colour": colour, "size": size} for colour in ("red", "a,b") for size in ("01", "2.50")]
    arms = write_rows(lab.folder / "grid.csv", rows)
    lab.done("create", "--arms", arms, "--id", "colour,size", "--noise", NOISE)
    asked = [row["id"] for row in lab.json("ask")["table"]]
    assert asked == ["red/01", "red/2.50", "a,b/01", "a,b/2.50"]
    results = write_rows(lab.folder / "grid-results.csv", [row | {"gloss": 0.5} for row in rows])
    assert lab.json("tell", results, "--id", "colour,size", "--reward", "gloss")["counted"] == 4
    joined = lab.filled(rewards=dict.fromkeys(asked, 0.5))  # as ask has them
    assert lab.json("tell", joined)["counted"] == len(read_rows(joined))


def test_an_option_of_the_policy(lab, refused):
    arms = write_rows(lab.folder / "arms.csv", [{"sku": name, "x": 1} for name in IDS])
    words = ("--arms", arms, "--id", "sku", "--noise", NOISE)
    answer = lab.json("create", *words, "--option", "largest_batch=5")
    assert answer["policy"]["largest_batch"] == 5
    wrong = ("create", lab.url, "other", *words, "--option")
    assert "has no option 'largest_bath'; it knows dim," in refused(*wrong, "largest_bath=5")
    assert "write NAME=VALUE" in refused(*wrong, "largest_batch")
    assert "taken" in refused(*wrong, "largest_batch=many") or "number" in refused(*wrong, "largest_batch=many")
    assert "say what is known of a single measurement with --noise" in refused("create", lab.url, "o", "--arms", arms)
    assert surepick("list", lab.url)[1].count("certified-independent") == 1  # nothing was half made


# asking


def test_leases_are_shown_and_not_given_twice(paint):
    mine = paint.json("ask", "--worker", "lab-1", "--max-pulls", 2, "--lease", "30m")
    assert [row["id"] for row in mine["table"]] == ["a b", "c,d"]
    assert [row["key"] for row in mine["measurements"]] == ["p1.0@a b", "p1.0@c,d"]
    assert mine["worker"] == "lab-1"
    assert paint.json("ask", "--worker", "lab-1")["measurements"] == mine["measurements"]
    free = paint.json("ask")
    assert ([row["id"] for row in free["table"]], free["out"]) == (list(IDS[2:]), 2)
    text = paint.done("status")
    assert "  2 pulls with lab-1 until 20" in text
    assert "  3 pulls with nobody" in text
    status = paint.json("status")
    assert (status["free"], status["told"], status["asked"]) == (3, 0, 5)
    assert [(one["worker"], one["pulls"]) for one in status["out"]] == [("lab-1", 2)]
    paint.done("ask", "--worker", "lab-2")
    assert "Nothing is free now: the 5 missing pulls are out." in paint.done("ask")
    assert paint.json("ask", "--worker", "lab-3")["table"] == []


def test_what_to_type_next_can_be_typed(lab):
    lab.create()
    for command in (("ask",), ("ask", "--worker", "lab 2", "--out", lab.folder / "to do.csv")):
        line = lab.done(*command).partition("surepick tell ")[2].splitlines()[0]
        shell = ["sh", "-c", f"printf '%s\\n' {line.partition('   (')[0]}"]
        words = subprocess.run(shell, check=True, capture_output=True, text=True)
        assert words.stdout.splitlines()[:2] == [lab.url, "paint"]
    assert words.stdout.splitlines()[2:] == [str(lab.folder / "to do.csv"), "--worker", "lab 2"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--max-pulls", 0), "max_pulls is 0; it must be a whole number, 1 or more"),
        (("--lease", "soon"), "'soon' is not a duration; write a positive one, e.g. 30m"),
        (("--worker", " "), "give a name"),
        (("--out", "/nowhere/todo.csv"), "/nowhere/todo.csv cannot be written"),
    ],
)
def test_asking_for_nonsense(paint, refused, words, said):
    assert said in refused("ask", paint.url, "paint", *words)


# telling


def test_rows_without_a_reward_and_failed_ones(paint):
    path = paint.folder / "todo.csv"
    paint.done("ask", "--out", path)
    cells = dict(zip(IDS, ("0.5", "", " Failed ", "1e-1", "  "), strict=True))
    filled = write_rows(path, [row | {"reward": cells[row["id"]]} for row in read_rows(path)])
    text = paint.done("tell", filled)
    assert "2 results counted." in text
    assert "1 result failed: asked again." in text
    assert "2 results without a reward: left out, still to be measured." in text
    assert "2 of 5 pulls in" in text
    again = paint.json("ask")
    assert [row["id"] for row in again["table"]] == ['e"f']  # the two empty ones are leased still
    assert paint.json("tell", filled) == paint.json("tell", filled)  # a retry fails nothing twice
    assert paint.json("status")["free"] == 1


def test_a_table_without_any_result(paint):
    path = paint.folder / "todo.csv"
    paint.done("ask", "--out", path)
    assert "5 results without a reward: left out" in paint.done("tell", path)
    assert paint.json("status")["told"] == 0


@pytest.mark.parametrize("empty", [{"key": None}, {"key": ""}, {}])
def test_results_without_keys_all_count(paint, empty):
    rows = [{"id": name, "reward": 0.5} | empty for name in (*IDS[:3], IDS[0])]
    assert paint.told(rows)["counted"] == 4


def test_keys_in_a_part_of_the_rows(paint):
    rows = [{"id": IDS[0], "reward": 0.5, "key": key} for key in (7, None, None)]
    assert paint.told(rows)["counted"] == 3
    assert paint.told(rows) | {"stopped": False} == paint.told([*rows]) | {"stopped": False}
    receipt = paint.told([{"id": IDS[0], "reward": 0.5, "key": 7}])
    assert (receipt["counted"], receipt["repeated"]) == (0, 1)


def test_a_column_of_keys_of_another_name(paint, refused):
    rows = [{"id": name, "reward": 0.5, "serial": f"s-{name}"} for name in IDS[:2]]
    assert paint.told(rows, "--key", "serial")["counted"] == 2
    assert paint.told(rows, "--key", "serial")["repeated"] == 2
    path = paint.folder / "results.jsonl"
    assert "has no column 'seriall'" in refused("tell", paint.url, "paint", path, "--key", "seriall")


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"id": "a b", "reward": "high"}, "row 2: the reward 'high' is not a number (1 such rows)"),
        ({"id": "a b", "reward": "nan"}, "not finite"),
        ({"id": "a b", "reward": "7"}, "outside what was declared (bounded:0.0:1.0), the first is 7 of arm 'a b'"),
        ({"id": "zz", "reward": ".5"}, "1 ids are not arms of this study, the first is 'zz'"),
        ({"id": "", "reward": ".5"}, "row 2: the id (id) is empty"),
        ({"sku": "a b", "reward": ".5"}, "has no column 'id'; it has 'sku', 'reward'"),
        ({"id": "a b", "value": ".5"}, "has no column 'reward'; it has 'id', 'value'"),
        ({"id": "a b", "pulls": "2", "sum": "3"}, "the totals of 1 arms are outside bounded:0.0:1.0"),
        ({"id": "a b", "pulls": "x", "sum": "3"}, "column 'pulls' is not numeric"),
        ({"id": "a b", "pulls": "2", "sum": "1", "squares": "0.1"}, "squares smaller than their totals imply"),
    ],
)
def test_a_wrong_table_is_refused_whole(paint, refused, row, said):
    good = {**row, **{name: value for name, value in {"id": "c,d", "reward": ".5"}.items() if name in row}}
    path = write_rows(paint.folder / "wrong.csv", [row, good | ({"sum": "0.5", "pulls": "1"} if "sum" in row else {})])
    assert said in refused("tell", paint.url, "paint", path)
    assert paint.json("status")["told"] == 0


def test_a_key_told_again_with_another_value(paint, refused):
    paint.told([{"id": "a b", "reward": 0.5, "key": "k"}])
    path = write_rows(paint.folder / "other.csv", [{"id": "a b", "reward": 0.25, "key": "k"}])
    said = refused("tell", paint.url, "paint", path)
    assert "key 'k' was reported before with another value" in said
    assert "0.5" not in said  # it may belong to an open round


def test_totals(paint):
    rows = [{"id": name, "pulls": 2, "sum": 1.0, "squares": 0.5} for name in IDS]
    receipt = paint.told(rows)
    assert (receipt["counted"], receipt["closed"]) == (5, True)
    assert paint.json("status")["pulls"] == 10
    assert paint.told([{"id": "a b", "pulls": 1, "sum": 0.5}])["counted"] == 1  # squares are welcome, not needed


def test_prior_results_enter_nothing(paint, refused):
    text = paint.done("tell", write_rows(paint.folder / "old.csv", [{"id": "é/ü", "reward": 1.0}] * 30), "--as-prior")
    assert "30 results kept apart as prior: they enter no estimate and no certificate." in text
    assert "  30 prior results: kept, and not used" in paint.done("status")
    while not paint.json("ask")["stopped"]:
        paint.done("tell", paint.filled())
    assert paint.json("certificate") == by_hand()
    totals = write_rows(paint.folder / "totals.csv", [{"id": "é/ü", "pulls": 3, "sum": 3}])
    assert "takes single measurements, not totals" in refused("tell", paint.url, "paint", totals, "--as-prior")


def test_late_results(paint, refused):
    mine = paint.filled("mine.csv", "--worker", "lab-1")
    paint.done("abandon", "--reason", "independent-of-value")
    keyless = [{"id": row["id"], "reward": row["reward"]} for row in read_rows(mine)]
    text = paint.done("tell", mine)
    assert "5 results late: their round is closed; kept, and not used." in text
    for words in (("--plan", 1), ("--worker", "lab-1")):  # without keys, somebody must say of which round they are
        assert paint.told(keyless, *words)["late"] == 5
    assert paint.json("status")["late"] == 15
    assert "  15 results came late: kept, and not used" in paint.done("status")
    assert paint.json("status")["told"] == 0
    path = paint.folder / "results.jsonl"
    assert "plan is 9; the study has opened 2 plans so far" in refused("tell", paint.url, "paint", path, "--plan", 9)


def test_a_lease_that_ran_out_is_offered_again_and_both_results_count(paint):
    first = paint.filled("first.csv", "--worker", "lab-1", "--lease", "0.001s")
    second = paint.filled("second.csv", "--worker", "lab-2")
    assert read_rows(second)[0]["key"] == "p1.1@a b"
    rows = read_rows(first)[:1]
    assert paint.told(rows, name="one.csv")["counted"] == 1
    assert paint.json("tell", second)["counted"] == 5
    while not paint.json("ask")["stopped"]:
        paint.done("tell", paint.filled())
    sentences = " ".join(paint.json("certificate")["assumptions"])
    assert "asked again: 5;" in sentences
    assert "More results came than were asked, in 1 plan" in sentences


def test_what_somebody_holds_can_be_given_back(paint):
    paint.filled("zoe.csv", "--worker", "zoe")
    assert "Nothing is free now" in paint.done("ask")
    assert "5 measurements of zoe are free." in paint.done("release", "--worker", "zoe")
    assert "zoe holds nothing." in paint.done("release", "--worker", "zoe")
    assert paint.json("ask")["pulls"] == 5
    assert paint.json("release", "--worker", "zoe") == {"study": "paint", "worker": "zoe", "released": 0}


def test_a_filled_file_is_not_written_over(paint, refused):
    path = paint.filled("todo.csv", "--worker", "ann", "--max-pulls", 2)
    said = refused("ask", paint.url, "paint", "--worker", "bob", "--out", path)
    assert "has results that were not told (2 rows), and would be written over" in said
    paint.done("tell", path)
    assert paint.json("ask", "--worker", "bob", "--out", path)["pulls"] > 0  # all of it was told


@pytest.mark.parametrize("form", FORMATS)
def test_failed_rows_do_not_keep_a_file_from_being_asked_into_again(paint, form):
    path = paint.filled(f"todo.{form}", "--worker", "ann", "--max-pulls", 2)
    rows = read_rows(path)
    write_rows(path, [rows[0] | {"reward": "failed"}, rows[1] | {"reward": str(rows[1]["reward"])}])
    assert paint.json("tell", path, "--worker", "ann")["failed"] == 1
    again = paint.json("ask", "--worker", "ann", "--out", path)
    assert again["pulls"] > 0
    assert rows[0]["key"] not in {row["key"] for row in read_rows(path)}


def test_a_failure_that_was_not_told_is_not_written_over(paint, refused):
    path = paint.filled("todo.csv", "--worker", "ann", "--max-pulls", 1)
    write_rows(path, [row | {"reward": "failed"} for row in read_rows(path)])
    said = refused("ask", paint.url, "paint", "--worker", "ann", "--out", path)
    assert "has results that were not told (1 row), and would be written over" in said


def test_a_table_whose_keys_were_respelled_counts_no_result_twice(paint, refused):
    """As `sed 's/,p/, p/' told.csv` and friends do: round 1's results would fill and close round 2."""
    path = paint.filled("told.csv", "--worker", "ann")
    receipt = paint.json("tell", path, "--worker", "ann")
    assert (receipt["counted"], receipt["closed"]) == (5, True)
    text = path.read_text(encoding="utf-8")
    spaced = paint.folder / "spaced.csv"
    spaced.write_text(text.replace(",p1", ", p1"), encoding="utf-8")
    again = paint.json("tell", spaced, "--worker", "ann")
    assert (again["counted"], again["late"], again["repeated"]) == (0, 0, 5)
    for number, (old, new) in enumerate([(",p1.", ",P1."), (",p1.0@", ",p1.00@")]):
        changed = paint.folder / f"{number}.csv"
        changed.write_text(text.replace(old, new), encoding="utf-8")
        assert "looks like one that ask gave, and is not written as one" in refused("tell", paint.url, "paint", changed)
    assert paint.json("status")["told"] == 0


@pytest.mark.parametrize("form", FORMATS)
def test_a_key_in_a_file_is_the_text_that_stands_there(paint, refused, form):
    """A number of 20 digits is no float, and 7.0 is what a column of decimals makes of 7."""
    first, second = 2**63 - 25, 2**63 - 26
    rows = [{"id": name, "reward": 0.5, "key": key} for name, key in zip(IDS[:2], (first, second), strict=True)]
    assert paint.told(rows, name=f"big.{form}")["counted"] == 2
    assert paint.told(rows, name=f"again.{form}")["repeated"] == 2
    log = resume_study(paint.url, "paint").log
    assert set(log.recorded([str(first), str(second)])) == {str(first), str(second)}
    paint.told([{"id": IDS[2], "reward": 0.5, "key": "7"}], name="seven.csv")
    path = write_rows(paint.folder / f"decimal.{form}", [{"id": IDS[2], "reward": 0.5, "key": "7.0"}])
    assert "keys '7.0' and '7' are the same number" in refused("tell", paint.url, "paint", path)


@pytest.mark.parametrize("name", ["todo.xlsx", "todo"])
def test_a_file_of_no_known_kind_is_refused_before_anything_is_leased(paint, refused, name):
    for command in (("ask", paint.url, "paint", "--out"), ("export", paint.url, "paint", "--out")):
        assert "its name must end in .csv, .parquet or .jsonl" in refused(*command, paint.folder / name)
    assert paint.json("status")["out"] == []


def test_a_table_with_semicolons_is_read_and_said_to_be_one(paint):
    path = paint.folder / "excel.csv"
    path.write_text("id;key;reward\na b;k;0,5\n")
    assert paint.json("tell", path)["counted"] == 1


# abandoning and closing


@pytest.mark.parametrize(("reason", "verdict"), [("independent-of-value", "certified"), ("looked bad", "heuristic")])
def test_abandoning_and_what_the_reason_does(paint, reason, verdict):
    paint.told([{"id": name, "reward": MEANS[name]} for name in IDS[:4]])
    code, output, noted = paint("abandon", "--reason", reason, "--id", IDS[4])
    assert (code, "round 2; " in output) == (0, True)
    assert ("the answer of this study will be heuristic, not certified" in noted) == (verdict == "heuristic")
    while not paint.json("ask")["stopped"]:
        paint.done("tell", paint.filled())
    answer = paint.json("certificate", code=0 if verdict == "certified" else 3)
    assert answer["verdict"] == verdict
    sentences = " ".join([*answer["assumptions"], answer["reason"]])
    words = (
        "Plans closed with results missing: 1;" if verdict == "certified" else "A plan was closed short ('looked bad')"
    )
    assert words in sentences
    assert paint("recommend")[0] == (0 if verdict == "certified" else 3)


def test_closing_early(paint, refused):
    paint.done("tell", paint.filled())
    paint.told([{"id": "a b", "reward": 0.5}])
    text = paint.done("close", "--reason", "no more paint")
    assert "closed early (no more paint) after 1 round; best of the closed rounds a b, " in text
    assert paint.done("close", "--reason", "another") == text  # the first reason stays
    assert "Nothing to measure. paint: closed early" in paint.done("ask")
    assert paint.json("ask")["table"] == []
    code, output, _ = paint("certificate")
    assert (code, "(no more paint)" in output) == (3, True)
    assert "The next batch would have taken 4 more measurements" in output
    assert paint.json("certificate", code=3)["pulls"] == 5  # the open round is not used
    status = paint.json("status")
    assert (status["closed_early"], status["stopped"]) == (True, True)
    path = write_rows(paint.folder / "more.csv", [{"id": "a b", "reward": 0.5}])
    assert "the study was closed on " in refused("tell", paint.url, "paint", path)
    assert paint.json("tell", path, "--plan", 2)["late"] == 1
    assert "closed early" in surepick("list", paint.url)[1]


def test_abandoning_when_nothing_is_open(paint, refused):
    paint.done("close")
    assert "the study was closed on " in refused("abandon", paint.url, "paint", "--reason", "x")


# knowing


def test_a_study_whose_number_of_rounds_is_known(lab):
    lab.create("--policy", "linear-embedding", "--features", "x", "--norm-bound", 1, "--epsilon", 0.3)
    assert "round 1 of at most 2, part 1 of 8; 5 of 5 candidates left; 0 of " in lab.done("status")
    assert lab.json("status")["most_rounds"] == 2


def test_the_pace_and_the_waiting_round(paint, monkeypatch):
    path = paint.filled()
    paint.told(read_rows(path)[:2], name="part.csv")
    assert "2 of 5 pulls in; at this pace done by 20" in paint.done("status")
    assert paint.json("status")["done_by"] is not None

    def killed(self, decision):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(SqlLog, "add_decision", killed)
        assert paint("tell", path)[0] != 0
    assert "all 5 pulls in, to be judged by the next command that needs it" in paint.done("status")
    assert paint.json("status")["told"] == 5
    assert "round 2; " in paint.done("tell", path)  # repeated, and judged after all


def test_status_sees_what_another_process_told(paint):
    path = paint.filled()
    assert "0 of 5 pulls in" in paint.done("status")
    command = [sys.executable, "-m", "surepick", "tell", paint.url, "paint", str(path)]
    told = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "5 results counted." in told.stdout
    assert "round 2; 5 of 5 candidates left; 0 of 5 pulls in; best of the closed rounds" in paint.done("status")


def test_the_list(lab):
    lab.done("create", "--arms", write_rows(lab.folder / "arms.csv", [{"x": 1}, {"x": 2}]), "--noise", "bernoulli")
    long = "a name that is much longer than a narrow terminal would like it to be, " * 2
    arms = write_rows(lab.folder / "arms.csv", [{"x": 1}, {"x": 2}, {"x": 3}])
    surepick("create", lab.url, long, "--arms", arms, "--noise", "subgaussian:0.5", "--epsilon", 0.7)
    text = surepick("list", lab.url)[1]
    assert long.strip() in text  # a name that is cut could not be typed
    studies = json.loads(surepick("list", lab.url, "--format", "json")[1])["studies"]
    assert [(one["name"], one["candidates"], one["epsilon"], one["verdict"]) for one in studies] == [
        (long.strip(), 3, 0.7, "not-yet"),
        ("paint", 2, 0.1, "not-yet"),
    ]


def test_migrating_what_is_new_already(paint):
    code, text, _ = surepick("migrate", paint.url)
    assert (code, text.endswith("already; nothing was changed.\n")) == (0, True)
    answer = json.loads(surepick("migrate", paint.url, "--format", "json")[1])
    assert answer["before"] == answer["now"]


# exporting


@pytest.mark.parametrize("kind", FORMATS)
def test_an_export_holds_the_closed_rounds_and_reads_back_exactly(paint, kind):
    rewards = dict(zip(IDS, (0.1 + 0.2, 1 / 3, 5e-324, 1.0, 0.7), strict=True))
    paint.told([{"id": IDS[1], "reward": 0.125, "key": "old"}], "--as-prior", name="old.csv")
    out = paint.folder / f"results.{kind}"
    paint.done("export", "--out", out) if kind == "csv" else paint.json("export", "--out", out)
    path = paint.filled(rewards=rewards, name="todo.csv")
    paint.json("tell", path, "--worker", "lab-1")
    paint.told([{"id": IDS[0], "reward": 0.75}], name="open.csv")  # of the open round: not in the export
    assert paint.json("export", "--out", out) == {"study": "paint", "rows": 6, "file": str(out)}
    rows = read_rows(out)
    assert [(int(row["plan"]), row["standing"], row["id"], row["key"]) for row in rows] == [
        (0, "prior", IDS[1], "old"),
        *((1, "counted", name, f"p1.0@{name}") for name in IDS),
    ]
    assert [float(row["sum"]) for row in rows] == [0.125, *rewards.values()]
    assert [float(row["squares"]) for row in rows] == [0.125**2, *(value**2 for value in rewards.values())]
    assert {row["source"] for row in rows[1:]} == {"lab-1"}
    assert {int(row["pulls"]) for row in rows} == {1}
    assert all(row["told_at"].endswith("+00:00") for row in rows)


def test_an_export_of_nothing(paint):
    for kind in FORMATS:
        assert paint.json("export", "--out", paint.folder / f"none.{kind}")["rows"] == 0


# exit codes


@pytest.mark.parametrize(
    "words",
    [
        ("ask",),
        ("status",),
        ("certificate",),
        ("export", "--out", "x.csv"),
        ("run-study", "--measure", "x {id}"),
    ],
)
def test_without_the_extra_the_pip_command_is_named(paint, refused, monkeypatch, words):
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "sqlalchemy" else found(name, *rest)
    )
    said = 'sqlalchemy, which is absent: pip install "surepick[studies]".'
    assert said in refused(words[0], paint.url, "paint", *words[1:])
    for command in ("list", "migrate"):
        assert said in refused(command, paint.url)
    arms = paint.folder / "arms.csv"
    assert said in refused("create", paint.url, "new", "--arms", arms, "--noise", "bernoulli")


def test_bad_addresses_and_names(paint, refused):
    absent = f"sqlite:///{paint.folder / 'absent.db'}"
    assert "start a study with `surepick create`" in refused("status", absent, "paint")
    assert not (paint.folder / "absent.db").exists()
    assert "has no study 'pant'; it has 'paint'." in refused("status", paint.url, "pant")
    assert "is not the address of a database; write sqlite:///FILE" in refused("list", "lab.db")
    assert "SQLite or PostgreSQL, not in 'mysql'" in refused("list", "mysql://x/y")
    arms = paint.folder / "arms.csv"
    taken = refused("create", paint.url, "paint", "--arms", arms, "--id", "sku", "--noise", NOISE)
    assert "has a study 'paint' already" in taken


def test_a_damaged_database_is_a_storage_failure(paint, refused):
    paint.done("tell", paint.filled())
    file = paint.url.removeprefix("sqlite:///")
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE observation SET sum = 0.25 WHERE arm = 0")
    connection.close()
    for command in ("certificate", "recommend"):
        assert "one of the results of plan 1 is not what was stored" in refused(command, paint.url, "paint", code=1)
    Path(file).write_bytes(b"not a database " * 100)
    for beside in ("-wal", "-shm"):
        Path(file + beside).unlink(missing_ok=True)
    assert "this is not a SQLite database" in refused("status", paint.url, "paint", code=1)


def test_a_password_is_not_printed(lab):
    from surepick.cli.open_study import command_line

    line = command_line("ask", "postgresql+psycopg://ann:secretword@host/lab?password=secretword", "my study")
    assert "secretword" not in line
    assert line.endswith("'my study'")
