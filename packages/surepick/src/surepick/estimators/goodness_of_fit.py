"""Is the embedding believable? Tests of its assumptions on the rewards that were seen anyway.

A declared bound that holds passes them but for a chosen probability; passing proves nothing, and grants nothing.
"""

import math
from dataclasses import replace

import numpy as np

from surepick.core.observations import BlockTotals, Observations
from surepick.core.plans import Embedding
from surepick.core.records import FloatArray, frozen
from surepick.estimators.least_squares import LeastSquaresEstimate, least_squares

MOST_PAIRED = 400
NEGLIGIBLE = 1e-9  # of epsilon


@np.errstate(over="ignore")  # a limit that overflows contradicts nothing
def norm_contradicted(
    embedded: Embedding, seen: Observations, *, norm_bound: float, sigma: float | FloatArray, level: float
) -> str:
    """Whether the rewards are larger, or differ more, than any function of the declared norm can.

        |sum_x w(x) h(x)| <= C ||psi'w|| + gamma sum_x |w(x)|

    for ||theta|| <= C and |eta| <= gamma, by Cauchy-Schwarz; used with w = the counts of all arms, of one arm, and with
    w = 1/n on one arm and -1/n on another. The observed left-hand sides stray from the true ones by more than

        sqrt(2 sum n s^2 log(6/a)),   sqrt(2 s(x)^2/n(x) log(6 p/a)),   sqrt(2 (s(x)^2/n(x) + s(z)^2/n(z)) log(3 p^2/a))

    with probability at most a/3 for each kind, over all p arms pulled and all their pairs (sub-Gaussian tails).

    Args:
        sigma: s, sub-Gaussian scale of a reward: one, or one an arm, shape (K,).

    Returns:
        What was found, in words; "" when nothing speaks against the bound.

    Source: ours. Cost: O(p^2 d), for at most MOST_PAIRED arms in the third kind.
    """
    pulled = np.flatnonzero(seen.counts)
    if len(pulled) == 0:
        return ""
    counts, sums = seen.counts[pulled].astype(np.float64), seen.sums[pulled]
    vectors, gamma = embedded.features[pulled], embedded.misspecification
    variances = np.broadcast_to(np.asarray(sigma, np.float64), seen.counts.shape)[pulled] ** 2
    limit = norm_bound * np.sqrt(np.sum((vectors.T @ counts) ** 2)) + gamma * counts.sum()
    limit += math.sqrt(2.0 * float(counts @ variances) * math.log(6.0 / level))
    if abs(math.fsum(sums)) > limit:
        return _too_small("the measurements add up to", math.fsum(sums), limit, norm_bound)
    each = norm_bound * np.sqrt(np.sum(vectors**2, axis=1)) + gamma
    each += np.sqrt(2.0 * variances / counts * math.log(6.0 * len(pulled) / level))
    means = sums / counts
    worst = int(np.argmax(np.abs(means) - each))
    if abs(means[worst]) > each[worst]:
        return _too_small("the measurements of one arm average", means[worst], each[worst], norm_bound)
    most = np.argsort(-counts, kind="stable")[:MOST_PAIRED]
    return _differences_contradict(
        vectors[most], means[most], variances[most] / counts[most], len(pulled), norm_bound, gamma, level
    )


def norm_contradicted_in_blocks(
    embedded: Embedding, seen: BlockTotals, *, norm_bound: float, sigma: float, level: float
) -> str:
    """The same of rewards whose blocks share effects: only averages within a block are compared, a/3 for all of them.

    Cost: O(p^2 d) for the p arms of a block, in blocks of MOST_PAIRED arms together: those with the most pulls.
    """
    sizes, pulls = np.bincount(seen.blocks), seen.per_block(seen.counts.astype(np.float64))
    counts, means, left = seen.counts.astype(np.float64), seen.centred_means, MOST_PAIRED
    for block in np.argsort(-pulls, kind="stable").tolist():
        if left <= 0:
            break
        left -= int(sizes[block])
        there = np.flatnonzero(seen.blocks == block)[:MOST_PAIRED]
        vectors = embedded.features[seen.arms[there]]
        found = _differences_contradict(
            vectors, means[there], sigma**2 / counts[there], len(means), norm_bound, embedded.misspecification, level
        )
        if found:
            return found
    return ""


def _differences_contradict(
    vectors: FloatArray,
    means: FloatArray,
    squared_errors: FloatArray,
    num_pulled: int,
    norm_bound: float,
    gamma: float,
    level: float,
) -> str:
    squares = np.sum(vectors**2, axis=1)
    apart = np.maximum(squares[:, None] + squares[None, :] - 2.0 * vectors @ vectors.T, 0.0)
    apart += 64.0 * np.finfo(np.float64).eps * (squares[:, None] + squares[None, :])
    both = squared_errors[:, None] + squared_errors[None, :]
    noise = np.sqrt(2.0 * both * math.log(3.0 * num_pulled**2 / level))
    limits = norm_bound * np.sqrt(apart) + 2.0 * gamma + noise
    differences = np.abs(means[:, None] - means[None, :])
    worst = np.unravel_index(int(np.argmax(differences - limits)), limits.shape)
    if differences[worst] <= limits[worst]:
        return ""
    return _too_small("the averages of two arms differ by", differences[worst], limits[worst], norm_bound)


