"""Which of the compared vectors are the same: found among those of one length, as among all."""

from dataclasses import replace

import numpy as np
import pytest
from together import of_each

from surepick.designs.problem import DesignInput, longest_first, pose_targets
from surepick.linalg.factorisations import ImageMap, row_norms
from surepick.linalg.rows import MANY, equal_rows


@of_each("kind", ["distinct", "grid", "repeated", "signs", "zeros", "one", "rounded"])
@of_each("dim", [1, 2, 7])
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
    arms = DesignInput.of(rng.standard_normal((40, dim)))
    problem = pose_targets(arms, targets, span_tolerance=1.0)
    images = arms.image.images(targets)[0]
    distinct = images[equal_rows(images).first]
    lengths = row_norms(distinct)
    order = longest_first(lengths)
    np.testing.assert_array_equal(problem.points, distinct[order])
    np.testing.assert_array_equal(problem.point_lengths, lengths[order])
    assert len(problem.active) == len(distinct)


def test_images_of_multiples_are_those_of_the_map_that_is_written_out():
    vectors = np.random.default_rng(1).standard_normal((200, 7))
    quick = ImageMap.of_multiples(7, 0.3)
    written = replace(quick, multiple=None).images(vectors)
    np.testing.assert_allclose(quick.images(vectors)[0], written[0], rtol=1e-15)
    assert not quick.images(vectors)[1].any()
    assert written[1].max() < 1e-15


@pytest.mark.parametrize("steep", [1.0, 1e6])
def test_images_of_many_vectors_are_those_of_a_few(steep):
    """In plain products where the map is harmless, in extended precision where it is not."""
    rng = np.random.default_rng(2)
    arms = rng.standard_normal((500, 5)) @ np.array([np.arange(1.0, 6.0), *np.eye(5)[1:]])
    arms = arms[:, :1] + arms / steep
    image = DesignInput.of(arms).image
    vectors = arms[rng.integers(0, 500, MANY)] - arms[0]
    many = image.images(vectors)[0]
    few = np.concatenate([image.images(some)[0] for some in np.array_split(vectors, 40)])
    np.testing.assert_allclose(many, few, rtol=1e-9, atol=1e-9 * np.abs(few).max())
