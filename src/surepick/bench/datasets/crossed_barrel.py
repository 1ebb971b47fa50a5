"""Crossed barrels: 600 designs of a plastic part, each printed and crushed three times."""

from __future__ import annotations

from pathlib import Path

from surepick.bench.datasets.files import data_file
from surepick.environments.environment import Environment
from surepick.environments.recorded import table
from surepick.noise import SubGaussian

COLUMNS = ("n", "theta", "r", "t")
NOISE = 19.0  # half of the largest spread of a design's three values is 18.7
RECIPE = (
    'Take "datasets/Crossed barrel_dataset.csv" from https://github.com/PV-Lab/Benchmarking (MIT) and write it as '
    "Crossed_barrel_dataset.csv: a row for each crushed part, the columns n, theta, r, t and toughness."
)


def crossed_barrel(directory: str | Path) -> Environment:
    """Which designs are the toughest? A pull draws one of the three recorded parts of a design.

    Args:
        directory: holds Crossed_barrel_dataset.csv, plain or packed (.gz).

    Returns:
        600 arms whose four features are those of the design, with toughness as reward; noise sub-Gaussian of scale 19.

    Raises:
        DatasetMissing: the file is absent; the message holds the recipe.
        InvalidInput: it is no such table.

    Source: Gongora et al., Science Advances 6, eaaz1708 (2020); Liang et al., npj Computational Materials 7, 188
        (2021).
    """
    path = data_file(Path(directory), "Crossed_barrel_dataset.csv", RECIPE)
    return table(path, COLUMNS, "toughness", COLUMNS, noise=SubGaussian(NOISE))
