"""How many pulls a batch has, and where they go if they are fewer than a design needs. Validity rests on none of it."""

from __future__ import annotations

import math

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray, record
from surepick.designs import round_design
from surepick.errors import InvalidInput

HEURISTIC_BATCH = 0.2  # of the pulls still to come ...
HEURISTIC_LEAST_BATCH = 0.02  # ... but at least this share of the pulls so far, and at most all of them again
HEURISTIC_EARLY = 3.0  # where few batches are left, each has so many times its share of the predicted rest
HEURISTIC_OPENING = 0.5  # of the batches that are allowed may go by before a candidate is tested
HEURISTIC_WORTH = 0.5  # of the pulls that an opening should have: enough where another batch is dear
HEURISTIC_FIRST_FOR_COST = 0.5  # of what a batch costs beside its pulls: what the pulls of the first one cost
HEURISTIC_BALANCE = 1.0  # times sqrt(fixed cost of a batch times the rest): what the pulls of a batch cost
HEURISTIC_ENOUGH = 1.5  # of the predicted rest: no batch is larger, however dear another one is
GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0  # its multiples spread over the unit interval, however many there are


@record
class Grid:
    """Pulls so far after each batch, where only few are allowed: a geometric sequence.

    Nothing is known of the gaps beforehand. If each batch multiplies the pulls by the same factor, then whatever the
    gaps are, the pulls after some batch are within that factor of what they ask for.

    Args:
        start: with how many pulls a study usually begins.
        end: what arms that are all equal are predicted to take.

    Source: Perchet et al. (2016), Gao et al. (2019).
    """

    start: float
    end: float

    @staticmethod
    def of(dim: int, least: int, *, sigma: float, epsilon: float, threshold: float) -> Grid:
        """The one for d directions; K for arms without structure.

            end = 2 s^2 log(1/delta) 2 d / epsilon^2,     2 d: what the design value of all differences is about

        Args:
            dim: d.
            least: pulls with which a study begins.
            sigma: s, in reward units.
            epsilon: in reward units.
            threshold: log(1/delta).
        """
        return Grid(float(least), max(float(least), 4.0 * dim * threshold * (sigma / epsilon) ** 2))

    def after(self, share: float) -> float:
        """Pulls after that share of the batches."""
        return float(self.start ** (1.0 - share) * self.end**share)


