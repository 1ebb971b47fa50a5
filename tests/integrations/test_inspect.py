"""inspect_ai runs what a study asks: killed and gone on with, each sample is told once and the certificate verifies."""

import functools
import gc
import json
import multiprocessing
import shutil
import subprocess
import sys
import time
from collections import Counter
from importlib.util import find_spec

import inspect_models
import numpy as np
import pytest
from study_commands import surepick

import surepick as sp
from surepick.errors import InvalidInput, OutOfTurn

pytestmark = [  # it takes a second to import: nobody does so to collect these tests
    pytest.mark.skipif(find_spec("inspect_ai") is None, reason='pip install "surepick[inspect]"'),
    pytest.mark.filterwarnings("ignore"),  # those of its packages are not ours
]


@pytest.fixture(autouse=True)
def streams_closed(monkeypatch):
    """What inspect_ai left open is closed while its warnings are not errors; nobody looks at its runs meanwhile."""
    monkeypatch.setenv("INSPECT_EVAL_CTL_SERVER", "false")
    gc.freeze()  # what was there before is not looked at afterwards
    yield
    gc.collect()


def calls_in(folder) -> list[str]:
    file = folder / "calls.txt"
    return file.read_text(encoding="utf-8").splitlines() if file.exists() else []


@pytest.fixture
def study(tmp_path, sqlite_url):
    """A study of 8 questions in tmp_path."""
    return inspect_models.study_in(tmp_path, 8)


def best_model(study, **options):
    from surepick.integrations.inspect import BestModel

    return BestModel(study, options.pop("task", lambda: inspect_models.task(8)), **options)


def test_a_changed_set_is_refused(study):
    with pytest.raises(InvalidInput, match="sample 'q3' of the study is another one here"):
        best_model(study, task=lambda: inspect_models.task(8, changed=True))
    with pytest.raises(InvalidInput, match="the task has 9 samples, and the study 8 items"):
        best_model(study, task=lambda: inspect_models.task(9))


def test_what_cannot_be_run_is_refused(study, tmp_path):
    def twice():
        task = inspect_models.task(8)
        task.epochs = 2
        return task

    with pytest.raises(InvalidInput, match="the task has 2 epochs, and an item is answered once"):
        best_model(study, task=twice)
    with pytest.raises(InvalidInput, match="models must have one model for each arm"):
        best_model(study, models={"mockllm/a": "mockllm/a"})
    with pytest.raises(InvalidInput, match="two arms are one model for inspect_ai"):
        best_model(study, models=dict.fromkeys(inspect_models.MODELS, "mockllm/a"))
    draws = sp.Study(sp.make_policy("lucb", sp.Arms(ids=["a", "b"]), epsilon=0.1, delta=0.1, noise="bernoulli"))
    with pytest.raises(InvalidInput, match="BestModel is for a study of test items"):
        best_model(draws)


def test_a_model_that_is_broken_ends_the_run_and_stores_what_came(study, tmp_path):
    with pytest.raises(BaseException, match=r"no sample of the last tasks had a score") as failure:
        inspect_models.run(tmp_path, 8, failing="mockllm/c")
    assert failure.type is OutOfTurn or failure.group_contains(OutOfTurn)
    asked = Counter(line.split()[0] for line in calls_in(tmp_path))
    assert asked["mockllm/a"] == asked["mockllm/b"] > 0
    assert inspect_models.study_in(tmp_path, 8).progress().told == 5 * asked["mockllm/a"]


def whole_logs(folder, *, number: int = 2, epochs: int = 1, **options):
    """Logs of the first models, which answered all 8 questions, perhaps several times."""
    from inspect_ai import eval as evaluate

    models = inspect_models.models(folder, **options)
    for name in inspect_models.MODELS[:number]:
        task = inspect_models.task(8, changed=options.get("failing") == "nobody")
        task.epochs = epochs
        evaluate(task, model=models[name], log_dir=str(folder / "whole"), display="none")
    return folder / "whole"


def test_logs_are_read_with_the_ids_of_a_live_run(study, tmp_path, refused):
    from surepick.cli.programs import items_in
    from surepick.integrations.answers import Expected
    from surepick.integrations.inspect import items_of, read_answers

    logs = whole_logs(tmp_path)
    items = items_of(inspect_models.task(8))
    assert sorted(items_in(logs)) == sorted(items)
    found = read_answers(logs, Expected(inspect_models.MODELS, tuple(items)))
    rows = list(zip(found.candidates, found.items, found.scores, strict=True))
    assert len(rows) == len(set(rows)) == 16
    assert all(score == inspect_models.is_right(name, items.index(item)) for name, item, score in rows)
    url = f"sqlite:///{tmp_path / 'lab.db'}"
    assert "are not answers to items that the open plan asked" in refused(
        "tell", url, "models", logs, "--as", "inspect"
    )
    words = ("tell", url, "models", logs, "--as", "inspect", "--metric", "exact")
    assert "has no scorer 'exact'; there is 'match'." in refused(*words)
    (tmp_path / "broken.eval").write_bytes(b"no archive")
    broken = refused("tell", url, "models", tmp_path / "broken.eval", "--as", "inspect")
    assert "broken.eval cannot be read as a log of inspect_ai" in broken


