"""The parts of certified elimination: epochs and their weights, margins, the design for what remains, batch sizes."""

import math
from dataclasses import replace

import numpy as np
import pytest

import surepick as sp
from surepick.core.observations import Observations
from surepick.core.plans import Embedding, IndependentArms
from surepick.designs import design_value, independent_star_design, solve_star_design
from surepick.estimators.posterior import Posterior, pooled_fit
from surepick.policies.certified import elimination, sampling_rule
from surepick.policies.certified.elimination import log_weight_of, open_test, weight_of
from surepick.policies.sequential.batches import batch_total

THRESHOLD = math.log(20.0)


def test_weights_of_epochs_never_exceed_one():
    epochs = ()
    for arm in range(60):
        epochs = open_test(epochs, arm, 60)
    assert math.fsum(map(weight_of, range(60))) <= 1.0
    assert [weight_of(number) for number in range(3)] == [0.5, 0.25, 0.125]
    assert [epoch.values[0] for epoch in epochs] == [log_weight_of(number) for number in range(60)]


def test_an_epoch_is_opened_once():
    epochs = open_test((), 3, 5)
    with pytest.raises(sp.errors.ContractError, match="arm 3 has an epoch already"):
        open_test(epochs, 3, 5)


def test_weights_beyond_one_are_refused(monkeypatch):
    epochs = open_test((), 0, 5)
    monkeypatch.setattr("surepick.policies.certified.elimination.weight_of", lambda _: 0.6)
    with pytest.raises(sp.errors.ContractError, match="exceed 1"):
        open_test(epochs, 1, 5)


def test_a_settled_rival_stays_settled_and_the_candidate_is_none():
    (epoch,) = open_test((), 0, 3)
    after = epoch.after(np.array([0.0, 9.0, 1.0])).after(np.array([0.0, -9.0, 0.0]))
    assert after.rejected(THRESHOLD).tolist() == [False, True, False]
    assert after.open_rivals(THRESHOLD).tolist() == [2]
    assert math.isclose(after.values[1], math.log(0.5))


def test_a_new_epoch_starts_from_its_weight_whatever_came_before():
    (first,) = open_test((), 0, 3)
    _, second = open_test((first.after(np.full(3, 2.0)),), 2, 3)
    assert second.name == "2"
    assert np.array_equal(second.values, np.full(3, math.log(0.25)))


def posterior_of(sums, counts, sigma: float = 1.0) -> Posterior:
    pooled = Observations(np.array(counts), np.array(sums, float))
    return pooled_fit(IndependentArms(len(sums)), pooled, np.full(len(sums), sigma)).posterior()


def test_margins_grow_with_the_lead():
    sure = posterior_of([100.0, 40.0, 100.0], [100, 100, 100], sigma=0.01)
    assert np.allclose(sure.margins(0, 0.1), [0.1, 0.7, 0.1])


def test_a_deficit_is_believed_only_where_it_is_no_chance():
    """The candidate trails by .05: within one standard error that is chance, beyond it the bet gets smaller."""
    noisy, sure = (posterior_of([95.0, 100.0], [100, 100], sigma=sigma) for sigma in (1.0, 0.01))
    assert np.allclose(noisy.margins(0, 0.1), 0.1)
    assert 0.05 < sure.margins(0, 0.1)[1] < 0.052
    lost = posterior_of([10.0, 100.0], [100, 100], sigma=0.01)
    assert np.allclose(lost.margins(0, 0.1)[1], 0.025)


def test_an_arm_without_a_result_is_guessed_to_be_the_best():
    assert posterior_of([2.0, 0.0, 2.0], [2, 0, 4]).scores.tolist() == [1.0, 1.0, 0.5]
    assert np.allclose(posterior_of([2.0, 0.0, 2.0], [2, 0, 4]).margins(2, 0.1), [0.1, 0.1, 0.1], atol=0.5)


def remaining(embedded, **changes):
    test = replace(open_test_of(0, np.array([1, 2, 3]), posterior_of([1e4, 5e3, 3e3, 9e3], [10_000] * 4)), **changes)
    return sampling_rule.next_batch(embedded, test, tolerance=0.01)


def open_test_of(candidate, rivals, posterior):
    evidence = np.full(4, math.log(0.5))
    return sampling_rule.OpenTest(candidate, rivals, evidence, THRESHOLD, posterior, np.full(4, 2.0), 0.1)


