"""Many studies at once are those that are played one by one: states bit by bit, and what simulations say of them."""

import numpy as np
import pytest
from played_together import answer, answers
from together import of_each

import surepick as sp
from surepick.core.random_streams import stream, streams
from surepick.core.records import rows_of
from surepick.studies.rehearsal import Rehearsal, received_as_drawn

worlds = sp.environments
SPREAD = np.random.default_rng(7).normal(size=60)


def world(means, noise, **options) -> worlds.Environment:
    return worlds.Environment(arms=sp.Arms(ids=range(len(means))), means=means, noise=noise, **options)


def policy_for(environment: worlds.Environment, epsilon: float = 0.1, delta: float = 0.05, noise=None, **options):
    asked = {"epsilon": epsilon, "delta": delta, "noise": environment.noise if noise is None else noise}
    evidence = None if "question" in options else "carried"
    return sp.make_policy("certified-independent", environment.arms, **asked, evidence=evidence, **options)


HALF = sp.SubGaussian(0.5)
UNEVEN = sp.SubGaussian(tuple(np.geomspace(0.1, 2.0, 10)))
CASES = {
    "two": (world([0.0, 0.12], HALF), {}),
    "three, equal": (world([0.0, 0.0, 0.0], HALF), {}),
    "ten": (world(0.3 * SPREAD[:10], HALF), {}),
    "ten, small rewards are good": (world(0.3 * SPREAD[:10], HALF, minimize=True), {}),
    "ten, a scale each": (world(0.3 * SPREAD[:10], UNEVEN), {}),
    "ten, epsilon far below the gaps": (world(SPREAD[:10], HALF), {"epsilon": 1e-3}),
    "ten, small batches": (world(0.3 * SPREAD[:10], HALF), {"largest_batch": 20}),
    "ten, many errors allowed": (world(0.3 * SPREAD[:10], HALF), {"delta": 0.3}),
    "forty": (world(0.3 * SPREAD[:40], HALF), {}),
    "sixty": (world(SPREAD, HALF), {"epsilon": 0.3}),
    "Bernoulli, rare": (world([0.02, 0.1], sp.Bernoulli()), {"epsilon": 0.05}),
    "Bernoulli": (world(0.5 + 0.1 * SPREAD[:5], sp.Bernoulli()), {}),
    "bounded": (world(0.5 + 0.3 * SPREAD[:6], sp.Bounded(-1.0, 2.0)), {"epsilon": 0.3}),
    "bounded, small ones are good": (world(0.5 + 0.3 * SPREAD[:6], sp.Bounded(-1.0, 2.0), minimize=True), {}),
    "far from 0": (world(1e8 + SPREAD[:6], HALF), {}),
    "more noise than declared": (world(SPREAD[:5], sp.SubGaussian(1.0)), {"noise": HALF}),
}
cases = pytest.mark.parametrize("name", CASES)


@pytest.mark.cases(9)
@cases
def test_states_are_those_of_studies_played_one_by_one(name):
    environment, options = CASES[name]
    policy, seeds = policy_for(environment, **options), np.arange(3)
    alone = [Rehearsal(environment.arms, policy, minimize=environment.minimize) for _ in seeds]
    together = policy.traits.together
    planned, rows, number = together.first(len(seeds)), None, 0
    while len(seeds) and number < 40:
        drawn = environment.law.draw_many(planned.counts, streams(seeds.tolist(), "rewards", number))
        rows = together.tell(rows, planned, received_as_drawn(drawn, minimize=environment.minimize))
        for row, seed in enumerate(seeds.tolist()):
            plan = alone[seed].ask()
            assert plan.counts.tolist() == planned.counts[row].tolist()
            alone[seed].tell_simulated(environment.pull(plan.counts, stream(seed, "rewards", number)))
            assert same(alone[seed].state, together.state_of(rows, row, number + 2))
        going = np.flatnonzero(~rows.finished)
        rows, seeds, number = rows_of(rows, going), seeds[going], number + 1
        planned = together.ask(rows)
    assert number > 5


def same(one, other) -> bool:
    """Whether two states are equal, number by number."""
    for name in ("round", "candidate", "dim", "leader", "finished", "level", "compressed", "alarms", "roster"):
        assert getattr(one, name) == getattr(other, name), name
    arrays = (
        [one.beaten, one.seen.counts, one.seen.sums, one.seen.within],
        [*(other.beaten, other.seen.counts, other.seen.sums, other.seen.within)],
    )
    for state, found in zip((one, other), arrays, strict=True):
        found += [state.means.log_values, state.means.starts, state.means.taken]
        found += [flow for each in state.means.given for flow in (np.array(each.arm), each.flows)]
        found += [bound for each in state.tested for bound in (np.array(each.candidate), each.bounds)]
    assert len(arrays[0]) == len(arrays[1])
    return all(np.array_equal(mine, theirs) for mine, theirs in zip(*arrays, strict=True))


