"""Arms of unit norm, and gram matrices."""

from __future__ import annotations

import numpy as np


def unit_rows(shape, seed=0):
    rows = np.random.default_rng(seed).standard_normal(shape)
    return rows / np.linalg.norm(rows, axis=1)[:, None]


def random_gram(size, rank, seed=0):
    factor = np.random.default_rng(seed).standard_normal((size, rank)) * 0.5 ** np.arange(rank)
    return factor @ factor.T
