"""The design of many rows: its value holds for all of them, and no design can be much better."""

import numpy as np
import pytest
from block_functions import written
from together import of_each

from surepick.chunks.moments import directions, moments
from surepick.chunks.passes import Passes
from surepick.chunks.sources import rows_of
from surepick.designs import long_lists as module
from surepick.designs.long_lists import d_optimal
from surepick.errors import InvalidInput, NotConverged

RNG = np.random.default_rng(9)


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1)[:, None]


KINDS = {
    "gaussian": RNG.standard_normal((20_000, 6)),
    "sphere": unit(RNG.standard_normal((20_000, 6))),
    "cube": RNG.integers(0, 2, (5_000, 6)) * 1.0,
    "one long": np.concatenate([RNG.standard_normal((5_000, 6)), 1e6 * RNG.standard_normal((1, 6))]),
    "heavy": RNG.standard_t(2, (20_000, 6)),
    "few": RNG.standard_normal((7, 6)),
    "scaled": RNG.standard_normal((20_000, 6)) * 10.0 ** np.arange(-6, 6, 2),
    "line": RNG.standard_normal((3_000, 1)),
}


@of_each("kind", KINDS)
def test_the_value_is_that_of_all_rows(kind):
    features = KINDS[kind]
    passes = Passes(rows_of(features))
    found = d_optimal(passes, directions(passes, moments(passes)))
    rank = features.shape[1]
    assert found.weights.sum() == pytest.approx(1.0)
    assert (found.weights > 0.0).all()
    assert np.array_equal(features[found.rows], found.features)
    information = (found.features.T * found.weights) @ found.features
    value = np.einsum("ij,ji->i", features, np.linalg.solve(information, features.T)).max()
    assert found.value == pytest.approx(value, rel=1e-5)
    assert rank <= value * (1 + 1e-9)
    assert found.gap <= 0.05
    assert len(passes.meter.passes) <= 8


def test_no_design_has_a_smaller_value():
    """Kiefer and Wolfowitz: r is the least; random designs are not better, and this bound would notice."""
    features = KINDS["gaussian"][:200]
    for seed in range(20):
        weights = np.random.default_rng(seed).dirichlet(np.full(200, 0.3))
        information = (features.T * weights) @ features
        assert np.einsum("ij,ji->i", features, np.linalg.solve(information, features.T)).max() >= 6.0


def test_files_and_memory_have_the_same_design(tmp_path):
    features = KINDS["gaussian"].astype(np.float32)
    found = []
    for rows in (written(tmp_path, features, [20_000]), rows_of(features, block_entries=64 * 6)):
        passes = Passes(rows)
        found.append(d_optimal(passes, directions(passes, moments(passes))))
    assert np.array_equal(found[0].rows, found[1].rows)
    assert np.array_equal(found[0].weights, found[1].weights)


def test_a_pool_that_misses_a_direction_is_filled(monkeypatch):
    """The rows that are longest span a plane; a pass brings the others."""
    monkeypatch.setattr(module, "HEURISTIC_POOL_OF_PASS", 4)
    features = np.concatenate([RNG.standard_normal((50, 3)), 100.0 * RNG.standard_normal((50, 3)) * [1.0, 1.0, 0.0]])
    passes = Passes(rows_of(features))
    found = d_optimal(passes, directions(passes, moments(passes)))
    assert found.gap <= 0.05


def test_too_few_passes_are_said(monkeypatch):
    monkeypatch.setattr(module, "MOST_PASSES", 1)
    passes = Passes(rows_of(KINDS["gaussian"]))
    with pytest.raises(NotConverged, match="after 1 passes over 20,000 rows"):
        d_optimal(passes, directions(passes, moments(passes)))


def test_rows_that_do_not_span_are_refused():
    features = np.column_stack([np.ones(100), 1.0 + 1e-9 * RNG.standard_normal(100)])
    passes = Passes(rows_of(features))
    where = directions(passes, moments(passes))
    if where.rank == 2:
        with pytest.raises(InvalidInput, match="dependent to rounding"):
            d_optimal(passes, where)
