"""What is to be measured next."""

from __future__ import annotations

import numpy as np

from surepick.core.arrays import IntArray, freeze, record
from surepick.errors import OutOfTurn


@record
class Lease:
    """Who measures a part of a plan, and until when it is theirs.

    Args:
        number: serial number of the lease among those of the plan, from 1.
        plan: number of the plan in its study, from 1.
        worker: who measures.
        until: seconds since 1970 (UTC); what is missing then is offered to others.
    """

    number: int
    plan: int
    worker: str
    until: float


def pull_key(plan: int, ordinal: int, name: str) -> str:
    """The key of one leased pull of the arm of that name."""
    return f"p{plan}.{ordinal}@{name}"


@record
class Plan:
    """What to measure next.

    Args:
        round: 1, 2, ...
        counts: pulls asked of each arm, shape (K,).
        look: which look inside the round this is, 1 .. looks.
        looks: looks in the round; results are judged after each, with the error probability divided among them.
        allocation: pulls of the whole round, shape (K,); fixed when the round opens.
        dim: dimension of the embedding used, 0 for policies without one.
        value: tau, the design's value; None without a design.
        lower_bound: certified lower bound on the best possible tau; None without a design.
        misspecification: gamma-tilde of the embedding, in reward units.
        ids: ids of the arms, for `table`; None inside a policy.
        candidate: the arm that the batch is to certify, for policies that certify one; `value` is then the number of
            pulls that this is predicted to take still.
        lease: who measures these pulls, if `counts` is a part that was leased; else None.
        ordinals: number of each leased pull among all that were ever leased of its arm in the plan, from 0, arm by
            arm, shape (total,); a pull that is leased again has a new one. None if nothing is leased.
    """

    round: int
    counts: IntArray
    look: int = 1
    looks: int = 1
    allocation: IntArray | None = None
    dim: int = 0
    value: float | None = None
    lower_bound: float | None = None
    misspecification: float = 0.0
    ids: tuple[str, ...] | None = None
    candidate: int | None = None
    lease: Lease | None = None
    ordinals: IntArray | None = None

    def __post_init__(self) -> None:
        freeze(self, counts=np.int64, allocation=np.int64, ordinals=np.int64)

    @property
    def total(self) -> int:
        """Pulls asked, all arms together."""
        return int(self.counts.sum())

    def table(self) -> list[tuple[str, int]]:
        """[(id, pulls)] of the arms to be pulled."""
        return [
            (str(arm) if self.ids is None else self.ids[arm], int(self.counts[arm]))
            for arm in np.flatnonzero(self.counts)
        ]

    def keys(self) -> list[tuple[str, str]]:
        """[(id, key)], one row a pull, of a plan that is leased: tell each result with its key, and it counts once.

        Raises:
            OutOfTurn: the plan is not leased.
        """
        if self.total == 0:
            return []
        if self.lease is None or self.ordinals is None:
            raise OutOfTurn("only pulls that are leased have keys; ask(worker=...) for some.")
        arms = np.repeat(np.arange(len(self.counts)), self.counts)
        names = [str(arm) if self.ids is None else self.ids[arm] for arm in arms.tolist()]
        return [
            (name, pull_key(self.lease.plan, ordinal, name))
            for name, ordinal in zip(names, self.ordinals.tolist(), strict=True)
        ]
