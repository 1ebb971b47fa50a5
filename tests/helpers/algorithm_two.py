"""Algorithm 2 with the settings of its tests."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

import surepick as sp
from surepick.core.observations import Observations
from surepick.policies.paper.neural_elimination import NeuralElimination, NeuralRule
from surepick_bench.policies.means_control import MeansNeuralRule

USUAL = {"epsilon": 0.1, "delta": 0.05, "noise": sp.SubGaussian(1.0)}


def rule(**changes) -> NeuralRule:
    usual = {"slack": 0.1, "constants": "paper", "floor": "support", "misspecification": 0.0}
    chosen = {"num_arms": 250} | USUAL | usual | changes
    asked = {each.name: chosen.pop(each.name) for each in fields(sp.Problem) if each.name in chosen}
    return NeuralRule(sp.Problem(**asked), **chosen)


def network(features, **changes) -> NeuralElimination:
    return sp.make_policy("neural-embedding", sp.Arms(features), **(USUAL | {"width": 16} | changes))


def means_rule(num_arms: int, **changes) -> MeansNeuralRule:
    return sp.make_policy("means-neural-rule", sp.Arms(np.eye(num_arms)), **(USUAL | changes))


def exact(plan: sp.Plan, means) -> Observations:
    return Observations(plan.counts, plan.counts * np.asarray(means))


def told(policy, state, means):
    plan = policy.ask(state)
    return policy.tell(state, plan, exact(plan, means)).state
