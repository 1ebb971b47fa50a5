"""`abandon` and `close`: results that will never come."""

import pytest
from study_commands import IDS, MEANS, surepick, write_rows


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
