"""scipy, which is loaded when it is first used, and the normal distribution, which needs none of it.

Loading scipy takes as long as a small study: what every run computes is computed without it.
"""

import importlib
import math
from types import ModuleType
from typing import Any

import numpy as np

from surepick.core.records import FloatArray


class _Late(ModuleType):
    """A module whose names are looked up when they are first used."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(importlib.import_module(self.__name__), name)
        setattr(self, name, found)
        return found


scipy: Any = _Late("scipy")
special: Any = _Late("scipy.special")

# log(erfc(z) exp(z^2) / t) is a polynomial in 2 t - 1, t = 2 / (2 + z), for z >= 0, to 1e-16: interpolated at 64
# Chebyshev nodes with 50 digits.
ERFC = (
    -0.67179408405669227, 0.67264322397765673, 0.047343306841904428, -0.046895610231175296, -0.0098726893663899586,
    0.0088249385570606232, 0.0017589335577990161, -0.0023458125004828534, -0.00014624686337800336,
    0.00067367879558023496, -9.3735031170981705e-5, -0.00017430294720307622, 7.1401014127570306e-5,
    3.1745179749437404e-5, -3.0187884551394244e-5, 1.3772664134464418e-7, 8.5626234201212856e-6, -2.9479868769982593e-6,
    -1.27231190486887e-6, 1.2500276612569754e-6, -1.6849800720653297e-7, -2.495832761719667e-7, 1.5334345920908177e-7,
    1.4448658046252675e-9, -3.9171820510271858e-8, 1.1172352263623758e-8, 4.0608821469697202e-9, -1.8902306008944537e-9,
)  # fmt: skip


def log_tail(x: FloatArray) -> FloatArray:
    """log Phi(-|x|) = log(erfc(|x| / sqrt 2) / 2) entry by entry, in the form of Schonfelder (1978)."""
    t = 2.0 / (2.0 + np.abs(x) * math.sqrt(0.5))
    place, found = 2.0 * t - 1.0, np.full_like(t, ERFC[-1])
    for coefficient in ERFC[-2::-1]:  # Horner
        found *= place
        found += coefficient
    with np.errstate(divide="ignore", over="ignore"):  # of infinities
        found += np.log(0.5 * t)
        found -= 0.5 * x * x
    return found


def log_ndtr(x: FloatArray) -> FloatArray:
    """log Phi(x) entry by entry, also where Phi(x) is smaller than any number, or 1 - Phi(x) is."""
    tail = log_tail(x)
    return np.where(x > 0.0, np.log1p(-np.exp(tail)), tail)
