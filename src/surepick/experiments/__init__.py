"""Many studies against many environments."""

from surepick.experiments.simulation import Run, simulate

__all__ = ["Run", "simulate"]
