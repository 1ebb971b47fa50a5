"""Rewards of a random neural network: smooth, not linear, and of no norm that anybody would declare."""

from __future__ import annotations

import numpy as np

from surepick.core.arms import Arms
from surepick.core.random_streams import stream
from surepick.core.validation import not_negative, positive_number, whole_number
from surepick.environments.environment import Environment
from surepick.noise import SubGaussian


def random_network(
    *, num_arms: int = 500, dim: int = 10, hidden: int = 64, decay: float = 1.0, sigma: float = 0.1, seed: int = 0
) -> Environment:
    """Normal arms, features of falling weight; means are a random two-layer network, moved and scaled onto [0, 1].

        x_i from N(0, i^(-2 decay)),   g(x) = sum_j a_j max(<w_j, x>, 0),   a_j and the entries of w_j from N(0, 1)
        h = (g - min g)/(max g - min g)

    Args:
        num_arms: K, at least 2.
        dim: D, at least 2.
        hidden: units of the network.
        decay: how fast the features lose weight, at least 0; with 0 all ten matter alike.
        sigma: standard deviation of the normal noise, in reward units.
        seed: decides arms and network.

    Returns:
        An environment of K arms with D features.

    Raises:
        InvalidInput: an argument is out of range.

    Source: ours.
    """
    whole_number("num_arms", num_arms, least=2, meaning="one arm is no choice.")
    whole_number("dim", dim, least=2, meaning="on a line the network has at most one bend.")
    whole_number("hidden", hidden, least=1, meaning="a network has units.")
    not_negative("decay", decay, "how fast the features lose weight.")
    positive_number("sigma", sigma, "the noise of one measurement.")
    rng = stream(seed, "random_network", num_arms, dim, hidden)
    features = rng.standard_normal((num_arms, dim)) * np.arange(1.0, dim + 1.0) ** -decay
    outputs = np.maximum(features @ rng.standard_normal((dim, hidden)), 0.0) @ rng.standard_normal(hidden)
    means = (outputs - outputs.min()) / max(float(np.ptp(outputs)), np.finfo(np.float64).tiny)
    return Environment(arms=Arms(features), means=means, noise=SubGaussian(sigma))
