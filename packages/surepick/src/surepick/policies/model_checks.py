"""When the data speak against the embedding: the checks of a round, their level, and what they do to a verdict."""

import math
import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from surepick import estimators
from surepick.core.observations import BlockTotals, Observations
from surepick.core.plans import Embedded, Embedding, Plan
from surepick.core.records import BoolArray, FloatArray, IntArray
from surepick.core.special_functions import special
from surepick.embeddings import ArmEmbedding
from surepick.embeddings.base import ESTIMATED_NORM
from surepick.estimators.noise_mgf import squared_deviations
from surepick.linalg.factorisations import Whitened
from surepick.linalg.farthest_pairs import ROWS, farthest_first, farthest_pairs
from surepick.linalg.rows import equal_rows
from surepick.noise import known_scale
from surepick.policies import tuning
from surepick.policies.base import Problem
from surepick.text import quoted

FALSE_ALARM = 1e-3
_NUMBERS = re.compile(r"-?[\d.]+(e[+-]?\d+)?")
LOOKED_AT = 8191  # arms, in so many directions; a prime: no step through a list that runs through levels in turn
SATURATED = (
    "Nothing is assumed about the features: they were used in as many dimensions as there are distinct arms, where "
    "every list of means is representable."
)
EQUAL_FEATURES = (
    "Candidates with equal features have equal means; nothing else is assumed about the features, as they were used in "
    "as many dimensions as there are distinct ones."
)
FITTED = (
    "The results of each batch or look are no farther from the embedding than its noise and misspecification allow."
)
BOUNDED = "The norm that the results need is within the declared bound."
APART = "The first embedding keeps enough of the arms to tell them apart."
SPREAD = "No repeats lie farther apart than normal noise allows, given those before them."
SPREAD_ALARM = "repeats lie farther apart than normal noise allows"
LINEAR = "The results are no farther from linear in the features than their noise allows."


def checks_of(embedding: ArmEmbedding) -> tuple[str, ...]:
    """What `failed_checks` looks for, in sentences that hold while no check fails; () where nothing is compressed.

    A lack of fit is found only where there are more arms measured than the embedding has directions.
    """
    if embedding.traits.family == "independent":
        return ()
    return (FITTED, APART) if embedding.norm_bound is None else (FITTED, BOUNDED, APART)


def is_saturated(embedding: ArmEmbedding, dim: int) -> bool:
    """Whether every list of means that agrees on equal arms is exactly linear in psi_d."""
    return dim >= embedding.num_distinct and embedding.misspecification(dim) == 0.0


def check_level(round_number: int, looks: int) -> float:
    """The probability of a false alarm that one check may spend at one look.

    FALSE_ALARM / (k (k + 1)) a round, shared by its looks and by the two random checks: at most FALSE_ALARM a study.
    """
    return FALSE_ALARM / (round_number * (round_number + 1)) / looks / 2.0


def failed_checks(
    embedding: ArmEmbedding,
    plan: Plan,
    pooled: Observations,
    fitted: estimators.Estimate,
    problem: Problem,
    noise_scales: FloatArray | None = None,  # of each arm that was pulled, (K,); None: the largest that is declared
) -> tuple[str, ...]:
    """What the checks found at one look, in words; empty where the embedding compresses nothing."""
    if not isinstance(fitted, estimators.LeastSquaresEstimate):
        return ()
    found = [*misfit(plan, pooled, fitted, problem, noise_scales)]
    if is_saturated(embedding, plan.dim):
        return tuple(found)
    whole, bound = embedding.at(embedding.max_dim), embedding.norm_bound
    if bound is not None and whole.structured:
        level = check_level(plan.round, plan.looks)
        sigma = problem.sigma if noise_scales is None else noise_scales
        found.append(estimators.norm_contradicted(whole, pooled, norm_bound=bound, sigma=sigma, level=level))
    found.append(_collapsed(embedding, plan, problem))
    return tuple(sentence for sentence in found if sentence)


