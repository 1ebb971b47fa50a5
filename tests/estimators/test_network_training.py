"""Training on counts and means: the loss, its gradient, the closed form of one step, and where each trainer ends."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch
from together import of_each

import surepick as sp
from surepick.core.observations import Observations
from surepick.embeddings.network import ARCHITECTURES, ArmNetwork, Network
from surepick.estimators import network_training as training
from surepick.estimators.network_training import TRAINERS, Lesson, Trained, train

QUICK = ("gauss-newton", "gradient-descent")


def make(features, architecture="symmetric", width=16, **changes) -> ArmNetwork:
    return ArmNetwork(features, Network(width=width, architecture=architecture, **changes))


def task(seed: int = 0, *, num_arms: int = 30, dim: int = 4) -> tuple[np.ndarray, Observations]:
    """Normal arms with linear rewards of unit noise, each pulled 1 to 49 times."""
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((num_arms, dim)) / 2.0
    counts = rng.integers(1, 50, num_arms)
    sums = counts * (features @ rng.standard_normal(dim)) + np.sqrt(counts) * rng.standard_normal(num_arms)
    return features, Observations(counts, sums)


def lesson_of(arms: ArmNetwork, seen: Observations, regularization: float = 1.0) -> Lesson:
    pulled = np.flatnonzero(seen.counts)
    counts, means = (arms.tensor(np.asarray(each, np.float64)[pulled]) for each in (seen.counts, seen.means))
    return Lesson(arms.inputs[pulled], counts, means, regularization * arms.penalty)


def slope(arms: ArmNetwork, lesson: Lesson, theta: torch.Tensor) -> torch.Tensor:
    """The gradient of L by torch's own differentiation of its definition."""
    theta = theta.detach().clone().requires_grad_()
    misfit = arms.outputs(theta, lesson.rows) - lesson.means
    loss = (lesson.counts * misfit**2).sum() / 2.0 + lesson.price * ((theta - arms.start) ** 2).sum() / 2.0
    (found,) = torch.autograd.grad(loss, theta)
    return found


def elsewhere(arms: ArmNetwork, seed: int) -> torch.Tensor:
    noise = np.random.default_rng(seed).standard_normal(arms.num_parameters)
    return arms.start + 0.3 / math.sqrt(arms.network.width) * arms.tensor(noise)


# --- the loss


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_loss_is_the_sum_over_single_pulls_but_for_a_constant(architecture):
    rng = np.random.default_rng(0)
    features, alpha, width = rng.standard_normal((4, 3)), 0.7, 8
    rewards = [rng.standard_normal(count) + arm for arm, count in enumerate((3, 1, 0, 7))]
    seen = Observations([len(each) for each in rewards], [each.sum() for each in rewards])
    arms = make(features, architecture, width)
    lesson = lesson_of(arms, seen, alpha)
    lost = sum(((each - each.mean()) ** 2).sum() for each in rewards if len(each)) / 2.0
    for theta in (arms.start, elsewhere(arms, 1), elsewhere(arms, 2)):
        scores = arms.outputs(theta).numpy()
        pulls = sum(((scores[arm] - each) ** 2).sum() for arm, each in enumerate(rewards)) / 2.0
        moved = float(((theta - arms.start) ** 2).sum())
        price = alpha * (1.0 if architecture == "published" else width) * moved / 2.0
        assert lesson.loss(arms, theta) == pytest.approx(pulls - lost + price, rel=1e-12)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_gradient_of_gradient_descent_is_that_of_the_loss(architecture, monkeypatch):
    """Its step is -eta grad L, eta = 1/(alpha m + N max |g(theta_0)|^2); grad L by autograd and by differences."""
    features, seen = task(num_arms=6)
    arms = make(features, architecture, 8)
    lesson = lesson_of(arms, seen, 2.0)
    squares = (arms.gradients(arms.start) ** 2).sum(dim=1)
    rate = 1.0 / (2.0 * arms.penalty + float(seen.total * squares.max()))
    monkeypatch.setattr(training, "MOST_GRADIENT_STEPS", 1)
    once = train(arms, seen, trainer="gradient-descent", regularization=2.0).weights
    expected = slope(arms, lesson, arms.start)
    assert torch.allclose((arms.start - once) / rate, expected, rtol=1e-9, atol=1e-9 * float(expected.abs().max()))
    monkeypatch.setattr(training, "MOST_GRADIENT_STEPS", 2)
    twice = train(arms, seen, trainer="gradient-descent", regularization=2.0).weights
    expected = slope(arms, lesson, once)
    assert torch.allclose((once - twice) / rate, expected, rtol=1e-9, atol=1e-9 * float(expected.abs().max()))
    step = 1e-6
    for number in range(0, arms.num_parameters, 7):
        shift = torch.zeros_like(once)
        shift[number] = step
        difference = (lesson.loss(arms, once + shift) - lesson.loss(arms, once - shift)) / (2.0 * step)
        assert difference == pytest.approx(float(expected[number]), abs=1e-6 * float(expected.abs().max()))


