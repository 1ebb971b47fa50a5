"""Which of the compared vectors are the same: found among those of one length, as among all."""

import numpy as np
import pytest

from surepick.designs.problem import PosedArms, longest_first, pose_targets
from surepick.linalg.factorisations import row_norms
from surepick.linalg.unique_rows import equal_rows


@pytest.mark.parametrize("kind", ["distinct", "grid", "repeated", "signs", "zeros", "one", "rounded"])
@pytest.mark.parametrize("dim", [1, 2, 7])
def test_vectors_are_the_distinct_ones_longest_first(kind, dim):
    rng = np.random.default_rng(dim)
    rows = rng.standard_normal((600, dim))
    targets = {
        "distinct": rows,
        "grid": np.round(rows, 1),
        "repeated": rows[rng.integers(0, 50, 600)],
        "signs": np.concatenate([rows, -rows, rows[::-1]]),
        "zeros": np.where(rng.random((600, 1)) < 0.5, 0.0, rows) * np.where(rng.random((600, 1)) < 0.5, 1.0, -1.0),
        "one": rows[:1],
        "rounded": np.concatenate([rows, rows * (1.0 + 2.0**-52)]),
    }[kind]
    arms = PosedArms.of(rng.standard_normal((40, dim)))
    problem = pose_targets(arms, targets, span_tolerance=1.0)
    images = arms.image.images(targets).rows
    distinct = images[equal_rows(images).first]
    lengths = row_norms(distinct)
    order = longest_first(lengths)
    np.testing.assert_array_equal(problem.points, distinct[order])
    np.testing.assert_array_equal(problem.point_lengths, lengths[order])
    assert len(problem.active) == len(distinct)