def test_logs_are_analyzed_as_they_are_and_epochs_are_averaged(tmp_path):
    logs = whole_logs(tmp_path, number=3, epochs=2)
    found = sp.analyze(logs, seed=1)
    assert "Of inspect_ai" in found.lines()[0]
    assert (set(found.ids), found.num_items) == (set(inspect_models.MODELS[:3]), 8)
    shares = [np.mean([inspect_models.is_right(name, question) for question in range(8)]) for name in found.ids]
    assert found.means == pytest.approx(shares)


def test_logs_of_a_changed_set_are_refused_and_errors_are_no_score(study, tmp_path, refused):
    from surepick.integrations.answers import Expected
    from surepick.integrations.inspect import items_of, read_answers

    (tmp_path / "broken").mkdir()
    logs = whole_logs(tmp_path / "broken", failing="mockllm/b")
    found = read_answers(logs, Expected(inspect_models.MODELS, tuple(items_of(inspect_models.task(8)))))
    assert set(found.candidates) == {"mockllm/a"}
    assert found.empty > 0
    (tmp_path / "changed").mkdir()
    changed = whole_logs(tmp_path / "changed", number=1, failing="nobody")
    url = f"sqlite:///{tmp_path / 'lab.db'}"
    said = refused("tell", url, "models", changed, "--as", "inspect")
    assert "sample 'q3' of the study is another one here" in said


@functools.cache
def partly_scored(folder, log_format: str):
    """Logs of two models that answered all 8 questions, of which two have no score; of one all."""
    from inspect_ai import eval as evaluate
    from inspect_ai.scorer import Score, accuracy, scorer

    @scorer(metrics=[accuracy()])
    def judge():
        async def score(state, target):
            question = inspect_models.question_of(state.input_text)
            if question in (3, 5) and str(state.model) == "mockllm/a":
                return Score.unscored(explanation="the judge has timed out")
            return Score(value="C" if state.output.completion == target.text else "I")

        return score

    models = inspect_models.models(folder)
    for name in inspect_models.MODELS[:2]:
        task = inspect_models.task(8)
        task.scorer = [judge()]
        evaluate(task, model=models[name], log_dir=str(folder / log_format), log_format=log_format, display="none")
    return folder / log_format


@pytest.fixture(scope="module")
def partly(tmp_path_factory):
    """A folder for logs that several tests read."""
    return tmp_path_factory.mktemp("partly")


@pytest.mark.parametrize("log_format", ["eval", "json"])
def test_samples_without_a_score_are_left_out_and_all_others_count(partly, log_format):
    from surepick.integrations.answers import Expected
    from surepick.integrations.inspect import items_of, read_answers

    logs = partly_scored(partly, log_format)
    items = items_of(inspect_models.task(8))
    found = read_answers(logs, Expected(inspect_models.MODELS, tuple(items)))
    assert found.empty == 2
    rows = list(zip(found.candidates, found.items, found.scores, strict=True))
    assert len(rows) == 14
    assert all(score == inspect_models.is_right(name, items.index(item)) for name, item, score in rows)
    assert {("mockllm/a", items[3]), ("mockllm/a", items[5])}.isdisjoint(row[:2] for row in rows)
    for file in logs.iterdir():
        one = read_answers(file, Expected(inspect_models.MODELS, tuple(items)))
        assert len(one.scores) + one.empty == 8


def test_a_live_run_asks_again_what_had_no_score(study, tmp_path):
    from inspect_ai import eval as evaluate
    from inspect_ai.scorer import Score, accuracy, scorer

    refused, first = set(), int(study.ask().item_ids[0].partition(":")[0][1:])

    @scorer(metrics=[accuracy()])
    def judge():
        async def score(state, target):
            key = (str(state.model), state.input_text)
            if key not in refused and inspect_models.question_of(state.input_text) == first:
                refused.add(key)
                return Score.unscored()
            return Score(value=state.output.completion == target.text)

        return score

    def task():
        made = inspect_models.task(8)
        made.scorer = [judge()]
        return made

    source = best_model(study, task=task, models=inspect_models.models(tmp_path))
    evaluate(source, model=None, log_dir=str(tmp_path / "logs"), display="none", max_tasks=6)
    assert study.stopped
    assert len(refused) == len(inspect_models.MODELS)


