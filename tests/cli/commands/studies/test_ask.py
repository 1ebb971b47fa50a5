"""`ask`: what is leased, shown and written to a file."""

import subprocess

import pytest
from study_commands import FORMATS, IDS, read_rows, write_rows

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


@pytest.mark.parametrize("name", ["todo.xlsx", "todo"])
def test_a_file_of_no_known_kind_is_refused_before_anything_is_leased(paint, refused, name):
    for command in (("ask", paint.url, "paint", "--out"), ("export", paint.url, "paint", "--out")):
        assert "its name must end in .csv, .parquet or .jsonl" in refused(*command, paint.folder / name)
    assert paint.json("status")["out"] == []
