"""LiveCodeBench: language models as arms, a pull is the score on one question."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np

from surepick.bench.datasets.files import data_file, refuse_rows
from surepick.core.arms import Arms
from surepick.core.arrays import FloatArray
from surepick.core.validation import check_choice, whole_number
from surepick.environments.answers import RecordedAnswers
from surepick.environments.environment import Environment
from surepick.errors import InvalidInput
from surepick.linalg.factorisations import thin_svd
from surepick.noise import Bounded
from surepick.tables import read_table

Task = Literal["testgen", "execution"]
TASKS = ("testgen", "execution")
NO_MODELS = ("item", "question_id")  # the columns that say which question a row is
FULL_SCORE = 100.0
RECIPE = (
    "Take src/mocks/TASK.json from https://github.com/LiveCodeBench/livecodebench.github.io (CC BY-SA 4.0) and write "
    "TASK.csv (or TASK.csv.gz), a row for each question: the columns item and question_id, and one for each model with "
    "its score, 0 to 100."
)


def livecodebench(
    directory: str | Path, task: Task = "testgen", *, features_from: Task | None = None, dim: int = 5
) -> Environment:
    """Which language model is best at a task of programming? A pull asks one random question.

    The reward is the recorded score / 100 in [0, 1]. All noise is that of the questions; none is added.

    Args:
        directory: holds testgen.csv and execution.csv, plain or packed (.gz).
        task: "testgen" (predict the output of tests, 442 questions) or "execution" (predict that of a program, 479).
        features_from: another task, whose scores describe the models: only those that are in both (28 of 37) are then
            arms. None: no features.
        dim: number of features, the leading coordinates of the models in the singular value decomposition of the
            other task's scores, 1 to the number of models; scaled so that a model with full scores has norm 1.

    Returns:
        An arm for each model, with its name as id and its mean score as truth. It has the questions as test items.

    Raises:
        DatasetMissing: a file is absent; the message holds the recipe.
        InvalidInput: an unknown task, features from the task itself (they would hold the rewards), dim out of range,
            a score outside [0, 100], or tasks without a model in common.

    Source: Jain et al., LiveCodeBench (2024), arXiv 2403.07974; scores from its web site.
    """
    check_choice("task", task, TASKS)
    scores = _scores(Path(directory), task)
    if features_from is None:
        return _environment(scores, Arms(None, list(scores)))
    check_choice("features_from", features_from, TASKS)
    if features_from == task:
        raise InvalidInput(f"features_from is {task!r}, the task itself: the features would hold the rewards.")
    others = _scores(Path(directory), features_from)
    both = [name for name in scores if name in others]
    if not both:
        raise InvalidInput(f"no model of {task} in {directory} is also in {features_from}; none would have features.")
    features = _coordinates(np.array([others[name] for name in both]), dim)
    return _environment({name: scores[name] for name in both}, Arms(features, both))


def _scores(directory: Path, task: str) -> dict[str, FloatArray]:
    """The scores of each model in [0, 1], one for each question."""
    recorded = read_table(data_file(directory, f"{task}.csv", RECIPE))
    scores = {name: recorded.numbers(name) / FULL_SCORE for name in recorded.columns if name not in NO_MODELS}
    for name, values in scores.items():
        refuse_rows(
            recorded,
            ~((values >= 0.0) & (values <= 1.0)),
            lambda row, name=name, values=values: (  # type: ignore[misc]
                f"the score of {name!r} is {values[row] * FULL_SCORE:g}, outside [0, {FULL_SCORE:g}]."
            ),
            RECIPE,
        )
    if not scores:
        raise InvalidInput(f"{recorded.source} has no column of a model. {RECIPE}")
    return scores


def _coordinates(scores: FloatArray, dim: int) -> FloatArray:
    """The models in the `dim` leading directions of their scores, shape (K, dim)."""
    whole_number("dim", dim, least=1, meaning="a number of features.")
    if dim > min(scores.shape):
        raise InvalidInput(
            f"dim is {dim}; {scores.shape[0]} models on {scores.shape[1]} questions have no more than "
            f"{min(scores.shape)} directions."
        )
    u, singular, _ = thin_svd(scores / np.sqrt(scores.shape[1]))
    coordinates: FloatArray = u[:, :dim] * singular[:dim]
    return coordinates


def _environment(scores: dict[str, FloatArray], arms: Arms) -> Environment:
    law = RecordedAnswers(np.array(list(scores.values())))
    return Environment(arms=arms, means=law.means, noise=Bounded(0.0, 1.0), law=law)
