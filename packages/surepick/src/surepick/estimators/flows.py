"""The flows of carried processes on arms: what they bet, before anything is assumed of the means.

A process of arm j gives the pulls of each batch weights that are fixed before their rewards. Its flows F_j(x) = sum
of w over the pulls of x, and L_j = sum w r - sum cost(w), name no norm, no kernel and no misspecification: these enter
when the flows are read (docs/certified-elimination.md, lines 38 to 43).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from surepick.core.records import BoolArray, FloatArray, IntArray, frozen
from surepick.errors import ContractError, InvalidInput
from surepick.estimators.contrast_weights import EPS

MOST_ENTRIES = 2**27  # of flows: a gigabyte


@frozen
class BatchWeights:
    """The weights w that m processes give to the pulls of a batch; the pulls of a group all have the same."""

    arms: IntArray  # whose processes bet, (m,)
    measured: IntArray  # the arm of each group, (p,); in blocks an arm may have several groups
    counts: IntArray  # pulls of each group, (p,)
    weights: FloatArray  # w of a pull, (m, p)
    # F after the batch as the policy stores it, (m, p), with one group an arm; None: it is to be added up
    held: FloatArray | None = None
    plain: bool = True  # False: they are means over pulls of unlike weights, which say nothing of sum w^2


@frozen
class Weighed:
    """What the processes of a policy made of a batch."""

    batch: BatchWeights
    starts: IntArray  # number of each process's last start, (K,)
    log_values: FloatArray  # L_j with log p_k, after the batch, of rewards less the level, (K,)
    threshold: FloatArray | float  # log(1/delta) of each process, (K,), or of all alike
    level: float = 0.0  # what was taken from every reward


@frozen
class Told:
    """A batch that processes bet on, and what came of it."""

    weighed: Weighed
    means: FloatArray  # mean reward of each arm in the batch, less no level, (K,)


@frozen
class ArmFlows:
    """What carried processes hold: one row for each start of each arm's process that ever bet.

    Lines 38 to 43 of docs/certified-elimination.md take any one row of an arm.
    """

    arms: IntArray  # j of each row, (R,)
    pulled: IntArray  # the arms that were measured, ascending, (P,)
    flows: FloatArray  # F, (R, P)
    lengths: FloatArray  # sum over the batches of sum_x |F|, (R,)
    log_values: FloatArray  # L, less what rounding may have added, (R,)
    squares: FloatArray  # sum w^2, (R,); not a number where it is not known
    spent: FloatArray  # sum s^2 w^2 / 2 with the declared scales, (R,); not a number where that is not the cost
    batches: FloatArray  # sum of w in each batch, (R, batches)
    threshold: FloatArray | float  # log(1/delta), (K,), or of all alike
    terms: int = 0  # summands behind a flow, for the bound on its rounding

    @property
    def lack(self) -> FloatArray:
        """log(1/delta) - L, (R,)."""
        threshold = self.threshold if isinstance(self.threshold, float) else self.threshold[self.arms]
        return np.asarray(threshold - self.log_values)

    def rows(self, chosen: IntArray | BoolArray) -> ArmFlows:
        """Some of the rows."""
        names = ("arms", "flows", "lengths", "log_values", "squares", "spent", "batches")
        return replace(self, **{name: getattr(self, name)[chosen] for name in names})

    @staticmethod
    def nothing(num_arms: int, batches: int, threshold: FloatArray | float) -> ArmFlows:
        """Before the first bet of each arm."""
        zeros, whole = np.zeros(num_arms), np.zeros((num_arms, batches))
        nobody, flows = np.empty(0, np.int64), np.zeros((num_arms, 0))
        return ArmFlows(np.arange(num_arms), nobody, flows, zeros, zeros, zeros, zeros, whole, threshold)


class FlowLedger:
    """Flows as they grow, batch by batch; for one pass over a log. InvalidInput: they need more than a gigabyte."""

    def __init__(
        self,
        num_arms: int,
        pulled: IntArray,  # the arms that are measured in some batch, ascending, (P,)
        batches: int,  # how many there are
        scales: FloatArray | None,  # s: a pull with the weight w costs s^2 w^2 / 2, (K,); None: something else
    ) -> None:
        if num_arms * max(len(pulled), 1) > MOST_ENTRIES:
            raise InvalidInput(
                f"a reading keeps a number for each of {num_arms:,} candidates and each of {len(pulled):,} measured "
                f"ones, and {MOST_ENTRIES:,} numbers are the most. The certificate holds under what was declared."
            )
        self._pulled, self._place = pulled, np.searchsorted(pulled, np.arange(num_arms))
        self._row = np.full(num_arms, -1)  # of each arm's last start
        self._starts = np.zeros(num_arms, np.int64)
        self._arms = np.empty(0, np.int64)
        self._flows, self._batches = np.zeros((0, len(pulled))), np.zeros((0, batches))
        self._columns = np.zeros((5, 0))  # lengths, L, sum w^2, sum s^2 w^2 / 2, sum |w r|
        self._scales = scales
        self._terms = self._told = 0

    def add(self, weighed: Weighed, means: FloatArray) -> IntArray:
        """Add a batch with its mean rewards, less no level, (K,): the rows that hold something else now, ascending."""
        batch = weighed.batch
        rows = self._rows_of(batch.arms, weighed.starts)
        change = batch.weights * batch.counts
        place = self._place[batch.measured]
        if len(place) and not np.array_equal(self._pulled[place], batch.measured):
            raise ContractError("a weight lies on an arm that was not measured.")
        self._batches[rows, self._told] += change.sum(axis=1)
        if batch.held is not None:
            self._flows[np.ix_(rows, place)] = batch.held
        else:
            told = np.zeros((len(self._pulled), len(rows)))
            np.add.at(told, place, change.T)
            self._flows[rows] += told.T
        size = np.abs(change)
        self._columns[0, rows] += size.sum(axis=1)
        level = weighed.level
        self._columns[1, rows] = weighed.log_values[batch.arms] + level * self._flows[rows].sum(axis=1)
        squares = size**2 / batch.counts if batch.plain else np.full(size.shape, np.nan)
        self._columns[2, rows] += squares.sum(axis=1)
        self._columns[3, rows] += np.nan if self._scales is None else 0.5 * squares @ self._scales[batch.measured] ** 2
        self._columns[4, rows] += size @ (np.abs(means[batch.measured]) + abs(level))
        self._terms += len(place) + 1
        self._told += 1
        return np.sort(rows)

    def _rows_of(self, arms: IntArray, starts: IntArray) -> IntArray:
        """The rows of the last starts of some arms; new ones where they have none."""
        fresh = arms[(self._row[arms] < 0) | (self._starts[arms] != starts[arms])]
        if len(fresh):
            number = len(self._arms)
            if (number + len(fresh)) * max(len(self._pulled), 1) > MOST_ENTRIES:
                raise InvalidInput("the flows of all new starts are more than a reading keeps (a gigabyte).")
            self._row[fresh] = np.arange(number, number + len(fresh))
            self._arms = np.concatenate([self._arms, fresh])
            self._flows, self._batches = (
                np.concatenate([old, np.zeros((len(fresh), old.shape[1]))]) for old in (self._flows, self._batches)
            )
            self._columns = np.concatenate([self._columns, np.zeros((5, len(fresh)))], axis=1)
            self._starts[fresh] = starts[fresh]
        return np.asarray(self._row[arms])

    def held(self, threshold: FloatArray | float, rows: IntArray) -> ArmFlows:
        """What some rows hold now."""
        lengths, values, squares, spent, sizes = self._columns[:, rows]
        terms = self._terms + 8
        columns = lengths, values - terms * EPS * sizes, squares, spent, self._batches[rows]
        return ArmFlows(self._arms[rows], self._pulled, self._flows[rows], *columns, threshold, terms)


def flows_of(
    told: Sequence[Told], num_arms: int, pulled: IntArray, scales: FloatArray | None, *, batches: int
) -> Iterator[ArmFlows]:
    """What processes hold after each batch, the rows that changed; first, before any, a row of nothing for each arm.

    Args: as of `FlowLedger`.
    """
    ledger = FlowLedger(num_arms, pulled, batches, scales)
    for number, each in enumerate(told):
        if number == 0:
            yield ArmFlows.nothing(num_arms, batches, each.weighed.threshold)
        yield ledger.held(each.weighed.threshold, ledger.add(each.weighed, each.means))
