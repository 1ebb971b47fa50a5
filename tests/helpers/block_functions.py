"""What tests ask of blocks of rows; a module of its own, since other processes import it."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np

from surepick.chunks.passes import Passes
from surepick.chunks.sources import NpySource, RowBlocks

Sums = tuple[np.ndarray, int]


def sums(rows: np.ndarray, _: int) -> Sums:
    """Sums of the columns, whose last bits depend on the order in which they are added."""
    return np.asarray(rows, np.float64).sum(axis=0), len(rows)


def added(left: Sums, right: Sums) -> Sums:
    return left[0] + right[0], left[1] + right[1]


def killed_once(mark: str, at: int, rows: np.ndarray, first: int) -> Sums:
    """The same; but the first process that has the block at that row is killed."""
    if first == at and not Path(mark).exists():
        Path(mark).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return sums(rows, first)


def written(folder: Path, features: np.ndarray, sizes: list[int]) -> RowBlocks:
    """The features in files of these numbers of rows, in small blocks."""
    first, paths = 0, []
    for number, size in enumerate(sizes):
        paths.append(folder / f"{number:03}.npy")
        np.save(paths[-1], features[first : first + size])
        first += size
    return RowBlocks([NpySource.of(path) for path in paths], block_entries=64 * features.shape[1])


def passes_over(rows: RowBlocks) -> Passes:
    return Passes(rows)
