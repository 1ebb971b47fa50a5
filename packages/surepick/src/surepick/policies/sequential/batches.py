"""How many pulls a batch has, and of which arms whole ones. Validity rests on none of it."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from surepick import designs
from surepick.core.observations import Observations
from surepick.core.plans import Embedded, Plan
from surepick.core.records import BoolArray, FloatArray, IntArray, record
from surepick.core.special_functions import scipy
from surepick.embeddings import ArmEmbedding
from surepick.errors import InvalidInput
from surepick.estimators import Mgf
from surepick.estimators.noise_mgf import joint_failure, least_chi_squares
from surepick.linalg.farthest_pairs import farthest_first
from surepick.noise import failure_probability, known_scale
from surepick.policies import model_checks, tuning
from surepick.policies.base import Problem

HEURISTIC_EARLY = 3.0  # where few batches are left, each has so many times its share of the predicted rest
HEURISTIC_OPENING_BATCHES = 0.5  # of the batches that are allowed may go by before a candidate is tested
HEURISTIC_OPENING_SHARE = 0.5  # of the pulls that an opening should have: enough where another batch is dear
HEURISTIC_FIRST_FOR_COST = 0.5  # of what a batch costs beside its pulls: what the pulls of the first one cost
HEURISTIC_BALANCE = 1.0  # times sqrt(fixed cost of a batch times the rest): what the pulls of a batch cost
HEURISTIC_LARGEST_BATCH = 1.5  # of the predicted rest: no batch is larger, however dear another one is
GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0  # its multiples spread over the unit interval, however many there are


@record
class Grid:
    """Pulls so far after each batch, where only few are allowed: a geometric sequence.

    Nothing is known of the gaps beforehand. If each batch multiplies the pulls by the same factor, then whatever the
    gaps are, the pulls after some batch are within that factor of what they ask for.

    Source: Perchet et al. (2016), Gao et al. (2019).
    """

    start: float  # with how many pulls a study usually begins
    end: float  # what arms that are all equal are predicted to take

    @staticmethod
    def of(dim: int, least: int, *, sigma: float, epsilon: float, threshold: float) -> Grid:
        """The one for d directions; K for arms without structure.

        end = 2 s^2 log(1/delta) 2 d / epsilon^2,     2 d: what the design value of all differences is about
        """
        return Grid(float(least), max(float(least), 4.0 * dim * threshold * (sigma / epsilon) ** 2))

    def after(self, share: float) -> float:
        """Pulls after that share of the batches."""
        return float(self.start ** (1.0 - share) * self.end**share)


@record
class BatchSizes:
    """What a user says of batches."""

    largest: int | None  # most pulls in a batch, or the arms that a design needs if these are more; None: no limit
    exact: int | None  # the pulls of every batch; None: they are chosen
    most: int | None  # after so many batches the study ends; None: no limit
    fixed: float = 0.0  # what a batch costs beside its pulls, in pulls of the cheapest arm
    reserve: float = 0.0  # share of its pulls that is added, so that a lack of fit can show

    def __post_init__(self) -> None:
        if self.largest is not None and self.exact is not None:
            raise InvalidInput(
                f"largest_batch is {self.largest} and batch_size {self.exact}; a batch of exactly that size has no "
                "other limit: give one of the two."
            )

    @staticmethod
    def of(policy: Any) -> BatchSizes:
        """What the options of a policy say."""
        fixed = policy.batch_cost / policy.problem.cheapest_cost
        return BatchSizes(policy.largest_batch, policy.batch_size, policy.max_batches, fixed, policy.reserve)

    def over(self, round_number: int) -> bool:
        """Whether no further batch is allowed, the next of which would be that one."""
        return self.most is not None and round_number > self.most

    def is_last(self, round_number: int) -> bool:
        """Whether nothing can be measured after that batch."""
        return self.most is not None and round_number >= self.most

    def opens(self, round_number: int) -> bool:
        """Whether that batch may still serve no candidate."""
        return self.most is None or round_number <= HEURISTIC_OPENING_BATCHES * self.most

    def opened(self, pulls: float, enough: float) -> bool:
        """Whether the opening has had what it should have, or so much that no batch is spent on the rest."""
        return pulls + self.fixed >= (enough if self.most is None else HEURISTIC_OPENING_SHARE * enough)

    def first(self, usual: int, grid: Grid | None, price: float = 1.0) -> int:
        """Pulls of the first batch."""
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
        keeps the first batches from paying for that. `rest` is predicted; before the last batch it suffices mostly.
        """
        balanced = min(HEURISTIC_BALANCE * math.sqrt(self.fixed * rest), HEURISTIC_LARGEST_BATCH * rest)
        most = max(float(pulls), self.fixed)
        usual = min(max(tuning.HEURISTIC_BATCH * rest, tuning.HEURISTIC_LEAST_BATCH * pulls, balanced), most)
        if self.most is None:
            return usual
        left = self.most - round_number + 1
        if left <= 1:
            return rest
        share = rest * min(1.0, HEURISTIC_EARLY / left)
        return max(usual, min(share, grid.after(round_number / self.most) - pulls))


