"""Blocks that share an effect, with features: balanced weights, plans that need no level, checks within blocks."""

import numpy as np
import pytest
from block_outcomes import excess
from block_studies import LINE, as_one_block, of_features, played, seen_of, totals_of
from together import of_each

import surepick as sp
from surepick.core.observations import Observations
from surepick.core.plans import Plan
from surepick.embeddings import LinearEmbedding
from surepick.embeddings.base import CentredWithinBlocks
from surepick.errors import InvalidInput
from surepick.estimators.running_processes import ArmVectors, VectorProcesses
from surepick.linalg.factorisations import whitened
from surepick.policies.carried.block_rule import without_effects_on_vectors
from surepick.policies.carried.vectors_rule import Information, Pulls

SCALES = np.array([0.5, 1.0, 0.7, 0.4, 0.9, 0.6])
SIX = np.random.default_rng(1).normal(0.0, 1.0, (6, 2))


def tables(seed: int, blocks: int = 4) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng([seed, 3])
    counts = rng.integers(0, 3, (blocks, 6))
    return counts, counts * rng.normal(0.0, 1.0, counts.shape)


def arm_vectors() -> ArmVectors:
    embedded = CentredWithinBlocks(LinearEmbedding(SIX, norm_bound=1.0)).at(3)
    return ArmVectors.of(embedded, whitened(embedded.features).basis, 1.0)


# --- the weights


@of_each("seed", range(5))
def test_the_processes_are_those_of_the_weights_written_out(seed):
    counts, sums = tables(seed)
    vectors, rng = arm_vectors(), np.random.default_rng([seed, 4])
    arms, directions = np.array([1, 2, 5]), rng.normal(0.0, 1.0, (3, vectors.white.shape[1]))
    found = VectorProcesses.started(vectors, 0.0).after_blocks(
        vectors, 0, arms, directions, totals_of(counts, sums), SCALES
    )
    for row, arm in enumerate(arms):
        flow, gained = np.zeros(6), 0.0
        for block in range(len(counts)):
            weights = counts[block] / SCALES**2
            centre = weights @ vectors.white / weights.sum()
            each = (vectors.white - centre) @ directions[row] / SCALES**2
            assert each @ counts[block] == pytest.approx(0.0, abs=1e-12)
            flow += each * counts[block]
            gained += each @ sums[block] - 0.5 * each**2 @ (counts[block] * SCALES**2)
        assert found.log_values[arm] == pytest.approx(gained, rel=1e-8, abs=1e-6)
        assert found.flows[arm] == pytest.approx(flow @ vectors.white, abs=1e-10)
        assert found.lengths[arm] == pytest.approx(np.abs(flow).sum())
        assert found.own[arm] == pytest.approx(flow[arm])
        assert found.given[0].flows[arm] == pytest.approx(flow[0])
    assert not found.lengths[[0, 3, 4]].any()


@pytest.mark.parametrize("seed", range(3))
def test_the_information_is_what_the_weights_cost_and_move(seed):
    """M of v'Mv / 2 and of the flows M v, sum w z z' - sum w z sum w z' / sum w over the blocks."""
    counts, sums = tables(seed)
    vectors, seen = arm_vectors(), totals_of(counts, sums)
    information = Information.of(Pulls.within(vectors.white, seen, SCALES)).information
    v = np.random.default_rng(seed).normal(0.0, 1.0, (1, vectors.white.shape[1]))
    found = VectorProcesses.started(vectors, 0.0).after_blocks(
        vectors, 0, np.array([1]), v, totals_of(counts, 0.0 * sums), SCALES
    )
    assert found.flows[1] == pytest.approx(information @ v[0], abs=1e-10)
    assert found.log_values[1] == pytest.approx(-0.5 * v[0] @ information @ v[0])


# --- effects change nothing


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"block_size": 4},
        {"block_size": 6, "control": "2"},
        {"once_a_block": True},
        {"batch_size": 24, "block_size": 8},
    ],
)
def test_a_shift_of_ten_sigma_a_block_changes_no_decision(options):
    """Plans, candidates, who is out and when it ends are equal; evidence up to rounding of the shifted sums."""
    means = SIX @ [0.6, -0.3]
    policy = of_features(SIX, epsilon=0.3, delta=0.1, noise=sp.SubGaussian(1.0), norm_bound=1.0, **options)
    for seed in range(2):
        (plans, states), (others, shifted) = (
            played(
                policy, means, 1.0, seed=seed, effects=lambda rng, counts, by=by: by * rng.integers(-9, 10, len(counts))
            )
            for by in (0.0, 10.0)
        )
        assert len(plans) == len(others) > 2
        assert states[-1].finished == "certified"
        for one, other in zip(plans, others, strict=True):
            assert np.array_equal(one.counts, other.counts)
            assert one.candidate == other.candidate
        for one, other in zip(states[1:], shifted[1:], strict=True):
            assert (one.leader, one.finished, one.alarms) == (other.leader, other.finished, other.alarms)
            assert np.array_equal(one.beaten, other.beaten)
            assert one.vectors.log_values == pytest.approx(other.vectors.log_values, abs=1e-9)


def test_effects_are_taken_out_of_guesses():
    rng = np.random.default_rng(5)
    vectors, slope = arm_vectors(), np.array([0.7, -1.2, 0.0])
    counts, means = rng.integers(0, 3, (6, 6)), vectors.embedded.features @ slope
    past = Observations.nothing(6)
    for effects in (rng.normal(0.0, 1e6, 6), rng.normal(0.0, 1e6, 6)):
        batch = without_effects_on_vectors(
            seen_of(counts, counts * (means + effects[:, None])), past, SCALES, vectors.white
        )
        past = past.plus(batch)
        assert past.means - past.means[0] == pytest.approx(means - means[0], abs=1e-3)