# --- Gauss-Newton


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_one_gauss_newton_step_is_kernel_ridge_regression_with_the_tangent_kernel(architecture, monkeypatch):
    """Closed form in numpy; 5 of the arms were not pulled. The step is whole where the regularisation is strong."""
    features, told = task(1)
    seen = Observations(np.append(told.counts[:25], np.zeros(5, np.int64)), np.append(told.sums[:25], np.zeros(5)))
    arms, alpha = make(features, architecture, 32), 300.0
    start, jacobian = arms.outputs(arms.start).numpy(), arms.gradients(arms.start).numpy()
    kernel = jacobian @ jacobian.T
    ridge = alpha * arms.penalty * np.diag(1.0 / seen.counts[:25])
    shares = np.linalg.solve(kernel[:25, :25] + ridge, seen.means[:25] - start[:25])
    monkeypatch.setattr(training, "MOST_STEPS", 1)
    trained = train(arms, seen, regularization=alpha)
    moved = (trained.weights - arms.start).numpy()
    assert trained.steps == 1
    assert moved == pytest.approx(jacobian[:25].T @ shares, rel=1e-8, abs=1e-10 * np.max(np.abs(moved)))
    assert start + jacobian @ moved == pytest.approx(start + kernel[:, :25] @ shares, rel=1e-8, abs=1e-10)


@of_each("architecture", ["symmetric", "standard"])
@of_each("seed", range(4))
def test_gauss_newton_ends_where_the_gradient_is_small(architecture, seed):
    """At most a twentieth of its norm at the start (1 to 3 % was seen); the rest is due to the kinks of the ReLU."""
    features, seen = task(seed)
    arms = make(features, architecture, 64, seed=seed)
    lesson = lesson_of(arms, seen, 10.0)
    trained = train(arms, seen, regularization=10.0)
    left = float(slope(arms, lesson, trained.weights).norm() / slope(arms, lesson, arms.start).norm())
    print(f"\n{architecture}: {left:.2%} of the gradient left after {trained.steps} steps")
    assert left < 0.05
    assert trained.loss * seen.total == pytest.approx(lesson.loss(arms, trained.weights))
    assert trained.loss * seen.total < 0.25 * lesson.loss(arms, arms.start)


@pytest.mark.cases(2)
@pytest.mark.parametrize("seed", range(4))
def test_gauss_newton_with_biases_comes_as_low_as_gradient_descent(seed):
    """Its gradient may stay large, for the published network sits on kinks; its loss is the other's or lower."""
    features, seen = task(seed)
    arms = make(features, "published", 64, seed=seed)
    ours, theirs = (train(arms, seen, trainer=trainer, regularization=10.0).loss for trainer in QUICK)
    print(f"\nloss a pull {ours:.4f}, by gradient descent {theirs:.4f}")
    assert ours < 1.05 * theirs


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_strong_regularisation_is_a_linear_problem_and_its_end_is_exact(architecture):
    features, seen = task(2)
    arms = make(features, architecture, 64)
    lesson = lesson_of(arms, seen, 1e6)
    trained = train(arms, seen, regularization=1e6)
    left = slope(arms, lesson, trained.weights).norm() / slope(arms, lesson, arms.start).norm()
    assert float(left) < 1e-3
    assert trained.steps <= 2


