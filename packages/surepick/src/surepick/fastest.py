"""Which of several functions is the fastest: rounds in which each runs once, in random order, until one is certified.

A round is a block: whatever slows this machine for a while slows all functions of the round, and they are compared
round by round. What is told is the logarithm of a time, so that a tolerance is a share and a slow minute no outlier of
its own size.
"""

import gc
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from surepick.core.random_streams import settled_seed, stream
from surepick.core.records import record
from surepick.core.values import as_number
from surepick.errors import InvalidInput
from surepick.find_best import find_best
from surepick.studies.closed_loop import Result
from surepick.text import quoted

Timed = Callable[[], Any]
LEAST_SECONDS = 0.005  # of a measurement: calls of a function are repeated until it takes as long
MOST_CALLS = 10_000_000
PROMISE = (
    "What is compared is the geometric mean of the time of a call, in rounds on this machine as it was used meanwhile, "
    "garbage collection off. A mean of logarithms: within {0:g} is within {1:.3g} %."
)


def benchmark(
    functions: Mapping[str, Timed] | Sequence[Timed],
    *,
    slower: float = 0.05,
    delta: float | None = None,
    least_seconds: float = LEAST_SECONDS,
    timer: Callable[[], float] = time.perf_counter,
    seed: int | None = None,
    **options: Any,
) -> Result:
    """Find the fastest of several functions, by as many rounds as it takes to be sure.

    In a round each function that may still be the fastest runs once (or as many times as `least_seconds` takes), in
    random order, and times are compared within rounds: a machine that is busy, hot or throttled for a while slows all
    of them. Nothing is declared.

    Args:
        functions: name -> a function without arguments; or functions with different names of their own.
        slower: the share by which the answer may be slower than the fastest, in (0, 1): .05 is 5 %.
        delta: probability that it is slower than that; None: 0.05.
        least_seconds: how long a measurement takes at least; short functions are called several times in one, a number
            that one trial run settles, for each of its own.
        timer: a clock, in seconds; it is read before and after.
        seed: of the order in a round; None: drawn by the program.
        options: the others of `find_best`: url, name, max_pulls, progress, ...

    Returns:
        As `find_best`; `best_arm` is the name, `certificate` is of logarithms of seconds, and its gap `g` means a share
        of exp(g) - 1.

    Raises:
        InvalidInput: no functions, or two of one name; a setting without a meaning; a clock that stands still.
    """
    named = _named(functions)
    if not 0.0 < as_number("slower", slower) < 1.0:
        raise InvalidInput(f"slower is {quoted(slower)}; it must lie strictly between 0 and 1: 0.05 for 5 %.")
    if as_number("least_seconds", least_seconds) < 0.0:
        raise InvalidInput(f"least_seconds is {quoted(least_seconds)}; it must be a number of seconds, 0 or more.")
    chosen, _ = settled_seed("seed", seed, None, "a whole number, 0 or more.")
    rounds = _Rounds(named, timer, stream(chosen, "order"), least_seconds)
    epsilon = math.log1p(slower)
    shared: dict[str, Any] = {"minimize": True, "blocks": "round", "unusual": "accept", **options}
    found = find_best(list(named), rounds, epsilon=epsilon, delta=delta, **shared)
    return replace(found, promise=PROMISE.format(epsilon, 100 * slower))


@record
class _Measurement:
    """One function in one round."""

    place: int  # in the order that was asked for
    name: str
    round: str


class _Rounds:
    """Carries out what a study asks for, round by round."""

    def __init__(
        self, functions: Mapping[str, Timed], timer: Callable[[], float], rng: np.random.Generator, least: float
    ) -> None:
        self.functions, self.timer, self.rng = functions, timer, rng
        self.calls = {name: self._calls(function, least) for name, function in functions.items()}

    def __call__(self, names: Sequence[str], rounds: Sequence[str]) -> list[float]:
        found = np.empty(len(names))
        asked = [_Measurement(place, *pair) for place, pair in enumerate(zip(names, rounds, strict=True))]
        for one in dict.fromkeys(rounds):
            together = [each for each in asked if each.round == one]
            for place in self.rng.permutation(len(together)).tolist():
                each = together[place]
                found[each.place] = math.log(self._seconds(self.functions[each.name], self.calls[each.name]))
        return found.tolist()

    def _calls(self, function: Timed, least: float) -> int:
        """How many calls are a measurement; the first call of all warms up."""
        function()
        calls = 1
        while calls < MOST_CALLS and (taken := self._taken(function, calls)) < least:
            calls = max(
                2 * calls, min(10 * calls, math.ceil(1.2 * calls * least / taken) if taken > 0.0 else 10 * calls)
            )
        return calls

    def _seconds(self, function: Timed, calls: int) -> float:
        """The time of a call."""
        taken = self._taken(function, calls)
        if taken <= 0.0:
            raise InvalidInput("the clock stands still: give a finer timer, or larger least_seconds.")
        return taken / calls

    def _taken(self, function: Timed, calls: int) -> float:
        """The time of so many calls, without garbage collection."""
        collects = gc.isenabled()
        gc.disable()
        try:
            begun = self.timer()
            for _ in range(calls):
                function()
            return self.timer() - begun
        finally:
            if collects:
                gc.enable()


def _named(functions: Mapping[str, Timed] | Sequence[Timed]) -> dict[str, Timed]:
    """The functions by name."""
    if isinstance(functions, Mapping):
        found = dict(functions)
    else:
        given = list(functions)
        found = {str(getattr(one, "__name__", one)): one for one in given}
        if len(found) < len(given):
            raise InvalidInput("two functions have the same name: give a mapping, {name: function}.")
    if not found:
        raise InvalidInput("there are no functions: give {name: function}.")
    for name, one in found.items():
        if not callable(one):
            raise InvalidInput(f"{quoted(name)} is {quoted(one)}, which is no function without arguments.")
    return found
