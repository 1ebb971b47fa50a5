"""Exact thresholds for statistical tests."""

import inspect
import math
import os
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

from budgets import ALL
from scipy.optimize import brentq
from scipy.special import rel_entr
from scipy.stats import binom


def failures_allowed(trials: int, rate: float, false_alarm: float = 1e-6) -> int:
    """Most failures that a correct procedure shows, except with probability `false_alarm` (exact binomial tail)."""
    return int(binom.isf(false_alarm, trials, rate))


def until_clear(wrong: Iterable[bool], runs: int, rate: float) -> int:
    """How many of so many studies are wrong, played until it is clear whether they are more than `failures_allowed`.

    The test of that count has the same result as of all of them. In `make prove` all are played.
    """
    allowed, found, whole = failures_allowed(runs, rate), 0, os.environ.get(ALL)
    for played, each in zip(range(1, runs + 1), wrong, strict=True):
        found += bool(each)
        if not whole and (found > allowed or found + runs - played <= allowed):
            break
    return found


def counted(rate: float | None = None) -> Callable[[Callable[..., Iterable[bool]]], Callable[..., int]]:
    """Of a function that yields whether each of its `runs` studies is wrong, makes one that counts them `until_clear`.

    Args:
        rate: at which one may err; the function's `delta` if not given.
    """

    def decorated(function: Callable[..., Iterable[bool]]) -> Callable[..., int]:
        signature = inspect.signature(function)

        @wraps(function)
        def count(*args: Any, **options: Any) -> int:
            given = signature.bind(*args, **options).arguments
            return until_clear(function(*args, **options), given["runs"], given["delta"] if rate is None else rate)

        return count

    return decorated


def shares_allowed(runs: int, rate: float, false_alarm: float = 1e-6) -> float:
    """The largest mean of independent shares in [0, 1], each of mean at most `rate`, except with that probability.

    P(mean >= q) <= exp(-runs kl(q, rate)) for q > rate, whatever the distributions (Hoeffding 1963, theorem 1).
    """

    def excess(mean: float) -> float:
        return float(rel_entr(mean, rate) + rel_entr(1.0 - mean, 1.0 - rate)) - math.log(1.0 / false_alarm) / runs

    if rate == 0.0:
        return 0.0
    return 1.0 if excess(1.0) < 0.0 else float(brentq(excess, rate, 1.0))


def trials_to_notice(rate: float, wrong: float, missed: float = 1e-6) -> int:
    """Fewest trials in which a procedure that errs with probability `wrong` fails the test of `failures_allowed`.

    It passes with probability at most `missed`, and so more studies than these tell nothing more of a saboteur who errs
    that often.
    """
    trials = 1
    while binom.cdf(failures_allowed(trials, rate), trials, wrong) > missed:
        trials += 1
    return trials
