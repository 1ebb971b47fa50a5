"""Instances that tell policies with a network apart."""

import numpy as np

import surepick as sp


def one_among_a_hundred() -> sp.environments.Environment:
    means = np.full(100, 0.5)
    means[37] = 0.65
    return sp.environments.Environment(arms=sp.Arms(np.eye(100)), means=means, noise=sp.SubGaussian(1.0))
