"""LUCB1 by hand: its width, whom it pulls, when it stops, and what is left unsettled."""

import math

import numpy as np
import pytest
from budgets import few_and_all
from together import of_each

import surepick as sp
from surepick.core.observations import Observations
from surepick.policies.verdict import certificate_of
from surepick_bench.policies.means import K1, LUCB, ZETA_3, ActionElimination, lucb_radius

USUAL = {"epsilon": 0.1, "delta": 0.05, "noise": sp.SubGaussian(0.5)}


def lucb(num_arms: int, growth: float = 0.1, **changes) -> LUCB:
    return LUCB(sp.Problem(num_arms, **(USUAL | changes)), growth)


def seen(counts, means) -> Observations:
    counts = np.array(counts)
    return Observations(counts, counts * np.array(means, np.float64))


def after(policy: LUCB, counts, means):
    """The state when this was seen at once."""
    state = policy.init()
    return policy.tell(state, policy.ask(state), seen(counts, means)).state


def test_the_width_by_hand():
    """Rewards in [0, 1] (sigma 1/2): sqrt(log(1.25 K t^4 / delta) / (2 u)); t = 8 is half of 16 pulls."""
    radius = lucb_radius(np.array([6, 4, 3, 3]), np.full(4, 0.5), delta=0.05)
    log_term = math.log(1.25 * 4 * 8**4 / 0.05)
    assert radius == pytest.approx([math.sqrt(log_term / (2 * u)) for u in (6, 4, 3, 3)], rel=1e-14)


def test_t_is_never_less_than_the_pulls_of_an_arm():
    """The union over u <= t needs it: with 90 of 100 pulls on one arm, t = 90."""
    radius = lucb_radius(np.array([90, 10]), np.full(2, 1.0), delta=0.1)
    assert radius[1] == pytest.approx(math.sqrt(2 * math.log(1.25 * 2 * 90**4 / 0.1) / 10), rel=1e-14)


@of_each("num_arms", [2, 7, 1000])
@of_each("delta", [0.3, 1e-6])
def test_all_events_together_stay_below_delta(num_arms, delta):
    """The sum of the proof, from the widths themselves: exp(-u beta(u, t)^2 / (2 sigma^2)) over arms, t and u <= t."""
    total = 0.0
    for t in range(1, 400):
        counts = np.zeros(num_arms, np.int64)
        counts[:2] = t  # half of all pulls is t as well
        beta = lucb_radius(counts, np.full(num_arms, 0.7), delta=delta)[0]
        total += num_arms * t * math.exp(-t * beta**2 / (2 * 0.7**2))  # the exponent does not depend on u
    assert total == pytest.approx(delta * ZETA_3 / K1, rel=1e-4)
    assert total < delta


def test_the_first_plan_pulls_every_arm_once_and_what_did_not_come_again():
    policy = lucb(4)
    assert policy.ask(policy.init()).counts.tolist() == [1, 1, 1, 1]
    state = after(policy, [1, 0, 1, 0], [0.5, 0.0, 0.4, 0.0])
    assert policy.ask(state).counts.tolist() == [0, 1, 0, 1]
    assert (state.leader, state.gap, state.finished) == (0, None, "")


def test_the_leader_and_the_rival_of_highest_upper_bound_are_pulled():
    """Arm 2 has a lower mean than arm 1 and fewer pulls: its upper bound is higher."""
    policy = lucb(4)
    state = after(policy, [100, 100, 20, 100], [0.6, 0.5, 0.4, 0.1])
    assert state.leader == 0
    assert policy.ask(state).counts.tolist() == [2, 0, 2, 0]  # a tenth of 20
    assert lucb(4, growth=0.0).ask(state).counts.tolist() == [1, 0, 1, 0]
    assert lucb(4, growth=0.101).ask(state).counts.tolist() == [3, 0, 3, 0]


def test_one_scale_per_arm_is_used_as_such():
    """The noisy arm 3 is the rival although its mean is lowest."""
    policy = lucb(4, noise=sp.SubGaussian((0.5, 0.5, 0.5, 5.0)))
    state = after(policy, [100, 100, 100, 100], [0.6, 0.5, 0.4, 0.1])
    assert policy.ask(state).counts.tolist() == [10, 0, 0, 10]