def capped(total: int, weights: FloatArray, *, largest_batch: int | None, reserve: float) -> int:
    """Pulls of a batch within the largest one, reserved pulls included; at least one for each arm of the design."""
    limit = total if largest_batch is None else int(largest_batch / (1.0 + reserve))
    return max(min(total, limit), int(np.count_nonzero(weights)))


def batch_total(predicted: float, pulls: int) -> int:
    """N = .2 V, within [2 %, 100 %] of the pulls so far, at least 1."""
    share = max(tuning.HEURISTIC_BATCH * predicted, tuning.HEURISTIC_LEAST_BATCH * pulls)
    return max(1, math.ceil(min(share, float(pulls))))


def next_of_list(sizes: BatchSizes, num_arms: int, repeats: int, round_number: int) -> Plan | None:
    """With batches of a given size: the next arms of the list, until each had so many turns; then None."""
    if sizes.exact is None or round_number > batches_of_a_list(repeats * num_arms, sizes.exact):
        return None
    counts = listed_sizes(num_arms, sizes.exact, round_number)
    return Plan(round=round_number, counts=counts, dim=num_arms, lower_bound=0.0)


class Measurable(Protocol):
    """What whole pulls are a matter of, beside weights."""

    @property
    def problem(self) -> Problem: ...
    @property
    def embedding(self) -> ArmEmbedding: ...
    @property
    def repeats(self) -> int: ...  # pulls of an arm after which its variance has a bound worth having
    def noise_mgf(self, seen: Observations, /) -> Mgf: ...


def whole_batch(
    arms: Measurable,
    embedded: Embedded,
    weights: FloatArray,  # (K,)
    total: int,
    round_number: int,
    sizes: BatchSizes,
    seen: Observations | None,
    few: int = 0,
) -> IntArray:
    """About so many pulls in these proportions, and those that a lack of fit can show in; exactly so many where that
    is asked. On fewer arms than `few`, rivals themselves, none are added: their differences would be fitted.
    """
    costs, embedding, dim, share = arms.problem.relative_costs, arms.embedding, embedded.dim, sizes.reserve
    vectors, known = embedded.structured, known_scale(arms.problem.noise)
    if sizes.exact is not None:
        checked = (embedding, dim, share) if vectors and known else None
        return fixed_size(weights, sizes.exact, round_number, costs, checked)
    counts = designs.round_design(weights, capped(total, weights, largest_batch=sizes.largest, reserve=share))
    if not vectors or (known and np.count_nonzero(counts) < few):
        return counts
    if known:
        return model_checks.with_check_pulls(embedding, dim, counts, share=share, costs=costs)
    noise_mgf = None if seen is None else arms.noise_mgf(seen)
    if seen is None or noise_mgf is None or noise_mgf.declared:
        return counts
    bounded, limits = noise_mgf.bounded, (arms.repeats, sizes.largest, share, costs)
    return with_repeats(embedding, dim, counts, seen.counts, bounded, *limits)


