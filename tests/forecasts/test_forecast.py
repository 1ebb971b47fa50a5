"""A forecast is what simulation then spends, and the worst case is worse."""

import functools
import math
from dataclasses import replace

import numpy as np
import pytest
from forecast_cases import DELTA, linear, said, two_clusters
from scipy.stats import binom
from together import of_each

import surepick as sp
from surepick.errors import ContractError
from surepick.forecasts import ForecastRow, advice, compare_settings, forecast
from surepick.policies.base import stopped
from surepick.policies.paper.unknown_misspecification import UnknownMisspecificationElimination


def plain(environment, name="action-elimination", epsilon=0.2, **options):
    return sp.make_policy(name, environment.arms, epsilon=epsilon, delta=DELTA, noise=environment.noise, **options)


def digits():
    environment = sp.environments.digits(1, per_digit=3)
    return environment, linear(environment, epsilon=0.2, norm_bound=3.0)


def sphere():
    environment = sp.environments.sphere(20, 4, 2)
    return environment, linear(environment, epsilon=0.3)


def rage():
    environment = sp.environments.two_clusters(num_arms=30, dim=6)
    return environment, plain(environment, "rage", epsilon=0.1)


def means_only():
    environment = sp.environments.sphere(12, 4, 3)
    return environment, plain(environment, epsilon=0.4, growth=0.5)


def certified_clusters():
    environment = sp.environments.two_clusters(num_arms=60, dim=6)
    return environment, linear(environment, epsilon=0.1, name="certified-linear")


def certified_digits():
    environment = sp.environments.digits(1, per_digit=3)
    return environment, linear(environment, epsilon=0.2, norm_bound=3.0, name="certified-linear")


def certified_means():
    environment = sp.environments.two_clusters(num_arms=30, dim=6)
    return environment, plain(environment, "certified-independent", epsilon=0.3)


def small_certified_digits():
    environment = sp.environments.digits(1, per_digit=1)
    return environment, linear(environment, epsilon=0.4, norm_bound=3.0, name="certified-linear")


def small_certified_means():
    environment = sp.environments.two_clusters(num_arms=10, dim=6)
    return environment, plain(environment, "certified-independent", epsilon=0.4)


def certified_in_batches():
    environment = sp.environments.two_clusters(num_arms=12, dim=6)
    return environment, plain(environment, "certified-independent", epsilon=0.3, batch_size=120)


@functools.cache
def worst_of(instance):
    """The forecast of the worst case, once for all tests that look at it."""
    return forecast(instance()[1])


@functools.cache
def guess_of(instance, seed: int = 1):
    """The forecast under the true means."""
    environment, policy = instance()
    return forecast(policy, environment.means, seed=seed)


@pytest.mark.parametrize(
    "instance",
    [
        *(two_clusters, sphere, rage, means_only, certified_in_batches),
        *(
            pytest.param(each, marks=pytest.mark.slow)
            for each in (digits, certified_clusters, certified_digits, certified_means)
        ),
    ],
)
def test_a_forecast_is_what_simulation_spends_and_the_worst_case_is_worse(instance):
    environment, policy = instance()
    trials = 12
    spent = np.array([sp.simulate(policy, environment, seed=500 + seed).pulls for seed in range(trials)])
    guess, worst = guess_of(instance), worst_of(instance)
    assert guess.total == pytest.approx(spent.mean(), rel=0.2)
    assert np.sum(spent > worst.total) <= binom.isf(1e-6, trials, 0.05)
    assert guess.lowest <= guess.total <= guess.highest <= worst.total
    assert 8 <= guess.rehearsals <= 200


def test_equal_rewards_alone_are_not_the_worst_case():
    """RAGE on two clusters: a round cut short by luck in its rounding is not what a round promises."""
    _, policy = rage()
    state, total = policy.init(), 0
    while not stopped(policy, state):
        plan = policy.ask(state)
        zeros = np.zeros(policy.problem.num_arms)
        state, total = policy.tell(state, plan, sp.Observations(plan.counts, zeros, zeros)).state, total + plan.total
    assert total <= worst_of(rage).total


def test_the_forecast_would_notice_half_the_noise():
    """The saboteur: means simulated with half the noise, and a policy that believes the whole."""
    environment = sp.environments.sphere(12, 4, 3)
    policy = plain(environment, epsilon=0.4)
    cheaper = sp.make_policy(
        "action-elimination", environment.arms, epsilon=0.4, delta=DELTA, noise=sp.SubGaussian(0.5)
    )
    assert forecast(cheaper, environment.means).total < 0.8 * forecast(policy, environment.means).total


