"""`export`: the results of the closed rounds as a table."""

import pytest
from study_commands import FORMATS, IDS, read_rows


@pytest.mark.parametrize("kind", FORMATS)
def test_an_export_holds_the_closed_rounds_and_reads_back_exactly(paint, kind):
    rewards = dict(zip(IDS, (0.1 + 0.2, 1 / 3, 5e-324, 1.0, 0.7), strict=True))
    paint.told([{"id": IDS[1], "reward": 0.125, "key": "old"}], "--as-prior", name="old.csv")
    out = paint.folder / f"results.{kind}"
    paint.done("export", "--out", out) if kind == "csv" else paint.json("export", "--out", out)
    path = paint.filled(rewards=rewards, name="todo.csv")
    paint.json("tell", path, "--worker", "lab-1")
    paint.told([{"id": IDS[3], "reward": 0.75}], name="open.csv")  # of the open round: not in the export
    assert paint.json("export", "--out", out) == {"study": "paint", "rows": 6, "file": str(out)}
    rows = read_rows(out)
    assert [(int(row["plan"]), row["status"], row["id"], row["key"]) for row in rows] == [
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
