"""The design for all differences of rows in blocks: its value holds for all pairs, and no design is much better."""

from dataclasses import replace

import numpy as np
import pytest
from block_functions import written

import surepick as sp
from surepick.chunks.moments import Directions, Largest
from surepick.chunks.passes import Meter, Passes
from surepick.chunks.sources import rows_of
from surepick.designs import design_value, long_lists as module
from surepick.errors import InvalidInput, NotConverged

RNG = np.random.default_rng(9)


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1)[:, None]


KINDS = {
    "gaussian": RNG.standard_normal((20_000, 6)),
    "far from 0": 30.0 + RNG.standard_normal((20_000, 6)),
    "sphere": unit(RNG.standard_normal((20_000, 6))),
    "cube": RNG.integers(0, 2, (5_000, 6)) * 1.0,
    "one long": np.concatenate([RNG.standard_normal((5_000, 6)), 1e6 * RNG.standard_normal((1, 6))]),
    "heavy": RNG.standard_t(2, (20_000, 6)),
    "few": RNG.standard_normal((7, 6)),
    "as many as columns": np.eye(6)[RNG.integers(0, 6, 30_000)],
    "scaled": RNG.standard_normal((20_000, 6)) * 10.0 ** np.arange(-6, 6, 2),
    "dependent": RNG.standard_normal((20_000, 4)) @ RNG.standard_normal((4, 6)),
    "plane": RNG.standard_normal((20_000, 2)),
    "line": RNG.standard_normal((3_000, 1)),
    "all the same": np.ones((3_000, 2)),
    "one": np.ones((1, 2)),
}


def whole(found, size):
    weights = np.zeros(size)
    weights[found.rows] = found.weights
    return weights


@pytest.mark.cases(7)
@pytest.mark.parametrize("kind", KINDS)
def test_value_and_bound_are_those_of_all_rows(kind):
    """The value is found again in memory; and two certified designs of one problem bracket the same optimum."""
    features = KINDS[kind]
    found, memory = sp.solve_design(rows_of(features)), sp.solve_design(features)
    assert found.gap <= 0.01
    assert found.value == pytest.approx(design_value(features, whole(found, len(features))), rel=1e-6)
    assert found.lower_bound <= memory.value * (1.0 + 1e-6)
    assert memory.lower_bound <= found.value * (1.0 + 1e-6)
    assert found.exact
    assert found.rank == memory.rank
    assert found.weights.sum() == pytest.approx(1.0)
    assert (found.weights > 0.0).all()
    assert np.array_equal(features[found.rows], found.features)
    assert found.passes <= 6


def test_a_design_that_is_not_optimal_is_noticed(monkeypatch):
    """The saboteur: equal weights on the same rows. Their value is true, and the gap is not within the tolerance."""
    usual = module._of_pool

    def evenly(points, centre, *more):
        inner = usual(points, centre, *more)
        weights = np.full(len(inner.weights), 1.0 / len(inner.weights))
        inverse = module.unit_factor((points[inner.rows].T * weights) @ points[inner.rows])
        radii = np.vstack([inverse, -centre @ inverse])
        return replace(inner, weights=weights, radii=radii, least=(inner.least[0], 0.0))

    monkeypatch.setattr(module, "_of_pool", evenly)
    with pytest.raises(NotConverged) as caught:
        sp.solve_design(rows_of(KINDS["gaussian"]))
    best = caught.value.best
    assert best.value == pytest.approx(design_value(KINDS["gaussian"], whole(best, 20_000)), rel=1e-6)
    assert best.gap > 0.01


