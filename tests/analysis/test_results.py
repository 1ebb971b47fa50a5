"""Files of programs that evaluate models are judged with no option: what counts is said, and mixtures are refused."""

import json
from pathlib import Path

import numpy as np
import pytest
from command_line import surepick

import surepick as sp

HARNESS = Path(__file__).parents[1] / "fixtures/lm_eval/whole"
SKILL = {"lab/large": 0.95, "lab/medium": 0.6, "lab/small": 0.1}


def right(model, number):
    return bool(np.random.default_rng([number, len(model)]).random() < SKILL[model])


def instance(model, number, **changes):
    """A line of every-eval-ever, by its schema 0.2.1."""
    return {
        "schema_version": "0.2.1",
        "evaluation_id": f"sums/{model}/1",
        "model_id": model,
        "evaluation_name": "sums",
        "sample_id": f"s{number}",
        "sample_hash": f"{number:064x}",
        "interaction_type": "single_turn",
        "input": {"raw": f"What is twice {number}?", "reference": [str(2 * number)], "choices": None},
        "output": {"raw": ["?"]},
        "messages": None,
        "answer_attribution": [],
        "evaluation": {"score": float(right(model, number)), "is_correct": right(model, number)},
        "error": None,
        **changes,
    }


def instances(folder, edit=lambda line: line, samples=60):
    """A file a model, in the folders of the collection."""
    files = []
    for model in SKILL:
        files.append(folder / "sums" / model / "7f3c_samples.jsonl")
        files[-1].parent.mkdir(parents=True)
        files[-1].write_text("".join(f"{json.dumps(edit(instance(model, i)))}\n" for i in range(samples)))
        summary = {"evaluation_id": "1", "model_info": {"id": model}, "evaluation_results": []}
        files[-1].with_name("7f3c.json").write_text(json.dumps(summary))
    return files


def as_texts(line):
    return line | {"evaluation": {name: str(value) for name, value in line["evaluation"].items()}}


def without_score(line):
    return line | {"evaluation": {"is_correct": line["evaluation"]["is_correct"]}, "sample_hash": None}


@pytest.mark.parametrize("edit", [lambda line: line, as_texts, without_score])
def test_instances_of_every_eval_ever(tmp_path, edit):
    files = instances(tmp_path, edit)
    found = sp.analyze(tmp_path, seed=1)
    assert found.tiers == (("lab/large",), ("lab/medium",), ("lab/small",))
    assert found.num_items == 60
    assert "Of every-eval-ever" in found.lines()[0]
    assert sp.analyze(files, seed=1).evidence == found.evidence
    assert sp.check_analysis(found.to_dict(), files) == []


def test_other_samples_and_several_results_are_refused(tmp_path):
    def another(line):
        return line | {"sample_hash": "f" * 64} if line["model_id"] == "lab/small" else line

    with pytest.raises(sp.InvalidInput, match="61 items miss a candidate"):
        sp.analyze(instances(tmp_path / "hash", lambda line: another(line) if line["sample_id"] == "s3" else line))
    twice = instances(tmp_path / "twice", samples=3)
    for file in twice:
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        lines += [line | {"evaluation_result_id": "f1", "evaluation": {"score": 0.5}} for line in lines]
        file.write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(sp.InvalidInput, match=r"several results for .* --metric EVALUATION_RESULT_ID"):
        sp.analyze(twice)
    assert sp.analyze(twice, metric="f1").means == (0.5, 0.5, 0.5)
    with pytest.raises(sp.InvalidInput, match="without instances"):
        sp.analyze(twice[0].with_name("7f3c.json"))


def test_several_results_in_several_files_are_refused_as_in_a_folder(tmp_path):
    files = instances(tmp_path / "all", lambda line: line | {"evaluation_result_id": "f0"}, samples=3)
    for file in list(files):
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        lines = [line | {"evaluation_result_id": "f1", "evaluation": {"score": 0.5}} for line in lines]
        files.append(file.with_name("8a4d_samples.jsonl"))
        files[-1].write_text("\n".join(map(json.dumps, lines)))
    for given in (tmp_path / "all", files, files[::-1]):
        with pytest.raises(sp.InvalidInput, match=r"several results for .* --metric EVALUATION_RESULT_ID"):
            sp.analyze(given)
        assert sp.analyze(given, metric="f1", seed=1).means == (0.5, 0.5, 0.5)
        assert sp.analyze(given, metric="f0", seed=1).means != (0.5, 0.5, 0.5)
    with pytest.raises(sp.InvalidInput, match="no line has the evaluation_result_id 'f2'"):
        sp.analyze(files, metric="f2")


