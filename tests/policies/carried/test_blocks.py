"""Blocks that share an effect: weights sum to 0 in each, so that no effect changes a decision, by anybody's choice."""

import numpy as np
import pytest
from block_outcomes import excess
from block_studies import dealt, played, seen_of, totals_of, unbalanced
from together import of_each

import surepick as sp
from surepick.core.observations import Observations
from surepick.core.plans import Blocking
from surepick.errors import InvalidInput
from surepick.policies.carried import block_rule
from surepick.policies.carried.block_rule import equations, without_effects
from surepick.policies.sequential.engine import filled_blocks

SCALES = np.array([0.5, 1.0, 0.7, 0.4, 0.9])


def policy_of(num_arms: int = 3, *, noise=None, epsilon: float = 0.3, delta: float = 0.1, **options):
    arms = sp.Arms(ids=range(num_arms))
    asked = {"epsilon": epsilon, "delta": delta, "noise": noise or sp.SubGaussian(1.0), "blocks": "day", **options}
    return sp.make_policy("certified-independent", arms, **asked)


def tables(seed: int, blocks: int = 4) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng([seed, 3])
    counts = rng.integers(0, 3, (blocks, 5))
    return counts, counts * rng.normal(0.0, 1.0, counts.shape)


# --- the equations


@of_each("seed", range(5))
@of_each("others", [[], [3], [3, 4]])
def test_the_equations_are_those_of_the_weights_written_out(seed, others):
    counts, sums = tables(seed)
    arms, rng = np.array([1, 2]), np.random.default_rng([seed, 4])
    found = equations(totals_of(counts, sums), SCALES, 0, arms, others)
    levels = rng.normal(0.0, 1.0, (2, 1 + len(others)))
    for row, arm in enumerate(arms):
        level, part = np.zeros(5), [0, arm, *others]
        level[[arm, *others]] = levels[row]
        flows, gain, cost = np.zeros(5), 0.0, 0.0
        for block in range(len(counts)):
            weight = np.zeros(5)
            weight[part] = (counts[block] / SCALES**2)[part]
            if weight.sum() == 0.0:
                continue
            each = weight * (level - weight @ level / weight.sum())
            assert each.sum() == pytest.approx(0.0, abs=1e-12)
            flows += each
            pulled = weight > 0.0
            gain += (each * sums[block])[pulled] @ (1.0 / counts[block][pulled])
            cost += 0.5 * (each[pulled] ** 2 / weight[pulled]).sum()
        assert found.flows(levels)[row] == pytest.approx(flows[[arm, *others]], abs=1e-10)
        assert found.totals[row] @ levels[row] == pytest.approx(gain, abs=1e-10)
        assert found.cost(levels)[row] == pytest.approx(cost, abs=1e-7)


def test_a_control_in_all_blocks_compares_arms_that_share_none():
    counts = np.array([[2, 0, 0, 4, 0], [0, 2, 0, 4, 0]])
    seen = totals_of(counts, counts * 1.0)
    alone = equations(seen, SCALES, 0, np.array([1]), [])
    helped = equations(seen, SCALES, 0, np.array([1]), [3])
    levels = block_rule._levels(helped, np.ones(1), np.zeros((1, 1)))
    assert alone.flows(-np.ones((1, 1)))[0, 0] == 0.0
    assert helped.flows(levels)[0] == pytest.approx([helped.flows(levels)[0, 0], 0.0], abs=1e-12)
    assert helped.flows(levels)[0, 0] < -0.1


# --- effects change nothing


def test_effects_are_taken_out_of_guesses():
    rng = np.random.default_rng(5)
    counts, means = rng.integers(1, 4, (6, 5)), np.array([0.0, 1.0, 2.0, 3.0, 4.0])
    effects = rng.normal(0.0, 1e6, 6)
    found = without_effects(seen_of(counts, counts * (means + effects[:, None])), Observations.nothing(5), SCALES)
    assert found.means - found.means[0] == pytest.approx(means, abs=1e-3)


@pytest.mark.cases(3)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"block_size": 4},
        {"block_size": 4, "control": "2"},
        {"once_a_block": True},
        {"batch_size": 24, "block_size": 8},
    ],
)
def test_a_shift_of_ten_sigma_a_block_changes_no_decision(options):
    """Plans, candidates, who is out and when it ends are equal; evidence up to rounding of the shifted sums."""
    policy, means = policy_of(4, **options), np.array([0.0, 0.9, 0.7, 0.0])

    def none(_: np.random.Generator, counts: np.ndarray) -> np.ndarray:
        return np.zeros(len(counts))

    def large(rng: np.random.Generator, counts: np.ndarray) -> np.ndarray:
        return 10.0 * rng.integers(-9, 10, len(counts))

    for seed in range(3):
        (plans, states), (others, shifted) = (
            played(policy, means, 1.0, seed=seed, effects=effects) for effects in (none, large)
        )
        assert len(plans) == len(others) > 2
        for one, other in zip(plans, others, strict=True):
            assert np.array_equal(one.counts, other.counts)
            assert one.candidate == other.candidate
        for one, other in zip(states[1:], shifted[1:], strict=True):
            assert (one.leader, one.finished, one.beaten.tolist()) == (
                other.leader,
                other.finished,
                other.beaten.tolist(),
            )
            assert one.means.log_values == pytest.approx(other.means.log_values, abs=1e-9)


