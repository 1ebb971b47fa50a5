"""What measurements cost: plans weigh it, and nothing else does."""

import numpy as np
import pytest

import surepick as sp
from surepick.policies.base import caveats_of

ASKED = {"epsilon": 0.1, "delta": 0.1, "noise": "subgaussian:1"}


def test_a_problem_knows_what_its_arms_cost():
    arms = sp.Arms(ids=["a", "b"], costs=[2.0, 5.0])
    problem = sp.make_policy("certified-independent", arms, **ASKED).problem
    assert problem.costs is arms.costs
    assert problem.relative_costs.tolist() == [1.0, 2.5]


@pytest.mark.parametrize("costs", [None, [3.7, 3.7, 3.7]])
def test_costs_that_are_all_alike_are_none_to_a_plan(costs):
    assert (
        sp.make_policy("certified-independent", sp.Arms(ids=list("abc"), costs=costs), **ASKED).problem.relative_costs
        is None
    )
    assert sp.Problem(2, 0.1, 0.1, sp.SubGaussian(1.0)).relative_costs is None


@pytest.mark.parametrize("name", ["lucb", "certified-independent"])
def test_only_what_passes_over_costs_says_so(name):
    uneven = sp.make_policy(name, sp.Arms(ids=list("ab"), costs=[1.0, 9.0]), **ASKED)
    even = sp.make_policy(name, sp.Arms(ids=list("ab"), costs=[9.0, 9.0]), **ASKED)
    assert caveats_of(even) == even.traits.caveats
    assert any("passes over what they cost" in said for said in caveats_of(uneven)) == (name == "lucb")


def test_what_a_batch_costs_is_an_option_that_says_nothing_where_it_is_0():
    arms = sp.Arms(np.eye(3), costs=[1.0, 2.0, 3.0])
    plain = sp.make_policy("certified-independent", arms, **ASKED)
    assert plain.spec == sp.make_policy("certified-independent", arms, batch_cost=0, **ASKED).spec
    assert "batch_cost" not in plain.spec
    dear = sp.make_policy("certified-independent", arms, batch_cost=2.5, **ASKED)
    assert (dear.spec["batch_cost"], dear.traits.batch_cost) == (2.5, 2.5)
    assert sp.make_policy(arms=arms, **dear.spec) == dear
    assert sp.make_policy("certified-independent", arms, batch_cost=0.0, evidence="epochs", **ASKED).spec
    with pytest.raises(sp.InvalidInput, match="has no option 'batch_cost'"):
        sp.make_policy("certified-independent", arms, batch_cost=2.5, evidence="epochs", **ASKED)
    with pytest.raises(sp.InvalidInput, match="batch_cost is -1"):
        sp.make_policy("certified-independent", arms, batch_cost=-1.0, **ASKED)
    with pytest.raises(sp.InvalidInput, match="has no option 'batch_cost'"):
        sp.make_policy("lucb", arms, batch_cost=2.5, **ASKED)
