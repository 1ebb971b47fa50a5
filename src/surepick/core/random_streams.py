"""Independent random streams, derived from names instead of from call order."""

from __future__ import annotations

import hashlib

import numpy as np

from surepick.errors import InvalidInput


def stream(seed: int, *names: str | int) -> np.random.Generator:
    """A generator that depends on the seed and on the names, and on nothing else.

    Two streams with different names are independent for all practical purposes, so a result depends on
    (specification, seed) and never on the order of calls or on the number of workers.

    Args:
        seed: a non-negative integer.
        names: what the randomness is for, e.g. `stream(7, "noise", 3)`.

    Returns:
        A fresh PCG64 generator; the same arguments always give the same one.

    Raises:
        InvalidInput: the seed is negative.

    Source: ours (SHA-256 of the names as NumPy's SeedSequence entropy).
    """
    if seed < 0:
        raise InvalidInput(f"seed is {seed}; a seed must be a non-negative integer.")
    labelled = [f"{'str' if isinstance(name, str) else 'int'}:{name}" for name in names]
    digest = hashlib.sha256("\x1f".join(labelled).encode()).digest()
    words = [int.from_bytes(digest[i : i + 4], "little") for i in range(0, 32, 4)]
    return np.random.default_rng(np.random.SeedSequence([seed, *words]))