def misfits(
    embedding: ArmEmbedding,
    embedded: Embedded,
    plan: Plan,
    seen: Observations,
    problem: Problem,
    *,
    bounds: FloatArray | None = None,  # on the variance of each arm that was pulled, (K,); None: scales are declared
    white: Whitened | None = None,
) -> tuple[str, ...]:
    """What one batch says against the embedding, by the fit of the arms that it pulled.

    Source: docs/certified-elimination.md, below line 23.
    """
    if not embedded.structured or seen.total == 0:
        return ()
    pulled = np.flatnonzero(seen.counts)  # what the others' fit would be is not asked
    each = np.ones(len(pulled)) if bounds is None else np.sqrt(bounds[pulled])
    few = Observations(seen.counts[pulled], seen.sums[pulled] / each)
    part = Embedding(embedded.features[pulled] / each[:, None], embedded.misspecification)
    basis = None if white is None else replace(white, basis=white.basis[pulled] / each[:, None])
    fitted = estimators.least_squares(part, few, white=basis)
    scales = None if bounds is None else np.sqrt(np.where(seen.counts > 0, bounds, 1.0))
    return failed_checks(embedding, plan, seen, replace(fitted, scores=each * fitted.scores), problem, scales)


def failed_checks_in_blocks(
    embedding: ArmEmbedding, plan: Plan, seen: BlockTotals, problem: Problem
) -> tuple[str, ...]:
    """The same where blocks share effects: what is compared is in one block."""
    embedded, whole, bound = embedding.at(plan.dim), embedding.at(embedding.max_dim), embedding.norm_bound
    if not embedded.structured or not whole.structured:
        return ()
    bounds = {"sigma": problem.sigma, "level": check_level(plan.round, plan.looks)}
    found = [estimators.lack_of_fit_in_blocks(embedded, seen, misspecification=plan.misspecification, **bounds)]
    if not is_saturated(embedding, plan.dim):
        found += (
            [] if bound is None else [estimators.norm_contradicted_in_blocks(whole, seen, norm_bound=bound, **bounds)]
        )
        found.append(_collapsed(embedding, plan, problem, level=1))
    return tuple(sentence for sentence in found if sentence)


def _collapsed(embedding: ArmEmbedding, plan: Plan, problem: Problem, *, level: int = 0) -> str:
    """`collapsed` of the first design; `level` dimensions are the same for all arms and tell none apart."""
    if plan.round != 1 or plan.design_value is None:
        return ""
    return estimators.collapsed(
        dim=plan.dim - level,
        rank=embedding.max_dim - level,
        misspecification=plan.misspecification,
        value=plan.design_value,
        num_distinct=embedding.num_distinct,
        reach=largest_gap_under_norm(embedding, enough=problem.epsilon),
        epsilon=problem.epsilon,
    )


def misfit(
    plan: Plan,
    pooled: Observations,
    fitted: estimators.Estimate,
    problem: Problem,
    noise_scales: FloatArray | None = None,
) -> tuple[str, ...]:
    """What the lack of fit alone says at one look: one sentence, or none; arguments as in `failed_checks`."""
    if not isinstance(fitted, estimators.LeastSquaresEstimate):
        return ()
    gamma, level = plan.misspecification, check_level(plan.round, plan.looks)
    sigma = problem.sigma if noise_scales is None else noise_scales
    found = estimators.lack_of_fit(fitted, pooled, misspecification=gamma, sigma=sigma, level=level)
    return (found,) if found else ()


def spread_of_repeats(problem: Problem, noise_mgf: estimators.Mgf, past: Observations, seen: Observations) -> str:
    """What the batch says against normal noise of unknown scale, in words; "" where it says nothing.

        SS_after - SS_before > V q,    q the 1 - FALSE_ALARM / (K n^3) quantile of chi-square with n - n_before degrees

    The left-hand side is s^2 times a chi-square variable for any two numbers of an arm's rewards, so that a false alarm
    has probability at most FALSE_ALARM, and that of a V that is too small.

    Source: docs/certified-elimination.md, line 23.
    """
    if known_scale(problem.noise) or noise_mgf.declared:
        return ""
    arms = np.flatnonzero((seen.counts > 0) & np.isfinite(noise_mgf.joint_bounds))
    if len(arms) == 0:
        return ""
    after = past.plus(seen)
    grown = (squared_deviations(after) - squared_deviations(past))[arms] - after.rounding[arms]
    number = after.counts[arms].astype(np.float64)
    limits = 2.0 * special.gammainccinv(0.5 * seen.counts[arms], FALSE_ALARM / (problem.num_arms * number**3))
    far = grown > noise_mgf.joint_bounds[arms] * limits
    if not far.any():
        return ""
    worst = int(arms[int(np.argmax(np.where(far, grown / (noise_mgf.joint_bounds[arms] * limits), 0.0)))])
    name = f"number {worst}" if problem.arms is None else quoted(problem.arms.ids[worst])
    who = name if far.sum() == 1 else f"{int(far.sum())} candidates, most of all of {name}"
    return (
        f"{SPREAD_ALARM}, given those before them, of {who}: some results are far outside, or a mean or a scale has "
        "changed"
    )


