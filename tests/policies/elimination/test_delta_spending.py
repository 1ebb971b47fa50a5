"""What rounds, looks and pairs spend of the error probability, summed by brute force."""

import math

import numpy as np
import pytest

import surepick as sp
from surepick.core.values import check_choice
from surepick.policies.paper.arm_elimination import SCHEDULES, UNIONS, RoundSettings, round_delta, union_size

DELTA = 0.05


def test_the_schedules_are_their_formulas():
    assert [round_delta("convergent", 0.6, k, 9) for k in (1, 2, 3)] == pytest.approx([0.3, 0.1, 0.05])
    assert [round_delta("paper", 0.6, k, 9) for k in (1, 2, 3)] == pytest.approx([0.6, 0.15, 0.6 / 9])
    assert [round_delta("uniform", 0.6, k, 4) for k in (1, 2, 4)] == pytest.approx([0.15, 0.15, 0.15])


def test_what_the_schedules_sum_to():
    rounds = range(1, 100_001)
    assert math.fsum(round_delta("convergent", DELTA, k, 5) for k in rounds) == pytest.approx(DELTA, rel=1e-4)
    assert math.fsum(round_delta("convergent", DELTA, k, 5) for k in rounds) < DELTA
    assert math.fsum(round_delta("paper", DELTA, k, 5) for k in rounds) == pytest.approx(math.pi**2 / 6 * DELTA, 1e-4)
    assert math.fsum(round_delta("uniform", DELTA, k, 5) for k in range(1, 6)) == pytest.approx(DELTA)


def test_the_product_of_the_papers_proof():
    """prod (1 - delta / k^2) is sin(pi sqrt delta) / (pi sqrt delta) = .9198, not sin(pi delta) / (pi delta) >= .95."""
    product = np.prod(1.0 - DELTA / np.arange(1, 1_000_001, dtype=float) ** 2)
    root = math.pi * math.sqrt(DELTA)
    assert product == pytest.approx(math.sin(root) / root, rel=1e-6)
    assert round(product, 4) == 0.9198
    assert product < 1 - DELTA < math.sin(math.pi * DELTA) / (math.pi * DELTA)
    convergent = np.prod([1.0 - round_delta("convergent", DELTA, k, 1) for k in range(1, 10_001)])
    assert convergent >= 1 - DELTA


def test_the_unions_are_their_formulas():
    assert [union_size(union, 3, 10) for union in ("best-pairs", "paper", "all", "rage")] == [2.0, 9.0, 100.0, 200.0]
    assert union_size("best-pairs", 2, 10) == union_size("best-pairs", 1, 10) == 1.0


@pytest.mark.cases(16)
@pytest.mark.parametrize("union", UNIONS)
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("num_arms", [2, 3, 4, 11])
def test_the_largest_spending_is_the_largest_sum(schedule, union, num_arms):
    """Against the sum over rounds, for every constant size m of the active set."""
    rounds, planned = 20_000, 7
    last = planned if schedule == "uniform" else rounds
    each = np.array([round_delta(schedule, DELTA, k, planned) for k in range(1, last + 1)])
    sums = [each.sum() * (m - 1) / union_size(union, m, num_arms) for m in range(2, num_arms + 1)]
    spent = settings(num_arms, schedule=schedule, union=union).spent
    assert max(sums) <= spent * (1 + 1e-12)
    assert max(sums) == pytest.approx(spent, rel=1e-4)


def settings(num_arms=5, **changes):
    usual = {
        "slack": 0.1, "schedule": "convergent", "union": "best-pairs", "looks": 8, "floor": "support",
        "stopping": "certified",
    }  # fmt: skip
    return RoundSettings(sp.Problem(num_arms, 0.1, DELTA, sp.SubGaussian(1.0)), **(usual | changes))


@pytest.mark.cases(8)
@pytest.mark.parametrize("union", UNIONS)
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("looks", [1, 8])
def test_the_widths_spend_what_is_said(schedule, union, looks):
    """Each look of round k errs with probability (m - 1) exp(-L_k) at most; all looks and rounds sum to `spent`."""
    chosen = settings(schedule=schedule, union=union, looks=looks)
    last = chosen.num_rounds if schedule == "uniform" else 5000
    for active in (2, 3, 5):
        total = sum(looks * (active - 1) * math.exp(-chosen.log_term(k, active)) for k in range(1, last + 1))
        assert total <= chosen.spent * (1 + 1e-9)


FEATURES = np.random.default_rng(0).normal(size=(5, 2))


def verdict_of(name, **options):
    arms = sp.Arms(FEATURES)
    policy = sp.make_policy(name, arms, epsilon=0.5, delta=DELTA, noise=sp.SubGaussian(1.0), **options)
    means = FEATURES @ np.array([0.6, 0.8])
    environment = sp.environments.Environment(arms=arms, means=means, noise=sp.SubGaussian(1.0))
    return sp.simulate(policy, environment, seed=1).certificate


@pytest.mark.cases(4)
@pytest.mark.parametrize("name", ["linear-embedding", "fixed-linear", "rage"])
@pytest.mark.parametrize("union", UNIONS)
def test_delta_over_k_squared_is_heuristic_only_with_the_smallest_union(name, union):
    options = {} if name == "rage" else {"norm_bound": 1.0}
    answer = verdict_of(name, schedule="paper", union=union, **options)
    if union == "best-pairs":
        assert answer.verdict == "heuristic"
        assert "can spend an error probability of 0.08225, more than delta = 0.05" in answer.reason
    else:
        assert answer.verdict == "certified"
    for schedule in ("convergent", "uniform"):
        assert verdict_of(name, schedule=schedule, union=union, **options).verdict == "certified"


def test_an_unknown_choice_is_refused_with_the_known():
    check_choice("union", "all", UNIONS)
    with pytest.raises(sp.InvalidInput, match="union is 'none'; choose one of 'best-pairs', 'paper', 'all', 'rage'"):
        check_choice("union", "none", UNIONS)
