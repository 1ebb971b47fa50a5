"""Mixtures over comparators and margins as a policy: when they are taken, and what they do in a study."""

import numpy as np
import pytest

import surepick as sp
from surepick.core.random_streams import stream, streams
from surepick.core.records import from_json, rows_of, to_json
from surepick.policies.base import stopped
from surepick.policies.carried.elimination import CarriedElimination
from surepick.policies.mixture_rules import MixtureState
from surepick.policies.mixtures import MixtureElimination
from surepick.studies.rehearsal import Rehearsal, received_as_drawn

HALF = sp.SubGaussian(0.5)
SPREAD = np.random.default_rng(7).normal(size=20)


def world(means, noise, **options) -> sp.environments.Environment:
    return sp.environments.Environment(arms=sp.Arms(ids=range(len(means))), means=means, noise=noise, **options)


def policy_for(environment, epsilon: float = 0.1, delta: float = 0.05, noise=None, **options):
    asked = {"epsilon": epsilon, "delta": delta, "noise": environment.noise if noise is None else noise}
    return sp.make_policy("certified-independent", environment.arms, evidence="mixtures", **asked, **options)


TEN = world(0.3 * SPREAD[:10], HALF)

# --- which evidence


@pytest.mark.parametrize("noise", [HALF, sp.Bernoulli(), sp.Bounded(-1.0, 2.0)])
def test_they_are_asked_for_by_name(noise):
    """The spec has it, and makes the same policy again."""
    arms = sp.Arms(ids=range(11))
    asked = {"epsilon": 0.1, "delta": 0.05, "noise": noise, "batch_size": 11}
    policy = sp.make_policy("certified-independent", arms, evidence="mixtures", **asked)
    assert type(policy) is MixtureElimination
    assert policy.spec["evidence"] == "mixtures"
    assert sp.make_policy(arms=arms, **policy.spec) == policy
    assert type(sp.make_policy("certified-independent", arms, **asked)) is CarriedElimination


@pytest.mark.parametrize(
    ("num_arms", "noise", "options", "kind"),
    [
        (2, HALF, {}, MixtureElimination),
        (5, sp.Bernoulli(), {}, MixtureElimination),
        (3, HALF, {"max_batches": 5, "batch_cost": 2.0, "largest_batch": 3}, MixtureElimination),
        (10, HALF, {}, MixtureElimination),
        (11, HALF, {}, CarriedElimination),
        (3, HALF, {"evidence": "carried"}, CarriedElimination),
        (3, sp.Normal(), {}, CarriedElimination),
        (3, HALF, {"blocks": "day"}, CarriedElimination),
        (3, HALF, {"later": ["2"]}, CarriedElimination),
        (5, HALF, {"batch_size": 4}, CarriedElimination),
        (5, HALF, {"tolerance": 0.1}, CarriedElimination),
        (1, HALF, {}, CarriedElimination),
    ],
)
def test_the_usual_evidence_follows_from_what_is_registered(num_arms, noise, options, kind):
    arms = sp.Arms(ids=range(num_arms))
    policy = sp.make_policy("certified-independent", arms, epsilon=0.1, delta=0.05, noise=noise, **options)
    assert type(policy) is kind
    assert sp.make_policy(arms=arms, **policy.spec) == policy


@pytest.mark.parametrize("size", ["many", 0, 2.5, True])
def test_a_size_without_meaning_is_refused_whatever_the_evidence(size):
    with pytest.raises(sp.InvalidInput, match="largest_batch is"):
        sp.make_policy(
            "certified-independent", sp.Arms(ids=list("abc")), epsilon=0.1, delta=0.05, noise=HALF, largest_batch=size
        )


@pytest.mark.parametrize(
    ("num_arms", "noise", "options", "words"),
    [
        (31, HALF, {}, "31 candidates are not between 2 and 30"),
        (3, sp.Normal(), {}, "rests on a scale of the noise that is known beforehand"),
        (5, HALF, {"batch_size": 4}, "batch_size is below their number"),
        (3, HALF, {"blocks": "day"}, "has no option 'blocks'"),
    ],
)
def test_what_mixtures_cannot_do_is_refused(num_arms, noise, options, words):
    arms = sp.Arms(ids=range(num_arms))
    with pytest.raises(sp.InvalidInput, match=words):
        sp.make_policy(
            "certified-independent", arms, epsilon=0.1, delta=0.05, noise=noise, evidence="mixtures", **options
        )


def test_unlike_costs_are_refused():
    asked = {"epsilon": 0.1, "delta": 0.05, "noise": HALF, "evidence": "mixtures"}
    with pytest.raises(sp.InvalidInput, match="measurements have unlike costs"):
        sp.make_policy("certified-independent", sp.Arms(ids=range(3), costs=[1.0, 2.0, 3.0]), **asked)
    alike = sp.Arms(ids=range(3), costs=[2.0, 2.0, 2.0])
    assert type(sp.make_policy("certified-independent", alike, **asked)) is MixtureElimination


