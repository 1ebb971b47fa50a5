"""Where to look: weights over the arms that tell the active ones apart, and whole pulls from weights."""

from surepick.designs.objective import design_value, independent_design, independent_star_design
from surepick.designs.problem import DesignInput
from surepick.designs.rounding import allocate, round_design
from surepick.designs.solve import solve_design
from surepick.designs.star import on_fewer_arms, solve_star_design, solve_target_design
from surepick.linalg.farthest_pairs import farthest_pairs

__all__ = [
    "DesignInput",
    "allocate",
    "design_value",
    "farthest_pairs",
    "independent_design",
    "independent_star_design",
    "on_fewer_arms",
    "round_design",
    "solve_design",
    "solve_star_design",
    "solve_target_design",
]
