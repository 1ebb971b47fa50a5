from .objective import design_value, independent_design, independent_star_design
from .problem import DesignInput
from .rounding import allocate, round_design
from .solve import solve_design
from .star import on_fewer_arms, solve_star_design, solve_target_design

__all__ = [
    "DesignInput",
    "allocate",
    "design_value",
    "independent_design",
    "independent_star_design",
    "on_fewer_arms",
    "round_design",
    "solve_design",
    "solve_star_design",
    "solve_target_design",
]