def no_room(dim: int, rivals: int) -> str:
    """Why more pulls would not help where misspecification leaves no room for so many rivals; "" for none."""
    if rivals == 0:
        return ""
    return (
        f"More of them may not help: what {dim} dimensions leave out can move a difference of two arms by as much as "
        f"must be told apart for {rivals} rivals. Raise epsilon, use a larger dimension, or a smaller valid norm bound."
    )


def with_failed_checks(known: tuple[str, ...], found: tuple[str, ...]) -> tuple[str, ...]:
    """The checks that failed so far and those that fail now, but for what says the same of other numbers or arms."""
    kinds = {_kind(alarm) for alarm in known}
    return (*known, *(alarm for alarm in found if _kind(alarm) not in kinds))


def _kind(alarm: str) -> str:
    return SPREAD_ALARM if alarm.startswith(SPREAD_ALARM) else _NUMBERS.sub("", alarm)


def largest_gap_under_norm(embedding: ArmEmbedding, *, enough: float = np.inf) -> float:
    """The largest difference of two arms' means that the declared norm allows, in reward units."""
    if embedding.norm_bound is None:
        return np.inf
    if embedding.num_arms == 1:
        return 0.0
    whole = embedding.at(embedding.max_dim)
    bias = 2.0 * whole.misspecification
    end, _ = _farthest_from(whole.features, 0)
    _, square = _farthest_from(whole.features, end)
    least = embedding.norm_bound * math.sqrt(square) + bias
    if least > enough:
        return least
    return embedding.norm_bound * float(np.sqrt(farthest_pairs(whole.features).squares[0])) + bias


def _farthest_from(vectors: FloatArray, arm: int) -> tuple[int, float]:
    """(the arm that is farthest from a given one, its squared distance)."""
    farthest, largest = arm, 0.0
    for top in range(0, len(vectors), ROWS):
        difference = vectors[top : top + ROWS] - vectors[arm]
        squares = np.sum(difference**2, axis=1)
        best = int(np.argmax(squares))
        if squares[best] > largest:
            farthest, largest = top + best, float(squares[best])
    return farthest, largest


def norm_bound_uninformative(embedding: ArmEmbedding, epsilon: float) -> bool:
    """Whether the declared norm allows no two arms to differ by more than 2 epsilon: too little to rest an answer on.

    A policy that compressed on such a declaration would answer from it, not from the rewards. So it compresses nothing:
    a declaration that holds costs pulls then, and one that is far too small costs no wrong answer.
    """
    return largest_gap_under_norm(embedding, enough=2.0 * epsilon) <= 2.0 * epsilon


def with_check_pulls(
    embedding: ArmEmbedding, dim: int, counts: IntArray, *, share: float, costs: FloatArray | None = None
) -> IntArray:
    """The pulls of a round, spread over arms with equal features (which costs nothing) and with the reserved ones."""
    counts = spread_over_equals(embedding, counts, costs)
    return counts + check_pulls(embedding, dim, counts, share, costs)


