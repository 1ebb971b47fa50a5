"""`status`, `list` and `migrate`: what is known of studies."""

import json

from apart import apart
from command_line import ended
from study_commands import read_rows, surepick, write_rows

from surepick.studies.logs.sql.log import SqlLog


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
    assert apart(ended, ["tell", paint.url, "paint", str(path)]) == 0
    assert "round 2; 0 of 5 pulls in; best of the closed rounds" in paint.done("status")


def test_what_is_proved_of_the_leader_and_of_the_others(lab):
    """From the first closed round, by each of the commands, in the same words."""
    lab.create("--policy", "action-elimination", "--epsilon", 0.1, "--noise", "subgaussian:0.12")
    unknown = lab.json("status")
    assert [unknown[name] for name in ("certified_gap", "confidence", "ruled_out")] == [None, None, None]
    said = []
    while len(said) < 3:
        lab.done("tell", lab.filled())
        status, answer = lab.json("status"), lab.json("recommend", code=3)
        assert answer.items() >= {name: status[name] for name in ("certified_gap", "confidence", "ruled_out")}.items()
        assert status["confidence"] == 0.95
        assert status["ruled_out"] == 5 - status["left"]
        said.append((status["certified_gap"], status["ruled_out"]))
    assert all(gap is not None for gap, _ in said)
    assert 1 < said[-1][1] < 5
    words = lab("recommend")[1]
    assert words.startswith("a b   not-yet: with 95% confidence at most ")
    assert words.endswith(" candidates are ruled out as the best.\n")
    assert words.removeprefix("a b   not-yet: ").rstrip() in lab.done("status")
    closed = lab.json("close")
    assert (closed["best_arm"], closed["certified_gap"], closed["ruled_out"]) == ("a b", *said[-1])
    assert words.removeprefix("a b   not-yet: ").rstrip() in closed["status"]


def test_the_list(lab):
    lab.done(
        "create",
        "--arms",
        write_rows(lab.folder / "arms.csv", [{"x": 1}, {"x": 2}]),
        "--noise",
        "bernoulli",
        "--epsilon",
        0.1,
    )
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