class TestLongFronts:
    """More rows may belong to the farthest pair than are compared with each other."""

    FEATURES = RNG.standard_normal((20_000, 6))

    @pytest.fixture(autouse=True)
    def short(self, monkeypatch):
        monkeypatch.setattr(module, "FRONT", 256)

    def test_the_longest_are_compared_with_all(self):
        meter = Meter()
        found = sp.solve_design(rows_of(self.FEATURES), meter=meter)
        assert "farthest" in [one.name for one in meter.passes]
        assert found.exact
        assert found.value == pytest.approx(design_value(self.FEATURES, whole(found, 20_000)), rel=1e-6)
        assert found.passes == len(meter.passes)

    def test_where_they_are_too_many_the_gap_says_so(self, monkeypatch):
        monkeypatch.setattr(module, "HOT", 2)
        meter = Meter()
        with pytest.raises(NotConverged, match=r"accept \.best, whose value and bound hold") as caught:
            sp.solve_design(rows_of(self.FEATURES), meter=meter)
        best = caught.value.best
        assert not best.exact
        assert best.gap > 0.01
        assert best.value >= design_value(self.FEATURES, whole(best, 20_000))
        assert sp.solve_design(rows_of(self.FEATURES), tolerance=1.1 * best.gap).gap <= 1.1 * best.gap
        assert len(meter.passes) <= 8

    @pytest.mark.cases(8)
    @pytest.mark.parametrize("seed", range(20))
    def test_no_pair_is_farther_apart(self, monkeypatch, seed):
        monkeypatch.setattr(module, "FRONT", 8)
        value, reached, true = self.bounded(seed)
        assert value >= true * (1.0 - 1e-12)
        assert reached == pytest.approx(true, rel=1e-6)

    def test_pairs_that_are_left_out_would_be_noticed(self, monkeypatch):
        """The saboteur: with nothing said of the rows beyond the front the bound is too small for some."""
        monkeypatch.setattr(module, "FRONT", 8)
        monkeypatch.setattr(module, "_from_longest", lambda *_: Largest(np.empty(0), np.empty(0, np.int64), 64))
        outcomes = [self.bounded(seed) for seed in range(20)]
        assert sum(value < true for value, _, true in outcomes) >= 10

    def bounded(self, seed):
        """(bound, largest that was met, true) squared distance: long rows on one side, their partners on the other are
        shorter than the rest of the front."""
        rng = np.random.default_rng(seed)
        points = unit(rng.standard_normal((1000, 3))) * rng.uniform(0.2, 0.6, (1000, 1))
        points[:12] = unit(np.array([1.0, 0.0, 0.0]) + 0.2 * rng.standard_normal((12, 3)))
        points[0] *= 1.6
        points[20] = [-0.8, 0.0, 0.0]
        passes = Passes(rows_of(points, block_entries=64 * 3))
        form = np.vstack([np.eye(3), np.zeros((1, 3))])
        white = module._White(module.directions(passes, module.moments(passes)), np.eye(3))
        (front,) = module.largest_rows(passes, white.of, factors=(form,), most=8)
        inner = module._PairsOfPool(np.arange(1), np.ones(1), form, 1.0, form, (0.0, 0.0))
        value, reached, _ = module._farthest(passes, white, inner, front, enough=6.5)
        true = max(float(((points - one) ** 2).sum(axis=1).max()) for one in points)
        return value, reached, true


def bounds_of_a_pool(seed):
    """(lower bound of a small pool with the prices of all rows, the same without them, value of a design of all)."""
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((40, 2)) + 0.5
    points = features[np.sort(rng.choice(40, 6, replace=False))]
    inner = module._of_pool(points, np.zeros(2), 0.01, 200)
    where = module._White(Directions(None, 0.0, np.eye(2), 9.0), np.eye(2))
    (priced,) = module.largest_rows(Passes(rows_of(features)), where.of, factors=(inner.prices,), most=40)
    nothing = Largest(np.empty(0), np.empty(0, np.int64), 40)
    return module._bound(inner, priced, 0.0), module._bound(inner, nothing, 0.0), sp.solve_design(features).value


def test_a_pool_gives_a_bound_for_all_rows():
    """The saboteur: without the prices of the rows beyond the pool the bound is beyond what designs reach."""
    outcomes = np.array([bounds_of_a_pool(seed) for seed in range(40)])
    assert (outcomes[:, 0] <= outcomes[:, 2] * (1.0 + 1e-9)).all()
    assert np.count_nonzero(outcomes[:, 1] > outcomes[:, 2]) >= 5


def test_files_and_memory_have_the_same_design(tmp_path):
    features = KINDS["gaussian"].astype(np.float32)
    found = [sp.solve_design(rows) for rows in (written(tmp_path, features, [12_345, 7_655]), rows_of(features))]
    assert np.array_equal(found[0].rows, found[1].rows)
    assert np.allclose(found[0].weights, found[1].weights)


def test_whoever_makes_the_passes_finds_the_same_bits(tmp_path):
    rows = written(tmp_path, KINDS["gaussian"].astype(np.float32), [12_345, 7_655])
    assert sp.solve_design(rows, executor="processes:2") == sp.solve_design(rows)


@pytest.mark.parametrize(
    ("features", "more", "said"),
    [
        (rows_of(KINDS["few"]), {"active": [0, 1]}, "all rows in blocks are active"),
        (rows_of(KINDS["few"]), {"rank_tolerance": 1e-6}, "no rank_tolerance"),
        (rows_of(KINDS["few"]), {"tolerance": 0.0}, "tolerance is 0.0"),
        (KINDS["few"], {"executor": "processes:2"}, "for rows in blocks"),
        (KINDS["few"], {"meter": Meter()}, "for rows in blocks"),
    ],
)
def test_options_that_do_nothing_are_refused(features, more, said):
    with pytest.raises(InvalidInput, match=said):
        sp.solve_design(features, **more)


def test_pulls_follow_from_it():
    found = sp.solve_design(rows_of(KINDS["gaussian"]))
    counts = sp.round_design(found.weights, 1000)
    realised = 1000 * design_value(KINDS["gaussian"], np.bincount(found.rows, counts, 20_000))
    assert realised <= 1.1 * found.value
