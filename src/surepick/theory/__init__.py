"""The paper's theory: the complexity rho*, and its bounds on the pulls. Only experiments use it."""

from surepick.theory.critical_round import achievable_gap, critical_round, least_critical_round
from surepick.theory.eigenvalue_decay import (
    ExponentialDecay,
    PolynomialDecay,
    decay_of,
    effective_dimension_of_tails,
)
from surepick.theory.hardness import (
    Hardness,
    PacComplexity,
    hardness,
    linear_hardness,
    pac_complexity,
    reference_pulls,
    relaxation_bound,
)
from surepick.theory.neural_dimension import neural_effective_dimension, reward_norm
from surepick.theory.neural_theorem import (
    TheoremInstance,
    TheoremParameters,
    TheoremRound,
    proof_parameters,
    theorem_parameters,
)
from surepick.theory.upper_bounds import UpperBound, upper_bound_adaptive, upper_bound_fixed, upper_bound_unknown

__all__ = [
    "ExponentialDecay",
    "Hardness",
    "PacComplexity",
    "PolynomialDecay",
    "TheoremInstance",
    "TheoremParameters",
    "TheoremRound",
    "UpperBound",
    "achievable_gap",
    "critical_round",
    "decay_of",
    "effective_dimension_of_tails",
    "hardness",
    "least_critical_round",
    "linear_hardness",
    "neural_effective_dimension",
    "pac_complexity",
    "proof_parameters",
    "reference_pulls",
    "relaxation_bound",
    "reward_norm",
    "theorem_parameters",
    "upper_bound_adaptive",
    "upper_bound_fixed",
    "upper_bound_unknown",
]