def rounded_batch(weights: FloatArray, total: int, round_number: int) -> IntArray:
    """Whole pulls in these proportions; where they are fewer than the arms with a weight, some of these arms.

    Systematic sampling: each arm gets its share rounded up or down, from an offset that moves with the batch, so that
    later batches reach the others.
    """
    if total >= np.count_nonzero(weights):
        return designs.round_design(weights, total)
    ends = np.cumsum(weights / weights.sum()) * total
    offset = math.fmod(round_number * GOLDEN, 1.0)
    passed = np.floor(np.concatenate([[0.0], ends]) + offset).astype(np.int64)
    passed[-1] = total  # the sum of the weights is 1 up to rounding
    counts: IntArray = np.diff(np.minimum(passed, total))
    return counts


def fixed_size(
    weights: FloatArray,  # (K,)
    total: int,
    round_number: int,
    costs: FloatArray | None,  # of a pull of each arm, (K,); None: all alike
    checked: tuple[ArmEmbedding, int, float] | None,
) -> IntArray:
    """Exactly so many pulls in these proportions, shape (K,)."""
    if checked is None:
        return rounded_batch(weights, total, round_number)
    embedding, dim, share = checked

    def spread(pulls: int) -> IntArray:
        return model_checks.spread_over_equals(embedding, rounded_batch(weights, pulls, round_number), costs)

    extra = model_checks.check_pulls(embedding, dim, spread(max(1, int(total / (1.0 + share)))), share, costs)
    return np.asarray(spread(total - int(extra.sum())) + extra)


