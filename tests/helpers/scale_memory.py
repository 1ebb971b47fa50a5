"""Run by test_scale.py in a process of its own: solve one large design under a limit and tell what it took.

Arguments: arms, dimensions, type of the features, limit of the address space in GB.
"""

import json
import resource
import sys
import time
from pathlib import Path

import numpy as np

from surepick import solve_design
from surepick.linalg.rows import one_thread

MEGABYTE = 1_000_000
STATUS = Path("/proc/self/status")


def peak_megabytes() -> float:
    """Largest resident memory of this program; the kernel's usage record would also count the process that began it."""
    if STATUS.is_file():
        line = next(line for line in STATUS.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024 / MEGABYTE
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / MEGABYTE


def main(num_arms: int, dim: int, kind: str, limit: float) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (int(limit * 1e9), int(limit * 1e9)))
    start = peak_megabytes()
    features = np.random.default_rng(0).standard_normal((num_arms, dim), dtype=np.dtype(kind))
    begin = time.perf_counter()
    with one_thread():
        design = solve_design(features)
    seconds = time.perf_counter() - begin
    print(json.dumps({"start": start, "peak": peak_megabytes(), "seconds": seconds, "gap": design.gap}))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], float(sys.argv[4]))
