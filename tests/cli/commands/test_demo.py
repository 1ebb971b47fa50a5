"""`demo` answers as published."""

import json
import re
from pathlib import Path

import pytest
from command_line import ANSWER, ROUND, surepick


@pytest.fixture(scope="module")
def demo() -> dict:
    code, output, errors = surepick("demo", "--format", "json", "--epsilon", 0.2)
    assert (code, errors) == (0, "")
    return json.loads(output)


def test_the_demo_answers_as_published(demo):
    assert demo.keys() >= ANSWER | {"uniform_pulls", "success", "oracle_pulls", "true_gap"}
    assert all(row.keys() >= ROUND for row in demo["rounds"])
    assert (demo["verdict"], demo["success"], demo["epsilon"], demo["delta"]) == ("certified", True, 0.2, 0.05)
    assert demo["best_arm"].startswith(("7-", "1-", "2-", "9-"))
    assert demo["true_gap"] <= 0.2
    assert all(sentence.endswith(".") for sentence in demo["assumptions"])
    assert any("scale at most 1" in sentence for sentence in demo["assumptions"])


def test_the_demo_has_sixty_images_and_beats_uniform_sampling():
    code, output, _ = surepick("demo", columns=80)
    assert code == 0
    images = int(re.match(r"(\d+) images of handwritten digits", output)[1])
    assert images >= 60
    assert re.search(rf"^and {images - 20} more|^and {images - 10} more", output, re.MULTILINE)
    spent = number_after("Measurements spent: ", output)
    uniform = number_after("would need ", output)
    assert spent < uniform
    assert f"{uniform / spent:.1f} times as many" in output
    assert "certified" in output
    assert "The answer is right." in output


def number_after(words: str, text: str) -> int:
    return int(re.search(re.escape(words) + r"([\d,]+)", text)[1].replace(",", ""))


def test_the_demo_counts_its_own_rounds(demo):
    assert sum(row["pulls"] for row in demo["rounds"]) == demo["pulls"]
    assert [row["round"] for row in demo["rounds"]] == list(range(1, len(demo["rounds"]) + 1))
    left = [row["active"] for row in demo["rounds"]]
    assert left == sorted(left, reverse=True)
    assert (left[0], left[-1] < 60) == (60, True)
    told = [row for row in demo["rounds"] if row["value"] is not None]  # the others serve no candidate
    assert 3 <= len(told) < len(demo["rounds"])
    assert all(0 <= row["lower_bound"] <= row["value"] for row in told)


def test_the_demo_uses_the_default_policy(demo):
    assert demo["policy"]["name"] == "certified-linear"
    assert {row["dim"] for row in demo["rounds"]} == {60}  # nothing is assumed of the images


def test_the_seed_decides_the_demo(demo):
    again, other = (
        json.loads(surepick("demo", "--format", "json", "--epsilon", 0.2, "--seed", seed)[1]) for seed in (0, 1)
    )
    demo = {**demo, "seconds": 0}
    assert {**again, "seconds": 0} == demo
    assert {**other, "seconds": 0} != demo


def test_the_demo_writes_the_table_of_the_readme(tmp_path):
    code, output, errors = surepick("demo", "--table", tmp_path / "coffee.csv", "--format", "json")
    assert (code, json.loads(output), errors) == (0, {"file": str(tmp_path / "coffee.csv")}, "")
    said = (Path(__file__).parents[3] / "docs/examples/coffee.csv").read_bytes()
    assert (tmp_path / "coffee.csv").read_bytes() == said