def test_what_remains_is_the_same_in_any_basis_of_independent_arms():
    basis = np.random.default_rng(0).normal(size=(4, 4))
    plain, by_features = remaining(IndependentArms(4)), remaining(Embedding(basis, 0.0))
    assert math.isclose(plain.design.value, by_features.design.value, rel_tol=1e-6)
    assert plain.bias_limited.size == 0


def test_what_remains_scales_with_the_variance_and_only_counts_the_unsettled():
    features = np.random.default_rng(1).normal(size=(4, 2))
    once = remaining(Embedding(features, 0.0))
    twice = remaining(Embedding(features, 0.0), noise_scales=np.full(4, 4.0))
    assert math.isclose(twice.design.value, 4.0 * once.design.value, rel_tol=1e-3)
    assert remaining(Embedding(features, 0.0), rivals=np.array([2])).design.value < once.design.value


def test_misspecification_costs_pulls_until_it_leaves_no_room():
    features = np.random.default_rng(2).normal(size=(4, 2))
    exact, bent, hopeless = (remaining(Embedding(features, gamma)) for gamma in (0.0, 0.01, 1.0))
    assert exact.design.value < bent.design.value < hopeless.design.value
    assert bent.bias_limited.size == 0
    assert hopeless.bias_limited.tolist() == [1, 2, 3]


def pulls_by(embedded, candidate, weights, rivals, posterior):
    return sampling_rule.pulls_by(embedded, open_test_of(candidate, rivals, posterior), weights)


@pytest.mark.parametrize("gamma", [0.0, 0.01])
def test_the_pulls_that_given_proportions_take(gamma):
    """max_j R_j ||z_j - z_c||^2 in A^-1, with the bias of these very proportions; for the best ones it is the value."""
    features, rivals = np.random.default_rng(1).normal(size=(4, 2)), np.array([1, 2, 3])
    posterior = posterior_of([1e4, 5e3, 3e3, 9e3], [10_000] * 4)
    weights = np.array([0.4, 0.3, 0.2, 0.1])
    inverse = np.linalg.inv((features.T * weights) @ features)
    towards = features[rivals] - features[0]
    lengths = np.sqrt(np.einsum("ij,jk,ik->i", towards, inverse, towards))
    slack = np.array([0.6, 0.8, 0.2]) - gamma * (2.0 + lengths)
    need = THRESHOLD - math.log(0.5)
    expected = np.max(2.0 * (need + 0.5) * (2.0 * lengths / slack) ** 2)
    taken = pulls_by(Embedding(features, gamma), 0, weights, rivals, posterior)
    assert taken == pytest.approx(expected, rel=1e-6)
    best = remaining(Embedding(features, 0.0)).design
    assert pulls_by(Embedding(features, 0.0), 0, best.weights, rivals, posterior) == pytest.approx(best.value, rel=1e-6)


def test_proportions_that_do_not_tell_a_rival_take_for_ever():
    posterior, rivals = posterior_of([1e4, 5e3, 3e3, 9e3], [10_000] * 4), np.array([1, 2, 3])
    two = np.array([0.5, 0.5, 0.0, 0.0])
    assert pulls_by(Embedding(np.eye(4), 0.0), 0, two, rivals, posterior) == math.inf
    assert pulls_by(Embedding(np.eye(4), 0.0), 0, two, rivals[:1], posterior) < math.inf


def test_where_designs_take_long_one_is_solved_a_round(monkeypatch):
    """Candidates are then compared in the proportions of the pulls so far, and still the right one wins."""
    for module in (elimination, sampling_rule):
        monkeypatch.setattr(module, "is_expensive", lambda embedded: isinstance(embedded, Embedding))
    asked, candidates = [], []
    usual = sampling_rule.next_batch

    def noted(embedded, test, **options):
        asked.append(test.candidate)
        return usual(embedded, test, **options)

    monkeypatch.setattr(sampling_rule, "next_batch", noted)
    switched = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        features, truth = rng.normal(size=(40, 4)), rng.normal(size=4)
        means = 0.1 * features @ truth / np.linalg.norm(truth)
        arms = sp.Arms(features)
        embedding = sp.make_policy(
            "certified-linear", arms, epsilon=0.05, delta=0.05, noise=sp.SubGaussian(0.3), norm_bound=0.1
        ).embedding
        policy = elimination.CertifiedElimination(sp.Problem(40, 0.05, 0.05, sp.SubGaussian(0.3)), embedding, dim=4)
        study, candidates = sp.Study(arms, policy), []
        while (plan := study.ask()) is not None:
            if plan.candidate is not None:
                assert len(asked) == 1
                candidates.append(plan.candidate)
            asked.clear()
            noise = 0.3 * np.sqrt(plan.counts) * rng.standard_normal(40)
            study.tell_totals(study.ids, plan.counts, plan.counts * means + noise)
            asked.clear()
        switched += len(set(candidates)) > 1
        assert means.max() - means[study.certificate().arm] <= 0.05
    assert switched


