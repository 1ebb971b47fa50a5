"""Independent random streams, derived from names instead of from call order."""

import hashlib
import secrets
from typing import Literal

import numpy as np

from surepick.core.values import check_choice, whole_number
from surepick.errors import InvalidInput

MOST_SEED = 2**32
Chooser = Literal["program", "user"]
WHO_CHOSE = {"program": "drawn by the program when the study was set up", "user": "given by whoever set the study up"}


def stream(seed: int, *names: str | int) -> np.random.Generator:
    """A generator that depends on the seed and on the names, and on nothing else: neither calls nor workers."""
    if seed < 0:
        raise InvalidInput(f"seed is {seed}; a seed must be a non-negative integer.")
    labelled = [f"{'str' if isinstance(name, str) else 'int'}:{name}" for name in names]
    digest = hashlib.sha256("\x1f".join(labelled).encode()).digest()
    words = [int.from_bytes(digest[i : i + 4], "little") for i in range(0, 32, 4)]
    return np.random.default_rng(np.random.SeedSequence([seed, *words]))


def settled_seed(name: str, seed: int | None, by: Chooser | None, meaning: str) -> tuple[int, Chooser]:
    """(the seed, who chose it) of a draw that nobody may know, or try several of, before the first result."""
    if seed is None:
        if by is not None:
            raise InvalidInput(f"{name}_by says who chose {name}, which is not given; leave it out.")
        return secrets.randbelow(MOST_SEED), "program"
    chosen = whole_number(name, seed, least=0, meaning=meaning)
    if by is not None:
        check_choice(f"{name}_by", by, tuple(WHO_CHOSE))
    return chosen, "user" if by is None else by