def test_a_forecast_is_repeatable_and_depends_on_the_seed():
    environment, policy = sphere()
    assert forecast(policy, environment.means, seed=1) == guess_of(sphere)
    assert forecast(policy, environment.means, seed=4) != guess_of(sphere)


def test_rounds_add_up():
    _, policy = sphere()
    for found in (worst_of(sphere), guess_of(sphere)):
        assert sum(row.pulls for row in found.rounds) == found.total == found.rounds[-1].total
        assert [row.round for row in found.rounds] == list(range(1, len(found.rounds) + 1))
        assert all(before.active >= after.active for before, after in zip(found.rounds, found.rounds[1:], strict=False))
        assert all(
            before.reached >= after.reached for before, after in zip(found.rounds, found.rounds[1:], strict=False)
        )
        assert all(row.accuracy == policy.rounds.accuracy(row.round) for row in found.rounds)
    assert {row.active for row in worst_of(sphere).rounds} == {20}


def test_a_guess_of_small_rewards_is_turned_around():
    environment = sp.environments.sphere(12, 4, 3)
    policy = plain(environment, epsilon=0.4)
    up, down = forecast(policy, environment.means), forecast(policy, -environment.means, minimize=True)
    assert down.total == pytest.approx(up.total, rel=0.2)
    assert down.believable


def test_bounded_rewards_keep_their_range():
    arms = sp.Arms(np.eye(3))
    policy = sp.make_policy("action-elimination", arms, epsilon=0.3, delta=DELTA, noise=sp.Bounded(-1.0, 1.0))
    found = forecast(policy, [-1.0, 1.0, -1.0])
    assert found.lowest == found.highest  # means at the ends have no noise
    with pytest.raises(sp.InvalidInput, match="beyond the range"):
        forecast(policy, [0.0, 1.5, 0.0])


@of_each("guess", [[0.0, 1.0], [0.0, 1.0, math.nan], "abc", [[0.0, 1.0, 2.0]]])
def test_a_guess_that_is_none_is_refused(guess):
    policy = sp.make_policy("action-elimination", sp.Arms(np.eye(3)), epsilon=0.3, delta=DELTA, noise="subgaussian:1")
    with pytest.raises(sp.InvalidInput):
        forecast(policy, guess)
    with pytest.raises(sp.InvalidInput, match="max_pulls"):
        forecast(policy, max_pulls=-1)


def unknown_scale() -> sp.Policy:
    return sp.make_policy("certified-independent", sp.Arms(ids=[*"abc"]), epsilon=0.3, delta=DELTA, noise=sp.Normal())


def test_noise_of_unknown_scale_needs_a_guess():
    with pytest.raises(sp.InvalidInput, match="assume_scale=SIGMA"):
        forecast(unknown_scale())
    for wrong in (0.0, -1.0, math.nan, [1.0, 2.0]):
        with pytest.raises(sp.InvalidInput, match="scale"):
            forecast(unknown_scale(), assume_scale=wrong)
    known = sp.make_policy(
        "certified-independent", sp.Arms(ids=[*"abc"]), epsilon=0.3, delta=DELTA, noise="subgaussian:1"
    )
    with pytest.raises(sp.InvalidInput, match="Leave it out"):
        forecast(known, assume_scale=1.0)


def test_under_a_guessed_scale_pulls_grow_with_it_and_the_forecast_says_that_it_is_a_guess():
    totals = []
    for scale in (0.2, 2.0, [2.0, 2.0, 2.0]):
        found = forecast(unknown_scale(), [1.0, 0.5, 0.4], assume_scale=scale, rehearsals=2)
        assert any("that you guessed" in warning for warning in found.warnings)
        totals.append(found.total)
    assert totals[1] == totals[2] > 5 * totals[0]
    worst = forecast(unknown_scale(), assume_scale=2.0)
    assert worst.believable
    assert worst.total > totals[1] / 2


def test_nothing_to_measure_costs_nothing():
    policy = sp.make_policy("action-elimination", sp.Arms(np.eye(1)), epsilon=0.3, delta=DELTA, noise="bernoulli")
    for found in (forecast(policy), forecast(policy, [0.5])):
        assert (found.total, found.rounds, found.uniform, found.believable) == (0, (), 0, True)


