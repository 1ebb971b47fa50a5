"""The design solver beside the Frank-Wolfe iteration of the published codes: `python benchmarks/design_solver.py`."""

from __future__ import annotations

import argparse
import statistics
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from surepick.designs import design_value, solve_design

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class FrankWolfe:
    """Where the reference stopped.

    Args:
        weights: shape (K,).
        steps: taken.
        seconds: spent.
        stopped: its own rule ended it; False when `max_steps` did.
    """

    weights: FloatArray
    steps: int
    seconds: float
    stopped: bool


def frank_wolfe(features: FloatArray, *, max_steps: int = 100_000) -> FrankWolfe:
    """The reference: Frank-Wolfe over the explicit (K^2, d) array of differences.

    Starts from uniform weights. A step inverts A, finds the worst of all K^2 pairs, and moves by 2/(k+2) to the arm of
    steepest descent, argmax_i (x_i'A^-1 y)^2. **It stops by the published rule: when the weights change by less than
    1 % in relative norm, ||new - old|| < .01 ||old||.** That is a small step, not a small gap.
    """
    num_arms = len(features)
    begin = time.perf_counter()
    differences = (features[:, None, :] - features[None, :, :]).reshape(num_arms**2, -1)
    weights = np.full(num_arms, 1.0 / num_arms)
    for k in range(max_steps):
        inverse = np.linalg.inv(features.T @ (weights[:, None] * features))
        worst = int(np.argmax(np.einsum("ij,ij->i", differences @ inverse, differences)))
        arm = int(np.argmax((features @ (inverse @ differences[worst])) ** 2))
        step = 2.0 / (k + 2.0)
        if k == 0:  # a full step would leave one arm and a singular matrix
            step = 0.5
        new = (1.0 - step) * weights
        new[arm] += step
        change = float(np.linalg.norm(new - weights) / np.linalg.norm(weights))
        weights = new
        if change < 0.01:
            return FrankWolfe(weights, k + 1, time.perf_counter() - begin, True)
    return FrankWolfe(weights, max_steps, time.perf_counter() - begin, False)
