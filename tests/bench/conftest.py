"""The results of a small experiment that nothing disturbed."""

import pytest
from small_experiments import SMALL

from surepick_bench.runner import run_experiments


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory):
    """The small experiment, three seeds, one process."""
    return run_experiments([SMALL], out=tmp_path_factory.mktemp("whole") / "r.parquet", runs=3, jobs=1)