def test_batches_are_a_share_of_what_remains_within_limits():
    assert batch_total(1000.0, 500) == 200
    assert batch_total(1000.0, 100) == 100
    assert batch_total(1.0, 500) == 10
    assert batch_total(0.1, 1) == 1


def test_the_first_batch_of_rewards_of_unknown_variance_is_small():
    arms = IndependentArms(10)
    known, ranged = sp.SubGaussian(0.5), sp.Bernoulli()  # the same scale, declared or from the range
    assert ranged.sigma == known.sigma
    assert sampling_rule.opening_total(arms, sp.Problem(10, 0.01, 0.05, known)) == 6000
    assert sampling_rule.opening_total(arms, sp.Problem(10, 0.01, 0.05, ranged)) == 100
    assert sampling_rule.opening_total(Embedding(np.eye(3), 0.0), sp.Problem(3, 1.0, 0.05, sp.SubGaussian(0.01))) == 6


def test_many_arms_are_compared_with_a_central_one_at_first(monkeypatch):
    monkeypatch.setattr("surepick.policies.tuning.HEURISTIC_MANY", 10)
    features = np.random.default_rng(3).normal(size=(40, 3))
    star = sampling_rule.opening_design(Embedding(features, 0.0), 0.01)
    all_pairs = sp.solve_design(features)
    assert star.value <= all_pairs.value * 1.02
    assert design_value(features, star.weights) <= 4.0 * star.value * (1.0 + 1e-9)


def test_star_designs_with_uneven_noise_agree_with_and_without_structure():
    rng = np.random.default_rng(4)
    scales, noises = rng.uniform(0.5, 2.0, 5), rng.uniform(0.3, 3.0, 5)
    rivals = np.array([0, 3, 4])
    closed = independent_star_design(1, scales, rivals=rivals, noise_scales=noises)
    lam = closed.weights
    costs = (noises[1] ** 2 / lam[1] + noises[rivals] ** 2 / lam[rivals]) / scales[rivals] ** 2
    assert math.isclose(closed.value, costs.max(), rel_tol=1e-9)
    assert lam[2] == 0.0
    assert closed.gap < 1e-6
    wide = np.column_stack([np.eye(5), np.zeros(5)])  # the same arms
    assert np.allclose(solve_star_design(wide, 1, scales, rivals=rivals, noise_scales=noises).weights, lam, atol=1e-6)


def test_star_designs_with_uneven_noise_are_optimal_for_scaled_rows():
    """A pull of x with noise v is a pull of x / v with noise 1."""
    rng = np.random.default_rng(5)
    features, scales, noises = rng.normal(size=(12, 3)), rng.uniform(0.5, 2.0, 12), rng.uniform(0.3, 3.0, 12)
    rivals = np.array([1, 4, 5, 9])
    design = solve_star_design(features, 2, scales, rivals=rivals, noise_scales=noises, tolerance=1e-3)
    targets = (features[2] - features[rivals]) / scales[rivals, None]
    from surepick.designs import solve_target_design

    scaled = solve_target_design(features / noises[:, None], targets, tolerance=1e-3)
    assert math.isclose(design.value, scaled.value, rel_tol=2e-3)
    matrix = (features * (design.weights / noises**2)[:, None]).T @ features
    assert math.isclose(design.value, max(y @ np.linalg.solve(matrix, y) for y in targets), rel_tol=1e-8)


def test_one_rival_and_a_singular_design():
    features = np.random.default_rng(0).normal(size=(9, 8))
    design = solve_star_design(features, 3, np.ones(9), rivals=np.array([5]))
    assert 0.0 < design.lower_bound <= design.value < 1e3
