"""Coordinates in which arms are white, by a singular value decomposition."""

from __future__ import annotations

import numpy as np


def whitened_by_svd(features: np.ndarray) -> np.ndarray:
    scaled = features / np.maximum(np.abs(features).max(axis=0), 1e-300)
    u, s, _ = np.linalg.svd(scaled, full_matrices=False)
    return u[:, s > s[0] * 1e-12] * np.sqrt(len(features))
