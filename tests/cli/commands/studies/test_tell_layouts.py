"""`tell` of tables as people write them: the rule for numbers is that of every table."""

import csv
import io

import pytest
from study_commands import IDS, read_rows


def table(rows, delimiter=","):
    """A text of these rows."""
    lines = io.StringIO()
    csv.writer(lines, delimiter=delimiter).writerows(rows)
    return lines.getvalue()


@pytest.fixture
def told(paint):
    """Tells a text as a file; gives the rewards of the study by candidate, as exported, and what was noted."""

    def run(text, *words, name="results.csv"):
        path = paint.folder / name
        path.write_text(text, encoding="utf-8")
        code, _, err = paint("tell", path, *words)
        assert code == 0, err
        paint.done("export", "--out", paint.folder / "out.jsonl")
        rows = read_rows(paint.folder / "out.jsonl")
        return {row["id"]: row["sum"] for row in rows}, " ".join(err.split())

    return run


@pytest.mark.parametrize(
    ("cells", "meant", "note"),
    [
        (["TRUE", "FALSE", "TRUE", "FALSE", "TRUE"], [1, 0, 1, 0, 1], "we read words as numbers"),
        (["pass", "fail", "fail", "fail", "pass"], [1, 0, 0, 0, 1], "we read words as numbers"),
        (["0,5", "1", "0", "0,25", "0,125"], [0.5, 1, 0, 0.25, 0.125], "commas as decimal points"),
        (["1.0000000000000002", "0", "−0.0", "1", "1"], [1, 0, 0, 1, 1], ""),
    ],
)
def test_rewards_are_read_as_in_every_table(told, cells, meant, note):
    rewards, notes = told(table([["id", "reward"], *zip(IDS, cells, strict=True)], ";"))
    assert rewards == dict(zip(IDS, meant, strict=True))
    assert note in notes


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        (["1,234", "0"], "is '1,234' the number 1.234 or 1234"),
        (["passed", "failed"], "beside 'passed', is 'failed' a result"),
        (["fail", "fail"], "the reward 'fail' is not a number"),
        (["<0.5", "1"], "the reward '<0.5' is not a number"),
        (["true", "0.5"], "the reward 'true' is not a number"),
    ],
)
def test_rewards_with_two_meanings_are_refused(paint, refused, cells, words):
    path = paint.folder / "results.csv"
    path.write_text(table([["id", "reward"], *zip(IDS, cells, strict=False)]), encoding="utf-8")
    assert words in " ".join(refused("tell", paint.url, "paint", path).split())


def test_totals_of_other_names(paint):
    rows = [["id", "impressions", "clicks"], *([name, 2, 1] for name in IDS)]
    path = paint.folder / "totals.csv"
    path.write_text(table(rows), encoding="utf-8")
    assert paint("tell", path, "--pulls", "impressions", "--sum", "clicks")[0] == 0
    assert paint.json("status")["pulls"] == 10


def test_repeats_side_by_side(paint, refused):
    rows = [["id", "rep1", "rep2"], *([name, 0.5, "" if name == IDS[0] else 0.25] for name in IDS)]
    path = paint.folder / "wide.csv"
    path.write_text(table(rows), encoding="utf-8")
    code, _, err = paint("tell", path, "--reward", "rep1,rep2")
    assert (code, "1 of 10 cells for repeats are empty" in " ".join(err.split())) == (0, True)
    assert paint.json("status")["pulls"] == 9
    rows = [["id", "key", "rep1", "rep2"], [IDS[0], "k", 0.5, 0.5]]
    path.write_text(table(rows), encoding="utf-8")
    said = refused("tell", paint.url, "paint", path, "--reward", "rep1,rep2")
    assert "repeats side by side have neither keys nor constraints" in " ".join(said.split())


def test_ids_below_merged_cells(told):
    rows = [["reward", "id"], *([0.5, name] for name in IDS), [0.5, ""]]
    rewards, notes = told(table(rows), "--fill-down", "id")
    assert set(rewards) == set(IDS)
    assert "we fill 1 empty cell of column 'id'" in notes
