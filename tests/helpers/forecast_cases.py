"""Policies and instances that forecasts are tried with."""

import surepick as sp

DELTA = 0.05


def linear(environment, *, epsilon=0.2, norm_bound=1.0, name="linear-embedding", **options):
    return sp.make_policy(
        name, environment.arms, epsilon=epsilon, delta=DELTA, noise=environment.noise, norm_bound=norm_bound, **options
    )


def two_clusters():
    environment = sp.environments.two_clusters(num_arms=60, dim=6)
    return environment, linear(environment, epsilon=0.1)


def said(found, words: str) -> bool:
    return any(words in sentence for sentence in found.warnings)