@pytest.mark.parametrize(("difference", "finished"), [(0.1, "certified"), (0.09, "")])
def test_it_stops_when_the_rival_cannot_be_better_by_epsilon(difference, finished):
    """The rival may be ahead by 2 beta - difference, and epsilon lies between the two cases."""
    counts = [4_000, 4_000]
    beta = float(lucb_radius(np.array(counts), np.full(2, 0.5), delta=0.05)[0])
    policy = lucb(2, epsilon=2 * beta - 0.095)
    state = after(policy, counts, [0.6, 0.6 - difference])
    assert state.finished == finished
    assert state.gap == pytest.approx(max(0.0, 2 * beta - difference))
    assert certificate_of(policy, state).verdict == ("certified" if finished else "not-yet")


def test_active_is_the_leader_and_the_rivals_not_yet_settled():
    policy = lucb(4)
    state = after(policy, [1000] * 4, [0.6, 0.58, 0.4, 0.1])
    assert state.active.tolist() == [0, 1]
    done = after(policy, [10_000] * 4, [0.6, 0.58, 0.4, 0.1])
    assert (done.active.tolist(), done.finished) == ([0], "certified")


def test_equal_arms_end_by_the_epsilon_stop():
    environment = sp.environments.Environment(arms=sp.Arms(np.eye(3)), means=[0.5] * 3, noise=sp.SubGaussian(0.5))
    run = sp.simulate(lucb(3), environment, seed=1)
    assert (run.verdict, run.success) == ("certified", True)
    assert run.certificate.certified_gap < 0.1


def test_no_result_at_all_is_no_answer():
    policy = lucb(3)
    state = after(policy, [0, 0, 0], [0, 0, 0])
    assert (state.leader, state.gap, state.finished, state.active.tolist()) == (0, None, "", [0, 1, 2])
    assert certificate_of(policy, state).verdict == "not-yet"


@few_and_all("seeds", 1, 8)
def test_batches_cost_little(seeds):
    """Some seeds with the paper's one pull of each of the two arms, and with batches of a tenth."""
    means = np.array([0.9, 0.6, 0.5, 0.3])
    environment = sp.environments.Environment(arms=sp.Arms(np.eye(4)), means=means, noise=sp.SubGaussian(0.5))
    literal = [sp.simulate(lucb(4, growth=0.0), environment, seed=seed) for seed in range(seeds)]
    batched = [sp.simulate(lucb(4), environment, seed=seed) for seed in range(seeds)]
    assert all(run.success for run in [*literal, *batched])
    assert sum(run.pulls for run in batched) < 1.3 * sum(run.pulls for run in literal)
    assert sum(len(run.rounds) for run in batched) < sum(len(run.rounds) for run in literal) / 2


@of_each(
    ("changes", "message"),
    [
        ({"growth": -1.0}, "growth is -1.0; it must be finite and not negative"),
        ({"growth": math.inf}, "growth is inf"),
        ({"growth": 1e20}, r"growth is 1e\+20; it must be at most 1000: by what share a batch adds pulls"),
        ({"num_arms": 0}, "num_arms is 0"),
        ({"epsilon": 0.0}, "epsilon is 0.0"),
        ({"noise": sp.SubGaussian((1.0, 2.0))}, "2 scales for 3 arms"),
    ],
)
def test_settings_without_meaning_are_refused(changes, message):
    with pytest.raises(sp.InvalidInput, match=message):
        lucb(**({"num_arms": 3} | changes))


@of_each("growth", [1000.5, 1e300])
@of_each("build", [LUCB, ActionElimination])
def test_batches_that_nobody_could_measure_are_refused(build, growth):
    with pytest.raises(sp.InvalidInput, match="at most 1000"):
        build(sp.Problem(3, **USUAL), growth=growth)
    assert build(sp.Problem(3, **USUAL), growth=1000).growth == 1000