@record
class BatchSizes:
    """What a user says of batches.

    Args:
        largest: most pulls in a batch, or the arms that a design needs if these are more; None: no limit.
        exact: the pulls of every batch; None: they are chosen.
        most: after so many batches the study ends; None: no limit.
        fixed: what a batch costs beside its pulls, in pulls of the cheapest arm.

    Raises:
        InvalidInput: both a largest and an exact size are given.
    """

    largest: int | None
    exact: int | None
    most: int | None
    fixed: float = 0.0

    def __post_init__(self) -> None:
        if self.largest is not None and self.exact is not None:
            raise InvalidInput(
                f"largest_batch is {self.largest} and batch_size {self.exact}; a batch of exactly that size has no "
                "other limit: give one of the two."
            )

    def over(self, round_number: int) -> bool:
        """Whether no further batch is allowed, the next of which would be that one."""
        return self.most is not None and round_number > self.most

    def is_last(self, round_number: int) -> bool:
        """Whether nothing can be measured after that batch."""
        return self.most is not None and round_number >= self.most

    def opens(self, round_number: int) -> bool:
        """Whether that batch may still serve no candidate."""
        return self.most is None or round_number <= HEURISTIC_OPENING * self.most

    def opened(self, pulls: float, enough: float) -> bool:
        """Whether the opening has had what it should have, or so much that no batch is spent on the rest."""
        return pulls + self.fixed >= (enough if self.most is None else HEURISTIC_WORTH * enough)

    def first(self, usual: int, grid: Grid | None, price: float = 1.0) -> int:
        """Pulls of the first batch.

        Args:
            usual: pulls with which a study begins that may have as many batches as it likes.
            grid: None: nobody knows the scale of the noise, nor so how many pulls equal arms take.
            price: of one of them on average, in pulls of the cheapest arm.
        """
        if self.exact is not None:
            return self.exact
        if self.most is None and self.fixed == 0.0:
            return usual
        aims = [HEURISTIC_FIRST_FOR_COST * self.fixed / price]
        if grid is not None:
            aims = [min(aims[0], grid.end), *([] if self.most is None else [grid.after(1.0 / self.most)])]
        total = max(usual, math.ceil(max(aims)))
        return total if self.largest is None else max(usual, min(total, self.largest))

    def opening(self, round_number: int, pulls: float, grid: Grid) -> float:
        """Pulls, or money, of a further batch that serves no candidate: as before, or up to the next of the grid."""
        doubled = max(float(pulls), self.fixed)
        return doubled if self.most is None else max(doubled, grid.after(round_number / self.most) - pulls)

    def testing(self, round_number: int, pulls: float, rest: float, grid: Grid) -> float:
        """Pulls, or money, of a batch for a candidate.

            usual = min(max(.2 rest, .02 pulls, min(sqrt(fixed rest), 1.5 rest)), max(pulls, fixed))
            max(usual, min(rest min(1, 3 / (batches left)), up to the next point of the grid)),     at last all the rest

        A batch of money B has a fixed cost of its own, rest / B of them are to come, and the last one measures about
        B / 2 too much: fixed rest / B + B / 2 is least at a multiple of sqrt(fixed rest).

        What is predicted takes more about every other time, so that as much as possible is done before the last batch.
        But early predictions are often ten times too high, since what is not told apart yet counts as equal; the grid
        keeps the first batches from paying for that.

        Args:
            pulls: so far; or what they cost, with `rest` and `grid` in the same unit.
            rest: predicted pulls still to come; before the last batch what suffices most of the time.
        """
        balanced = min(HEURISTIC_BALANCE * math.sqrt(self.fixed * rest), HEURISTIC_ENOUGH * rest)
        most = max(float(pulls), self.fixed)
        usual = min(max(HEURISTIC_BATCH * rest, HEURISTIC_LEAST_BATCH * pulls, balanced), most)
        if self.most is None:
            return usual
        left = self.most - round_number + 1
        if left <= 1:
            return rest
        share = rest * min(1.0, HEURISTIC_EARLY / left)
        return max(usual, min(share, grid.after(round_number / self.most) - pulls))


def rounded(weights: FloatArray, total: int, round_number: int) -> IntArray:
    """Whole pulls in these proportions; where they are fewer than the arms with a weight, some of these arms.

    Systematic sampling: each arm gets its share rounded up or down, from an offset that moves with the batch, so that
    later batches reach the others.

    Args:
        weights: shape (K,).
        total: at least 1.
        round_number: of the batch.
    """
    if total >= np.count_nonzero(weights):
        return round_design(weights, total)
    ends = np.cumsum(weights / weights.sum()) * total
    offset = math.fmod(round_number * GOLDEN, 1.0)
    passed = np.floor(np.concatenate([[0.0], ends]) + offset).astype(np.int64)
    passed[-1] = total  # the sum of the weights is 1 up to rounding
    counts: IntArray = np.diff(np.minimum(passed, total))
    return counts


def batches_of_a_list(num_arms: int, total: int) -> int:
    """How many batches of so many pulls see every arm once."""
    return -(-num_arms // total)


def listed(num_arms: int, total: int, round_number: int) -> IntArray:
    """The pulls of one of the batches that see every arm once, each spread over the list; surplus ones begin anew.

    Args:
        num_arms: K.
        total: of a batch.
        round_number: of the batch, from 1.
    """
    batches = batches_of_a_list(num_arms, total)
    if batches == 1:
        return total // num_arms + np.diff(np.arange(num_arms + 1) * (total % num_arms) // num_arms)
    order = np.argsort(np.arange(num_arms) % batches, kind="stable")
    places = np.arange((round_number - 1) * total, round_number * total)
    return np.bincount(order[places % num_arms], minlength=num_arms).astype(np.int64)


def moved_off(counts: IntArray, away: BoolArray, instead: int) -> IntArray:
    """The pulls, those of arms that cannot be measured given to another arm.

    Args:
        counts: shape (K,).
        away: which cannot, shape (K,).
        instead: the arm that gets them.
    """
    found: IntArray = np.where(away, 0, counts)
    found[instead] += int(counts.sum() - found.sum())
    return found