def test_a_reading_without_assumptions_says_what_the_certificate_says():
    """Line 50: the weighted mean of the parts is one process, and of the leader it says as much as they do."""
    environment = world([0.2, 0.3, 0.9], sp.Bernoulli())
    run = sp.simulate(policy_for(environment, epsilon=0.5), environment, seed=3)
    found = run.study.read("nothing")
    assert found.gap == pytest.approx(run.certificate.certified_gap, rel=1e-6)
    assert found.stands


# --- many studies at once

UNEVEN = sp.SubGaussian(tuple(np.geomspace(0.1, 2.0, 10)))
CASES = {
    "two": (world([0.0, 0.12], HALF), {}),
    "three, equal": (world([0.0, 0.0, 0.0], HALF), {}),
    "ten": (TEN, {}),
    "ten, small rewards are good": (world(0.3 * SPREAD[:10], HALF, minimize=True), {}),
    "ten, a scale each": (world(0.3 * SPREAD[:10], UNEVEN), {}),
    "ten, small batches": (world(0.3 * SPREAD[:10], HALF), {"largest_batch": 10}),
    "twenty": (world(0.3 * SPREAD, HALF), {}),
    "Bernoulli, rare": (world([0.02, 0.1], sp.Bernoulli()), {"epsilon": 0.05}),
    "Bernoulli, small ones are good": (world([0.3, 0.4, 0.5], sp.Bernoulli(), minimize=True), {}),
    "bounded": (world(0.5 + 0.3 * SPREAD[:6], sp.Bounded(-1.0, 2.0)), {"epsilon": 0.3}),
    "bounded, small ones are good": (world(0.5 + 0.3 * SPREAD[:6], sp.Bounded(-1.0, 2.0), minimize=True), {}),
    "far from 0": (world(1e8 + SPREAD[:6], HALF), {}),
}
cases = pytest.mark.parametrize("name", CASES)


@cases
def test_many_studies_are_those_of_studies_played_one_by_one(name):
    environment, options = CASES[name]
    policy, seeds = policy_for(environment, **options), np.arange(2)
    alone = [Rehearsal(environment.arms, policy, minimize=environment.minimize) for _ in seeds]
    together = policy.traits.together
    planned, rows = together.first(len(seeds)), None
    for number in range(12):
        drawn = environment.law.draw_many(planned.counts, streams(seeds.tolist(), "rewards", number))
        rows = together.tell(rows, planned, received_as_drawn(drawn, minimize=environment.minimize))
        for row, seed in enumerate(seeds.tolist()):
            plan = alone[seed].ask()
            assert plan.counts.tolist() == planned.counts[row].tolist()
            alone[seed].tell_simulated(environment.pull(plan.counts, stream(seed, "rewards", number)))
            assert alone[seed].state == together.state_of(rows, row, number + 2)
        going = np.flatnonzero(~rows.finished)
        rows, seeds = rows_of(rows, going), seeds[going]
        if len(seeds) == 0:
            break
        planned = together.ask(rows)
    assert number > 2


@pytest.mark.parametrize("name", ["two", "bounded, small ones are good"])
def test_simulations_say_the_same(name):
    environment, options = CASES[name]
    policy, seeds = policy_for(environment, **options), [3, 2**40, 0]
    many = sp.simulate_many(policy, environment, seeds=seeds)
    for place, seed in enumerate(seeds):
        run = sp.simulate(policy, environment, seed=seed)
        assert (many.arms[place], many.verdicts[place]) == (run.arm, run.verdict)
        assert many.counts[place].tolist() == run.counts.tolist()
        assert many.certified_gaps[place] == run.certificate.certified_gap


# --- one study


def batches_of(policy, environment, seed: int = 0, most: int = 10_000) -> list[np.ndarray]:
    run, asked = Rehearsal(environment.arms, policy, minimize=False), []
    while not stopped(policy, run.state) and sum(each.sum() for each in asked) < most:
        asked.append(run.ask().counts)
        run.tell_simulated(environment.pull(asked[-1], stream(seed, "rewards", len(asked) - 1)))
    return asked


