"""Training a network on sufficient statistics: the squared loss needs the counts and means of the arms, nothing else.

    sum over pulls of (f(x) - r)^2 = sum_x n(x) (f(x) - mean(x))^2 + a constant

So a step costs O(arms), however many pulls there were.
"""

import math
from collections.abc import Callable
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from surepick.core.observations import Observations
from surepick.core.records import FloatArray, record
from surepick.core.values import check_choice, positive_number
from surepick.errors import ContractError

TRAINERS = ("gauss-newton", "gradient-descent", "adamw")
MOST_STEPS = 20
DECREASE = 1e-4  # of the loss; less ends the Gauss-Newton steps
DAMPINGS = 8  # tries of a step
PLATEAU = 1e-6  # relative decrease of the loss in a hundred gradient steps that ends them
MOST_GRADIENT_STEPS = 100_000
ADAM_STEPS = 6_000
ADAM_RATE = 1e-4
DROPOUT = 0.5


class Trainable(Protocol):
    """What a trainer needs of a network and its arms; `surepick.embeddings.network.ArmNetwork` is one."""

    inputs: Tensor

    @property
    def start(self) -> Tensor: ...
    @property
    def penalty(self) -> float: ...
    def tensor(self, values: FloatArray) -> Tensor: ...
    def outputs(self, theta: Tensor, rows: Tensor | None = None, *, masks: list[Tensor] | None = None) -> Tensor: ...
    def gram(self, theta: Tensor, rows: Tensor | None = None) -> Tensor: ...
    def pushed(self, theta: Tensor, direction: Tensor, rows: Tensor | None = None) -> Tensor: ...
    def pulled(self, theta: Tensor, shares: Tensor, rows: Tensor | None = None) -> Tensor: ...
    def layers(self, theta: Tensor) -> list[tuple[Tensor, Tensor | None]]: ...


@record
class Trained:
    """A trained network."""

    weights: Tensor  # theta, a torch vector of (p,)
    scores: FloatArray  # f(x; theta) of all arms, (K,), in reward units
    loss: float  # the value reached, per pull, the regularisation included
    steps: int  # how many were taken


@record
class Lesson:
    """What is to be learnt: the arms pulled, their counts and means, and how dear it is to leave theta_0.

        L(theta) = sum_x n(x) (f(x; theta) - mean(x))^2 / 2 + alpha m |theta - theta_0|^2 / 2

    Source: the appendix's algorithm of gradient descent (the box of Algorithm 2 lacks the first 1/2).
    """

    rows: Tensor
    counts: Tensor
    means: Tensor
    price: float

    def loss(self, network: Trainable, theta: Tensor) -> float:
        """L(theta)."""
        misfit = network.outputs(theta, self.rows) - self.means
        moved = theta - network.start
        return float((self.counts * misfit**2).sum() / 2.0 + self.price * (moved @ moved) / 2.0)


def train(
    network: Trainable, seen: Observations, *, trainer: str = "gauss-newton", regularization: float = 1.0, seed: int = 0
) -> Trained:
    """The network that fits what was seen; theta_0 if nothing was."""
    check_choice("trainer", trainer, TRAINERS)
    positive_number("regularization", regularization, "what holds the weights near their start.")
    pulled = np.flatnonzero(seen.counts)
    if len(pulled) == 0:
        return _finished(network, network.start, 0.0, 0)
    counts, means = seen.counts[pulled].astype(np.float64), seen.means[pulled]
    rows = network.inputs[torch.tensor(pulled, device=network.inputs.device)]
    lesson = Lesson(rows, network.tensor(counts), network.tensor(means), regularization * network.penalty)
    how: Callable[[Trainable, Lesson], tuple[Tensor, int]] = {
        "gauss-newton": _gauss_newton,
        "gradient-descent": _gradient_descent,
        "adamw": lambda network, lesson: _adamw(network, lesson, regularization, seed),
    }[trainer]
    theta, steps = how(network, lesson)
    return _finished(network, theta, lesson.loss(network, theta) / counts.sum(), steps)


def plausible_regularization(network: Trainable, seen: Observations, *, sigma: float) -> float:
    """alpha = sigma^2 / s^2, for the prior scale s under which the arms' means are most likely.

        mean ~ N(0, s^2 G_0 G_0' / m + sigma^2 diag(1/n)),   s^2 on a grid of powers of 4

    the limit of networks trained from random weights. It only says how hard to train; nothing rests on it.

    Source: Rasmussen and Williams, Gaussian Processes for Machine Learning (2006), section 5.4. Cost: 16 p^3 / 3 for p
    arms pulled.
    """
    pulled = np.flatnonzero(seen.counts)
    rows = network.inputs[torch.tensor(pulled, device=network.inputs.device)]
    gram = network.gram(network.start, rows) / network.penalty
    means, noise = network.tensor(seen.means[pulled]), network.tensor(sigma**2 / seen.counts[pulled])
    unit = float(means @ means) / max(float(gram.diagonal().sum()), 1e-300)
    best, chosen = -math.inf, 1.0
    for power in range(-10, 6):
        variance = unit * 4.0**power
        factor, failed = torch.linalg.cholesky_ex(variance * gram + torch.diag(noise))
        if variance <= 0.0 or int(failed):
            continue
        solved = torch.cholesky_solve(means[:, None], factor)[:, 0]
        likelihood = -0.5 * float(means @ solved) - float(torch.log(factor.diagonal()).sum())
        if likelihood > best:
            best, chosen = likelihood, sigma**2 / variance
    return chosen