def spread_over_equals(embedding: ArmEmbedding, counts: IntArray, costs: FloatArray | None = None) -> IntArray:
    """The same pulls for every group of arms with equal features, shared evenly among its cheapest members.

    Least squares cannot tell the difference; the lack of fit can, when equal features hide different means.
    """
    if embedding.num_distinct == embedding.num_arms:
        return counts
    group = equal_rows(embedding.at(embedding.max_dim).features).group
    totals, members = np.bincount(group, weights=counts).astype(np.int64), np.arange(len(group))
    if costs is not None:
        least = np.full(len(totals), np.inf)
        np.minimum.at(least, group, costs)
        members = np.flatnonzero(costs <= least[group])
        group = group[members]
    sizes = np.bincount(group)
    order = np.argsort(group, kind="stable")
    place = np.empty(len(group), np.int64)  # of each member within its group
    place[order] = np.arange(len(group)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    shared = np.zeros_like(counts)
    shared[members] = totals[group] // sizes[group] + (place < totals[group] % sizes[group])
    return shared


def check_pulls(
    embedding: ArmEmbedding, dim: int, counts: IntArray, share: float, costs: FloatArray | None = None
) -> IntArray:
    """Single extra pulls, (K,), of arms spread over the set, so that a lack of fit can show: at most `share` of a
    round's pulls.

    A design may support so few arms that any rewards fit. The arms are the farthest-first traversal from the design's
    support, in the coordinates of the largest dimension; in 48 and more of some of the arms, evenly from the list,
    where distances to all would take longer than the rest of a round.

    Source: Gonzalez (1985) for the traversal. Cost: as `farthest_first`.
    """
    extra = np.zeros_like(counts)
    room = min(int(share * counts.sum()), tuning.MOST_CHECK_PULLS)
    if room == 0 or (is_saturated(embedding, dim) and embedding.num_distinct == embedding.num_arms):
        return extra
    pulled, features = counts > 0, embedding.at(embedding.max_dim).features
    if features.shape[1] < tuning.MANY_DIRECTIONS or len(features) <= LOOKED_AT:
        spread = farthest_first(features, np.flatnonzero(pulled), ~pulled, room)
    else:
        some = np.union1d(np.flatnonzero(pulled), np.arange(LOOKED_AT) * len(features) // LOOKED_AT)
        spread = some[farthest_first(features[some], np.flatnonzero(pulled[some]), ~pulled[some], room)]
    if costs is not None:
        left, kept = share * float(counts @ costs), []
        for arm in spread.tolist():
            if costs[arm] <= left:
                kept.append(arm)
                left -= float(costs[arm])
        spread = np.array(kept, np.int64)
    extra[spread] = 1  # copies of pulled arms come last
    return extra


def active_assumptions(embedding: ArmEmbedding, pulls: int, compressed: bool) -> tuple[str, ...]:
    """What is assumed of the rewards beyond their noise: next to nothing where every list was representable."""
    if pulls == 0 or compressed:
        return embedding.traits.assumptions
    if not embedding.traits.assumptions:
        return ()
    return (SATURATED if embedding.num_distinct == embedding.num_arms else EQUAL_FEATURES,)


def why_not_certified(embedding: ArmEmbedding, alarms: Sequence[str], compressed: bool) -> str:
    """`why_heuristic` of an answer that rests on an embedding.

    An estimated norm is no reason where nothing was compressed: every list of means was representable, whatever its
    norm.
    """
    heuristic = embedding.traits.heuristic
    return why_heuristic(alarms, "" if heuristic == ESTIMATED_NORM and not compressed else heuristic)


def why_heuristic(alarms: Sequence[str], heuristic: str) -> str:
    """Why an answer is not certified after the checks; "" if they found nothing and a theorem backs it."""
    noise = [alarm for alarm in alarms if alarm.startswith(SPREAD_ALARM)]
    reasons = [f"The data speak against normal noise: {alarm}." for alarm in noise]
    if noise:
        reasons.append(
            "Look at these measurements. If far results belong to the process, cut rewards to bounds and start anew "
            "(bounded:LOW:HIGH)."
        )
    others = [alarm for alarm in alarms if alarm not in noise]
    reasons += [f"The data speak against the embedding: {alarm}." for alarm in others]
    if others:
        reasons.append(
            "Start anew, with fresh measurements, with a larger norm bound or a policy that ignores the features "
            "(certified-independent)."
        )
    return " ".join([*reasons, heuristic] if heuristic else reasons)


# --- Repeats that are all equal, where they alone say how much measurements vary: such a study would go on for ever.

FEWEST = 3  # equal repeats of a candidate that are worth a word
ENDLESS = 30  # after so many we expect no other
SHOWN = 3  # names in a message


def equal_repeats(problem: Problem, seen: Observations, least: int = FEWEST) -> IntArray:
    """The arms with so many repeats or more that are all equal, to within rounding; none where a scale is declared."""
    if known_scale(problem.noise) or (seen.within is None and seen.squares is None):
        return np.empty(0, np.int64)
    return np.flatnonzero((seen.counts >= least) & (seen.deviations <= 2.0 * seen.rounding))


def endless(problem: Problem, seen: Observations, asked: BoolArray, *, features: bool) -> bool:
    """Whether no end is in sight: an arm that must be decided shows no scale, so that no bet on it is possible."""
    equal = equal_repeats(problem, seen, ENDLESS)
    if not features:
        return bool(asked[equal].any())
    return len(equal) > 0 and int(np.count_nonzero(seen.counts >= FEWEST)) == len(equal_repeats(problem, seen))


def all_equal(names: Sequence[str]) -> str:
    """What is said of them."""
    shown = ", ".join(quoted(name) for name in names[:SHOWN])
    more = f" and {len(names) - SHOWN:,} others" if len(names) > SHOWN else ""
    return (
        f"All repeats of {shown}{more} are equal, and equal repeats show no scale: with noise normal nothing can be "
        "proved of such a candidate. Start a study with bounded:LOW:HIGH, if rewards have a range, or "
        "subgaussian:SIGMA; or report single results with more digits."
    )
