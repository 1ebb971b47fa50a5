"""Files of lm-evaluation-harness, written by it (tests/helpers/harness_models.py): plans out, answers in."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import harness_models
import pytest
from study_commands import surepick

from surepick.errors import InvalidInput
from surepick.integrations.answers import Expected
from surepick.integrations.lm_eval import items_of, read_answers, write_samples
from surepick.studies.ledger import Batch

FILES = Path(__file__).parents[1] / "fixtures/lm_eval"
MODELS = ("lab/large", "lab/medium", "lab/small")
ITEMS = items_of(FILES / "whole")
DIGITS_FILTER = ("--filter", "digits")


def sample_file(model: str, kind: str = "whole") -> Path:
    (file,) = (FILES / kind / model.replace("/", "__")).iterdir()
    return file


def lines_of(model: str) -> list[str]:
    return sample_file(model).read_text(encoding="utf-8").splitlines()


class HarnessFolder:
    """A study, and the harness: it answers a plan with the lines that it wrote when it ran the whole task."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url, self.folder, self.answers = url, folder, folder / "answers"
        (folder / "models.csv").write_text("id\n" + "\n".join(MODELS))

    def __call__(self, command, *words) -> tuple[int, str, str]:
        return surepick(command, self.url, "models", *words)

    def create(self, items=FILES / "whole") -> str:
        words = ("--arms", self.folder / "models.csv", "--id", "id", "--items", items, "--noise", "bernoulli")
        code, said, error = self("create", *words, "--epsilon", "0.05", "--seed", "2")
        assert code == 0, said + error
        return said

    def plan(self, name: str) -> dict[str, dict[str, list[int]]]:
        """What the harness would be given: model -> the JSON of its file."""
        out = self.folder / name
        code, said, error = self("ask", "--out", out, "--as", "lm-eval")
        assert code == 0, said + error
        files = [] if not out.exists() else list(out.iterdir())
        return {file.stem.replace("__", "/"): json.loads(file.read_text()) for file in files}

    def run(self, name: str, plan: dict[str, dict[str, list[int]]]) -> Path:
        """The folder into which the harness wrote the answers to a plan."""
        for model, tasks in plan.items():
            rows = [line for line in lines_of(model) if json.loads(line)["doc_id"] in tasks["sums"]]
            folder = self.answers / name / model.replace("/", "__")
            folder.mkdir(parents=True)
            (folder / sample_file(model).name).write_text("\n".join(rows) + "\n", encoding="utf-8")
        return self.answers / name

    def edited(self, change) -> Path:
        """The answers to the open plan, in which `change` edits the first sample of one model."""
        plan = self.plan("edited")
        model = min(plan)
        (file,) = (self.run("edited", {model: plan[model]}) / model.replace("/", "__")).iterdir()
        first, *rest = file.read_text(encoding="utf-8").splitlines()
        changed = change(json.loads(first))
        text = changed if isinstance(changed, str) else json.dumps(changed)
        file.write_text("\n".join([text, *rest]), encoding="utf-8")
        return file


@pytest.fixture
def harness(sqlite_url, tmp_path) -> HarnessFolder:
    return HarnessFolder(sqlite_url, tmp_path)


def test_items_are_the_documents_of_the_harness():
    assert len(ITEMS) == len(harness_models.SUMS)
    task, number, digest = ITEMS[7].rsplit(":", 2)
    sample = json.loads(lines_of("lab/small")[7])
    assert (task, int(number)) == ("sums", 7)
    assert sample["doc_id"] == 7
    assert sample["doc_hash"].startswith(digest)


def test_a_whole_study_by_files_ends_with_a_certificate_that_verifies(harness, tmp_path):
    assert "policy certified-items" in harness.create()
    told = 0
    for number in range(40):
        plan = harness.plan(f"round-{number}")
        if not plan:
            break
        for tasks in plan.values():
            assert list(tasks) == ["sums"]
            assert tasks["sums"] == sorted(set(tasks["sums"]))
        harness.run(f"round-{number}", plan)
        code, said, error = harness("tell", harness.answers, "--as", "lm-eval", *DIGITS_FILTER, "--format", "json")
        assert code == 0, error
        receipt = json.loads(said)
        assert receipt["counted"] == sum(len(tasks["sums"]) for tasks in plan.values())
        assert receipt["repeated"] == told  # the answers of earlier rounds lie in the same folder
        told += receipt["counted"]
    file = tmp_path / "certificate.json"
    code, said, _ = harness("certificate", "--out", file)
    assert code == 0
    assert "lab/large" in said
    assert surepick("verify", file)[0] == 0