# --- the law, all outcomes enumerated

SIGMA = np.array([0.5, 0.8, 0.3, 0.6, 0.4, 0.7])
LINEAR = SIX @ [0.4, 0.3]


def excess_of(seed: int, batches: int) -> tuple[float, float]:
    policy = of_features(SIX, epsilon=0.3, delta=0.1, noise=sp.SubGaussian(tuple(SIGMA)), norm_bound=1.0)
    white = whitened(policy.traits.embedding.at(3).features).basis
    slope = np.linalg.lstsq(white, LINEAR, rcond=None)[0]
    assert white @ slope == pytest.approx(LINEAR)

    def log_martingales(state) -> np.ndarray:
        return state.vectors.log_values - state.vectors.flows @ slope

    return excess(policy, LINEAR, SIGMA, seed=seed, batches=batches, log_martingales=log_martingales)


@pytest.mark.parametrize("batches", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_no_process_has_an_expectation_above_one_whatever_the_effects(batches):
    found = [excess_of(seed, batches) for seed in range({1: 10, 2: 4}[batches])]
    largest = max(most for most, _ in found)
    print(f"\nblocks with features, {batches} batches: expectations exceed what they may be by {largest:.2g}")
    assert largest <= 1e-9
    assert 2 * sum(varies > 0.05 for _, varies in found) >= len(found)  # they bet


def test_weights_that_do_not_sum_to_zero_within_blocks_are_noticed(monkeypatch):
    monkeypatch.setattr(Observations, "in_blocks", property(as_one_block))
    assert max(excess_of(seed, 1)[0] for seed in range(10)) > 1e-3


# --- plans and checks


def test_a_plan_measures_two_arms_that_differ_where_one_long_arm_would_do_without_blocks():
    """The level costs a coordinate: pulls of one arm alone tell no difference within a block."""
    features = np.array([[1.0, 0.0], [0.9, 0.1], [8.0, -8.0], [1.0, 0.05], [0.9, 0.15]])
    means = features @ [0.05, 0.02]
    policy = of_features(features, epsilon=0.02, delta=0.1, noise=sp.SubGaussian(0.1), norm_bound=0.1)
    plans, states = played(policy, means, 0.1, seed=1, effects=lambda _, counts: np.zeros(len(counts)))
    assert states[-1].finished == "certified"
    assert all(np.count_nonzero(plan.counts) > 1 for plan in plans)


def test_no_effect_raises_an_alarm_and_what_no_embedding_fits_does():
    rng, raised = np.random.default_rng(3), []
    policy = of_features(LINE, epsilon=0.3, delta=0.1, noise=sp.SubGaussian(0.1), norm_bound=1.0)
    for means in (LINE @ [0.5, 0.1], np.array([0.0, 1.0, 0.0, 1.0, 0.0, 1.0]), LINE @ [0.0, 9.0]):
        counts = np.full((5, 6), 4)
        sums = counts * (means + rng.normal(0.0, 1e4, 5)[:, None]) + 0.2 * rng.standard_normal(counts.shape)
        plan = Plan(round=1, counts=counts.sum(axis=0), dim=3, design_value=8.0)
        raised.append(policy.tell(policy.init(), plan, seen_of(counts, sums)).state.alarms)
    assert raised[0] == ()
    assert any("does not describe" in alarm for alarm in raised[1])
    assert any("norm_bound is too small" in alarm for alarm in raised[2])


def test_a_kernel_whose_dimension_is_chosen_goes_through_blocks():
    points = np.linspace(0.0, 1.0, 30)[:, None]
    asked = {"epsilon": 0.3, "delta": 0.1, "noise": "subgaussian:0.3", "norm_bound": 2.0, "gamma": 4.0}
    policy = sp.make_policy("certified-kernel", sp.Arms(points), **asked, blocks="day", block_size=8)
    means = np.exp(-4.0 * (points[:, 0] - 0.3) ** 2)
    plans, states = played(policy, means, 0.3, seed=2, effects=lambda rng, counts: rng.normal(0.0, 9.0, len(counts)))
    assert plans[0].dim < 30
    assert states[-1].finished == "certified"
    assert means[states[-1].leader] >= means.max() - 0.3


# --- what is refused, and what is kept


def test_the_dimension_that_is_given_is_that_of_the_features():
    options = {"epsilon": 0.3, "delta": 0.1, "noise": sp.SubGaussian(0.1), "norm_bound": 1.0}
    policy = of_features(SIX, dim=2, **options)
    assert policy.spec["dim"] == 2
    assert policy.ask(policy.init()).dim == 3
    again = sp.make_policy(arms=sp.Arms(SIX, ids=range(6)), **policy.spec)
    assert again == policy


def test_readings_and_other_policies_know_no_blocks():
    arms = sp.Arms(SIX)
    asked = {"epsilon": 0.3, "delta": 0.1, "noise": "subgaussian:1", "blocks": "day"}
    with pytest.raises(InvalidInput, match="evidence='readings' has no option 'blocks'"):
        sp.make_policy("certified-linear", arms, **asked, norm_bound=1.0, evidence="readings")
    for name in ("linear-embedding", "lucb"):
        with pytest.raises(InvalidInput, match="has no option 'blocks'"):
            sp.make_policy(name, arms, **asked)