def _too_small(what: str, found: float, limit: float, norm_bound: float) -> str:
    return (
        f"{what} {found:.4g}, and no reward of norm at most {norm_bound:g} could bring that beyond {limit:.4g}: "
        "norm_bound is too small"
    )


def lack_of_fit(
    fitted: LeastSquaresEstimate,
    seen: Observations,
    *,
    misspecification: float,
    sigma: float | FloatArray,  # sub-Gaussian scale of a reward: one, or one an arm, (K,)
    level: float,
    effects: int = 0,
) -> str:
    """Whether the means of the pulled arms lie farther from the fit than noise and misspecification allow.

        r_x = sqrt(n(x)) (mean(x) - fit(x)) / sigma(x),   nu = arms pulled - rank
        found when ||r|| > sqrt(nu + 2 sqrt(nu s) + 2 s) + gamma sqrt(sum n(x) / sigma(x)^2),   s = log(1/a)

    r is the projection of the scaled noise, whose coordinates are independent and 1-sub-Gaussian, and of the scaled
    eta, of length at most gamma sqrt(sum n / sigma^2), on a space of dimension nu; the tail of ||projected noise||^2 is
    that of Hsu, Kakade and Zhang, which needs no normal distribution.

    Source: Hsu, Kakade & Zhang (2012), "A tail inequality for quadratic forms of subgaussian random vectors".
    Cost: O(K).
    """
    pulled = np.flatnonzero(seen.counts)
    spare = len(pulled) - fitted.coordinates.shape[1] - effects
    if spare <= 0:
        return ""
    counts = seen.counts[pulled]
    fit = fitted.scores if len(fitted.scores) == len(pulled) else fitted.scores[pulled]
    scales = np.broadcast_to(np.asarray(sigma, np.float64), seen.counts.shape)[pulled]
    residuals = np.sqrt(counts) * (seen.means[pulled] - fit) / scales
    length, s = float(np.sqrt(np.sum(residuals**2))), math.log(1.0 / level)
    allowed = math.sqrt(spare + 2.0 * math.sqrt(spare * s) + 2.0 * s)
    allowed += misspecification * math.sqrt(float(np.sum(counts / scales**2)))
    if length <= allowed:
        return ""
    whose = f"{len(pulled)} arms{' in their blocks' if effects else ''}"
    return (
        f"the averages of {whose} lie {length:.3g} noise scales from what the embedding can fit, and at "
        f"most {allowed:.3g} could be chance: the embedding does not describe these rewards"
    )


def lack_of_fit_in_blocks(
    embedded: Embedding, seen: BlockTotals, *, misspecification: float, sigma: float, level: float
) -> str:
    """The same of the means of arms in blocks, after an effect was fitted to each block: nu = means - blocks - rank.

    Cost: O(m r^2) for m means.
    """
    if len(seen.arms) <= seen.number:
        return ""
    counts = seen.counts.astype(np.float64)
    rows = seen.centred(embedded.features[seen.arms], counts)
    within = Observations(seen.counts, counts * seen.centred_means)
    fitted = least_squares(Embedding(rows, misspecification), within)
    bound = {"misspecification": misspecification, "sigma": sigma, "level": level}
    return lack_of_fit(fitted, within, **bound, effects=seen.number)


def collapsed(
    *, dim: int, rank: int, misspecification: float, value: float, num_distinct: int, reach: float, epsilon: float
) -> str:
    """Whether an embedding that leaves something out has left next to nothing to tell the arms apart.

    Source: ours: a norm bound far too small makes every direction look negligible, and a handful of pulls would
    "certify" any arm.
    """
    if num_distinct < 2 or (dim >= rank and misspecification <= NEGLIGIBLE * epsilon):
        return ""
    if reach <= epsilon:
        return (
            f"the declared norm alone says that no two arms differ by more than {reach:.3g}, less than epsilon; that "
            "is what a norm bound (or a kernel's gamma) that is far too small looks like"
        )
    if num_distinct <= 2 or dim >= rank or (dim > 1 and value >= 1.0):
        return ""
    return (
        f"{num_distinct} distinct arms were compressed to {dim} of {rank} dimensions with design value {value:.3g}: "
        "such a collapse is what a norm bound that is far too small looks like"
    )


