"""Where to look: weights over the arms that tell the active ones apart, and whole pulls from weights."""

from surepick.designs.independent import independent_design
from surepick.designs.objective import design_value
from surepick.designs.rounding import allocate, round_design
from surepick.designs.solver import solve_design

__all__ = ["allocate", "design_value", "independent_design", "round_design", "solve_design"]
