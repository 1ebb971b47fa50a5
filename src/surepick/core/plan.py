"""What a policy wants measured next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from surepick.core.arrays import IntArray, freeze, record


@record
class Blocking:
    """What a study says of its blocks.

    Args:
        name: what a block is called ("plate", "day"), and the column of results that names each row's block.
        size: most measurements in a block; None: not known.
        control: index of an arm that every block is to measure; None: no arm is.
        once: an arm is measured at most once in a block.
        anew: a block that an earlier plan had does not go on in a later one.
        again: a block can be gone back to, as a stream of random numbers can; a plate that is done cannot.
    """

    name: str
    size: int | None = None
    control: int | None = None
    once: bool = False
    anew: bool = False
    again: bool = False

    @staticmethod
    def stored_in(spec: Mapping[str, Any]) -> Blocking | None:
        """What a policy's spec says of blocks, but for the control, whose index it does not know; None: there are none.

        Args:
            spec: from which `make_policy` makes the policy.
        """
        name, paired = spec.get("blocks") or spec.get("streams"), spec.get("evidence") == "paired"
        if name is None:
            return None
        once, streams = paired or bool(spec.get("once_a_block")), spec.get("streams") is not None
        return Blocking(name, spec.get("block_size"), None, once, anew=paired, again=streams)

    def number_for(self, counts: IntArray) -> int:
        """How many blocks a plan with these counts fills, shape (K,)."""
        number = 1 if self.size is None else -(-int(counts.sum()) // self.size)
        return max(number, int(counts.max(initial=0)) if self.once else 1, 1)

    def dealt(self, counts: IntArray) -> IntArray:
        """The block of each pull, arm by arm, shape (total,): pulls are dealt like cards.

        So blocks differ by at most one pull in size, and by at most one pull of any arm.
        """
        dealt: IntArray = np.arange(int(counts.sum())) % self.number_for(counts)
        return dealt


@record
class Plan:
    """What to measure next, as the policy decided it.

    Args:
        round: 1, 2, ...
        counts: pulls of each arm, shape (K,).
        look: which look inside the round this is, 1 .. looks.
        looks: looks in the round; results are judged after each, with the error probability divided among them.
        allocation: pulls of the whole round, shape (K,); fixed when the round opens.
        dim: dimension of the embedding used, 0 for policies without one.
        design_value: tau, the value of the design; None without a design, and where pulls are predicted instead.
        predicted_pulls: pulls that certifying the candidate will still take, as predicted; None without a candidate.
        lower_bound: certified lower bound on the best possible design value (or prediction); None without one.
        misspecification: gamma-tilde of the embedding, in reward units.
        candidate: the arm that the batch is to certify, for policies that certify one.
        predicted_cost: what the predicted pulls cost, in the currency of `Arms.costs`, without what a batch costs
            beside its pulls; None where all pulls cost alike.
        first_items: where test items are answered, the place in their order (from 0) of the first that each arm
            answers, shape (K,); arm k answers the counts[k] items from there on. None: pulls are draws.
    """

    round: int
    counts: IntArray
    look: int = 1
    looks: int = 1
    allocation: IntArray | None = None
    dim: int = 0
    design_value: float | None = None
    predicted_pulls: float | None = None
    lower_bound: float | None = None
    misspecification: float = 0.0
    candidate: int | None = None
    predicted_cost: float | None = None
    first_items: IntArray | None = None

    def __post_init__(self) -> None:
        freeze(self, counts=np.int64, allocation=np.int64, first_items=np.int64)

    @property
    def total(self) -> int:
        """Pulls, all arms together."""
        return int(self.counts.sum())

    @property
    def value(self) -> float | None:
        """The design value, or the prediction where pulls are predicted: what `lower_bound` is a lower bound of."""
        return self.design_value if self.predicted_pulls is None else self.predicted_pulls

    @property
    def places(self) -> IntArray | None:
        """The place of the item of each pull, arm by arm, shape (total,); None where pulls are draws."""
        if self.first_items is None:
            return None
        starts = np.cumsum(self.counts) - self.counts
        places: IntArray = np.arange(self.total) + np.repeat(self.first_items - starts, self.counts)
        return places
