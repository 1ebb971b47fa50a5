"""Functions of norm 1 in a kernel's space, and batches told as totals of normal rewards."""

from __future__ import annotations

import numpy as np

import surepick as sp
from surepick.embeddings.kernel import parse_kernel


def smooth_means(kernel: str, places: np.ndarray, centres: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The values at some places, shape (K, d), of a combination of kernel functions, of norm 1."""
    named = parse_kernel(kernel)
    return named.gram(places, centres) @ weights / np.sqrt(weights @ named.gram(centres, centres) @ weights)


def told(study: sp.Study, plan: sp.Plan, means: np.ndarray, sigma: float, rng: np.random.Generator) -> None:
    """The totals of a batch's pulls."""
    sums = plan.counts * means + sigma * np.sqrt(plan.counts) * rng.standard_normal(len(means))
    study.tell_totals(study.ids, plan.counts, sums)