def test_without_the_option_the_same_shift_changes_decisions():
    """The test above could fail."""
    arms, means = sp.Arms(ids=range(4)), np.array([0.0, 0.9, 0.7, 0.0])
    asked = {"epsilon": 0.3, "delta": 0.1, "noise": "subgaussian:1", "evidence": "carried"}
    policy = sp.make_policy("certified-independent", arms, **asked)
    rng, states = np.random.default_rng(6), [policy.init(), policy.init()]
    for _ in range(3):
        plan, other = (policy.ask(state) for state in states)
        if not np.array_equal(plan.counts, other.counts):
            return
        sums = plan.counts * means + np.sqrt(plan.counts) * rng.standard_normal(4)
        shifts = 0.0, 50.0 * rng.integers(1, 9)
        states = [
            policy.tell(state, plan, Observations(plan.counts, sums + plan.counts * shift)).state
            for state, shift in zip(states, shifts, strict=True)
        ]
    assert not np.allclose(states[0].means.log_values, states[1].means.log_values, atol=1.0)


# --- the law, all outcomes enumerated

MEANS, SIGMA = np.array([0.4, 1.0, 0.1]), np.array([0.5, 0.8, 0.3])


def log_martingales(state) -> np.ndarray:
    given = sum((one.flows * MEANS[one.arm] for one in state.means.given), np.zeros(3))
    return state.means.log_values + state.means.taken * MEANS - given


def excess_of(seed: int, batches: int) -> tuple[float, float]:
    policy = policy_of(noise=sp.SubGaussian(tuple(SIGMA)), **({"control": "2"} if seed % 2 else {}))
    return excess(policy, MEANS, SIGMA, seed=seed, batches=batches, log_martingales=log_martingales)


@pytest.mark.parametrize(
    ("batches", "seeds"), [(1, 6), (2, 1), *(pytest.param(*each, marks=pytest.mark.slow) for each in [(2, 6), (3, 2)])]
)
def test_no_process_has_an_expectation_above_one_whatever_the_effects(batches, seeds):
    found = [excess_of(seed, batches) for seed in range(seeds)]
    largest = max(most for most, _ in found)
    print(f"\nblocks, {batches} batches: expectations exceed what they may be by {largest:.2g}")
    assert largest <= 1e-9
    assert 2 * sum(varies > 0.05 for _, varies in found) >= len(found)  # they bet


def test_weights_that_do_not_sum_to_zero_within_blocks_are_noticed(monkeypatch):
    monkeypatch.setattr(block_rule, "equations", unbalanced)
    assert max(excess_of(seed, 1)[0] for seed in range(12)) > 1e-3


# --- plans


@pytest.mark.parametrize("once", [False, True])
def test_pulls_are_dealt_so_that_blocks_are_alike(once):
    rng = np.random.default_rng(8)
    for size in (2, 3, 8, None):
        counts = rng.integers(0, 7, 6)
        blocking = Blocking("plate", size, None, once)
        table = np.zeros((blocking.number_for(counts), 6), np.int64)
        np.add.at(table, (blocking.dealt(counts), np.repeat(np.arange(6), counts)), 1)
        assert np.array_equal(table.sum(axis=0), counts)
        assert np.ptp(table.sum(axis=1)) <= 1
        assert np.ptp(table, axis=0).max() <= 1
        assert size is None or table.sum(axis=1).max() <= size
        assert not once or table.max() <= 1


@pytest.mark.parametrize("exact", [False, True])
def test_each_block_has_the_candidate_and_the_control(exact):
    counts, blocking = np.array([1, 9, 0, 6, 8]), Blocking("plate", 6, 2, once=False)
    found = filled_blocks(counts, blocking, (0,), exact=exact)
    table = np.zeros((blocking.number_for(found), 5), np.int64)
    np.add.at(table, (blocking.dealt(found), np.repeat(np.arange(5), found)), 1)
    assert table[:, [0, 2]].min() >= 1
    assert found.sum() == 24 or not exact


def test_every_plan_gives_every_block_its_candidate():
    policy = policy_of(6, block_size=5, control="5")
    plans, _ = played(
        policy, np.array([0.8, 0.9, 0.0, 0.0, 0.0, 0.1]), 1.0, seed=9, effects=lambda _, counts: np.zeros(len(counts))
    )
    for plan in plans:
        assert dealt(policy, plan)[:, 5].min() >= 1
        assert plan.candidate is None or dealt(policy, plan)[:, plan.candidate].min() >= 1


# --- what is refused


@of_each(
    ("options", "said"),
    [
        ({"blocks": None, "block_size": 8}, "only with blocks"),
        ({"blocks": None, "once_a_block": True}, "only with blocks"),
        ({"blocks": ""}, "say what measurements"),
        ({"blocks": "reward"}, "are other columns"),
        ({"block_size": 1}, "block_size"),
        ({"control": "nobody"}, "not the id of a candidate"),
        ({"once_a_block": False}, "left out"),
    ],
)
def test_options_without_meaning_are_refused(options, said):
    with pytest.raises(InvalidInput, match=said):
        policy_of(**options)


def test_a_policy_without_blocks_has_the_spec_that_it_had():
    spec = policy_of(blocks=None).spec
    assert not {"blocks", "block_size", "control", "once_a_block"} & set(spec)
    again = sp.make_policy(arms=sp.Arms(ids=range(3)), **policy_of(control="1", block_size=4).spec)
    assert again == policy_of(control="1", block_size=4)
