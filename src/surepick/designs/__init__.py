"""Where to look: weights over the arms that tell the active ones apart, and whole pulls from weights."""

from surepick.designs.independent import independent_design, independent_star_design
from surepick.designs.objective import design_value
from surepick.designs.pairs import farthest_pairs
from surepick.designs.rounding import allocate, round_design
from surepick.designs.solver import solve_design
from surepick.designs.targets import solve_star_design, solve_target_design

__all__ = [
    "allocate",
    "design_value",
    "farthest_pairs",
    "independent_design",
    "independent_star_design",
    "round_design",
    "solve_design",
    "solve_star_design",
    "solve_target_design",
]