@pytest.mark.cases(9)
@cases
def test_simulations_say_the_same(name):
    environment, options = CASES[name]
    policy, seeds = policy_for(environment, **options), [3, 2**40, 0, 11]
    check_alike(policy, environment, seeds)


def check_alike(policy, environment, seeds, **limits) -> None:
    many = sp.simulate_many(policy, environment, seeds=seeds, **limits)
    assert many.seeds.tolist() == list(seeds)
    for place, seed in enumerate(seeds):
        run = sp.simulate(policy, environment, seed=seed, **limits)
        assert (many.arms[place], many.pulls[place], many.verdicts[place]) == (run.arm, run.pulls, run.verdict)
        assert many.counts[place].tolist() == run.counts.tolist()
        assert many.counts[place].sum() == run.pulls
        assert (many.rounds[place], many.right[place]) == (len(run.rounds), run.right)
        assert many.success[place] == run.success
        gap = run.certificate.certified_gap
        assert many.certified_gaps[place] == pytest.approx(np.inf if gap is None else gap, rel=0.0, abs=1e-13)


@of_each("limit", [0, 9, 10, 60, 300])
def test_a_plan_that_would_pass_the_budget_is_not_pulled(limit):
    environment, _ = CASES["ten"]
    check_alike(policy_for(environment), environment, range(4), max_pulls=limit)


OTHERS = {
    "costs": (sp.Arms(ids=range(3), costs=[1.0, 2.0, 3.0]), {}),
    "a given size": (sp.Arms(ids=range(3)), {"batch_size": 7}),
    "few batches": (sp.Arms(ids=range(3)), {"max_batches": 5}),
    "dear batches": (sp.Arms(ids=range(3)), {"batch_cost": 10.0}),
    "unknown noise": (sp.Arms(ids=range(3)), {"noise": "normal"}),
    "one arm": (sp.Arms(ids=range(1)), {}),
    "a gap that is known": (sp.Arms(ids=range(3)), {"gap_bound": 0.05}),
    "later ones": (sp.Arms(ids=range(3)), {"later": ("2",)}),
    "a question": (sp.Arms(ids=range(3)), {"question": "top", "m": 1}),
}


@pytest.mark.cases(5)
@pytest.mark.parametrize("name", OTHERS)
def test_others_are_played_one_by_one(name):
    arms, options = OTHERS[name]
    environment = worlds.Environment(arms=arms, means=np.linspace(0.0, 1.0, arms.num_arms), noise=HALF)
    policy = policy_for(environment, epsilon=0.2, **options)
    assert policy.traits.together is None
    check_alike(policy, environment, [1, 2])


def test_rewards_that_are_drawn_otherwise_are_played_one_by_one():
    recorded = worlds.rewards.RecordedRewards(np.array([0.0, 1.0, 0.5, 0.7]), np.array([0, 0, 1, 1]))
    environment = world([0.5, 0.6], HALF, law=recorded)
    check_alike(policy_for(environment), environment, [1, 2])


def test_no_seeds_no_studies():
    environment, _ = CASES["ten"]
    many = sp.simulate_many(policy_for(environment), environment, seeds=[])
    assert (many.counts.shape, many.verdicts) == ((0, 10), ())


def test_what_one_study_refuses_many_refuse():
    environment, _ = CASES["two"]
    policy = policy_for(environment, noise=sp.Bernoulli())
    for play in (lambda: sp.simulate(policy, environment, seed=0), lambda: sp.simulate_many(policy, environment)):
        with pytest.raises(sp.InvalidInput):
            play()
    for seeds, message in (([-1], "seed"), ([1.5], "seed"), ([True], "seed")):
        with pytest.raises(sp.InvalidInput, match=message):
            sp.simulate_many(policy_for(environment), environment, seeds=seeds)
    with pytest.raises(sp.InvalidInput, match="max_pulls"):
        sp.simulate_many(policy_for(environment), environment, seeds=[1], max_pulls=-1)
    with pytest.raises(sp.InvalidInput, match="arms"):
        sp.simulate_many(policy_for(environment), CASES["ten"][0], seeds=[1])
    with pytest.raises(sp.InvalidInput, match="was given"):
        sp.simulate_many(environment, environment, seeds=[1])


@pytest.mark.parametrize("name", ["ten", "Bernoulli"])
def test_the_helper_of_the_guarantees_plays_the_same_studies(name):
    environment, options = CASES[name]
    policy = policy_for(environment, **options)
    first, again = ([np.random.default_rng([seed, 1]) for seed in range(5)] for _ in range(2))
    assert answers(policy, environment, first) == [answer(policy, environment, rng) for rng in again]
