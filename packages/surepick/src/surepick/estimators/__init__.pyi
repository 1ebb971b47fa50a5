from .contrast_weights import anytime_radius
from .e_values import BatchEvidence, batch_evidence
from .goodness_of_fit import (
    collapsed,
    lack_of_fit,
    lack_of_fit_in_blocks,
    norm_contradicted,
    norm_contradicted_in_blocks,
)
from .least_squares import (
    ArmMeansEstimate,
    Estimate,
    LeastSquaresEstimate,
    RegularLeastSquares,
    arm_means,
    estimate,
    least_squares,
)
from .noise_mgf import Mgf, NoiseMgf, NormalMgf, noise_mgf_after, normal_mgf_after, normal_mgf_of_all, with_squares

__all__ = [
    "ArmMeansEstimate",
    "BatchEvidence",
    "Estimate",
    "LeastSquaresEstimate",
    "Mgf",
    "NoiseMgf",
    "NormalMgf",
    "RegularLeastSquares",
    "anytime_radius",
    "arm_means",
    "batch_evidence",
    "collapsed",
    "estimate",
    "lack_of_fit",
    "lack_of_fit_in_blocks",
    "least_squares",
    "noise_mgf_after",
    "norm_contradicted",
    "norm_contradicted_in_blocks",
    "normal_mgf_after",
    "normal_mgf_of_all",
    "with_squares",
]