def test_a_study_of_such_samples_is_told_its_files(tmp_path, sqlite_url):
    instances(tmp_path / "all")
    (tmp_path / "models.csv").write_text("id\n" + "\n".join(SKILL))
    words = ("--arms", tmp_path / "models.csv", "--id", "id", "--items", tmp_path / "all", "--noise", "bernoulli")
    assert surepick("create", sqlite_url, "models", *map(str, words), "--epsilon", "0.05")[0] == 0
    code, said, _ = surepick("ask", sqlite_url, "models", "--out", str(tmp_path / "plan.csv"))
    assert code == 0, said
    asked = [line.split(",") for line in (tmp_path / "plan.csv").read_text().splitlines()[1:]]
    lines = [instance(model, i) for model in SKILL for i in range(60)]
    wanted = {item for row in asked for item in row if item.startswith("sums:")}
    kept = [one for one in lines if f"sums:{one['sample_id']}:{one['sample_hash'][:16]}" in wanted]
    answers = tmp_path / "a_samples.jsonl"
    answers.write_text("\n".join(map(json.dumps, kept)))
    code, said, error = surepick("tell", sqlite_url, "models", str(answers), "--as", "every-eval-ever")
    assert code == 0, said + error


def test_files_of_the_harness_by_one_command(tmp_path):
    out = str(tmp_path / "verdict.json")
    code, shown, _ = surepick("analyze", str(HARNESS), "--seed", "1", "--out", out)
    assert code == 0
    assert "filter plain (--filter takes another: digits)" in shown
    assert "Best: lab__large" in shown
    files = [str(file) for file in sorted(HARNESS.glob("*/*.jsonl"))]
    assert surepick("analyze", *files, "--check", out)[:2] == (0, "As stored.\n")
    assert sp.analyze(files, filter="digits", seed=1).taken == "Of lm-evaluation-harness."


def test_older_files_of_the_harness_do_not_list_their_metrics(tmp_path):
    for file in HARNESS.glob("*/*.jsonl"):
        samples = [json.loads(line) for line in file.read_text().splitlines()]
        kept = [sample for sample in samples if sample["filter"] == "digits"]
        for sample in kept:
            del sample["metrics"], sample["filter"]
        (tmp_path / file.parent.name).mkdir()
        (tmp_path / file.parent.name / file.name).write_text("\n".join(map(json.dumps, kept)))
    assert sp.analyze(tmp_path, seed=1).evidence == sp.analyze(HARNESS, filter="digits", seed=1).evidence


def promptfoo(path, prompts, names=tuple(SKILL)):
    """Results of promptfoo, one for each provider, prompt and test."""
    results = [
        {
            "promptIdx": prompt,
            "testCase": {"vars": {"question": f"What is twice {i}?"}},
            "provider": {"id": f"lab:{name}", "label": name},
            "failureReason": 0,
            "score": int(right(name, i)),
            "namedScores": {},
        }
        for name in names
        for prompt in range(prompts)
        for i in range(40)
    ]
    path.write_text(json.dumps({"results": {"version": 3, "results": results}}))
    return path


def test_results_of_promptfoo(tmp_path):
    found = sp.analyze(promptfoo(tmp_path / "eval.json", prompts=1), seed=1)
    assert (found.best, found.num_items, found.ids) == ("lab/large", 40, tuple(SKILL))
    pairs = sp.analyze(promptfoo(tmp_path / "pairs.json", prompts=2, names=("lab/large", "lab/small")), seed=1)
    assert pairs.ids[:2] == ("lab/large, prompt 1", "lab/large, prompt 2")
    older = json.loads((tmp_path / "pairs.json").read_text())
    for one in older["results"]["results"]:
        one |= {"vars": one.pop("testCase")["vars"], "prompt": {"label": f"prompt {one.pop('promptIdx')}"}}
        one |= {"provider": one["provider"]["label"]}
        del one["failureReason"]
    (tmp_path / "older.json").write_text(json.dumps(older))
    assert sp.analyze(tmp_path / "older.json", seed=1).ids == pairs.ids
    parts = tmp_path / "parts"
    parts.mkdir()
    for name in SKILL:
        promptfoo(parts / f"{name[4:]}.json", prompts=1, names=(name,))
    assert set(sp.analyze(parts, seed=1).ids) == set(SKILL)


def test_files_that_do_not_go_together_are_refused(tmp_path):
    file, table = promptfoo(tmp_path / "eval.json", prompts=1), tmp_path / "table.csv"
    table.write_text("model,right\na,1\n")
    with pytest.raises(sp.InvalidInput, match="are of two programs"):
        sp.analyze([file, HARNESS])
    with pytest.raises(sp.InvalidInput, match="of a table one"):
        sp.analyze([file, table])
    with pytest.raises(sp.InvalidInput, match="name no columns"):
        sp.analyze(file, id="model")
    with pytest.raises(sp.InvalidInput, match="are no tables; leave out header"):
        sp.analyze(file, header=2)
    with pytest.raises(sp.InvalidInput, match=r"filter.* is for files of lm-evaluation-harness"):
        sp.analyze(file, filter="strict")
