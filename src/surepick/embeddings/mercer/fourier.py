"""Periodic kernels, whose eigenfunctions are the Fourier basis."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.validation import check_choice
from surepick.embeddings.mercer.eigenfunctions import SQRT2, TAIL_ALLOWANCE, hurwitz_zeta, unit_column
from surepick.errors import InvalidInput
from surepick.text import quoted

FOURIER_DECAYS = ("polynomial", "geometric")


@dataclass(frozen=True, slots=True)
class FourierExpansion:
    """A periodic kernel on [0, 1]: constant, then cosines and sines whose eigenvalues fall in pairs.

        k(x, z) = 1 + 2 sum_{m>=1} v_m cos(2 pi m t),   t = x - z
        phi_1 = 1,  phi_2m = sqrt(2) cos(2 pi m x),  phi_2m+1 = sqrt(2) sin(2 pi m x),   C_phi = sqrt(2)

        "polynomial":  v_m = m^(-2 rate)
        "geometric":   v_m = r^m with r = rate,   k = (1 - r^2)/(1 - 2 r cos(2 pi t) + r^2)

    For an integer rate s the first is the spline kernel 1 + (-1)^(s-1) (2 pi)^(2s) B_2s({t})/(2s)! with a Bernoulli
    polynomial. With m whole pairs taken, the tails are 2 zeta(2 rate, m + 1) (Hurwitz, the sum over n > m of
    n^(-2 rate)) and 2 r^(m+1)/(1 - r); a pair that is cut in half adds its v. Both are closed forms: nothing is cut.

    Args:
        decay_of: "polynomial" or "geometric".
        rate: polynomial: > 1/2, about the number of derivatives of the reward; geometric: r in (0, 1).

    Raises:
        InvalidInput: unknown decay, or a rate outside its range; on use: arms outside [0, 1].

    Source: Wahba, Spline Models for Observational Data (1990), section 2.1; Poisson's kernel.
    """

    eigenfunction_bound: ClassVar[float] = SQRT2
    max_count: ClassVar[None] = None
    num_columns: ClassVar[int] = 1
    heuristic: ClassVar[str] = ""
    decay_of: str = "polynomial"
    rate: float = 1.0

    def __post_init__(self) -> None:
        check_choice("decay_of", self.decay_of, FOURIER_DECAYS)
        low, high = (0.5, math.inf) if self.decay_of == "polynomial" else (0.0, 1.0)
        if not low < self.rate < high:
            raise InvalidInput(
                f"rate is {quoted(self.rate)}; {self.decay_of} decay needs a rate in ({low:g}, {high:g}), or the "
                "eigenvalues have no finite sum."
            )
        object.__setattr__(self, "rate", float(self.rate))

    def eigenvalues(self, count: int) -> FloatArray:
        pairs = np.arange(2, count + 1) // 2
        return np.append(1.0, self._pair_values(pairs))[:count]

    def eigenfunctions(self, features: FloatArray, count: int) -> FloatArray:
        x = unit_column(features)
        index = np.arange(1, count + 1)
        turns = 2.0 * np.pi * np.outer(x, index // 2)
        functions = SQRT2 * np.where(index % 2 == 0, np.cos(turns), np.sin(turns))
        functions[:, :1] = 1.0
        return functions

    def diagonal(self, features: FloatArray) -> FloatArray:
        return np.full(len(unit_column(features)), 1.0 + self._pairs_after(np.zeros(1, dtype=np.int64))[0])

    def tails(self, count: int) -> FloatArray:
        dims = np.arange(1, count + 1)
        split = np.where(dims % 2 == 0, self._pair_values(np.maximum(dims // 2, 1)), 0.0)
        sums = np.append(1.0 + self._pairs_after(np.zeros(1, dtype=np.int64)), self._pairs_after(dims // 2) + split)
        return sums * TAIL_ALLOWANCE

    @property
    def spec(self) -> str:
        return f"fourier:{self.decay_of}:{self.rate!r}"

    def _pair_values(self, pairs: IntArray) -> FloatArray:
        """v_m of given m, of their shape."""
        orders = pairs.astype(np.float64)
        values: FloatArray = orders ** (-2.0 * self.rate) if self.decay_of == "polynomial" else self.rate**orders
        return values

    def _pairs_after(self, pairs: IntArray) -> FloatArray:
        """2 sum_{m > pairs} v_m."""
        first = pairs.astype(np.float64) + 1.0
        if self.decay_of == "polynomial":
            return 2.0 * hurwitz_zeta(2.0 * self.rate, first)
        sums: FloatArray = self.rate**first * (2.0 / (1.0 - self.rate))
        return sums
