"""Hashes of what is stored: a chain of texts, and the arms."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any


def chained(previous: str, *texts: str) -> str:
    """SHA-256 of the hash before and of texts, each with its length, so that none can run into the next."""
    digest = hashlib.sha256(previous.encode())
    for text in texts:
        stored = str(text).encode()  # SQLite may hold any kind of value
        digest.update(len(stored).to_bytes(8, "big"))
        digest.update(stored)
    return digest.hexdigest()


def arms_hash(ids: str, shape: tuple[int, ...], features: bytes) -> str:
    """The hash of arms.

    Args:
        ids: a JSON array of the ids.
        shape: (K, D) of the features.
        features: row by row, little-endian doubles.
    """
    return chained("", ids, str(list(shape)), hashlib.sha256(features).hexdigest())


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
