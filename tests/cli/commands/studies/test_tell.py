"""`tell`: tables of results, their keys, totals and rows without a reward."""

import pytest
from study_commands import FORMATS, IDS, by_hand, read_rows, write_rows

from surepick.studies.database import resume_stored_study


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


@pytest.mark.cases(5)
@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"id": "a b", "reward": "high"}, "row 2: the reward 'high' is not a number (1 such rows)"),
        ({"id": "a b", "reward": "nan"}, "not finite"),
        ({"id": "a b", "reward": "7"}, "outside what was declared (bounded:0.0:1.0), the first is 7 of arm 'a b'"),
        ({"id": "zz", "reward": ".5"}, "1 ids are not arms of this study, the first is 'zz'"),
        ({"id": "", "reward": ".5"}, "row 2: the id (id) is empty"),
        ({"colour": "a b", "reward": ".5"}, "has no column 'id'; it has 'colour', 'reward'"),
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
    certificate = paint.json("certificate")
    assert certificate == by_hand(certificate["study_id"])
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
    log = resume_stored_study(paint.url, "paint").log
    assert set(log.recorded([str(first), str(second)])) == {str(first), str(second)}
    paint.told([{"id": IDS[2], "reward": 0.5, "key": "7"}], name="seven.csv")
    assert paint.told([{"id": IDS[2], "reward": 0.5, "key": "7.0"}], name=f"decimal.{form}")["repeated"] == 1
    path = write_rows(
        paint.folder / f"both.{form}", [{"id": IDS[2], "reward": 0.5, "key": key} for key in ("8", "8.0")]
    )
    assert "keys '8' and '8.0' are the same number" in refused("tell", paint.url, "paint", path)


def test_a_table_with_semicolons_is_read_and_said_to_be_one(paint):
    path = paint.folder / "excel.csv"
    path.write_text("id;key;reward\na b;k;0,5\n")
    assert paint.json("tell", path)["counted"] == 1
