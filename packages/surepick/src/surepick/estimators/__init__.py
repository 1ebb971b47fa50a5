"""Observations -> estimates with widths."""

from surepick.core.observations import Observations
from surepick.core.plans import Embedding, IndependentArms
from surepick.estimators.contrast_weights import anytime_radius, mixture_radius, noise_multiplier
from surepick.estimators.e_values import Evidence, batch_evidence, bias_ahead, only
from surepick.estimators.goodness_of_fit import (
    collapsed,
    lack_of_fit,
    lack_of_fit_in_blocks,
    norm_contradicted,
    norm_contradicted_in_blocks,
)
from surepick.estimators.least_squares import (
    ArmMeansEstimate,
    Estimate,
    LeastSquaresEstimate,
    RegularisedEstimate,
    RegularLeastSquares,
    arm_means,
    least_squares,
    regularised_least_squares,
    self_normalised_radius,
)
from surepick.estimators.noise_mgf import (
    NoiseMgf,
    NormalMgf,
    noise_mgf_after,
    normal_mgf_after,
    normal_mgf_of_all,
    with_squares,
)
from surepick.linalg.factorisations import Whitened

__all__ = [
    "ArmMeansEstimate",
    "Estimate",
    "Evidence",
    "LeastSquaresEstimate",
    "NoiseMgf",
    "NormalMgf",
    "RegularLeastSquares",
    "RegularisedEstimate",
    "anytime_radius",
    "arm_means",
    "batch_evidence",
    "bias_ahead",
    "collapsed",
    "estimate",
    "lack_of_fit",
    "lack_of_fit_in_blocks",
    "least_squares",
    "mixture_radius",
    "noise_mgf_after",
    "noise_multiplier",
    "norm_contradicted",
    "norm_contradicted_in_blocks",
    "normal_mgf_after",
    "normal_mgf_of_all",
    "only",
    "regularised_least_squares",
    "self_normalised_radius",
    "with_squares",
]


def estimate(
    embedding: Embedding | IndependentArms, seen: Observations, *, reference: int = 0, white: Whitened | None = None
) -> Estimate:
    """The estimator that fits the structure: least squares, or arm means when there is none."""
    if isinstance(embedding, IndependentArms):
        return arm_means(seen)
    return least_squares(embedding, seen, reference=reference, white=white)
