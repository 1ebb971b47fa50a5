"""Of which arms a batch has whole pulls, and how many. Validity rests on none of it."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Protocol

import numpy as np

from surepick import designs
from surepick.core.observations import Observations
from surepick.core.plans import Embedded, Plan
from surepick.core.records import BoolArray, FloatArray, IntArray
from surepick.core.special_functions import scipy
from surepick.embeddings import ArmEmbedding
from surepick.estimators import Mgf
from surepick.estimators.noise_mgf import joint_failure, least_chi_squares
from surepick.linalg.farthest_pairs import farthest_first
from surepick.noise import failure_probability, known_scale
from surepick.policies import model_checks, tuning
from surepick.policies.base import Problem
from surepick.policies.sequential.engine import BatchSizes

GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0  # its multiples spread over the unit interval, however many there are


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
        if not (vectors and known):
            return rounded_batch(weights, sizes.exact, round_number)

        def spread(pulls: int) -> IntArray:
            return model_checks.spread_over_equals(embedding, rounded_batch(weights, pulls, round_number), costs)

        planned = spread(max(1, int(sizes.exact / (1.0 + share))))
        extra = model_checks.check_pulls(embedding, dim, planned, share, costs)
        return np.asarray(spread(sizes.exact - int(extra.sum())) + extra)
    counts = designs.round_design(weights, capped(total, weights, largest_batch=sizes.largest, reserve=share))
    if vectors and known and np.count_nonzero(counts) >= few:
        return model_checks.with_check_pulls(embedding, dim, counts, share=share, costs=costs)
    noise_mgf = None if seen is None or known or not vectors else arms.noise_mgf(seen)
    if seen is None or noise_mgf is None or noise_mgf.declared:
        return counts
    found = topped_up(counts, seen.counts, noise_mgf.bounded, arms.repeats, sizes.largest)
    if model_checks.is_saturated(embedding, dim) and embedding.num_distinct == embedding.num_arms:
        return found
    features, limits = embedding.at(embedding.max_dim).features, (arms.repeats, share, costs)
    return found + check_repeats(features, found, seen.counts, noise_mgf.bounded, *limits)


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