# policies that certify a candidate


def test_predictions_are_not_taken_for_designs():
    """Their plans after the first hold a number of pulls where others hold tau: no bias is computed from it."""
    environment = sp.environments.two_clusters(num_arms=16, dim=6, perturbation=3e-3)
    policy = linear(environment, epsilon=0.2, name="certified-linear")
    for found in (forecast(policy, rehearsals=2), forecast(policy, environment.means, rehearsals=2)):
        first, *later = found.rounds
        assert first.value > 0
        assert later
        assert {row.value for row in later} == {None}
        assert all(row.bias == pytest.approx(2 * row.misspecification) for row in found.rounds)
        assert all(row.accuracy is None for row in found.rounds)
        assert sum(row.pulls for row in found.rounds) == found.total == found.rounds[-1].total
        assert 0 < found.rounds[0].misspecification < 0.05


@pytest.mark.parametrize("instance", [small_certified_digits, small_certified_means])
def test_equal_arms_without_noise_are_far_from_the_worst(instance):
    """Without noise every bet is won: the forecast must not take that for the worst case."""
    _, policy = instance()
    state, total, middle = policy.init(), 0, 0.0 if policy.problem.noise.support is None else 0.5
    while not stopped(policy, state):
        plan = policy.ask(state)
        seen = sp.Observations(plan.counts, middle * plan.counts, middle**2 * plan.counts)
        state, total = policy.tell(state, plan, seen).state, total + plan.total
    worst = forecast(policy)
    assert worst.total > 1.2 * total
    assert worst.believable
    assert said(worst, "the most expensive of 8 simulated studies in which all candidates are equal")


def test_a_policy_without_features_has_no_dimensions_and_no_embedding_to_doubt():
    environment, policy = small_certified_means()
    found = forecast(policy, environment.means, rehearsals=2)
    assert {row.dim for row in found.rounds} == {0}
    assert found.warnings == ()
    assert found.guess_norm is None


# policies that do not stop by themselves, or not soon


def test_a_policy_that_never_stops_ends_here():
    environment = sp.environments.sphere(20, 4, 2)
    embedding = sp.LinearEmbedding(environment.arms.features, norm_bound=1.0)
    policy = UnknownMisspecificationElimination(sp.Problem(20, 0.2, DELTA, environment.noise), embedding, dim=4)
    for found in (forecast(policy), forecast(policy, np.zeros(20)), forecast(policy, max_pulls=50_000)):
        assert 0 < found.total <= 10_000_000
        assert said(found, "never stops by itself")
        assert not found.believable
    assert forecast(policy, max_pulls=50_000).total <= 50_000


def test_a_forecast_cut_short_says_so():
    _, policy = sphere()
    found = forecast(policy, max_pulls=100)
    assert found.total <= 100
    assert said(found, "cut short")
    assert not found.believable


def test_the_noisiest_arm_leads_the_worst_case():
    arms = sp.Arms(np.eye(3))
    policy = sp.make_policy("action-elimination", arms, epsilon=0.5, delta=DELTA, noise=sp.SubGaussian((0.1, 1.0, 0.9)))
    worst = forecast(policy)
    world = sp.environments.Environment(arms=arms, means=np.zeros(3), noise=policy.problem.noise)
    assert all(sp.simulate(policy, world, seed=seed).pulls <= worst.total for seed in range(8))


# comparisons


def test_policies_side_by_side_and_what_to_take():
    environment = sp.environments.two_clusters(num_arms=30, dim=6)
    rows = compare_settings(
        {
            "norm_bound=1e-6": linear(environment, epsilon=0.1, norm_bound=1e-6),
            "norm_bound=1": linear(environment, epsilon=0.1),
            "means": plain(environment, epsilon=0.1),
        },
        environment.means,
        rehearsals=3,
    )
    assert [row.name for row in rows] == ["norm_bound=1e-6", "norm_bound=1", "means"]
    assert [row.believable for row in rows] == [False, True, True]
    assert all(len(set(row.warnings)) == len(row.warnings) for row in rows)
    counsel = advice(rows, 43_000)
    assert "norm_bound=1. Expect" in counsel
    assert "smallest that you are sure of" in counsel
    assert "saves nothing" in advice(rows[2:], 10)
    assert advice(rows[:1], 10).startswith("None of these")


