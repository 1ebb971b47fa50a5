"""Tables of test items on which a wrong answer is as likely as can be, and a steering that is after one."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from bounds import counted
from item_studies import certified_items, play
from item_tables import reaches

from surepick.estimators.item_processes import ItemBets, ItemProcesses, after_items

EPSILON = 0.1
Table = Callable[[np.random.Generator], np.ndarray]  # arm 0 is the best; all others are bad, by just over EPSILON


def slippage(rng: np.random.Generator) -> np.ndarray:
    """40 items, 4 arms: the best answers 24 rightly, every other 19."""
    return np.array([rng.permutation(np.arange(40) < right) for right in (24, 19, 19, 19)], float)


def few_wins(rng: np.random.Generator) -> np.ndarray:
    """All answer alike but for 5 items of 40, which the best alone answers."""
    scores = np.tile((np.arange(40) % 2).astype(float), (6, 1))
    scores[0, [0, 2, 4, 6, 8]] = 1.0
    return scores


def paid_back(rng: np.random.Generator) -> np.ndarray:
    """The others are a little better on 30 items, and the best much better on 10."""
    scores = np.full((3, 40), 0.5)
    scores[0, :30], scores[1:, :30] = 0.4, 0.45
    scores[0, 30:], scores[1:, 30:] = 0.9, 0.349
    return scores


def one_against_many(rng: np.random.Generator) -> np.ndarray:
    """12 arms on 60 items: on each item half of the others are right."""
    scores = np.zeros((12, 60))
    scores[0, rng.permutation(60)[:37]] = 1.0
    scores[1:] = [rng.permutation(np.arange(60) < 30) for _ in range(11)]
    return scores


TABLES: dict[str, Table] = {
    "slippage": slippage,
    "few wins": few_wins,
    "paid back": paid_back,
    "one against many": one_against_many,
}


def tables(make: Table, runs: int, seed: int) -> Iterator[np.ndarray]:
    """A table a run, its items in random order."""
    for run in range(runs):
        rng = np.random.default_rng([seed, run])
        scores = make(rng)
        yield scores[:, rng.permutation(scores.shape[1])]


@counted()
def wrong_answers(make: Table, runs: int, delta: float) -> Iterator[bool]:
    """Studies that certify a bad arm."""
    for run, scores in enumerate(tables(make, runs, 31)):
        policy = certified_items(scores, seed=run, epsilon=EPSILON, delta=delta, growth=0.5, first_batch=3)
        yield bool(policy.claim(play(policy, scores)[-1].after).leader != 0)


def steered(scores: np.ndarray, *, bold: float = 1.0) -> ItemProcesses:
    """Item by item the bad arm that did best so far is the candidate, with stakes that hope for it."""
    num_arms, num_items = scores.shape
    processes = ItemProcesses.start(num_arms, num_items)
    everybody = np.ones(num_arms, bool)
    for place in range(num_items - 1):
        candidate = 1 + int(np.argmax(processes.least[1:]))
        weights = np.zeros(num_arms)
        weights[candidate] = 1.0
        bets = ItemBets(weights, np.full(num_arms, 0.3 * bold), np.full(num_arms, 0.3), candidate, EPSILON)
        processes = after_items(processes, bets, everybody, scores[:, place : place + 1])
    return processes


def fooled(
    make: Table, runs: int, *deltas: float, spoil: Callable[[np.ndarray], np.ndarray] | None = None
) -> dict[float, int]:
    """Runs in which the best arm could at some time have been rejected against some bad one, by delta.

    Args:
        deltas: the same runs count for each; nothing in them depends on delta.
        spoil: what is done to the table before, against the rules.
    """
    wrong = dict.fromkeys(deltas, 0)
    for scores in tables(make, runs, 32):
        gaps = scores[0].mean() - scores.mean(axis=1)
        processes = steered(scores if spoil is None else spoil(scores))
        for delta in deltas:
            against = [reaches(processes, 0, c, gaps[c] - 1e-9, delta) for c in range(1, len(gaps))]
            wrong[delta] += bool(processes.highest[0] >= -np.log(delta)) or any(against)
    return wrong


def sorted_by_scores(scores: np.ndarray) -> np.ndarray:
    """The items on which the best arm does worst come first."""
    return scores[:, np.argsort(scores[0] - scores[1:].mean(axis=0), kind="stable")]


def failed_where_silent(scores: np.ndarray) -> np.ndarray:
    """The best arm was not asked every third item, and is taken to have failed there."""
    silent = scores.copy()
    silent[0, ::3] = 0.0
    return silent