def test_the_harness_reads_what_we_write_and_we_read_what_it_wrote(tmp_path):
    """Its own numbers, in an order that is not ascending, name other documents: that is refused, ours are not."""
    python = os.environ.get("SUREPICK_LM_EVAL_PYTHON", sys.executable)
    if subprocess.run([python, "-c", "import lm_eval"], capture_output=True, check=False).returncode:
        pytest.skip("lm-eval is not installed; name a Python that has it in SUREPICK_LM_EVAL_PYTHON")
    names = ("lab/medium",)
    counts, asked = [5], [ITEMS[place] for place in (9, 2, 5, 27, 0)]
    batch = batch_of(names, counts, asked)
    (plan,) = write_samples(batch, tmp_path / "plan")
    words = [python, harness_models.__file__, tmp_path / "task", names[0], tmp_path / "out", plan]
    alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"HF_HUB_OFFLINE": "1"}
    subprocess.run(words, check=True, capture_output=True, env=alone | {"HF_HOME": str(tmp_path / "cache")})
    found = read_answers(tmp_path / "out", Expected(names, tuple(ITEMS), metric="exact_match", filter="digits"))
    assert sorted(found.items) == sorted(asked)
    right = {f"{sample['doc_id']}": sample["exact_match"] for sample in digit_samples("lab/medium")}
    assert {item.split(":")[1]: score for item, score in zip(found.items, found.scores, strict=True)} == {
        item.split(":")[1]: right[item.split(":")[1]] for item in asked
    }


def digit_samples(model: str) -> list[dict]:
    return [sample for sample in map(json.loads, lines_of(model)) if sample["filter"] == "digits"]


def batch_of(names, counts, items) -> Batch:
    return Batch(round=1, counts=counts, ids=tuple(names), items=range(len(items)), item_ids=tuple(items))


def test_numbers_that_are_not_ascending_are_found_out():
    """The harness numbers samples in the order of the file, and takes them in that of the set."""
    expected = Expected(MODELS, tuple(ITEMS), filter="digits")
    with pytest.raises(InvalidInput, match=r"line \d+: document 9 of 'sums' has the doc_hash .* not ascending"):
        read_answers(FILES / "unsorted", expected)


def test_a_changed_set_is_refused(harness, refused):
    harness.create()
    plan = harness.plan("first")
    words = ("tell", harness.url, "models", FILES / "changed", "--as", "lm-eval", *DIGITS_FILTER)
    said = refused(*words)
    assert ", line 31: document 0 of 'sums' has the doc_hash" in said
    assert "The set was changed" in said
    code, told, _ = harness("tell", harness.run("first", plan), "--as", "lm-eval", *DIGITS_FILTER, "--format", "json")
    assert code == 0
    assert json.loads(told)["repeated"] == 0  # nothing of the refused file was stored


def test_two_versions_of_a_task_make_no_items(tmp_path, refused, sqlite_url):
    shutil.copytree(FILES / "whole", tmp_path / "both")
    shutil.copytree(FILES / "changed", tmp_path / "both/changed")
    (tmp_path / "models.csv").write_text("id\na\nb")
    words = ("--arms", tmp_path / "models.csv", "--id", "id", "--noise", "bernoulli", "--items", tmp_path / "both")
    assert "is another one than in an earlier line: their doc_hash differs" in refused(
        "create", sqlite_url, "x", *words
    )


def test_an_answer_counts_once_and_another_score_for_it_is_refused(harness, refused):
    harness.create()
    plan = harness.plan("first")
    folder = harness.run("first", plan)
    words = (folder, "--as", "lm-eval", *DIGITS_FILTER, "--format", "json")
    counted = json.loads(harness("tell", *words)[1])["counted"]
    again = json.loads(harness("tell", *words)[1])
    assert (again["counted"], again["repeated"]) == (0, counted)
    file = next(folder.rglob("*.jsonl"))
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    rows = [row | {"exact_match": 1.0 - row["exact_match"]} for row in rows]
    file.write_text("\n".join(map(json.dumps, rows)))
    assert "was reported before with another value" in refused("tell", harness.url, "models", *words)


def without(sample: dict, *names: str) -> dict:
    return {name: value for name, value in sample.items() if name not in names}


