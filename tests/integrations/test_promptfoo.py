"""Results of promptfoo, in the form that its documentation and its types give (version 3)."""

import json
from pathlib import Path

import pytest
from study_commands import surepick

from surepick.integrations.promptfoo import items_of

PROVIDERS = {"large": "openai:chat:large", "small": "openai:chat:small"}
QUESTIONS = [f"What is twice {i}?" for i in range(12)]


def result(provider: str, question: str, **changes) -> dict:
    """One result as promptfoo writes it."""
    number = QUESTIONS.index(question) if question in QUESTIONS else 99
    right = provider == "large" or number % 3 == 0
    variables = {"question": question, "expected": str(2 * number)}
    return {
        "promptIdx": list(PROVIDERS).index(provider),
        "testIdx": number,
        "testCase": {"vars": variables, "assert": [{"type": "equals", "value": "{{expected}}"}], "options": {}},
        "promptId": "0f3c",
        "provider": {"id": PROVIDERS[provider], "label": provider},
        "prompt": {"raw": question, "label": "{{question}}"},
        "vars": variables,
        "response": {"output": str(2 * number) if right else "?"},
        "failureReason": 0 if right else 1,
        "success": right,
        "score": int(right),
        "namedScores": {"exact": float(right), "style": 0.5},
        "latencyMs": 3,
        **changes,
    }


def written(path: Path, results: list[dict]) -> Path:
    stats = {"successes": 0, "failures": 0, "errors": 0}
    inner = {"version": 3, "timestamp": "2026-11-23T17:00:00Z", "prompts": [], "results": results, "stats": stats}
    path.write_text(json.dumps({"evalId": "eval-1", "results": inner, "config": {}}), encoding="utf-8")
    return path


class Lab:
    """A study whose items are the tests of a file of results."""

    def __init__(self, url: str, folder: Path) -> None:
        self.study, self.folder = (url, "models"), folder
        self.whole = written(folder / "whole.json", [result("small", question) for question in QUESTIONS])
        (folder / "models.csv").write_text("id\nlarge\nsmall")
        words = ("--arms", folder / "models.csv", "--id", "id", "--items", self.whole, "--noise", "bernoulli")
        assert surepick("create", *self.study, *words, "--epsilon", "0.05")[0] == 0

    def plan(self, name: str) -> dict[str, list[dict]]:
        """What promptfoo would be given: provider -> its tests."""
        out = self.folder / name
        code, said, error = surepick("ask", *self.study, "--out", out, "--as", "promptfoo")
        assert code == 0, said + error
        return {file.stem: json.loads(file.read_text()) for file in out.iterdir()} if out.exists() else {}

    def results(self, plan: dict[str, list[dict]]) -> list[dict]:
        return [result(name, test["vars"]["question"]) for name, tests in plan.items() for test in tests]

    def tell(self, path: Path, *words) -> dict:
        code, said, error = surepick("tell", *self.study, path, "--as", "promptfoo", *words, "--format", "json")
        assert code == 0, error
        return json.loads(said)


@pytest.fixture
def lab(sqlite_url, tmp_path) -> Lab:
    return Lab(sqlite_url, tmp_path)


def test_a_whole_study_by_files_ends_with_a_certificate_that_verifies(lab, tmp_path):
    assert items_of(lab.whole)[1] == '{"expected": "2", "question": "What is twice 1?"}'
    for number in range(30):
        plan = lab.plan(f"round-{number}")
        if not plan:
            break
        results = lab.results(plan)
        file = written(tmp_path / f"answers-{number}.json", results)
        assert lab.tell(file)["counted"] == len(results)
        again = lab.tell(file) if number == 0 else None
        assert again is None or (again["counted"], again["repeated"]) == (0, len(results))
    code, said, _ = surepick("certificate", *lab.study, "--out", tmp_path / "certificate.json")
    assert code == 0
    assert "large" in said
    assert surepick("verify", tmp_path / "certificate.json")[0] == 0


def test_an_error_is_no_score_of_0(lab, tmp_path):
    first, *rest = lab.results(lab.plan("first"))
    broken = first | {"failureReason": 2, "score": 0, "success": False, "error": "rate limit"}
    receipt = lab.tell(written(tmp_path / "answers.json", [broken, *rest]))
    assert (receipt["counted"], receipt["empty"]) == (len(rest), 1)


def test_a_named_score_counts_where_it_is_asked_for(lab, tmp_path):
    results = lab.results(lab.plan("first"))
    exact = [one | {"score": 0.5} for one in results]
    assert lab.tell(written(tmp_path / "answers.json", exact), "--metric", "exact")["counted"] == len(results)


HOSTILE = {
    "no number": ({"score": None}, "result 1: score is None; the score"),
    "NaN": ({"score": float("nan")}, "result 1: score is nan; the score"),
    "above 1": ({"score": 2}, "result 1: score is 2; the score"),
    "changed": (
        {"testCase": {"vars": {"question": QUESTIONS[0], "expected": "1"}}},
        "result 1: a test with the variables",
    ),
    "no variables": ({"testCase": {}}, "result 1, testCase has no field 'vars' as promptfoo writes it"),
    "no test": ({"testCase": 3}, "result 1 has no field 'testCase'"),
    "of before": ({"failureReason": None}, "result 1 has no field 'failureReason'"),
    "another provider": ({"provider": {"id": "x", "label": "y"}}, "result 1: 'y' is no candidate of this study"),
    "no provider": ({"provider": "openai"}, "result 1 has no field 'provider'"),
}


@pytest.mark.cases(5)
@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_results_are_refused_with_their_number(lab, refused, tmp_path, kind):
    changes, said = HOSTILE[kind]
    first, *rest = lab.results(lab.plan("first"))
    file = written(tmp_path / "answers.json", [first | changes, *rest])
    found = refused("tell", *lab.study, file, "--as", "promptfoo")
    assert found.startswith(f"{file}, ")
    assert said in found


def test_what_cannot_be_done_is_refused_with_a_sentence(lab, refused, tmp_path):
    results = lab.results(lab.plan("first"))
    tell = ("tell", *lab.study)
    two = written(tmp_path / "two.json", [results[0], results[0] | {"promptIdx": 5}, *results[1:]])
    assert "answered several prompts, and an item is answered once" in refused(*tell, two, "--as", "promptfoo")
    whole = written(tmp_path / "answers.json", results)
    assert "has no metric 'f1'; there is 'exact', 'style'." in refused(
        *tell, whole, "--as", "promptfoo", "--metric", "f1"
    )
    assert "--filter is for --as lm-eval" in refused(*tell, whole, "--as", "promptfoo", "--filter", "x")
    (tmp_path / "broken.json").write_text('{"results": {"results": [')
    assert "is not JSON" in refused(*tell, tmp_path / "broken.json", "--as", "promptfoo")
    (tmp_path / "table.json").write_text('[{"id": 1}]')
    assert "has no list results.results" in refused(*tell, tmp_path / "table.json", "--as", "promptfoo")
