"""A kernel by landmarks: what they leave of a row is bounded for every function of that norm."""

import numpy as np
import pytest
from block_functions import written
from together import of_each

from surepick.chunks.passes import Passes
from surepick.chunks.sources import rows_of
from surepick.embeddings import kernel as kernel_blocks
from surepick.embeddings.kernel import kernel_directions
from surepick.embeddings.kernel_functions import GaussianKernel, MaternKernel, PolynomialKernel
from surepick.errors import InvalidInput

RNG = np.random.default_rng(15)
ROWS = RNG.random((3000, 3))
KERNELS = [GaussianKernel(2.0), MaternKernel(2.5, 0.5), PolynomialKernel(2, 1.0, 1.0)]


def drawn(kernel, seed, number=5):
    """(values at the rows, norm) of a function of the kernel's space."""
    rng = np.random.default_rng(seed)
    centres, weights = rng.random((number, 3)), rng.standard_normal(number)
    norm = np.sqrt(weights @ kernel.gram(centres, centres) @ weights)
    return kernel.gram(ROWS, centres) @ weights, centres, weights, norm


@of_each("kernel", KERNELS, ids=lambda kernel: kernel.spec)
@of_each("max_rank", [3, 20, 120])
def test_what_is_left_of_a_function_is_bounded(kernel, max_rank):
    where = kernel_directions(Passes(rows_of(ROWS)), kernel, norm_bound=1.0, epsilon=0.5, max_rank=max_rank)
    assert where.rank <= max_rank
    seen = where.of(ROWS)
    assert seen.shape == (3000, where.rank)
    assert np.allclose(where.information, seen.T @ seen / 3000, atol=1e-6)
    for seed in range(10):
        values, centres, weights, norm = drawn(kernel, seed)
        theta = where.of(centres).T @ weights  # the coordinates of its projection
        assert np.linalg.norm(theta) <= norm * (1.0 + 1e-9)
        assert np.abs(values - seen @ theta).max() <= norm * where.left


def test_the_bound_is_nearly_met():
    """It is no more than what the worst function leaves: that of the row itself."""
    kernel = KERNELS[0]
    where = kernel_directions(Passes(rows_of(ROWS)), kernel, norm_bound=1.0, epsilon=0.5, max_rank=10)
    exact = np.sqrt((kernel.diagonal(ROWS) - (where.of(ROWS) ** 2).sum(axis=1)).max())
    assert exact <= where.left <= exact * (1.0 + 1e-6)


def test_fewer_landmarks_are_used_where_bias_matters_less():
    ranks = [
        kernel_directions(Passes(rows_of(ROWS)), KERNELS[0], norm_bound=1.0, epsilon=epsilon).rank
        for epsilon in (0.01, 0.1, 1.0)
    ]
    assert ranks == sorted(ranks, reverse=True)
    assert ranks[0] > ranks[2]


def test_two_passes_are_enough_for_all_dimensions(tmp_path):
    passes = Passes(written(tmp_path, ROWS, [1000, 2000]))
    kernel_directions(passes, KERNELS[0], norm_bound=1.0, epsilon=0.1)
    assert [one.name for one in passes.meter.passes] == ["landmarks", "landmarks"]


def test_rows_that_the_sample_misses_get_landmarks(monkeypatch):
    monkeypatch.setattr(kernel_blocks, "SAMPLE", 20)
    rows = np.concatenate([0.01 * RNG.random((2000, 3)), 5.0 + RNG.random((7, 3))])
    where = kernel_directions(Passes(rows_of(rows)), KERNELS[0], norm_bound=1.0, epsilon=0.3)
    assert where.left < 0.3
    assert (where.landmarks > 4.0).any()


def test_equal_rows_are_no_trouble():
    rows = np.repeat(ROWS[:4], 50, axis=0)
    where = kernel_directions(Passes(rows_of(rows)), KERNELS[0], norm_bound=1.0, epsilon=0.1)
    assert where.rank <= 4
    assert where.left < 1e-3


@pytest.mark.parametrize(("more", "said"), [({"norm_bound": 0.0}, "norm_bound"), ({"max_rank": 0}, "max_rank")])
def test_settings_without_meaning_are_refused(more, said):
    with pytest.raises(InvalidInput, match=said):
        kernel_directions(Passes(rows_of(ROWS)), KERNELS[0], **{"norm_bound": 1.0, "epsilon": 0.1, **more})


def test_a_kernel_that_is_zero_is_refused():
    with pytest.raises(InvalidInput, match="zero on these rows"):
        kernel_directions(
            Passes(rows_of(np.zeros((50, 2)))), PolynomialKernel(2, 0.0, 1.0), norm_bound=1.0, epsilon=0.1
        )
