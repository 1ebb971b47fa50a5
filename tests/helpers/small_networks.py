"""Small networks, and features for them."""

from __future__ import annotations

import itertools
import math

import numpy as np
import torch

from surepick.embeddings.network import ARCHITECTURES, ArmNetwork, GradientSpectrum, Network

KINDS = list(itertools.product(ARCHITECTURES, (2, 3)))


def normal_rows(num_rows: int, num_columns: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((num_rows, num_columns))


def unit_rows(num_rows: int, num_columns: int, seed: int = 0) -> np.ndarray:
    rows = normal_rows(num_rows, num_columns, seed)
    return rows / np.linalg.norm(rows, axis=1)[:, None]


def make(features, architecture="symmetric", depth=3, width=6, **changes) -> ArmNetwork:
    return ArmNetwork(features, Network(depth=depth, width=width, architecture=architecture, **changes))


def elsewhere(arms: ArmNetwork, seed: int = 3) -> torch.Tensor:
    """Weights with nothing special about them: the start and half as much noise."""
    noise = np.random.default_rng(seed).standard_normal(arms.num_parameters)
    return arms.start + 0.5 / math.sqrt(arms.network.width) * arms.tensor(noise)


def relative(found, expected) -> float:
    found, expected = np.asarray(found), np.asarray(expected)
    return float(np.max(np.abs(found - expected)) / np.max(np.abs(expected)))


SPECTRUM = GradientSpectrum(np.array([4.0, 2.0, 1.0, 0.5]), np.eye(4), 4, 10)
