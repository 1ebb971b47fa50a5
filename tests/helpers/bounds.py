"""Exact thresholds for statistical tests."""

from scipy.stats import binom


def failures_allowed(trials: int, rate: float, false_alarm: float = 1e-6) -> int:
    """Most failures that a correct procedure shows, except with probability `false_alarm` (exact binomial tail)."""
    return int(binom.isf(false_alarm, trials, rate))