def _finished(network: Trainable, theta: Tensor, loss: float, steps: int) -> Trained:
    scores = np.asarray(network.outputs(theta).detach().cpu().numpy(), dtype=np.float64)
    if not (math.isfinite(loss) and np.all(np.isfinite(scores))):
        raise ContractError(
            f"the network's loss is {loss} after {steps} steps: its scores mean nothing. Use inputs='normalized', or "
            "features and rewards of order 1, or the trainer 'gauss-newton'."
        )
    return Trained(theta, scores, loss, steps)


def _gauss_newton(network: Trainable, lesson: Lesson) -> tuple[Tensor, int]:
    """Repeated linear least squares in the gradients at the current weights, in its dual form, damped.

        theta+ = c + G'u,   (GG' + (alpha m + mu) diag(1/n)) u = mean - f(theta) + G (theta - c)
        c = (alpha m theta_0 + mu theta) / (alpha m + mu)

    is the minimiser of L with f replaced by its tangent, plus mu |theta+ - theta|^2 / 2. A step that does not lower L
    is tried again with ten times the mu (from alpha m / 10 on), one that does is followed by a tenth of it; mu = 0 at
    first. No learning rate: small enough steps are gradient descent, which lowers L wherever it can be lowered.

    Source: ours (Levenberg-Marquardt in dual form; one step from theta_0 is kernel ridge regression with the tangent
    kernel). Cost: O(p K^2 + K^3) a step for p >= K arms pulled.
    """
    theta, value, damping = network.start, lesson.loss(network, network.start), 0.0
    for step in range(1, MOST_STEPS + 1):
        gram = network.gram(theta, lesson.rows)
        misfit = lesson.means - network.outputs(theta, lesson.rows)
        before = value
        for _ in range(DAMPINGS):
            price = lesson.price + damping
            centre = theta + (lesson.price / price) * (network.start - theta)
            factor, failed = torch.linalg.cholesky_ex(gram + torch.diag(price / lesson.counts))
            if not int(failed):
                target = misfit + network.pushed(theta, theta - centre, lesson.rows)
                shares = torch.cholesky_solve(target[:, None], factor)[:, 0]
                proposal = centre + network.pulled(theta, shares, lesson.rows)
                reached = lesson.loss(network, proposal)
                if reached < value:
                    theta, value, damping = proposal, reached, damping / 10.0
                    break
            damping = max(10.0 * damping, lesson.price / 10.0)
        if before - value <= DECREASE * before:
            return theta, step
    return theta, MOST_STEPS


def _gradient_descent(network: Trainable, lesson: Lesson) -> tuple[Tensor, int]:
    """theta <- theta - eta grad L(theta) from theta_0, eta = 1/(alpha m + N max |g(x; theta_0)|^2).

    Source: the appendix's algorithm of gradient descent, with C_1 = 1.

    Differs from the paper: max |g|^2 of the arms pulled in place of m L, which is its limit for arms of norm 1; it ends
        where a hundred steps lower the loss by less than a millionth, instead of after J_k steps with an unknown C_2.
    """
    squares = float(network.gram(network.start, lesson.rows).diagonal().max())
    rate = 1.0 / (lesson.price + float(lesson.counts.sum()) * squares)
    theta, value = network.start, math.inf
    for step in range(MOST_GRADIENT_STEPS):
        misfit = network.outputs(theta, lesson.rows) - lesson.means
        if step % 100 == 0:
            reached = lesson.loss(network, theta)
            if not math.isfinite(reached) or value - reached <= PLATEAU * reached:
                return theta, step
            value = reached
        slope = network.pulled(theta, lesson.counts * misfit, lesson.rows)
        theta = theta - rate * (slope + lesson.price * (theta - network.start))
    return theta, MOST_GRADIENT_STEPS


def _adamw(network: Trainable, lesson: Lesson, regularization: float, seed: int) -> tuple[Tensor, int]:
    """AdamW at rate 1e-4 for 6,000 steps with dropout 1/2 before the last layer, on the mean squared loss.

    Source: the paper's experimental setup. Differs from the paper: it starts at theta_0 in every round.
    """
    total = float(lesson.counts.sum())
    theta = network.start.clone().requires_grad_()
    optimizer = torch.optim.AdamW([theta], lr=ADAM_RATE, weight_decay=regularization / total)
    generator = torch.Generator(device=theta.device).manual_seed(seed)
    widths = [weights.shape[0] for weights, _ in network.layers(network.start)][:-1]
    shares = lesson.counts / total
    for _ in range(ADAM_STEPS):
        optimizer.zero_grad()
        masks = [torch.ones((), dtype=theta.dtype, device=theta.device)] * (len(widths) - 1)
        kept = torch.rand((len(lesson.rows), widths[-1]), generator=generator, device=theta.device) >= DROPOUT
        masks.append(kept.to(theta.dtype) / (1.0 - DROPOUT))
        misfit = network.outputs(theta, lesson.rows, masks=masks) - lesson.means
        (shares * misfit**2).sum().backward()
        optimizer.step()
    return theta.detach(), ADAM_STEPS
