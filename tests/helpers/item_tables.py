"""Small tables of test items, all orders of which are tried, and the bets that are tried on them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import permutations

import numpy as np

from surepick.estimators.item_processes import ItemBets, ItemProcesses, after_items, first_bets, next_bets

Choose = Callable[[np.ndarray, np.ndarray, float], ItemBets]  # (answers so far, who answers, share left) -> bets
Who = Callable[[np.ndarray, int], np.ndarray]  # (answers so far, number of the batch) -> who is asked
Answer = Callable[[np.ndarray, np.ndarray], np.ndarray]  # (scores, who is asked) -> answers, NaN where none came


def guessed(epsilon: float) -> Choose:
    """The bets that the policy makes."""

    def choose(answers: np.ndarray, asked: np.ndarray, left: float) -> ItemBets:
        if not answers.shape[1]:
            return first_bets(len(answers))
        return next_bets(answers, asked, epsilon=epsilon, left=left)

    return choose


def bold(comparator: int) -> Choose:
    """As much as line 3 allows, from the first item on, on one comparator."""

    def choose(answers: np.ndarray, asked: np.ndarray, left: float) -> ItemBets:
        weights = np.zeros(len(answers))
        weights[comparator] = 1.0
        return ItemBets(weights, np.full(len(answers), 1.0), np.full(len(answers), 0.1))

    return choose


def restless(seed: int) -> Choose:
    """Comparators and guesses that are a wild function of the answers so far."""

    def choose(answers: np.ndarray, asked: np.ndarray, left: float) -> ItemBets:
        entropy = [seed, *np.frombuffer(np.ascontiguousarray(answers).tobytes(), np.uint32).tolist()]
        rng = np.random.default_rng(entropy)
        num_arms = len(answers)
        weights = rng.dirichlet(np.full(num_arms, 0.3))
        means = rng.uniform(-0.2, 1.0, num_arms)
        return ItemBets(weights, means, rng.uniform(0.05, 1.0, num_arms), int(rng.integers(num_arms)), 0.3)

    return choose


def everybody(answers: np.ndarray, batch: int) -> np.ndarray:
    return np.ones(len(answers), bool)


def as_asked(scores: np.ndarray, asked: np.ndarray) -> np.ndarray:
    return np.where(asked[:, None], scores, np.nan)


def played(
    scores: np.ndarray, sizes: tuple[int, ...], choose: Choose, *, who: Who = everybody, answer: Answer = as_asked
) -> ItemProcesses:
    """The processes after batches of these sizes, of a table whose columns stand in the order of the items."""
    num_arms, num_items = scores.shape
    processes, answers = ItemProcesses.start(num_arms, num_items), np.empty((num_arms, 0))
    for number, size in enumerate(sizes):
        asked = who(answers, number)
        bets = choose(answers, asked, 1.0 - processes.drawn / num_items)
        came = answer(scores[:, processes.drawn : processes.drawn + size], asked)
        processes = after_items(processes, bets, asked, came)
        answers = np.hstack([answers, came])
    return processes


def all_orders(scores: np.ndarray) -> Iterator[np.ndarray]:
    """The table with its columns in every order."""
    for order in permutations(range(scores.shape[1])):
        yield scores[:, list(order)]


def last_value(processes: ItemProcesses, arm: int, candidate: int, shortfall: float) -> float:
    """E_{j,c}(e) after the last item, computed factor by factor."""
    value = 1.0
    for one in processes.played:
        bonus = one.bonus(candidate)[arm]
        for gain, stake, each in zip(one.gains[arm], one.stakes[arm], bonus, strict=True):
            value *= 1.0 + gain + stake * each * shortfall * processes.num_items
    return value


def reaches(processes: ItemProcesses, arm: int, candidate: int, shortfall: float, delta: float) -> bool:
    """Whether the process was ever as large as 1/delta."""
    shortfalls = np.full(len(processes.least), shortfall)
    return bool(processes.log_against(candidate, shortfalls)[arm] >= math.log(1.0 / delta) - 1e-12)