def test_more_regularisation_stays_nearer_to_the_start():
    features, seen = task(3)
    arms = make(features)
    moved = [float((train(arms, seen, regularization=10.0**power).weights - arms.start).norm()) for power in range(5)]
    assert moved == sorted(moved, reverse=True)
    assert moved[-1] < 0.1 * moved[0]


# --- all three


@pytest.mark.parametrize(
    ("architecture", "num_arms"),
    [("symmetric", 24), *(pytest.param(each, 60, marks=pytest.mark.slow) for each in ("symmetric", "published"))],
)
def test_the_trainers_agree_within_the_noise(architecture, num_arms):
    """Two clusters, 50 pulls of each arm: no arm's scores differ by more than 1.5 sigma/sqrt(n), n = 50 its pulls.

    The largest of six runs was 1.0; between the clusters' means lie 5.7.
    """
    environment = sp.environments.two_clusters(num_arms=num_arms, dim=10, reward="linear", seed=0)
    seen = environment.pull(np.full(num_arms, 50), np.random.default_rng(0))
    arms = make(environment.arms.features, architecture, 64)
    scores = {trainer: train(arms, seen, trainer=trainer).scores for trainer in TRAINERS}
    scale = 0.5 / math.sqrt(50)
    for trainer, found in scores.items():
        apart = max(float(np.max(np.abs(found - other))) for other in scores.values()) / scale
        print(f"\n{architecture}, {trainer}: at most {apart:.2f} sigma/sqrt(n) from the others")
        assert apart < 1.5
        best = environment.epsilon_best(0.1)
        assert found[best].min() > found[~best].max()


@pytest.mark.cases(3)
@pytest.mark.parametrize("trainer", TRAINERS)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_training_again_gives_the_same_bits(architecture, trainer, monkeypatch):
    monkeypatch.setattr(training, "ADAM_STEPS", 100)
    monkeypatch.setattr(training, "MOST_GRADIENT_STEPS", 300)
    features, seen = task(4, num_arms=12)
    runs = [train(make(features, architecture), seen, trainer=trainer, seed=5) for _ in range(2)]
    assert torch.equal(runs[0].weights, runs[1].weights)
    assert np.array_equal(runs[0].scores, runs[1].scores)
    assert (runs[0].loss, runs[0].steps) == (runs[1].loss, runs[1].steps)
    if trainer == "adamw":
        other = train(make(features, architecture), seen, trainer=trainer, seed=6)
        assert not torch.equal(runs[0].weights, other.weights)


@of_each("trainer", TRAINERS)
@of_each("architecture", ARCHITECTURES)
def test_nothing_seen_leaves_the_start(architecture, trainer):
    arms = make(task()[0], architecture)
    trained = train(arms, Observations.nothing(30), trainer=trainer)
    assert isinstance(trained, Trained)
    assert torch.equal(trained.weights, arms.start)
    assert np.array_equal(trained.scores, arms.outputs(arms.start).numpy())
    assert (trained.loss, trained.steps) == (0.0, 0)


@pytest.mark.parametrize("trainer", QUICK)
def test_arms_without_pulls_do_not_count(trainer, monkeypatch):
    """Their sums are never looked at; they are scored all the same."""
    monkeypatch.setattr(training, "MOST_GRADIENT_STEPS", 300)
    features, seen = task(5)
    counts = np.where(np.arange(30) < 20, seen.counts, 0)
    some = train(make(features), Observations(counts, seen.sums * (counts > 0)), trainer=trainer)
    alone = train(make(features[:20]), Observations(counts[:20], seen.sums[:20]), trainer=trainer)
    assert torch.allclose(some.weights, alone.weights, atol=1e-9)
    assert some.scores[:20] == pytest.approx(alone.scores, abs=1e-9)
    assert len(some.scores) == 30


