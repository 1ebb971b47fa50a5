"""How this process rounds: two that round alike have the same fingerprint."""

from __future__ import annotations

import hashlib

import numpy as np
import scipy
import scipy.linalg


def arithmetic() -> str:
    """How this process rounds, in 16 hexadecimal digits: with equal digits, equal programs may be expected to give
    equal bits.

    Processors, numbers of threads and versions of the libraries add in different orders; a solver that iterates turns
    differences in the last bit into another design as good as the first. Digits that differ say that such results
    cannot be compared bit by bit. The sizes are such that more threads show (they do in factorisations, from a few
    hundred rows on).
    """
    grid = np.arange(1, 1 + 300 * 100, dtype=np.float64).reshape(300, 100)
    wide = np.sin(grid**1.1)
    matrix = np.ascontiguousarray(wide[:, :24])
    gram, large = matrix.T @ matrix + np.eye(24), wide @ wide.T + np.eye(300)
    parts = [
        gram,
        large,
        np.linalg.cholesky(gram),
        np.linalg.cholesky(large),
        scipy.linalg.solve(gram, matrix[:5].T, assume_a="pos"),
        *scipy.linalg.eigh(gram),
        *scipy.linalg.svd(matrix[:60], full_matrices=False),
        *scipy.linalg.svd(wide, full_matrices=False),
        np.exp(matrix),
        np.log1p(np.abs(matrix)).sum(axis=0),
        np.einsum("ij,ij->i", matrix, matrix),
        np.sqrt(np.sum(matrix * matrix, axis=1)),
    ]
    found = hashlib.sha256(f"numpy {np.__version__} scipy {scipy.__version__}".encode())
    for part in parts:
        found.update(np.ascontiguousarray(part).tobytes())
    return found.hexdigest()[:16]
