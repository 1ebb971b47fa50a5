"""Experiments on a Dask cluster: a scheduler and two workers on loopback give the rows of one process."""

from pathlib import Path

import joblib
import pytest
from apart import apart
from command_line import answered
from dask_cluster import dask_cluster

from surepick_bench.results import read_results
from surepick_bench.runner import run_experiments
from surepick_bench.spec import EnvironmentSpec, PolicySpec, crossed

SMALL = crossed(
    "small",
    "a small one",
    [EnvironmentSpec("soare", "soare", {"dim": 3, "angle": 0.6})],
    [PolicySpec("action-elimination", "action-elimination", {"growth": 0.5})],
    epsilon=0.5,
)


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory):
    """Address of a scheduler with two workers, each a process of its own."""
    with dask_cluster(tmp_path_factory.mktemp("cluster")) as address:
        yield address


def without_seconds(rows) -> list[dict]:
    return [{name: value for name, value in row.items() if "seconds" not in name} for row in rows]


def test_no_scheduler_is_said(tmp_path):
    words = ["bench", "run", "peers", "--dask", "tcp://127.0.0.1:9", "--out", str(tmp_path / "r.parquet")]
    code, said = apart(answered, words, most=120.0)
    assert code == 2
    assert "there is no Dask scheduler at tcp://127.0.0.1:9" in said


@pytest.mark.filterwarnings("ignore")  # of distributed, about its own clean-up
def test_two_workers_give_the_rows_of_one_process(scheduler, tmp_path):
    from distributed import Client

    with Client(scheduler), joblib.parallel_config(backend="dask"):
        spread = run_experiments([SMALL], out=tmp_path / "dask.parquet", runs=6)
    alone = run_experiments([SMALL], out=tmp_path / "one.parquet", runs=6, jobs=1)
    assert without_seconds(spread.replicates) == without_seconds(alone.replicates)
    assert without_seconds(spread.rounds) == without_seconds(alone.rounds)


@pytest.mark.filterwarnings("ignore")  # of distributed, about its own clean-up
def test_the_command_takes_the_address(scheduler, tmp_path):
    out = tmp_path / "r.parquet"
    words = ["bench", "run", "high-dimensional", "--policies", "certified-linear", "--runs", "1", "--out", str(out)]
    code, said = apart(answered, [*words, "--dask", scheduler], most=120.0)
    assert code == 0, said
    assert len(read_results(Path(out)).replicates) == 4