# --- Repeats against a declared scale: do they lie farther apart than it allows, and does one result stand out?
#
# All of it rests on one inequality. If X is s-sub-Gaussian around m, and 0 <= a < 1,
#
#     E exp(a (X - m)^2 / (2 s^2)) <= (1 - a)^(-1/2)                                    (S)
#
# since the left-hand side is E exp(sqrt(a) g (X - m) / s) for an independent standard normal g, at most
# E exp(a g^2 / 2). Nobody knows m; but the smallest value over all m bounds the value at the true one.

SHARES = (0.9, 0.5, 0.2, 0.05)  # a; an equal part of the evidence for each
COSTS, HALVES = np.log1p(-np.array(SHARES)), 0.5 * np.array(SHARES)
PRIOR = 0.1  # r: results that the guess of an unseen mean counts for
SURPRISE = 0.9  # a of the result that is looked at


@frozen
class RepeatSpread:
    """What repeats say against declared scales."""

    evidence: float  # log E of all candidates together
    worst: int  # the candidate whose repeats speak most against its scale
    within: FloatArray  # SS of each, (K,), in squared reward units


def with_least_squares(seen: Observations) -> Observations:
    """The same, where sums of squares are unknown with the least that they can be: the results of a row are equal."""
    if seen.squares is not None:
        return seen
    return replace(seen, squares=seen.means * seen.sums, within=np.zeros(len(seen.counts)))


@np.errstate(over="ignore", invalid="ignore")
def spread_of(seen: Observations, scales: FloatArray) -> RepeatSpread:
    """How much the repeats of candidates speak against their declared scales.

        E_x(a) = (1 - a)^(n/2) exp(a SS / (2 s^2)),    SS = sum (r - rbar)^2
        E = mean over a in SHARES of ( mean over x of E_x(a) + product over x of E_x(a) ) / 2

    With the true mean in the place of rbar each factor is a supermartingale that starts at 1, by (S), whatever decides
    which candidate is measured next, and SS is no larger than the sum around it. So for s-sub-Gaussian rewards
    P(E >= 1/q at any time) <= q (Ville).

    Source: docs/certified-elimination.md, line 35; ours.
    """
    known = with_least_squares(seen)
    counts = known.counts.astype(np.float64)
    within = np.maximum(known.deviations - known.rounding, 0.0)
    parts, ratio = [], within / scales**2
    for share in SHARES:
        each = 0.5 * counts * math.log1p(-share) + 0.5 * share * ratio
        parts += [_log_mean(each), float(each.sum())]
    worst = int(np.argmax(np.where(counts > 1, ratio - counts, -np.inf)))
    return RepeatSpread(_log_mean(np.array(parts)), worst, within)


@np.errstate(over="ignore")
def most_of_spread(seen: Observations, scales: FloatArray) -> FloatArray:
    """At least the evidence of `spread_of`, in a fraction of its time: the largest of what it is a mean of.

    Of many studies, totals of shape (n, K), that of each, shape (n,).
    """
    ratios, counts = seen.deviations / scales**2, 0.5 * seen.counts
    each = np.multiply.outer(COSTS, counts) + np.multiply.outer(HALVES, ratios)
    most = np.maximum(np.maximum.reduce(each, axis=-1), np.add.reduce(each, axis=-1))
    return np.asarray(np.maximum.reduce(most, axis=0))


def _log_mean(logs: FloatArray) -> float:
    """log of the mean of exp(logs)."""
    top = float(logs.max())
    return top if not math.isfinite(top) else top + math.log(float(np.mean(np.exp(logs - top))))


def surprises(pulls: FloatArray, others: FloatArray, distances: FloatArray) -> FloatArray:
    """log E of one result of a candidate against the others of it, by row: how much it stands out.

        E = sqrt(r / (n + r)) sqrt(1 - a) exp(D^2 / (2 s^2 (1/(a p) + 1/A))),    A = n^2 / (n + r),    r = PRIOR

    D, `distances` in scales s, is that of the result (the mean of p pulls) from the mean of the n >= 1 others; a =
    SURPRISE. For the true mean m of the candidate, M_n = sqrt(r / (n + r)) exp(A (m - mean)^2 / (2 s^2)) is a
    supermartingale in n that starts at 1 (a normal mixture), and the new result adds the factor sqrt(1 - a) exp(a p
    (x - m)^2 / (2 s^2)) of (S): their product has mean at most 1, and the smallest of it over m is E. Over K candidates
    the sum of the M_n has mean at most K. So P(E >= K / q) <= q for each result, whatever decided which candidate was
    measured and how often.

    Source: docs/certified-elimination.md, line 36; ours.
    """
    number = np.maximum(others, 1.0)
    spread = 1.0 / (SURPRISE * pulls) + (number + PRIOR) / number**2
    cost = 0.5 * np.log(PRIOR / (number + PRIOR)) + 0.5 * math.log1p(-SURPRISE)
    return np.asarray(cost + 0.5 * distances**2 / spread)
