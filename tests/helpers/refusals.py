"""Calls that are refused, and what they are about."""

import pytest

import surepick as sp

NAN, INF = float("nan"), float("inf")
ARMS = sp.Arms([[1.0, 0.0], [0.0, 1.0], [0.6, 0.6]], ["a", "b", "c"])
NAMES = ("action-elimination", "certified-independent", "certified-linear", "fixed-linear", "linear-embedding", "rage")
LINEAR = ("certified-linear", "fixed-linear", "linear-embedding")


def make(name="action-elimination", arms=ARMS, **changes):
    settings = {"epsilon": 0.1, "delta": 0.05, "noise": sp.Bernoulli()}
    if name in LINEAR:
        settings["norm_bound"] = 1.0
    return sp.make_policy(name, arms, **(settings | changes))


def open_study(**changes) -> sp.Study:
    study = sp.Study(ARMS, make(**changes))
    study.ask()
    return study


def refused(call, *words, kind=sp.InvalidInput):
    """The call is refused with an error of that kind, whose message has all the words."""
    with pytest.raises(kind) as caught:
        call()
    message = str(caught.value)
    for word in words:
        assert word in message
    assert message.endswith((".", "?"))
    return message
