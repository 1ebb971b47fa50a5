"""How hard an instance is: dimensions, the complexity rho*, and the paper's bounds on the pulls."""

from surepick.complexity.bounds import (
    UpperBound,
    upper_bound_adaptive,
    upper_bound_fixed,
    upper_bound_unknown,
)
from surepick.complexity.critical import achievable_gap, critical_round, least_critical_round
from surepick.complexity.dimension import (
    DimensionChoice,
    bias,
    cheapest_dimension,
    check_room,
    effective_dimension,
    embedding_design,
    round_cost,
    uniform_pulls,
    worst_gap,
)
from surepick.complexity.hardness import (
    Hardness,
    PacComplexity,
    hardness,
    linear_hardness,
    pac_complexity,
    reference_pulls,
    relaxation_bound,
)
from surepick.complexity.kernel_choice import KernelChoice, choose_kernel
from surepick.complexity.neural_dimension import (
    neural_effective_dimension,
    neural_gram,
    reward_norm,
    spectrum_effective_dimension,
)
from surepick.complexity.neural_theorem import (
    TheoremInstance,
    TheoremParameters,
    TheoremRound,
    proof_parameters,
    theorem_parameters,
)

__all__ = [
    "DimensionChoice",
    "Hardness",
    "KernelChoice",
    "PacComplexity",
    "TheoremInstance",
    "TheoremParameters",
    "TheoremRound",
    "UpperBound",
    "achievable_gap",
    "bias",
    "cheapest_dimension",
    "check_room",
    "choose_kernel",
    "critical_round",
    "effective_dimension",
    "embedding_design",
    "hardness",
    "least_critical_round",
    "linear_hardness",
    "neural_effective_dimension",
    "neural_gram",
    "pac_complexity",
    "proof_parameters",
    "reference_pulls",
    "relaxation_bound",
    "reward_norm",
    "round_cost",
    "spectrum_effective_dimension",
    "theorem_parameters",
    "uniform_pulls",
    "upper_bound_adaptive",
    "upper_bound_fixed",
    "upper_bound_unknown",
    "worst_gap",
]
