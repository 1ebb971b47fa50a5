"""A list on a cluster: workers are killed in some passes of five, and the certificate is that of one process."""

import os
import signal

import numpy as np
import pytest
from block_functions import written
from dask_cluster import dask_cluster

import surepick as sp
from surepick.chunks.passes import Meter
from surepick.chunks.sources import RowBlocks

FEATURES = np.random.default_rng(16).standard_normal((60_000, 6)).astype(np.float32)
THETA = np.array([0.5, -0.4, 0.4, 0.3, 0.2, -0.5])
MEANS = FEATURES.astype(np.float64) @ THETA


def found(rows, **more):
    rng = np.random.default_rng(4)
    return sp.find_best(
        rows,
        lambda ids: MEANS[[int(one) for one in ids]] + 0.5 * rng.standard_normal(len(ids)),
        epsilon=0.1,
        noise="subgaussian:0.5",
        norm_bound=1.0,
        size=100,
        progress=False,
        **more,
    )


class Killer:
    """Kills a worker in the middle of some passes."""

    def __init__(self, client, passes):
        self.client, self.passes, self.meter, self.killed = client, passes, Meter(watch=self), []

    def __call__(self, name, seen, total, seconds):
        number = len(self.meter.passes) + 1
        if number in self.passes and number not in self.killed and seen > total // 2:
            self.killed.append(number)
            processes = self.client.run(os.getpid)
            os.kill(next(iter(processes.values())), signal.SIGKILL)


@pytest.mark.filterwarnings("ignore")  # of distributed, about its own clean-up
@pytest.mark.parametrize("passes", [(3,), pytest.param((1, 3, 4), marks=pytest.mark.slow)])
def test_killed_workers_change_nothing(tmp_path, tmp_path_factory, passes):
    from distributed import Client

    rows = RowBlocks(written(tmp_path, FEATURES, [25_000, 35_000]).sources, block_entries=2048 * 6)
    alone = found(rows)
    with dask_cluster(tmp_path_factory.mktemp("cluster"), restarted=True) as address, Client(address) as client:
        killer = Killer(client, passes)
        spread = found(rows, executor=f"dask:{address}", meter=killer.meter)
    assert killer.killed == [number for number in passes if number <= len(killer.meter.passes)]
    assert len(killer.killed) >= min(len(passes), 2)
    assert spread.certificate == alone.certificate
    assert spread.study.policy.subset == alone.study.policy.subset
