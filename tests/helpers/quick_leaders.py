"""Which arm a study shows as its leader matters nowhere in the evidence, and takes most of the time with many arms."""

from unittest.mock import patch

import numpy as np

from surepick.estimators import posterior


def _by_score(scores: np.ndarray, errors: np.ndarray, epsilon: float) -> np.ndarray:
    return np.asarray(scores, float)


quick_leaders = patch.object(posterior, "chances_of_means", _by_score)  # decorates a function that plans by itself