def batches_of_a_list(num_arms: int, total: int) -> int:
    """How many batches of so many pulls see every arm once."""
    return -(-num_arms // total)


def listed_sizes(num_arms: int, total: int, round_number: int) -> IntArray:
    """The pulls of one of the batches that see every arm once, each spread over the list; surplus ones begin anew."""
    batches = batches_of_a_list(num_arms, total)
    if batches == 1:
        return total // num_arms + np.diff(np.arange(num_arms + 1) * (total % num_arms) // num_arms)
    order = np.argsort(np.arange(num_arms) % batches, kind="stable")
    places = np.arange((round_number - 1) * total, round_number * total)
    return np.bincount(order[places % num_arms], minlength=num_arms).astype(np.int64)


def moved_off(counts: IntArray, away: BoolArray, instead: int) -> IntArray:
    """The pulls, those of arms that cannot be measured given to another arm."""
    found: IntArray = np.where(away, 0, counts)
    found[instead] += int(counts.sum() - found.sum())
    return found


# --- Which arms get repeats where scales are unknown and features are used. Validity rests on none of it.
#
# A pull of an arm whose variance has no bound is no evidence, so that few arms are measured, each often enough.

HEURISTIC_CRUDE = 40.0  # times the usual variance of repeats: a bound that is worth having
HEURISTIC_WORTHY_REPEATS = 2.0  # times the repeats for a bound: what an arm without one must be planned to get in all
MOST_REPEATS = 100
AVOIDED = 100.0  # times its scale: what makes a design avoid an arm
CUT = 1e-6  # of the longest direction: below it an arm adds none


@lru_cache(maxsize=64)
def repeats_for(failure: float) -> int:
    """Pulls of an arm after which the bound on its variance is usually at most 40 times the variance."""
    freedom = np.arange(1, MOST_REPEATS)
    enough = HEURISTIC_CRUDE * least_chi_squares(freedom, failure) >= freedom
    return int(np.argmax(enough)) + 2 if enough.any() else MOST_REPEATS


def least(problem: Problem) -> int:
    """Pulls of an arm after which its pulls may enter the processes of others."""
    if known_scale(problem.noise):
        return 1
    return repeats_for(joint_failure(failure_probability(problem.noise, problem.delta), problem.num_arms))


def spanning_arms(rows: FloatArray) -> IntArray:
    """As few of the rows as span them all, each the one that adds most to those before it, ascending; rows (p, r).

    Source: QR with column pivoting (Businger and Golub 1965). Cost: O(p r^2).
    """
    if len(rows) == 0:
        return np.empty(0, np.int64)
    triangle, order = scipy.linalg.qr(rows.T, mode="r", pivoting=True)
    lengths = np.abs(np.diag(triangle))
    rank = int(np.count_nonzero(lengths > CUT * lengths.max(initial=0.0)))
    return np.sort(order[:rank]).astype(np.int64)


def spans(rows: FloatArray) -> bool:
    """Whether rows of r entries span all r directions."""
    return bool(len(spanning_arms(rows)) == rows.shape[1])


def underreplicated(pulls: FloatArray, bounded: BoolArray, white: FloatArray, needed: int) -> BoolArray:
    """The arms without a bound that had better stay so, (K,); none where the others do not see every direction."""
    few = ~bounded & (pulls < HEURISTIC_WORTHY_REPEATS * needed)
    if not np.any(few & (pulls > 0.0)) or not spans(white[~few]):
        return np.zeros(len(few), bool)
    return few


def topped_up(counts: IntArray, seen: IntArray, bounded: BoolArray, needed: int, limit: int | None) -> IntArray:
    """The pulls of a plan in which each arm without a bound gets the repeats that it lacks."""
    short = np.flatnonzero((counts > 0) & ~bounded)
    found = np.array(counts)
    found[short] = np.maximum(counts[short], needed - seen[short])
    for arm in short[np.argsort(counts[short], kind="stable")].tolist():
        if limit is None or found.sum() <= max(limit, counts.sum()):
            break
        found[arm] = counts[arm]
    return found


def shortfall(seen: IntArray, white: FloatArray, needed: int) -> IntArray:
    """What some arms that were begun lack, as few of them as span what all of those span, shape (K,).

    Those with the most pulls are preferred.
    """
    chosen = np.flatnonzero(seen)
    chosen = chosen[spanning_arms(np.sqrt(seen[chosen])[:, None] * white[chosen])]
    left = np.zeros_like(seen)
    left[chosen] = np.maximum(needed - seen[chosen], 0)
    return left


def with_repeats(
    embedding: ArmEmbedding,
    dim: int,
    counts: IntArray,
    seen: IntArray,
    bounded: BoolArray,
    needed: int,
    limit: int | None,
    share: float,
    costs: FloatArray | None,
) -> IntArray:
    """The pulls of a plan with the repeats that bounds need, and some that a lack of fit can show in, shape (K,)."""
    found = topped_up(counts, seen, bounded, needed, limit)
    if model_checks.is_saturated(embedding, dim) and embedding.num_distinct == embedding.num_arms:
        return found
    features = embedding.at(embedding.max_dim).features
    return found + check_repeats(features, found, seen, bounded, needed, share, costs)


def check_repeats(
    vectors: FloatArray,  # of the arms, (K, d)
    counts: IntArray,  # the plan, (K,)
    seen: IntArray,  # pulls so far, (K,)
    bounded: BoolArray,  # which arms have a bound, (K,)
    needed: int,
    share: float,
    costs: FloatArray | None,  # of a pull of each arm, (K,); None: all alike
) -> IntArray:
    """Extra pulls, (K,), of arms apart from a plan's, so that a lack of fit can show: at most `share` of its pulls, and
    their cost.

    Half of them are single ones of arms that have a bound, spread over the set; the others go on with one arm without
    until it has one, since a lack of fit can show only against a bound.
    """
    extra, pulled = np.zeros_like(counts), counts > 0
    room = min(int(share * counts.sum()), tuning.MOST_CHECK_PULLS)
    money = math.inf if costs is None else share * float(counts @ costs)
    price = np.ones(len(counts)) if costs is None else costs
    if room == 0:
        return extra
    known = farthest_first(vectors, np.flatnonzero(pulled), ~pulled & bounded, (room + 1) // 2)
    for arm in known[np.cumsum(price[known]) <= money].tolist():
        extra[arm] = 1
    money -= float(extra @ price)
    room -= int(extra.sum())
    free = ~pulled & ~bounded
    while room > 0 and free.any():
        begun = np.where(free, seen, 0)
        arm = int(np.argmax(begun))
        if begun[arm] == 0:
            arm = int(farthest_first(vectors, np.flatnonzero(pulled), free, 1)[0])
        free[arm] = False
        number = min(room, max(needed - int(seen[arm]), 1), math.floor(min(money / price[arm], room)))
        if number < 1:
            break
        extra[arm] = number
        room, money = room - number, money - number * float(price[arm])
    return extra
