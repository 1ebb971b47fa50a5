"""The algorithms, one file each. Never see an environment, a clock, a file or a random generator."""

from surepick.policies.action_elimination import ActionElimination
from surepick.policies.adaptive_elimination import AdaptiveElimination
from surepick.policies.certified_elimination import CertifiedElimination
from surepick.policies.fixed_elimination import FixedElimination
from surepick.policies.lingame import LinGame
from surepick.policies.lingape import LinGapE
from surepick.policies.lucb import LUCB
from surepick.policies.means_neural_rule import MeansNeuralRule
from surepick.policies.protocol import Policy
from surepick.policies.rage import RAGE
from surepick.policies.registry import (
    make_policy,
    needs_torch,
    paper_settings,
    policy_names,
    policy_options,
    policy_summary,
)
from surepick.policies.successive_halving import SuccessiveHalving
from surepick.policies.unknown_misspecification import UnknownMisspecificationElimination
from surepick.policies.xy_adaptive import XYAdaptive
from surepick.policies.xy_static import XYStatic

__all__ = [
    "LUCB",
    "RAGE",
    "ActionElimination",
    "AdaptiveElimination",
    "CertifiedElimination",
    "FixedElimination",
    "LinGame",
    "LinGapE",
    "MeansNeuralRule",
    "Policy",
    "SuccessiveHalving",
    "UnknownMisspecificationElimination",
    "XYAdaptive",
    "XYStatic",
    "make_policy",
    "needs_torch",
    "paper_settings",
    "policy_names",
    "policy_options",
    "policy_summary",
]
