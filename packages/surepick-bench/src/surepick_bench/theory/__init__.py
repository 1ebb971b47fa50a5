"""The paper's theory: the complexity rho*, and its bounds on the pulls. Only experiments use it."""

from surepick_bench.theory.hardness import (
    Hardness,
    PacComplexity,
    achievable_gap,
    critical_round,
    hardness,
    least_critical_round,
    linear_hardness,
    pac_complexity,
    reference_pulls,
    relaxation_bound,
)
from surepick_bench.theory.neural import (
    TheoremInstance,
    TheoremParameters,
    TheoremRound,
    neural_effective_dimension,
    proof_parameters,
    reward_norm,
    theorem_parameters,
)
from surepick_bench.theory.upper_bounds import (
    ExponentialDecay,
    PolynomialDecay,
    UpperBound,
    decay_of,
    effective_dimension_of_tails,
    upper_bound_adaptive,
    upper_bound_fixed,
    upper_bound_unknown,
)

__all__ = [
    "ExponentialDecay", "Hardness", "PacComplexity", "PolynomialDecay", "TheoremInstance", "TheoremParameters",
    "TheoremRound", "UpperBound", "achievable_gap", "critical_round", "decay_of", "effective_dimension_of_tails",
    "hardness", "least_critical_round", "linear_hardness", "neural_effective_dimension", "pac_complexity",
    "proof_parameters", "reference_pulls", "relaxation_bound", "reward_norm", "theorem_parameters",
    "upper_bound_adaptive", "upper_bound_fixed", "upper_bound_unknown",
]  # fmt: skip
