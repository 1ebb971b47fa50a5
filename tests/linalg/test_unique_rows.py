"""Equal rows are found exactly: whatever the numbers, and even where all rows share their 64 bits."""

from __future__ import annotations

import numpy as np
import pytest
from budgets import budget
from hypothesis import given, settings, strategies as st

from surepick.linalg import rows as module
from surepick.linalg.rows import equal_rows


def by_hand(matrix: np.ndarray) -> tuple[list[int], list[int]]:
    first, group = [], []
    for row in matrix.tolist():
        same = next((number for number, k in enumerate(first) if matrix[k].tolist() == row), None)
        if same is None:
            first.append(len(group))
            same = len(first) - 1
        group.append(same)
    return first, group


@settings(max_examples=budget(200))
@given(st.integers(0, 2**32 - 1), st.integers(0, 30), st.integers(0, 3), st.sampled_from(["grid", "float", "float32"]))
def test_the_classes_are_those_of_a_comparison_of_all_rows(seed, num_rows, dim, kind):
    rng = np.random.default_rng(seed)
    matrix = rng.integers(-1, 2, (num_rows, dim)) * 1.0
    if kind != "grid":
        matrix = rng.standard_normal((max(num_rows // 2, 1), dim))[rng.integers(0, max(num_rows // 2, 1), num_rows)]
    if kind == "float32":
        matrix = matrix.astype(np.float32)
    found = equal_rows(matrix)
    assert (found.first.tolist(), found.group.tolist()) == by_hand(matrix)


def test_minus_zero_equals_zero():
    assert equal_rows(np.array([[0.0, 1.0], [-0.0, 1.0]])).group.tolist() == [0, 0]


def test_rows_that_share_their_hash_are_told_apart(monkeypatch):
    monkeypatch.setattr(module, "_hashed", lambda rows: np.zeros(len(rows), np.uint64))
    found = equal_rows(np.array([[1.0], [2.0], [1.0], [-0.0], [0.0]]))
    assert (found.first.tolist(), found.group.tolist()) == ([0, 1, 3], [0, 1, 0, 2, 2])


@pytest.mark.parametrize("dim", [1, 3])
def test_integers_rarely_share_their_hash(dim):
    rows = np.stack(np.meshgrid(*[np.arange(200_000 ** (1 / dim)) // 1] * dim), axis=-1).reshape(-1, dim)
    assert equal_rows(rows).none
