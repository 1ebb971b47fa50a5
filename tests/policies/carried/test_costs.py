"""What measurements cost: plans weigh it, and nothing else does."""

import numpy as np
import pytest
from budgets import few_and_all

import surepick as sp
from surepick.core.random_streams import stream
from surepick.core.records import from_json, to_json
from surepick.policies.base import caveats_of, stopped

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
    read = {"norm_bound": 1.0, "evidence": "readings", **ASKED}
    assert sp.make_policy("certified-linear", arms, batch_cost=0.0, **read).spec
    with pytest.raises(sp.InvalidInput, match="has no option 'batch_cost'"):
        sp.make_policy("certified-linear", arms, batch_cost=2.5, **read)
    with pytest.raises(sp.InvalidInput, match="batch_cost is -1"):
        sp.make_policy("certified-independent", arms, batch_cost=-1.0, **ASKED)
    with pytest.raises(sp.InvalidInput, match="has no option 'batch_cost'"):
        sp.make_policy("lucb", arms, batch_cost=2.5, **ASKED)


# --- plans


def zeros_and_ones(seed: int) -> sp.environments.Environment:
    """Means in [0, 1] that are linear in two features."""
    features = np.column_stack([np.ones(10), np.random.default_rng(seed).uniform(-1.0, 1.0, 10)])
    return sp.environments.Environment(arms=sp.Arms(features), means=features @ [0.5, 0.4], noise=sp.Bernoulli())


WORLDS = {
    "means": (lambda seed: sp.environments.one_better(12, 0.5, seed), "certified-independent", {}),
    "means in a range": (lambda seed: sp.environments.falling_means(15), "certified-independent", {}),
    "vectors": (lambda seed: sp.environments.soare(5, 0.5, seed), "certified-linear", {"norm_bound": 1.0}),
    "vectors in a range": (zeros_and_ones, "certified-linear", {"norm_bound": 2.0}),
}


def followed(world, policy, seed: int, most: int = 400):
    """The plans of a study until it stops by itself, and its last state."""
    state, plans = policy.init(), []
    while not stopped(policy, state) and len(plans) < most:
        plans.append(policy.ask(state))
        seen = world.pull(plans[-1].counts, stream(seed, "costs", len(plans)))
        state = policy.tell(state, plans[-1], seen).state
    return plans, state


def made(world, name: str, costs, **options):
    arms = sp.Arms(world.arms.features, world.arms.ids, costs=costs)
    asked = {"epsilon": 0.15, "delta": 0.1, "noise": world.noise, "evidence": "carried"}
    return sp.make_policy(name, arms, **asked, **options)


@pytest.mark.cases(2)
@pytest.mark.parametrize("kind", WORLDS)
def test_costs_that_are_all_alike_change_no_bit_of_a_study(kind):
    make, name, options = WORLDS[kind]
    world = make(3)
    studies = [
        followed(world, made(world, name, costs, **options), 3) for costs in (None, np.full(world.num_arms, 0.37))
    ]
    (plain, end), (even, same_end) = studies
    assert len(plain) > 3
    assert list(map(to_json, plain)) == list(map(to_json, even))
    assert to_json(end) == to_json(same_end)
    assert all(plan.predicted_cost is None for plan in plain)


@pytest.mark.cases(2)
@pytest.mark.parametrize("kind", WORLDS)
def test_the_currency_does_not_matter(kind):
    make, name, options = WORLDS[kind]
    world = make(4)
    costs = 4.0 ** np.random.default_rng(4).integers(0, 4, world.num_arms)
    (euros, _), (cents, _) = (followed(world, made(world, name, unit * costs, **options), 4) for unit in (1.0, 128.0))
    assert [plan.counts.tolist() for plan in euros] == [plan.counts.tolist() for plan in cents]
    assert [plan.predicted_cost and 128.0 * plan.predicted_cost for plan in euros] == [
        plan.predicted_cost for plan in cents
    ]


@pytest.mark.cases(2)
@pytest.mark.parametrize("kind", WORLDS)
def test_what_a_plan_predicts_is_pulls_and_money(kind):
    make, name, options = WORLDS[kind]
    world = make(5)
    costs = 100.0 ** np.random.default_rng(5).random(world.num_arms)
    plans, state = followed(world, made(world, name, costs, **options), 5)
    tested = [plan for plan in plans if plan.candidate is not None]
    assert world.is_epsilon_best(state.leader, 0.15)
    assert tested
    for plan in tested:
        assert plan.predicted_pulls * costs.min() <= plan.predicted_cost <= plan.predicted_pulls * costs.max()
        assert 0.0 <= plan.lower_bound <= plan.predicted_pulls * (1.0 + 1e-9)
        assert from_json(sp.Plan, to_json(plan)) == plan


def money(kind: str, seed: int, costs, *, known: bool) -> float:
    make, name, options = WORLDS[kind]
    world = make(seed)
    plans, _ = followed(world, made(world, name, costs if known else None, **options), seed)
    return float(sum(plan.counts @ costs for plan in plans))


@pytest.mark.parametrize(("kind", "share"), [("vectors", 0.7), ("means", 1.0)])
@few_and_all("seeds", 6, 12)
def test_plans_that_know_the_costs_take_less_money(kind, share, seeds):
    """Measured: shares of .4 to .5, and of .9 to .95 where nothing is shared (benchmarks/costs.py has more)."""
    spent = {True: 0.0, False: 0.0}
    for seed in range(seeds):
        number = WORLDS[kind][0](seed).num_arms
        costs = np.where(np.random.default_rng([seed, 8]).random(number) < 0.5, 1.0, 100.0)
        for known in spent:
            spent[known] += money(kind, seed, costs, known=known)
    print(f"\n{kind}: {spent[True] / spent[False]:.2f}")
    assert spent[True] < share * spent[False]


@pytest.mark.cases(3)
@pytest.mark.parametrize(("price", "share"), [(100.0, 1.0), (1000.0, 0.8)])
@pytest.mark.parametrize("kind", WORLDS)
@few_and_all("seeds", 2, 6)
def test_dear_batches_are_few(kind, price, share, seeds):
    """Measured: shares of .3 to .75 at 100, .2 to .4 at 1,000."""
    make, name, options = WORLDS[kind]
    paid, batches = {True: 0.0, False: 0.0}, {True: 0, False: 0}
    for seed in range(seeds):
        world = make(seed)
        for known in paid:
            plans, _ = followed(world, made(world, name, None, batch_cost=price * known, **options), seed)
            paid[known] += sum(plan.total for plan in plans) + price * len(plans)
            batches[known] += len(plans)
    print(f"\n{kind}, {price:g} a batch: {paid[True] / paid[False]:.2f}, {batches[True]} batches for {batches[False]}")
    assert batches[True] < batches[False]
    assert paid[True] < share * paid[False]


def test_a_dear_arm_with_the_features_of_a_cheap_one_is_not_measured():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(8, 3))
    world = sp.environments.Environment(
        arms=sp.Arms(np.repeat(features, 2, axis=0)),
        means=np.repeat(features @ [0.5, 0.2, 0.0], 2),
        noise=sp.SubGaussian(0.5),
    )
    costs = np.tile([1.0, 50.0], 8)
    plans, state = followed(world, made(world, "certified-linear", costs, norm_bound=1.0), 7)
    assert sum(plan.counts for plan in plans)[1::2].sum() == 0
    assert world.is_epsilon_best(state.leader, 0.15)
