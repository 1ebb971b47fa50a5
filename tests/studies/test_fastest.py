"""Which function is the fastest: an injected clock says how long calls take, and no other is read."""

import gc
import math

import numpy as np
import pytest

import surepick as sp


class Clock:
    """A clock that functions advance: a time of their own, times what slows the machine meanwhile, times noise."""

    def __init__(self, seed: int = 0, noise: float = 0.05) -> None:
        self.now, self.rng, self.noise, self.order, self.slow = 0.0, np.random.default_rng(seed), noise, [], 1.0

    def __call__(self) -> float:
        return self.now

    def function(self, name: str, seconds: float):
        def call() -> None:
            self.order.append(name)
            self.slow *= math.exp(self.rng.normal(0.0, 0.02))  # it wanders
            self.now += seconds * self.slow * math.exp(self.rng.normal(0.0, self.noise))

        return call

    def functions(self, **seconds: float):
        return {name: self.function(name, each) for name, each in seconds.items()}


def test_the_fastest_is_certified(tmp_path):
    clock = Clock()
    functions = clock.functions(slow=0.020, fast=0.010, near=0.0101, middle=0.013)
    found = sp.benchmark(functions, slower=0.05, timer=clock, seed=1)
    assert found.best_arm in ("fast", "near")
    assert found.verdict == "certified"
    assert found.certificate.certified_gap <= math.log1p(0.05)
    assert "within 5 %" in str(found)
    sp.write_certificate(found.study, tmp_path / "certificate.json")
    assert sp.verify_certificate(tmp_path / "certificate.json").holds


def test_a_round_runs_each_function_once_in_an_order_of_its_own():
    clock = Clock()
    sp.benchmark(clock.functions(a=0.01, b=0.0102, c=0.0104), slower=0.05, timer=clock, seed=1)
    first = clock.order[6:21]  # after two calls each, which settle how many make a measurement: five rounds
    rounds = [tuple(first[start : start + 3]) for start in range(0, 15, 3)]
    assert all(sorted(one) == ["a", "b", "c"] for one in rounds)
    assert len(set(rounds)) > 1


def test_short_functions_are_called_several_times_in_a_measurement():
    clock = Clock(noise=0.0)
    sp.benchmark(clock.functions(a=0.001, b=0.002), slower=0.5, least_seconds=0.01, timer=clock, seed=1, max_pulls=10)
    once = clock.order.count("a") / clock.order.count("b")
    assert 1.5 < once < 5.0


def test_a_machine_that_slows_down_favours_nobody():
    """It takes a hundred times as long by and by; each round is compared within itself."""
    clock = Clock()
    clock.rng = np.random.default_rng(5)
    functions = clock.functions(a=0.010, b=0.0115)

    def slower(call):
        def later() -> None:
            clock.slow *= 1.02
            call()

        return later

    found = sp.benchmark({name: slower(call) for name, call in functions.items()}, slower=0.05, timer=clock, seed=2)
    assert (found.best_arm, found.verdict) == ("a", "certified")


def test_names_are_those_of_the_functions():
    clock = Clock()

    def quick() -> None:
        clock.now += 0.01 * math.exp(clock.rng.normal(0.0, 0.05))

    def lame() -> None:
        clock.now += 0.02 * math.exp(clock.rng.normal(0.0, 0.05))

    assert sp.benchmark([lame, quick], timer=clock, seed=0).best_arm == "quick"
    with pytest.raises(sp.InvalidInput, match="two functions have the same name"):
        sp.benchmark([quick, quick], timer=clock)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"functions": {}}, "there are no functions"),
        ({"functions": {"a": 3}}, "'a' is 3"),
        ({"slower": 0.0}, "strictly between 0 and 1"),
        ({"least_seconds": -1.0}, "0 or more"),
        ({"timer": lambda: 0.0, "least_seconds": 0.0}, "the clock stands still"),
    ],
)
def test_what_has_no_meaning_is_refused(given, said):
    asked = {"functions": {"a": int, "b": int}, **given}
    with pytest.raises(sp.InvalidInput, match=said):
        sp.benchmark(asked.pop("functions"), **asked)


def test_garbage_is_collected_again_afterwards():
    clock = Clock()
    states = []

    def call() -> None:
        states.append(gc.isenabled())
        clock.now += 0.01 * math.exp(clock.rng.normal(0.0, 0.05))

    sp.benchmark({"a": call, "b": clock.function("b", 0.03)}, timer=clock, seed=0)
    assert gc.isenabled()
    assert states[0] is True  # a call to warm up
    assert set(states[1:]) == {False}
