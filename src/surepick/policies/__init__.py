"""The algorithms, one file each. Never see an environment, a clock, a file or a random generator."""

from surepick.policies.action_elimination import ActionElimination
from surepick.policies.adaptive_elimination import AdaptiveElimination
from surepick.policies.certified_elimination import CertifiedElimination
from surepick.policies.fixed_elimination import FixedElimination
from surepick.policies.means_neural_rule import MeansNeuralRule
from surepick.policies.protocol import Policy
from surepick.policies.rage import RAGE
from surepick.policies.registry import make_policy, paper_settings, policy_names, policy_options, policy_summary
from surepick.policies.unknown_misspecification import UnknownMisspecificationElimination

__all__ = [
    "RAGE",
    "ActionElimination",
    "AdaptiveElimination",
    "CertifiedElimination",
    "FixedElimination",
    "MeansNeuralRule",
    "Policy",
    "UnknownMisspecificationElimination",
    "make_policy",
    "paper_settings",
    "policy_names",
    "policy_options",
    "policy_summary",
]
