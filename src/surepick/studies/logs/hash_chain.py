"""Hashes of what is stored: a chain of texts, the arms, and the one form of JSON data that is hashed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from surepick.core.arms import Arms


def chained(previous: str, *texts: str) -> str:
    """SHA-256 of the hash before and of texts, each with its length, so that none can run into the next."""
    digest = hashlib.sha256(previous.encode())
    for text in texts:
        stored = str(text).encode()  # SQLite may hold any kind of value
        digest.update(len(stored).to_bytes(8, "big"))
        digest.update(stored)
    return digest.hexdigest()


def arms_hash(
    ids: str,
    shape: tuple[int, ...],
    features: bytes,
    costs: ArrayLike | None = None,
    segments: Sequence[str] | None = None,
) -> str:
    """The hash of arms.

    Args:
        ids: a JSON array of the ids.
        shape: (K, D) of the features.
        features: row by row, little-endian doubles.
        costs: of one pull of each arm, shape (K,); None, where there are none, has no part in the hash.
        segments: of each arm; the same of None.
    """
    priced = [] if costs is None else [hashlib.sha256(np.ascontiguousarray(costs, dtype="<f8").tobytes()).hexdigest()]
    apart = [] if segments is None else [json.dumps(list(segments), ensure_ascii=False)]
    return chained("", ids, str(list(shape)), hashlib.sha256(features).hexdigest(), *priced, *apart)


def rows_hash(rows: Iterable[Iterable[Any]]) -> str:
    """SHA-256 of rows of a table, in their order: a JSON array of arrays.

    Raises:
        TypeError: a cell is no text, number or null (SQLite may hold any kind of value).
    """
    return hashlib.sha256(row_text(list(map(tuple, rows))).encode("utf-8", "surrogatepass")).hexdigest()


def row_text(row: Iterable[Any]) -> str:
    """A row as one line of JSON; floats exactly.

    Raises:
        TypeError: as in `rows_hash`.
    """
    return json.dumps(row if isinstance(row, list) else tuple(row), ensure_ascii=False, separators=(",", ":"))


def hash_of_arms(arms: Arms) -> str:
    """The hash of arms as they are in memory: `arms_hash` of their ids, features, costs and segments."""
    features = np.ascontiguousarray(arms.features, dtype="<f8")
    ids = json.dumps(arms.ids, ensure_ascii=False)
    return arms_hash(ids, features.shape, features.tobytes(), arms.costs, arms.segments)


def canonical(value: Any) -> bytes:
    """JSON data as the bytes that are hashed and signed: keys sorted, no spaces, UTF-8, numbers as Python writes them.

    Raises:
        ValueError: a number is not finite.
    """
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "surrogatepass")
