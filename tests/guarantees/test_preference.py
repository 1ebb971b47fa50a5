"""What is preferred never makes a wrong answer: the cheap candidates are just outside the tolerance.

docs/mixtures.md, line 46. The saboteur names the candidate that a study goes on for before it is certified.
"""

import numpy as np
from bounds import failures_allowed

import surepick as sp
from surepick.policies import mixtures
from surepick.policies.sequential import state as states

DELTA, RUNS = 0.2, 60
WORLD = sp.environments.Environment(
    arms=sp.Arms(ids=range(3)), means=np.array([0.0, -1.001, -1.001]), noise=sp.SubGaussian(1.0)
)


def wrong_answers() -> int:
    """How many studies name a candidate that is not good enough."""
    asked = {"epsilon": 1.0, "delta": DELTA, "noise": WORLD.noise, "prefer": [2.0, 1.0, 0.0]}
    policy = sp.make_policy("certified-independent", WORLD.arms, **asked)
    found = sp.simulate_many(policy, WORLD, seeds=range(RUNS))
    return int(np.count_nonzero(~found.right))


def test_answers_are_right():
    assert wrong_answers() <= failures_allowed(RUNS, DELTA)


def test_whoever_names_the_one_that_is_sought_is_noticed(monkeypatch):
    def hasty(state, epsilon, prefer, guess):
        named = states.liked_better(0, prefer, guess(), state.away, epsilon)
        done = "certified" if named is not None or states.good_enough(state, epsilon)[1] else ""
        return mixtures.replace(state, leader=0 if named is None else named, finished=done)

    monkeypatch.setattr(states, "stop_if_decided", hasty)
    assert wrong_answers() > failures_allowed(RUNS, DELTA)
