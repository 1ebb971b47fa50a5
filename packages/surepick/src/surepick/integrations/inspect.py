"""inspect_ai: a live source of tasks that asks only what a study still needs, and logs in.

The id of an item is "ID:HASH": the id of the sample (or its place from 1) and 16 digits of the SHA-256 of its input,
choices and target. So a sample that is another one now is refused, and not counted as an answer to the old one.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from surepick.core.values import is_absent
from surepick.errors import InvalidInput, OutOfTurn
from surepick.integrations.answers import Expected, FileAnswers, sha
from surepick.integrations.recognised import inspect_logs
from surepick.studies.study import Study
from surepick.text import quoted

try:
    import anyio
    from inspect_ai import Task, TaskSource, task_with
    from inspect_ai.dataset import MemoryDataset
    from inspect_ai.model import Model, get_model
except ImportError as error:
    raise ImportError('inspect_ai is absent: pip install "surepick[inspect]".') from error

LETTERS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}  # correct, partial, incorrect, no answer
WAIT = 0.05  # seconds between two looks at whether the tasks of a batch have ended


def items_of(task: Task) -> list[str]:
    """The ids of the samples of a task, in its order."""
    return list(_samples(task))


class BestModel(TaskSource):  # type: ignore[misc, unused-ignore]  # without the package it is of no known type
    """Runs the samples that a study asks for, of the models that are still in, until it has stopped.

        def task(): return Task(dataset=samples, scorer=match())        # a new one at each call
        study = create_study(url, name, sp.Arms(ids=models), sp.make_policy(..., items=items_of(task())))
        eval(BestModel(study, task), model=None)
        study.recommend()

    Each sample is reported as soon as it is scored. A run that was killed goes on with `resume_study` and another
    `BestModel`: what was reported is not asked again. A sample that fails has no score, and is asked again.

    Args:
        study: of test items, whose arms are names of models.
        task: makes the task anew; its samples are the items of the study.
        models: the model of each arm, or its name for inspect_ai; None: the arms are names.
        metric: the name of the scorer that counts; None: the only one.

    Raises:
        InvalidInput: the study has no items, or others; a sample would be answered several times; two arms are one
            model.
    """

    def __init__(
        self,
        study: Study,
        task: Callable[[], Task],
        *,
        models: Mapping[str, str | Model] | None = None,
        metric: str | None = None,
    ) -> None:
        order = study.policy.traits.items
        if order is None:
            raise InvalidInput("BestModel is for a study of test items; create it with items=items_of(task()).")
        self._study, self._make = study, task
        self._items = order.items.ids
        self._expected = Expected(study.ids, self._items, metric=metric)
        self._check_task(task())
        named = {name: name for name in study.ids} if models is None else dict(models)
        if set(named) != set(study.ids):
            raise InvalidInput("models must have one model for each arm of the study, and no other.")
        self._models = {name: get_model(model) for name, model in named.items()}
        self._arms = {str(model): name for name, model in self._models.items()}
        if len(self._arms) < len(self._models):
            raise InvalidInput("two arms are one model for inspect_ai; give each a name of its own.")
        self._running: set[str] = set()  # names of models
        self._told = 0
        self._error: Exception | None = None

    def initial_tasks(self) -> list[Task]:
        """Tasks with the samples of the open plan."""
        return self._next() or []

    async def next_tasks(self) -> list[Task] | None:
        """Tasks with the samples of the next plan, or those that gave no score; None once the study has stopped."""
        while self._running:  # inspect_ai may ask while tasks run, and all of a plan is out with them
            await anyio.sleep(WAIT)
        if self._error is not None:
            raise self._error
        if self._told == 0 and not self._study.stopped:
            raise OutOfTurn(
                "no sample of the last tasks had a score, so asking again would have no end. What came is stored; see "
                "the errors in inspect_ai's log, and run BestModel again on the same study."
            )
        return self._next()

    async def sample_complete(self, sample: Any, task: Task) -> None:
        """Report a sample; one without a score, or with that of `Score.unscored`, is left to be asked again."""
        if sample.error is None and self._error is None:
            where = f"sample {quoted(sample.id)} of {task.model}"
            try:
                item = _item(sample.id, sample)
                score = _score(sample.scores or {}, self._expected, where)
                if score is None:
                    return
                self._study.tell([self._arms[str(task.model)]], [score], items=[item])
            except Exception as error:
                self._error = error  # it ends the run too if inspect_ai counts it as one of the sample
                raise
            self._told += 1

    async def task_complete(self, log: Any) -> None:
        """The model of a task is free."""
        self._running.discard(log.eval.model)

    def _next(self) -> list[Task] | None:
        batch = self._study.ask()
        if batch is None:
            return None
        wanted: dict[str, list[str]] = {}
        for name, item in zip(batch.pulls(), batch.item_ids, strict=True):
            wanted.setdefault(name, []).append(item)
        self._told = 0
        tasks = []
        for name, items in wanted.items():
            task, model = self._make(), self._models[name]
            samples = _samples(task)
            if missing := [item for item in items if item not in samples]:
                raise InvalidInput(_changed(missing[0]))
            dataset = MemoryDataset([samples[item] for item in items], name=task.dataset.name)
            tasks.append(task_with(task, dataset=dataset, model=model))
            self._running.add(str(model))
        return tasks

    def _check_task(self, task: Task) -> None:
        """Refuse a task whose samples are not those of the study, or would be answered more than once."""
        if (task.epochs or 1) != 1:
            raise InvalidInput(
                f"the task has {task.epochs} epochs, and an item is answered once; take one epoch, or a solver and a "
                "scorer that give the mean of several answers."
            )
        there = set(_samples(task))
        for item in self._items:
            if item not in there:
                raise InvalidInput(_changed(item))
        if len(there) > len(self._items):
            raise InvalidInput(
                f"the task has {len(there)} samples, and the study {len(self._items)} items: the set was changed."
            )


def read_answers(path: Path, expected: Expected) -> FileAnswers:
    """The scores in a log of inspect_ai, or in all of a folder; samples without one or with an error are left out."""
    rows = []
    known = set(expected.items or ())
    named = {item.rpartition(":")[0]: item for item in known}
    for row in _log_rows(path, epochs=expected.items is None):
        where = f"{row['log']}, sample {quoted(row['id'])}"
        if expected.items is not None and row["item"] not in known:
            if row["id"] in named:
                raise InvalidInput(f"{where}: {_changed(named[row['id']])} Nothing of this call was stored.")
            raise InvalidInput(f"{where} is no item of this study. Nothing of this call was stored.")
        name = expected.known_candidate([row["model"]], where)
        scored = row["scores"] and not row["error"]
        rows.append((name, row["item"], _score(row["scores"], expected, where) if scored else None))
    return FileAnswers.of(rows)


def items_in_logs(path: Path) -> list[str]:
    """The ids of the samples in a log, or in all logs of a folder, each once."""
    found: dict[str, str] = {}
    for row in _log_rows(path):
        if found.setdefault(row["id"], row["item"]) != row["item"]:
            raise InvalidInput(f"{row['log']}: {_changed(found[row['id']])}")
    return list(found.values())


def _log_rows(path: Path, *, epochs: bool = False) -> list[dict[str, Any]]:
    """Each sample of the logs: log, model, id, epoch, error, item, scores; of one epoch, or of several."""
    from inspect_ai.analysis import EvalModel, SampleColumn, samples_df  # noqa: PLC0415 (pandas, which it brings)

    columns = [
        *EvalModel,
        SampleColumn("id", path="id", required=True, type=str),
        SampleColumn("epoch", path="epoch", required=True),
        SampleColumn("item", path=lambda sample: _item(sample.id, sample), full=True),
        SampleColumn("scores", path=_scores_as_json, full=True),
        SampleColumn("error", path=lambda sample: "" if sample.error is None else "error", full=True),
    ]
    try:
        table = samples_df([str(log) for log in inspect_logs(path)], columns=columns, quiet=True)
    except InvalidInput:
        raise
    except Exception as error:  # whatever it meets in the files
        raise InvalidInput(f"{path} cannot be read as a log of inspect_ai: {error}.") from error
    rows: list[dict[str, Any]] = table.to_dict("records")
    if not rows:
        raise InvalidInput(f"{path} has no sample of inspect_ai in it; give a log (.eval or .json) or their folder.")
    for row in rows:
        if int(row["epoch"]) != 1 and not epochs:
            raise InvalidInput(
                f"{row['log']}: sample {quoted(row['id'])} has several epochs, and an item is answered once; tell a "
                "table with their mean."
            )
        row["scores"] = json.loads(row["scores"])
    return rows


def _scores_as_json(sample: Any) -> str:
    return json.dumps({name: {"value": score.value} for name, score in (sample.scores or {}).items()})


def _samples(task: Task) -> dict[str, Any]:
    """Item -> sample, with its id."""
    samples: dict[str, Any] = {}
    ids = set()
    for place, sample in enumerate(task.dataset, start=1):
        name = place if sample.id is None else sample.id
        if str(name) in ids:
            raise InvalidInput(f"two samples of the task have the id {quoted(name)}; give each its own.")
        ids.add(str(name))
        samples[_item(name, sample)] = sample.model_copy(update={"id": name})
    return samples


def _item(name: int | str, sample: Any) -> str:
    """The id of the item that a sample is; of a dataset or of a log."""
    said = sample.input
    spoken = said if isinstance(said, str) else [[message.role, message.text] for message in said]
    targets = [sample.target] if isinstance(sample.target, str) else list(sample.target)
    return f"{name}:{sha([spoken, list(sample.choices or []), targets])}"


def _score(scores: Mapping[str, Any], expected: Expected, where: str) -> float | None:
    """The score that counts, as a number; None where the scorer says that it has none."""
    name = expected.name_of(expected.metric, list(scores), "--metric", "scorers", where)
    value = scores[name]["value"] if isinstance(scores[name], Mapping) else scores[name].value
    if is_absent(value):  # Score.unscored() is NaN
        return None
    return expected.score(LETTERS.get(value, value) if isinstance(value, str) else value, name, where)


def _changed(item: str) -> str:
    return (
        f"sample {quoted(item.rpartition(':')[0])} of the study is another one here: its input, choices or target "
        "differ, or it is absent. Answers to other samples would void the certificate; use the set with which the "
        "study was created."
    )
