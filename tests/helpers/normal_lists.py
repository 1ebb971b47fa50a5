"""Questions answered by lists where nobody knows the scales: means that lie just beyond what may be said of them."""

from collections.abc import Iterator

import numpy as np

import surepick as sp
from surepick.environments import Environment
from surepick.questions import wrongly_listed

GAP = 1.002  # just over epsilon = 1
QUESTIONS = {
    "number": {"question": "above", "threshold": 0.0},
    "control": {"question": "above", "control": "0"},
    "top": {"question": "top", "m": 2},
    "good": {"question": "all-good"},
    "shares": {"question": "above", "threshold": 0.0, "errors": "discovery"},
}
MEANS = {
    "number": [-GAP] * 5,
    "control": [0.0, *[-GAP] * 4],
    "top": [0.0, 0.0, *[-GAP] * 3],
    "good": [0.0, *[-2.0 * GAP] * 4],
    "shares": [-GAP] * 5,
}


HEIGHTS = [0.0, 1.0, -1.0, 0.5, -0.3]  # of the arms beside their means: a coordinate that has no effect


def five_arms(kind: str, best: str) -> Environment:
    """Variances from 1 to 100; the first arm, with which others are compared, has the smallest or the largest.

    Their features are their means and a coordinate that has no effect.
    """
    scales = 0.2 * 10.0 ** np.linspace(0.0, 1.0, 5)
    scales = scales[::-1] if best == "noisiest" else scales
    arms = sp.Arms(np.column_stack([MEANS[kind], HEIGHTS]))
    return Environment(arms=arms, means=MEANS[kind], noise=sp.SubGaussian(scales))


def wrong_shares(
    kind: str, runs: int, delta: float, *, best: str, features: bool = False, **options
) -> Iterator[float]:
    """Of each study the larger of the shares of its two lists that are wrong."""
    name, more = ("certified-linear", {"norm_bound": 1.1}) if features else ("certified-independent", {})
    world = five_arms(kind, best)
    asked = {"epsilon": 1.0, "delta": delta, "noise": sp.Normal(), **QUESTIONS[kind], **more, **options}
    policy = sp.make_policy(name, world.arms, **asked)
    for seed in range(runs):
        lists = sp.simulate(policy, world, seed=seed).certificate.lists
        wrong = wrongly_listed(policy.problem, lists, world.arms, world.means)
        sides = [[int(one) for one in ids] for ids in (lists.inside, lists.outside)]
        yield max(float(wrong[side].mean()) if side else 0.0 for side in sides)