def test_dropout_leaves_out_half_of_the_last_layer_and_nothing_where_there_are_no_steps(monkeypatch):
    """What AdamW minimises: the mean of the masked outputs over masks is the output."""
    arms = make(task()[0], "published")
    ones = torch.ones((), dtype=torch.float64)
    generator = torch.Generator().manual_seed(0)
    drawn = []
    for _ in range(4000):
        kept = (torch.rand((30, 16), generator=generator) >= training.DROPOUT).to(torch.float64)
        drawn.append(arms.outputs(arms.start, masks=[ones, 2.0 * kept]))
    masked = torch.stack(drawn)
    away = (masked.mean(dim=0) - arms.outputs(arms.start)).abs() / (masked.std(dim=0) / math.sqrt(4000))
    assert float(away.max()) < 5.5  # 30 means of 4,000: false alarm about 1e-6
    monkeypatch.setattr(training, "ADAM_STEPS", 0)
    assert torch.equal(train(arms, task()[1], trainer="adamw").weights, arms.start)


# --- refusals


@pytest.mark.parametrize("trainer", QUICK)
def test_a_loss_that_is_not_finite_breaks_the_contract(trainer):
    features, seen = task()
    huge = Observations(seen.counts, seen.sums * 1e200)
    with pytest.raises(
        sp.errors.ContractError, match=r"the network's loss is (inf|nan) after \d+ steps: its scores mean nothing"
    ):
        train(make(features), huge, trainer=trainer)


@of_each("trainer", ["", "sgd", "Gauss-Newton", None])
def test_an_unknown_trainer_is_refused(trainer):
    with pytest.raises(sp.InvalidInput, match="choose one of 'gauss-newton', 'gradient-descent', 'adamw'"):
        train(make(task()[0]), task()[1], trainer=trainer)


@of_each("regularization", [0, -1.0, math.nan, math.inf])
@of_each("trainer", TRAINERS)
def test_a_regularisation_that_is_not_positive_is_refused(trainer, regularization):
    with pytest.raises(sp.InvalidInput, match=f"regularization is {regularization!r}; it must be positive and finite"):
        train(make(task()[0]), task()[1], trainer=trainer, regularization=regularization)


# --- precision and device


@pytest.mark.parametrize("trainer", QUICK)
def test_single_precision_scores_the_same_to_its_digits(trainer, monkeypatch):
    monkeypatch.setattr(training, "MOST_GRADIENT_STEPS", 300)
    features, seen = task(6)
    double, single = (
        train(make(features, precision=precision), seen, trainer=trainer, regularization=1e3)
        for precision in ("float64", "float32")
    )
    assert single.weights.dtype == torch.float32
    assert single.scores.dtype == np.float64
    assert single.scores == pytest.approx(double.scores, abs=1e-4)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no CUDA device here")
@pytest.mark.parametrize("trainer", TRAINERS)
def test_cuda_scores_as_the_processor_does(trainer, monkeypatch):
    """AdamW draws other masks there, so it is only told to run and to repeat itself."""
    monkeypatch.setattr(training, "ADAM_STEPS", 100)
    features, seen = task(7)
    here = make(features, width=64)
    there = ArmNetwork(features, dataclasses.replace(here.network, device="cuda"))
    runs = [train(there, seen, trainer=trainer, regularization=1e3) for _ in range(2)]
    assert np.array_equal(runs[0].scores, runs[1].scores)
    if trainer != "adamw":
        assert runs[0].scores == pytest.approx(train(here, seen, trainer=trainer, regularization=1e3).scores, abs=1e-6)
