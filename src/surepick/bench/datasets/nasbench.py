"""NAS-Bench-Macro: small networks, each trained three times, as arms."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np

from surepick.bench.datasets.files import data_file, refuse_rows
from surepick.core.arms import Arms
from surepick.core.arrays import BoolArray, FloatArray
from surepick.core.validation import check_choice
from surepick.environments.environment import Environment
from surepick.environments.rewards import RecordedRewards
from surepick.errors import InvalidInput
from surepick.noise import Bernoulli, SubGaussian
from surepick.tables import Table, read_table

FILE = "nas_bench_macro_cifar10.csv"
RUNS = ("correct_run0", "correct_run1", "correct_run2")
NUM_LAYERS, LAYER_KINDS = 8, "012"  # identity, and two kinds of convolution
TEST_IMAGES = 10_000
RECIPE = (
    "Take data/nas-bench-macro_cifar10.json from https://github.com/xiusu/NAS-Bench-Macro (Apache-2.0) and write "
    f"{FILE} (or {FILE}.gz) with the columns arch, {', '.join(RUNS)}: the eight digits, and the number of right "
    f"answers among {TEST_IMAGES:,} test images in each of the three trainings (100 times the percentage)."
)


def nasbench_macro(directory: str | Path, *, reward: Literal["training", "image"] = "training") -> Environment:
    """Which of 6,561 networks classifies CIFAR-10 best?

    Args:
        directory: holds nas_bench_macro_cifar10.csv, plain or packed (.gz).
        reward: "training": a pull draws one of the three recorded trainings and gives its accuracy; the noise is
            sub-Gaussian with half the largest difference between trainings of one network (.0097), which is a valid
            scale here. "image": a pull shows the network one random test image, and gives 1 if it is right:
            Bernoulli with the accuracy averaged over the trainings.

    Returns:
        An arm for each network, its id the eight digits of its layers, its 24 features one-hot by layer (rank 17).
        Networks that differ only by where their identity layers stand share their results: the best accuracy is that
        of two arms.

    Raises:
        DatasetMissing: the file is absent; the message holds the recipe.
        InvalidInput: the file has other columns or values, or the reward is unknown.

    Source: Su et al., Prioritized Architecture Sampling with Monto-Carlo Tree Search (CVPR 2021).
    """
    check_choice("reward", reward, ("training", "image"))
    recorded = read_table(data_file(Path(directory), FILE, RECIPE))
    names = recorded.text("arch")
    arms = Arms(_layers(recorded, names), names, columns=[f"{layer}={kind}" for layer, kind in _columns()])
    accuracies = _accuracies(recorded)
    law = RecordedRewards(accuracies.ravel(), np.repeat(np.arange(arms.num_arms), len(RUNS)))
    if reward == "image":
        return Environment(arms=arms, means=law.means, noise=Bernoulli())
    scale = float(law.half_ranges.max())
    if scale == 0.0:
        raise InvalidInput(
            f"{recorded.source}: the trainings of every network agree, so there is no noise to decide upon. {RECIPE}"
        )
    return Environment(arms=arms, means=law.means, noise=SubGaussian(scale), law=law)


def _columns() -> list[tuple[int, str]]:
    return [(layer, kind) for layer in range(NUM_LAYERS) for kind in LAYER_KINDS]


def _layers(recorded: Table, names: tuple[str, ...]) -> FloatArray:
    """One-hot layers of each network, shape (K, 24)."""
    bad = np.array([len(name) != NUM_LAYERS or bool(set(name) - set(LAYER_KINDS)) for name in names])
    digits = f"no network of {NUM_LAYERS} digits 0 to 2. Leading zeros must be kept: write the column as text."
    refuse_rows(recorded, bad, lambda row: f"{names[row]!r} is {digits}", RECIPE)
    return np.array([[float(name[layer] == kind) for layer, kind in _columns()] for name in names])


def _accuracies(recorded: Table) -> FloatArray:
    """Share of right answers of each training, shape (K, 3)."""
    accuracies = np.column_stack([recorded.numbers(name) for name in RUNS]) / TEST_IMAGES
    bad: BoolArray = np.asarray(~((accuracies >= 0.0) & (accuracies <= 1.0)).all(axis=1))
    rest = f"no numbers of right answers among {TEST_IMAGES:,}; {bad.sum()} of {len(bad)} rows are so."
    refuse_rows(recorded, bad, lambda row: f"{accuracies[row] * TEST_IMAGES} are {rest}", RECIPE)
    return accuracies
