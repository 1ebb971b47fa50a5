"""Batches of questions that are answered by lists: of a given size, few, or expensive ones."""

import numpy as np
import pytest
from together import of_each

import surepick as sp
from surepick.environments import Environment
from surepick.simulation import Run

FEATURES = np.random.default_rng(0).normal(size=(12, 3))
MEANS = FEATURES @ np.array([0.4, -0.3, 0.2])
ASKED = {"epsilon": 0.2, "delta": 0.05}
QUESTIONS = [
    {"question": "above", "control": "0"},
    {"question": "above", "threshold": 0.1},
    {"question": "top", "m": 3},
    {"question": "all-good"},
]


def policy_of(question, name="certified-independent", *, noise="subgaussian:0.3", costs=None, **options):
    more = {"norm_bound": 1.0} if name == "certified-linear" else {}
    return sp.make_policy(name, sp.Arms(FEATURES, costs=costs), noise=noise, **{**ASKED, **question, **more, **options})


def run_of(policy, seed=1) -> Run:
    world = Environment(arms=policy.problem.arms, means=MEANS, noise=sp.SubGaussian(0.3))
    return sp.simulate(policy, world, seed=seed, max_pulls=100_000)


def sizes_of(run) -> list[int]:
    return np.diff([0, *(row.total_pulls for row in run.rounds)]).tolist()


@pytest.mark.cases(4)
@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("name", ["certified-independent", "certified-linear"])
@pytest.mark.parametrize("size", [5, 48])
def test_every_batch_has_the_size_that_is_asked(question, name, size):
    run = run_of(policy_of(question, name, batch_size=size))
    assert (run.verdict, run.success) == ("certified", True)
    assert set(sizes_of(run)) == {size}


@pytest.mark.parametrize(("noise", "each"), [("subgaussian:0.3", 2), (sp.Normal(), 5)])
def test_small_batches_begin_with_every_candidate_in_turn(noise, each):
    policy = policy_of(QUESTIONS[2], noise=noise, batch_size=5)
    world, state = Environment(arms=policy.problem.arms, means=MEANS, noise=sp.SubGaussian(0.3)), policy.init()
    rng = np.random.default_rng(0)
    for _ in range(-(-each * len(MEANS) // 5)):
        plan = policy.ask(state)
        state = policy.tell(state, plan, world.pull(plan.counts, rng)).state
    assert state.seen.counts.min() >= each


@of_each("question", QUESTIONS)
def test_a_study_ends_after_the_batches_that_it_is_allowed(question):
    runs = {most: run_of(policy_of(question, max_batches=most)) for most in (2, 5, 20)}
    assert all(len(run.rounds) <= most for most, run in runs.items())
    assert runs[20].verdict == "certified"
    hard = run_of(policy_of(question, epsilon=0.001, max_batches=2, largest_batch=60))
    assert hard.verdict == "budget-exhausted"
    assert "this does not put every candidate on a list" in hard.certificate.reason


def test_where_batches_are_expensive_there_are_fewer():
    plain, dear = (run_of(policy_of(QUESTIONS[2], costs=np.full(12, 2.0), batch_cost=cost)) for cost in (0.0, 400.0))
    assert plain.verdict == dear.verdict == "certified"
    assert len(dear.rounds) < len(plain.rounds)
    assert dear.cost == pytest.approx(2.0 * dear.pulls + 400.0 * len(dear.rounds))


def test_what_was_not_said_is_not_in_the_spec():
    assert not {"batch_size", "max_batches", "batch_cost"} & set(policy_of(QUESTIONS[2]).spec)
    policy = policy_of(QUESTIONS[2], batch_size=7)
    assert policy.spec["batch_size"] == 7
    assert sp.make_policy(arms=policy.problem.arms, **policy.spec) == policy


def test_a_largest_and_an_exact_size_are_refused_together():
    with pytest.raises(sp.InvalidInput, match="give one of the two"):
        policy_of(QUESTIONS[2], batch_size=7, largest_batch=9)