def test_of_equally_cheap_choices_the_one_that_claims_less_is_advised():
    environment = sp.environments.digits(1, per_digit=1)
    linear_row = linear(environment, epsilon=0.6, norm_bound=3.0, name="certified-linear")
    plain_row = plain(environment, "certified-independent", 0.6, evidence="carried")
    rows = compare_settings(
        {"certified-linear norm_bound=3": linear_row, "plain": plain_row}, environment.means, rehearsals=2
    )
    assert rows[0].guess.total == rows[1].guess.total  # 10 images in 10 dimensions: nothing is compressed
    counsel = advice(rows, 43_000)
    assert "Cheapest credible option: plain." in counsel
    assert "norm bound" not in counsel


def test_a_refusal_is_a_row():
    environment = sp.environments.two_clusters(num_arms=60, dim=6)

    class Refusing:
        def __getattr__(self, name):
            if name == "init":
                raise ContractError("no room at all")
            return getattr(plain(environment), name)

    (row,) = compare_settings({"tight": Refusing()})
    assert row == ForecastRow("tight", None, None, "no room at all")
    assert not row.believable
    assert row.warnings == ()


@pytest.mark.parametrize("options", [{}, {"batch_size": 24}, {"max_batches": 3}])
def test_a_forecast_tells_how_often_somebody_must_measure(options):
    environment = sp.environments.two_clusters(num_arms=12, dim=3)
    policy = linear(environment, epsilon=0.2, name="certified-linear", **options)
    found = forecast(policy, environment.means, seed=2, rehearsals=4)
    runs = [len(sp.simulate(policy, environment, seed=seed).rounds) for seed in range(4)]
    assert found.batches == pytest.approx(np.median(runs), abs=2)
    assert 1 <= found.fewest_batches <= found.batches <= found.most_batches <= options.get("max_batches", 100)
    if "batch_size" in options:
        assert found.lowest == 24 * found.fewest_batches
    worst = forecast(policy)
    assert worst.fewest_batches == worst.batches == worst.most_batches
    assert str(worst.batches) in advice((ForecastRow("one", worst, None),), 10)


def test_looks_inside_a_round_are_batches_too():
    assert worst_of(rage).batches == len(worst_of(rage).rounds)
    assert worst_of(two_clusters).batches > len(worst_of(two_clusters).rounds)


def test_a_forecast_is_a_plain_record():
    found = worst_of(sphere)
    assert replace(found, total=found.total) == found
    with pytest.raises(AttributeError):
        found.total = 3


@pytest.mark.parametrize(("num_arms", "epsilon", "batch"), [(100, 0.001, 100), (50, 0.05, 96)])
def test_simulating_ends_after_so_many_rounds_and_says_more_than(num_arms, epsilon, batch):
    arms = sp.Arms(ids=list(map(str, range(num_arms))))
    policy = sp.make_policy(
        "certified-independent", arms, epsilon=epsilon, delta=0.05, noise="subgaussian:1", batch_size=batch
    )
    found = sp.forecast(policy, most_rounds=30)
    assert found == sp.forecast(policy, most_rounds=30)
    assert (found.batches, found.at_least, found.believable) == (30, True, False)
    assert found.total_said == f"more than {30 * batch:,}"
    assert any("rounds that a forecast simulates were over" in warning for warning in found.warnings)
    under_guess = sp.forecast(policy, np.linspace(0.0, 1e-3, num_arms), most_rounds=30)
    assert under_guess.at_least
    assert under_guess.rehearsals == 1


def test_simulating_ends_after_some_processor_time():
    policy = sp.make_policy(
        "certified-independent", sp.Arms(ids=list("abc")), epsilon=0.01, delta=0.05, noise="bernoulli"
    )
    found = sp.forecast(policy, most_seconds=0.0)
    assert found.total == 0
    assert found.at_least
    assert any("the 0 s that a forecast takes were over" in warning for warning in found.warnings)


def test_a_forecast_that_ends_says_no_more_than_it_takes():
    policy = sp.make_policy(
        "certified-independent", sp.Arms(ids=list("abc")), epsilon=0.5, delta=0.05, noise="bernoulli"
    )
    found = sp.forecast(policy)
    assert found.at_least is None
    assert found == sp.forecast(policy, most_rounds=float("inf"), most_seconds=float("inf"))