def test_a_folder_of_logs_is_recognised(tmp_path, partly, refused):
    from surepick.cli.programs import items_in
    from surepick.integrations.inspect import items_of

    folder = shutil.copytree(partly_scored(partly, "json"), tmp_path / "whole")
    assert {file.suffix for file in folder.iterdir()} == {".json"}
    assert (
        sorted(items_in(folder)) == sorted(items_in(next(folder.iterdir()))) == sorted(items_of(inspect_models.task(8)))
    )
    (folder / "listing.json").write_text("{}")
    (folder / "notes.txt").write_text("of ours")
    arms = tmp_path / "models.csv"
    arms.write_text("id\n" + "".join(f"{name}\n" for name in inspect_models.MODELS[:2]))
    url = f"sqlite:///{tmp_path / 'other.db'}"
    words = ("--arms", arms, "--id", "id", "--items", folder, "--noise", "bernoulli", "--epsilon", "0.05")
    code, said, _ = surepick("create", url, "models", *words)
    assert code == 0, said
    assert surepick("ask", url, "models")[0] == 0
    for given in (folder, next(folder.glob("*_*.json"))):
        said = refused("tell", url, "models", given)
        assert "is what inspect_ai wrote, and no table: give --as inspect." in said


@pytest.mark.parametrize("inside", [{}, {"a.csv": "item\nq1\n"}, {"a.json": "[]", "b.txt": "x"}])
def test_another_folder_is_named_rightly(tmp_path, refused, inside):
    arms, folder = tmp_path / "models.csv", tmp_path / "folder"
    arms.write_text("id\na\nb\n")
    folder.mkdir()
    for name, content in inside.items():
        (folder / name).write_text(content)
    url = f"sqlite:///{tmp_path / 'other.db'}"
    words = ("--arms", arms, "--id", "id", "--items", folder, "--noise", "bernoulli", "--epsilon", "0.05")
    said = refused("create", url, "models", *words)
    assert "nothing in it is known" in said
    assert "inspect_ai (.eval or .json)" in said
    assert "lm-evaluation-harness" in said


def run_until(folder, questions: int, calls: int | None) -> None:
    """Run inspect_ai in a process of its own, and kill it with signal 9 after so many calls of models; None: never."""
    process = subprocess.Popen([sys.executable, inspect_models.__file__, folder, str(questions)])
    while calls is not None and process.poll() is None and len(calls_in(folder)) < calls:
        time.sleep(0.02)
    if calls is not None:
        assert process.poll() is None, "it ended before it was killed"
        process.kill()
    code = process.wait()
    assert code == (0 if calls is None else -9)


def run_forked_until(folder, questions: int, calls: int | None) -> None:
    """The same in a fork of this process, which has imported all; never killed: in this one."""
    import acp  # noqa: F401 (inspect_ai does at its first run: once here, not in both processes)

    if calls is None:
        return inspect_models.run(folder, questions)
    inspect_models.study_in(folder, questions)
    slowly = {"seconds": 0.02}  # a call, so it is killed among them
    process = multiprocessing.get_context("fork").Process(
        target=inspect_models.run, args=(folder, questions), kwargs=slowly
    )
    process.start()
    while process.is_alive() and len(calls_in(folder)) < calls:
        time.sleep(0.02)
    process.kill()
    process.join()
    assert process.exitcode == -9, "it ended before it was killed"
    return None


@pytest.mark.parametrize(
    ("questions", "kills", "run_until"),
    [
        (8, (12,), run_forked_until),
        *(pytest.param(300, kills, run_until, marks=pytest.mark.slow) for kills in [(25,), (25, 70)]),
    ],
)
def test_six_models_killed_and_resumed_tell_each_sample_once(tmp_path, questions, kills, run_until):
    for calls in kills:
        run_until(tmp_path, questions, calls)
    assert len(calls_in(tmp_path)) < 6 * questions
    run_until(tmp_path, questions, None)
    url, file = f"sqlite:///{tmp_path / 'lab.db'}", tmp_path / "certificate.json"
    code, said, _ = surepick("certificate", url, "models", "--out", file)
    assert code == 0
    assert "mockllm/a" in said
    assert surepick("verify", file)[0] == 0
    looks = [look for part in json.loads(file.read_text())["rounds"] for look in part["looks"]]
    told = [
        (arm, item, score)
        for look in looks
        for arm, item, score in zip(*(look["answers"][name] for name in ("arms", "items", "scores")), strict=True)
    ]
    assert max(Counter((arm, item) for arm, item, _ in told).values()) == 1
    models = inspect_models.MODELS
    assert all(score == inspect_models.is_right(models[arm], item) for arm, item, score in told)
    calls = Counter(calls_in(tmp_path))
    assert {f"{models[arm]} {item}" for arm, item, _ in told} == set(calls)
    again = sum(calls.values()) - len(calls)  # in flight when it was killed
    print(f"{len(told)} answers of {6 * questions}, {again} were asked again after {len(kills)} kills")
    assert again <= len(kills) * 6 * 10  # six tasks of ten samples at once
