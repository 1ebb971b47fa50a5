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

__all__ = [
    "DimensionChoice",
    "Hardness",
    "PacComplexity",
    "UpperBound",
    "achievable_gap",
    "bias",
    "cheapest_dimension",
    "check_room",
    "critical_round",
    "effective_dimension",
    "embedding_design",
    "hardness",
    "least_critical_round",
    "linear_hardness",
    "pac_complexity",
    "reference_pulls",
    "relaxation_bound",
    "round_cost",
    "uniform_pulls",
    "upper_bound_adaptive",
    "upper_bound_fixed",
    "upper_bound_unknown",
    "worst_gap",
]
