"""Run by test_scale.py in a process of its own: median seconds of a design with one and with two BLAS threads.

Arguments: arms, dimensions, repeats.
"""

import json
import statistics
import sys
import time

import numpy as np
from threadpoolctl import threadpool_limits

from surepick import solve_design


def seconds(features: np.ndarray, threads: int) -> float:
    with threadpool_limits(threads):
        begin = time.perf_counter()
        solve_design(features)
        return time.perf_counter() - begin


def main(num_arms: int, dim: int, repeats: int) -> None:
    features = np.random.default_rng(0).standard_normal((num_arms, dim))
    seconds(features, 1)
    taken = [(seconds(features, 1), seconds(features, 2)) for _ in range(repeats)]  # in turn: both meet the same load
    one, two = (statistics.median(column) for column in zip(*taken, strict=True))
    print(json.dumps({"one": one, "two": two}))


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:4]))
