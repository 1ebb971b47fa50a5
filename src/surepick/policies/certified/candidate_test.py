"""Epochs: the candidates that may be recommended, the weight that each one spends, and the evidence for it."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from surepick.core.arrays import FloatArray, IntArray, freeze, record
from surepick.errors import ContractError

HEURISTIC_RATIO = 0.5  # of the weights of one epoch and the one before


@record
class CandidateTest:
    """The test of one candidate, from the batch before which it was opened to the end of the study.

    Args:
        candidate: c, the arm that it may certify.
        weight: p, its share of the error probability, in (0, 1).
        evidence: log of p times the e-process against "rival j is better than c by more than epsilon", shape (K,); of a
            rejected rival perhaps as it was at the batch that rejected it.
        settled: the rejected rivals, whose evidence has reached log(1/delta) at some time, ascending.
    """

    candidate: int
    weight: float
    evidence: FloatArray
    settled: IntArray

    def __post_init__(self) -> None:
        freeze(self, evidence=np.float64, settled=np.int64)

    def open_rivals(self) -> IntArray:
        """The rivals that may still be better by more than epsilon, ascending."""
        still_open = np.ones(len(self.evidence), bool)
        still_open[self.settled] = False
        still_open[self.candidate] = False
        return np.flatnonzero(still_open)


def next_weight(epochs: tuple[CandidateTest, ...]) -> float:
    """p_e = (1 - r) r^(e-1) for the e-th epoch: the weights of all epochs that could ever open sum to 1.

    Source: docs/certified-elimination.md, line 6.
    """
    return (1.0 - HEURISTIC_RATIO) * HEURISTIC_RATIO ** len(epochs)


def find_test(epochs: tuple[CandidateTest, ...], candidate: int) -> CandidateTest | None:
    """The epoch of that candidate; None if none was opened."""
    return next((epoch for epoch in epochs if epoch.candidate == candidate), None)


def opened(epochs: tuple[CandidateTest, ...], candidate: int, num_arms: int) -> tuple[CandidateTest, ...]:
    """The epochs with a new one for the candidate, whose evidence starts at its weight: nothing seen so far counts.

    Raises:
        ContractError: the candidate has an epoch, or the weights would sum to more than 1.

    Source: docs/certified-elimination.md, lines 5 and 6.
    """
    if find_test(epochs, candidate) is not None:
        raise ContractError(
            f"arm {candidate} has an epoch already; a second one would spend its weight twice (line 6)."
        )
    weight = next_weight(epochs)
    if math.fsum([weight, *(epoch.weight for epoch in epochs)]) > 1.0:
        raise ContractError("the weights of the epochs exceed 1; the error probability would exceed delta (line 6).")
    return (*epochs, CandidateTest(candidate, weight, start_of(weight, num_arms), np.empty(0, np.int64)))


def start_of(weight: float, num_arms: int) -> FloatArray:
    """The evidence of an epoch before its first batch: log p against every rival."""
    return np.full(num_arms, math.log(weight) if weight > 0.0 else -np.inf)


def advanced(
    epochs: tuple[CandidateTest, ...], gains: Mapping[int, FloatArray], threshold: float
) -> tuple[CandidateTest, ...]:
    """Every epoch after one more batch: its log e-values grow by the batch's gains (they may fall).

    A rival is rejected for good once its evidence has reached the threshold: Ville's inequality is about the largest
    value that the process ever takes (docs/certified-elimination.md, line 8).

    Args:
        gains: candidate -> log e-values of the batch, shape (K,), 0 for rivals on which nothing was bet.
        threshold: log(1/delta).
    """
    after = []
    for epoch in epochs:
        evidence = epoch.evidence + gains[epoch.candidate]
        reached = evidence >= threshold
        reached[epoch.settled] = True
        reached[epoch.candidate] = False
        after.append(CandidateTest(epoch.candidate, epoch.weight, evidence, np.flatnonzero(reached)))
    return tuple(after)
