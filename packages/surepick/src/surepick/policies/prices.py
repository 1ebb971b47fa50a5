"""What measurements cost: prices of the arms and of a batch, and exact sums of them."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from surepick.core.arms import Arms
from surepick.core.records import FloatArray, frozen
from surepick.core.values import not_negative
from surepick.errors import InvalidInput
from surepick.policies.base import Policy

MONEY = "money, in the currency of the costs."


@frozen
class Costs:
    """What the measurements of a study cost, in any currency."""

    arms: FloatArray | None  # of one pull of each arm, (K,); None: 1 each, where only batches have a cost
    batch: float = 0.0  # of each batch, whatever is measured in it

    @staticmethod
    def of(policy: Policy[Any], arms: Arms | None = None) -> Costs | None:
        """Those of a policy and its arms; None where nothing has a cost."""
        known = policy.problem.arms if arms is None else arms
        return _prices(None if known is None else known.costs, policy.traits.batch_cost)

    @staticmethod
    def stored_in(configuration: Mapping[str, Any]) -> Costs | None:
        """Those of a stored study."""
        costs = configuration.get("costs")
        batch = float(configuration["policy"].get("batch_cost") or 0.0)
        return _prices(None if costs is None else np.array(costs, np.float64), batch)

    def each(self, num_arms: int) -> FloatArray:
        """Of one pull of each arm, shape (K,)."""
        return np.ones(num_arms) if self.arms is None else self.arms

    def total(self, counts: ArrayLike, *, batches: int) -> float:
        """What pulls and batches cost together: the exact sum of the decimals, rounded once, so that 3 x 0.1 is 0.3.

        Cost: O(K log K).
        """
        pulls = np.asarray(counts, dtype=np.int64)
        used = np.flatnonzero(pulls)
        prices, places = np.unique(self.each(len(pulls))[used], return_inverse=True)
        of_price = np.zeros(len(prices), np.int64)
        np.add.at(of_price, places, pulls[used])
        rows = zip(prices.tolist(), of_price.tolist(), strict=True)
        return float(
            sum((Decimal(repr(price)) * number for price, number in rows), Decimal(repr(self.batch)) * batches)
        )

    def spent(self, pulls: Mapping[int, int], num_arms: int, *, batches: int) -> float:
        """As `total`, of the pulls of some of the arms."""
        counts = np.zeros(num_arms, np.int64)
        counts[list(pulls)] = list(pulls.values())
        return self.total(counts, batches=batches)


def added(*amounts: float) -> float:
    """The exact sum of amounts as they are written, rounded once: 0.1 and 0.2 are 0.3."""
    return float(sum((Decimal(repr(float(amount))) for amount in amounts), Decimal(0)))


def cost_of(price: float, number: int) -> float:
    """What so many of that price cost, exactly as they are written, rounded once: 3 x 0.1 is 0.3."""
    return float(Decimal(repr(float(price))) * number)


def checked_budget(max_cost: float | None, prices: Costs | None) -> float | None:
    """A budget in money."""
    if max_cost is None:
        return None
    limit = not_negative("max_cost", max_cost, MONEY)
    if prices is None:
        raise InvalidInput(
            f"max_cost is {limit:g}, and nothing says what a measurement costs. Give the candidates costs: "
            "--cost COLUMN, or Arms(..., costs=...) in Python."
        )
    return limit


def _prices(costs: FloatArray | None, batch: float) -> Costs | None:
    return None if costs is None and batch == 0.0 else Costs(costs, batch)