@pytest.mark.parametrize("number", [2, 3, 5])
def test_few_candidates_have_batches_of_what_is_still_to_come(number):
    """None above a quarter of the pulls so far, but for the leader's larger share and what is rounded; far fewer than
    those of 3 %."""
    environment = world([0.1, *[0.0] * (number - 1)], HALF)
    asked = batches_of(policy_for(environment, epsilon=0.05), environment)
    total = number
    for counts in asked[1:]:
        measured = np.count_nonzero(counts)
        larger = (measured - 1.0 + max(measured - 1, 1) ** 0.35) / measured
        assert counts.sum() <= 0.25 * total * larger + 2.0 * measured
        total += counts.sum()
    assert len(asked) < 0.7 * np.log(total / number) / np.log(1.03)


def test_a_batch_has_three_per_cent_of_the_pulls_so_far():
    asked = batches_of(policy_for(TEN), TEN)
    assert asked[0].tolist() == [2] * 10
    total = 0
    for counts in asked:
        rivals = np.sort(counts[counts > 0])
        assert rivals[0] == rivals[-2] or total == 0  # all but the leader alike
        assert counts.sum() <= max(0.03 * total * 2.0, 4.0 * len(rivals))
        total += counts.sum()


@pytest.mark.parametrize("size", [10, 25])
def test_batches_of_a_given_size(size):
    asked = batches_of(policy_for(TEN, batch_size=size), TEN)
    assert {int(counts.sum()) for counts in asked} == {size}


def test_no_batch_is_larger_than_allowed():
    free, held = (batches_of(policy_for(TEN, epsilon=0.02, largest_batch=most), TEN, most=2_000) for most in (None, 10))
    assert max(int(counts.sum()) for counts in free) > 10
    assert max(int(counts.sum()) for counts in held) == 10


def test_few_batches_are_large_ones_and_dear_ones_too():
    plain = len(batches_of(policy_for(TEN), TEN))
    assert len(batches_of(policy_for(TEN, batch_cost=50.0), TEN)) < 0.5 * plain
    ends = [sp.simulate(policy_for(TEN, max_batches=6), TEN, seed=seed) for seed in range(20)]
    assert max(len(run.rounds) for run in ends) <= 6
    assert sum(run.verdict == "certified" for run in ends) >= 16


def test_the_state_is_written_and_read():
    policy = policy_for(TEN)
    run = Rehearsal(TEN.arms, policy, minimize=False)
    for number in range(3):
        run.tell_simulated(TEN.pull(run.ask().counts, stream(0, "rewards", number)))
    state = run.state
    assert from_json(MixtureState, to_json(state)) == state
    assert policy.ask(state).candidate == state.leader


def measure(study: sp.Study, environment: sp.environments.Environment, rng: np.random.Generator) -> sp.Batch:
    """Tell all results of the next batch."""
    batch = study.ask()
    arms = np.repeat(np.arange(len(batch.counts)), batch.counts)
    study.tell([environment.arms.ids[arm] for arm in arms], rng.normal(environment.means[arms], 0.5))
    return batch


def test_parts_of_a_batch_are_judged_on_their_own():
    """Each part has its own weights; a part of one arm alone bets nothing."""
    study, rng = sp.Study(TEN.arms, policy_for(TEN), judge="as they come"), np.random.default_rng(1)
    while not study.stopped:
        order = rng.permutation(np.repeat(np.arange(10), study.ask().counts)).tolist()
        for arm in order[: 1 + len(order) // 2]:
            study.tell([TEN.arms.ids[arm]], [rng.normal(TEN.means[arm], 0.5)])
        if not study.stopped:
            study.interim()
    assert study.certificate().verdict == "certified"


def test_a_candidate_that_is_dropped_proves_nothing_any_more():
    """Who was beaten by one that left because of nothing in the results is a rival again (line 30)."""
    environment, rng = world([2.0, 1.0, 0.95, 1.97], HALF), np.random.default_rng(0)
    study = sp.Study(environment.arms, policy_for(environment, epsilon=0.01))
    while study.trace == () or len(study.trace[-1].active) > 2:
        measure(study, environment, rng)
    assert not study.stopped
    study.withdraw(["0", "3"], "independent-of-value")
    measure(study, environment, rng)
    assert {1, 2} <= {*study.trace[-1].active.tolist()}
    while not study.stopped:
        assert measure(study, environment, rng).counts[[0, 3]].tolist() == [0, 0]
    assert study.certificate().verdict == "certified"
    assert study.trace[-1].withdrawn.tolist() == [0, 3]


def test_one_that_was_withdrawn_for_its_results_is_still_a_rival():
    environment, rng = world([2.0, 0.0, 0.0], HALF), np.random.default_rng(0)
    study = sp.Study(environment.arms, policy_for(environment, largest_batch=3))
    measure(study, environment, rng)
    study.withdraw(["0"], "somebody did not like it")
    measure(study, environment, rng)  # of a plan that was made before
    while not study.stopped:
        assert measure(study, environment, rng).counts[0] == 0
    assert study.certificate().verdict == "heuristic"
