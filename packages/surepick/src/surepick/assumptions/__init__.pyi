from .reading import Reading
from .records import AllOf, Assumption, Effects, InRange, Linear, Near, NoStructure, Scatter, Smooth, SumOf
from .texts import parse_assumption

__all__ = [
    "AllOf",
    "Assumption",
    "Effects",
    "InRange",
    "Linear",
    "Near",
    "NoStructure",
    "Reading",
    "Scatter",
    "Smooth",
    "SumOf",
    "parse_assumption",
]