HOSTILE = {
    "no JSON": (lambda sample: '{"doc_id": 3, "doc', "line 1 is not JSON"),
    "a list": (lambda sample: [1, 2], "line 1 has no field 'doc_id' as lm-evaluation-harness writes it"),
    "no hash": (lambda sample: without(sample, "doc_hash"), "line 1 has no field 'doc_hash'"),
    "no number": (lambda sample: sample | {"doc_id": True}, "line 1 has no field 'doc_id'"),
    "a number below 0": (lambda sample: sample | {"doc_id": -1}, "line 1: doc_id -1 or doc_hash"),
    "no metrics": (lambda sample: without(sample, "metrics"), "line 1 has no field 'metrics'"),
    "not this metric": (lambda sample: without(sample, "exact_match"), "line 1: exact_match is None"),
    "NaN": (lambda sample: sample | {"exact_match": float("nan")}, "line 1: exact_match is nan; the score"),
    "above 1": (lambda sample: sample | {"exact_match": 1.5}, "line 1: exact_match is 1.5; the score"),
    "a text": (lambda sample: sample | {"exact_match": "1"}, "line 1: exact_match is '1'; the score"),
    "a huge number": (lambda sample: sample | {"exact_match": 10**400}, "line 1: exact_match is 1000"),
    "no document of it": (lambda sample: sample | {"doc_id": 77}, "line 1: document 77 of 'sums' is no item"),
    "two metrics": (
        lambda sample: sample | {"metrics": ["exact_match", "f1"]},
        "line 1 has 2 metrics: 'exact_match', 'f1'. Say which one counts with --metric NAME.",
    ),
}


@pytest.mark.cases(7)
@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_lines_are_refused_with_file_and_line(harness, refused, kind):
    change, said = HOSTILE[kind]
    harness.create()
    file = harness.edited(lambda sample: change(sample | {"filter": "digits"}))
    found = refused("tell", harness.url, "models", file, "--as", "lm-eval", *DIGITS_FILTER)
    assert found.startswith(f"{file}, ")
    assert said in found


def test_what_cannot_be_done_is_refused_with_a_sentence(harness, refused, tmp_path):
    harness.create()
    study = (harness.url, "models")
    assert "has 2 filters: 'plain', 'digits'. Say which one counts with --filter NAME." in refused(
        "tell", *study, FILES / "whole", "--as", "lm-eval"
    )
    assert "has no filter 'strict'; there is 'plain', 'digits'." in refused(
        "tell", *study, FILES / "whole", "--as", "lm-eval", "--filter", "strict"
    )
    assert "are not answers to items that the open plan asked" in refused(
        "tell", *study, FILES / "whole", "--as", "lm-eval", *DIGITS_FILTER
    )
    assert "'lab/huge' is no candidate of this study" in refused(
        "tell", *study, FILES / "whole", "--as", "lm-eval", *DIGITS_FILTER, "--candidate", "lab/huge"
    )
    assert "say which program with --as" in refused("tell", *study, FILES / "whole", "--metric", "acc")
    assert "leave --key, --block" in refused("tell", *study, FILES / "whole", "--as", "lm-eval", "--key", "k")
    assert "name a folder for them with --out" in refused("ask", *study, "--as", "lm-eval")
    (tmp_path / "full").mkdir()
    (tmp_path / "full/old.json").write_text("{}")
    assert "is not an empty folder" in refused("ask", *study, "--as", "lm-eval", "--out", tmp_path / "full")
    (tmp_path / "none").mkdir()
    assert "has no file samples_TASK_DATE.jsonl" in refused("tell", *study, tmp_path / "none", "--as", "lm-eval")
    odd = tmp_path / "samples.jsonl"
    odd.write_text("{}")
    assert "is not named samples_TASK_DATE.jsonl" in refused("tell", *study, odd, "--as", "lm-eval")
    odd = tmp_path / sample_file("lab/large").name
    odd.write_bytes(b"\xff\xfe{}")
    assert "is not a text in UTF-8 (byte 0)" in refused("tell", *study, odd, "--as", "lm-eval")
    assert "there is no file" in refused("tell", *study, tmp_path / "absent.jsonl", "--as", "lm-eval")


def test_studies_of_other_items_or_of_draws_are_refused(harness, refused, tmp_path):
    (tmp_path / "items.csv").write_text("item\none\ntwo")
    harness.create(tmp_path / "items.csv")
    study = (harness.url, "models")
    none_of_it = "the item 'one' is none of lm-evaluation-harness"
    assert none_of_it in refused("ask", *study, "--as", "lm-eval", "--out", tmp_path / "plan")
    assert none_of_it in refused("tell", *study, FILES / "whole", "--as", "lm-eval", *DIGITS_FILTER)
    words = ("--arms", tmp_path / "models.csv", "--id", "id", "--noise", "bernoulli", "--epsilon", "0.1")
    assert surepick("create", harness.url, "draws", *words)[0] == 0
    draws = (harness.url, "draws")
    assert "this study has none" in refused("ask", *draws, "--as", "lm-eval", "--out", tmp_path / "plan")
    assert "this study has none" in refused("tell", *draws, FILES / "whole", "--as", "lm-eval", *DIGITS_FILTER)


def test_models_that_would_share_a_file_are_refused(harness, refused, tmp_path):
    (tmp_path / "models.csv").write_text("id\nlab/a\nlab:a")
    harness.create()
    said = refused("ask", harness.url, "models", "--as", "lm-eval", "--out", tmp_path / "plan")
    assert "two candidates would have one file" in said
