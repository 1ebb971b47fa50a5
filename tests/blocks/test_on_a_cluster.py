"""A Dask cluster: its bits are those of one process, in passes and designs, also where workers die."""

from functools import partial

import numpy as np
import pytest
from block_functions import added, killed_once, sums, written
from dask_cluster import dask_cluster

import surepick as sp
from surepick.chunks.passes import Passes, executor_of
from surepick.chunks.sources import rows_of
from surepick.errors import InvalidInput

RNG = np.random.default_rng(6)
FEATURES = RNG.standard_normal((3000, 3)) * 10.0 ** RNG.integers(-8, 8, (3000, 1))
pytestmark = pytest.mark.filterwarnings("ignore")  # of distributed, about its own clean-up


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Its address; a worker that dies is started again."""
    with dask_cluster(tmp_path_factory.mktemp("cluster"), restarted=True) as address:
        yield address


def alone(rows):
    return Passes(rows).map_reduce("sums", sums, added)


def test_a_cluster_has_the_same_bits(tmp_path, cluster):
    rows = written(tmp_path, FEATURES, [1000, 1, 1999])
    passes = Passes(rows, executor_of(f"dask:{cluster}"))
    found = passes.map_reduce("sums", sums, added)
    assert np.array_equal(found[0], alone(rows)[0])
    assert [(one.name, one.rows, one.num_bytes) for one in passes.meter.passes] == [("sums", 3000, FEATURES.nbytes)]


@pytest.mark.cases(2)
@pytest.mark.parametrize("at", [0, 64 * 11, 64 * 40])
def test_a_worker_that_is_killed_costs_time_only(tmp_path, cluster, at):
    rows = rows_of(FEATURES, block_entries=64 * 3)
    mark = str(tmp_path / "mark")
    found = Passes(rows, executor_of(f"dask:{cluster}")).map_reduce("sums", partial(killed_once, mark, at), added)
    assert (tmp_path / "mark").exists()
    assert np.array_equal(found[0], alone(rows)[0])


def test_what_is_wrong_with_a_block_is_said(tmp_path, cluster):
    broken = FEATURES.copy()
    broken[2500, 2] = np.nan
    rows = written(tmp_path, broken, [2000, 1000])
    with pytest.raises(InvalidInput, match=r"001\.npy, row 500 has NaN"):
        Passes(rows, executor_of(f"dask:{cluster}")).map_reduce("sums", sums, added)


def test_a_design_has_the_same_bits(tmp_path, cluster):
    from distributed import Client

    rows = written(tmp_path, np.random.default_rng(9).standard_normal((20_000, 6)).astype(np.float32), [12_345, 7_655])
    found = sp.solve_design(rows)
    assert sp.solve_design(rows, executor=f"dask:{cluster}") == found
    with Client(cluster) as client:
        assert sp.solve_design(rows, executor=client) == found
