"""What the past suggests of the means: point estimates, and standard errors of their differences. For steering only.

Where was measured depends on what was seen, so none of this is a bound: no certificate rests on it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from surepick.core.observations import Observations
from surepick.core.plans import Embedded
from surepick.core.random_streams import stream
from surepick.core.records import BoolArray, FloatArray, IntArray, record
from surepick.core.special_functions import log_ndtr, log_tail
from surepick.errors import ContractError
from surepick.estimators.least_squares import Estimate, LeastSquaresEstimate, RegularLeastSquares, estimate
from surepick.estimators.noise_mgf import ROUNDED_UP
from surepick.linalg.factorisations import Whitened, thin_svd
from surepick.linalg.rows import each_row_block

EVERYBODY = slice(None)
NUMBER = -1  # as the centre of a comparison: a number that is known
SAME_CHANCE = 1e-12  # chances nearer than this differ by rounding alone
FEW = 16  # arms of which there are less than one in so many have their errors formed alone
HEURISTIC_LEAST_WHEN_SWITCHING = 0.1  # of the margin: what a candidate that trails is given against a better one
HEURISTIC_DECLARED = 10  # pulls that the declared noise scale is worth beside what repeats show
HEURISTIC_SPREADS = 25  # spreads of the means that are tried
HEURISTIC_SHRUNK = 48  # directions from which on guesses are drawn towards 0: least squares follow the noise there
MOST_ERRORS = 3  # centres whose errors are kept
MOST_AT_ONCE = 65_536  # entries that are formed of a grid: they stay in the processor's cache

# Leads as guesses have them, lowered or raised by part of their standard errors.
HEURISTIC_CAUTION = 0.5  # by which leads are lowered where pulls are planned
HEURISTIC_DOUBT = 1.0  # within which a lead on the wrong side is taken for chance
HEURISTIC_LEAST_MARGIN = 0.25  # of a comparison's margin, mostly epsilon: what it is guessed to be at least


def _unknown(_: float) -> FloatArray:
    raise ContractError("nobody asks for the chances of these guesses.")


@record
class Posterior:
    """Guesses of the means, and of their errors."""

    scores: FloatArray  # f, (K,), in reward units; up to a constant where no number is compared with
    errors: Callable[[int], FloatArray]  # c or NUMBER -> standard errors of the difference of each arm to it, (K,)
    number: float = 0.0  # what arms are compared with where the centre is NUMBER, in the units of the scores
    # (c, arms j) -> the same of some arms, of the shape of these, where that is cheaper than of all
    few_errors: Callable[[int, IntArray], FloatArray] | None = None
    # epsilon -> the chance that each arm is within epsilon of the best one, (K,)
    chances: Callable[[float], FloatArray] = _unknown

    def leads(self, centre: int, *, high: bool = False, arms: IntArray | slice = EVERYBODY) -> FloatArray:
        """By how much each arm is below the centre, or above it where `high`, as guessed; shape of `arms`."""
        found: FloatArray = (self.number if centre == NUMBER else self.scores[centre]) - self.scores[arms]
        return -found if high else found

    def margins(
        self,
        centre: int,
        margin: float,
        arms: IntArray | None = None,
        *,
        high: bool = False,
        caution: float = 0.0,
        doubt: float = HEURISTIC_DOUBT,
        least: float = HEURISTIC_LEAST_MARGIN,
    ) -> FloatArray:
        """By how much the truth contradicts "j is better than c by more than the margin", as guessed; shape of `arms`.

            margin + max(0, f_c - f_j - caution se_j)                            where the centre leads
            max(margin + min(0, f_c - f_j + doubt se_j), least |margin|)         where it trails

        Where it trails, only as far as that is no chance: bets that do not believe in a deficit lose again and again on
        a rival that is better, but not by the margin. Where `high`, the same of "j is worse than c".
        """
        lead = self.leads(centre, high=high, arms=EVERYBODY if arms is None else arms)
        asked = np.arange(len(lead)) if arms is None else arms
        found = margin + np.maximum(lead, 0.0)
        if caution > 0.0:  # an error may be infinite
            found = margin + np.maximum(lead - caution * self.errors_of(centre, asked), 0.0)
        behind = np.flatnonzero(~(lead >= 0.0))
        short = lead[behind]
        if doubt > 0.0 and len(behind):
            short = np.minimum(short + doubt * self.errors_of(centre, asked[behind]), 0.0)
        found[behind] = margin + short
        return np.asarray(np.maximum(found, least * abs(margin)))

    def cautious(self, centre: int, margin: float, arms: IntArray, *, high: bool = False) -> FloatArray:
        """`margins` for planning: leads are lowered by part of their errors, and deficits are believed."""
        return self.margins(centre, margin, arms, high=high, caution=HEURISTIC_CAUTION, doubt=0.0)

    def errors_of(self, centre: int, arms: IntArray) -> FloatArray:
        """Standard errors of the differences of some arms to the centre, of the shape of `arms`."""
        if self.few_errors is not None and FEW * len(arms) < len(self.scores):
            return self.few_errors(centre, arms)
        return self.errors(centre)[arms]

    @property
    def looks(self) -> tuple[FloatArray, FloatArray]:
        """(the guesses, the standard errors of their distances to the largest), each of shape (K,)."""
        return self.scores, self.errors(int(np.argmax(self.scores)))

    def likeliest(self, epsilon: float, away: BoolArray | None = None) -> int:
        """The arm, none that is away, likeliest to be within epsilon of the best; of equals the one that looks best."""
        chances = self.chances(epsilon) if away is None else np.where(away, -1.0, self.chances(epsilon))
        return int(max(np.flatnonzero(chances >= chances.max() - SAME_CHANCE), key=lambda arm: self.scores[arm]))

    def best_of(self, away: BoolArray) -> int:
        """The arm that looks best of those that are not away, shape (K,)."""
        return int(np.argmax(np.where(away, -np.inf, self.scores)))


def efforts(evidence: FloatArray, threshold: float) -> FloatArray:
    """sqrt(2 (need + min(need, 1)/2)), need = what the evidence lacks to the threshold: by how many standard errors the
    margin must exceed 0 for a batch to reject a rival; of the shape of `evidence`."""
    need = np.maximum(threshold - evidence, 1e-3)
    effort: FloatArray = np.sqrt(2.0 * (need + 0.5 * np.minimum(need, 1.0)))
    return effort


@record
class PooledFit:
    """One fit of everything told."""

    scores: FloatArray  # f, guesses of the mean rewards up to a constant, (K,)
    fitted: Estimate  # the pooled estimate behind them
    noise_scale: float  # the largest of the arms, in reward units

    def posterior(self, lengths: FloatArray | None = None) -> Posterior:
        """What it suggests; `lengths` of the arms in whitened coordinates, where it forms few of its own."""
        everybody = np.arange(len(self.scores))

        def formed(centre: int, arms: IntArray) -> FloatArray:
            return self.noise_scale * self.fitted.distances(arms, np.array([centre]))[:, 0]

        @lru_cache(maxsize=MOST_ERRORS)
        def errors(centre: int) -> FloatArray:
            return _read_only(formed(centre, everybody))

        @lru_cache(maxsize=MOST_ERRORS)
        def errors_of_bytes(centre: int, arms: bytes) -> FloatArray:
            return _read_only(formed(centre, np.frombuffer(arms, np.int64)))

        def few_errors(centre: int, arms: IntArray) -> FloatArray:
            return errors_of_bytes(centre, np.asarray(arms, np.int64).tobytes())

        def chances(epsilon: float) -> FloatArray:
            fitted = self.fitted
            if isinstance(fitted, RegularLeastSquares) and lengths is not None:
                return chances_of_fit(fitted, lengths, epsilon, self.noise_scale)
            if not isinstance(fitted, LeastSquaresEstimate):
                raise ContractError("arms without structure have no vectors.")
            return chances_of_vectors(self.scores, fitted.coordinates, epsilon, noise_scale=self.noise_scale)

        return Posterior(self.scores, errors, 0.0, few_errors, chances)


def pooled_fit(
    embedded: Embedded, pooled: Observations, noise_scales: FloatArray, *, white: Whitened | None = None
) -> PooledFit:
    """The fit of everything told; an arm without structure and pulls is as good as the best."""
    fitted = estimate(embedded, pooled, white=white)
    scores = fitted.scores
    if not embedded.structured and pooled.total > 0:
        scores = np.where(pooled.counts > 0, scores, scores[pooled.counts > 0].max())
    return PooledFit(scores, fitted, float(noise_scales.max()))


def follows_noise(dim: int) -> bool:
    """Whether least squares in so many directions follow the noise, so that guesses are drawn towards 0."""
    return dim >= HEURISTIC_SHRUNK


def posterior_of_means(
    seen: Observations, noise_scales: FloatArray, epsilon: float, *, number: float = 0.0
) -> Posterior:
    """The arms' own means, drawn towards their centre as far as their spread says that they are chance.

        h_j ~ N(mu, tau^2):   f_j = mu + (mean_j - mu) tau^2 / (tau^2 + s_j^2 / n_j)

    tau is the likeliest of a grid, at least epsilon. Without this the luckiest of many arms with a pull each leads, and
    an unlucky best arm seems settled. An arm of which nothing is known has the centre and the error tau.

    Source: empirical Bayes (Robbins 1956); the likelihood of James and Stein's model with unequal variances.
    """
    known = seen.counts > 0
    means, variances = seen.means[known], noise_scales[known] ** 2 / seen.counts[known]
    centre, spread = (float(found[0]) for found in common_centres(means[None], variances[None], epsilon))
    share = spread / (spread + variances)
    scores, left = np.full(len(known), centre), np.full(len(known), spread)
    scores[known] = centre + (means - centre) * share
    left[known] = variances * share

    @lru_cache(maxsize=MOST_ERRORS)
    def errors(compared: int) -> FloatArray:
        return _read_only(np.sqrt(left if compared == NUMBER else left + left[compared]))

    return Posterior(scores, errors, number, chances=lambda allowed: chances_of_means(scores, np.sqrt(left), allowed))


def measured_share(seen: Observations, declared: FloatArray) -> FloatArray:
    """The noise scale that repeats of an arm show, as a share of the declared one, s; at most 1. Of totals of many
    studies, (n, K), that of each, (n,).

        share^2 = (D + sum_x sum_i (r_xi - mean_x)^2 / s_x^2) / (D + sum_x (n_x - 1))

    Source: the pooled variance within groups; D = HEURISTIC_DECLARED pulls speak for what was declared.
    """
    repeated = seen.counts > 1
    if seen.squares is None or not repeated.any():
        return np.ones(seen.counts.shape[:-1])
    within = np.where(repeated, seen.deviations / declared**2, 0.0).sum(axis=-1)
    freedom = np.where(repeated, seen.counts - 1, 0).sum(axis=-1)
    return np.asarray(np.minimum(1.0, np.sqrt((HEURISTIC_DECLARED + within) / (HEURISTIC_DECLARED + freedom))))


def _read_only(array: FloatArray) -> FloatArray:
    array.flags.writeable = False
    return array


def common_centres(means: FloatArray, variances: FloatArray, epsilon: float) -> tuple[FloatArray, FloatArray]:
    """(mu, tau^2) of `posterior_of_means`, the likeliest in each of n rows of means and of their variances, (n, m)."""
    widest = np.array([max(apart**2, epsilon**2) for apart in np.ptp(means, axis=1).tolist()])
    lowest = np.maximum(epsilon**2, 1e-6 * widest)
    spreads = 10.0 ** even_steps(np.log10(lowest), np.log10(widest), HEURISTIC_SPREADS)
    spreads[:, 0], spreads[:, -1] = lowest, widest
    step = max(MOST_AT_ONCE // means.size, 1)
    parts = (spreads[:, first : first + step] for first in range(0, HEURISTIC_SPREADS, step))
    found = [_likelihoods(means, variances, part) for part in parts]
    likelihoods, centres = (np.concatenate(columns, axis=1) for columns in zip(*found, strict=True))
    rows, best = np.arange(len(means)), np.argmax(likelihoods, axis=1)  # the first of equals
    return centres[rows, best], spreads[rows, best]


def even_steps(low: FloatArray, high: FloatArray, number: int) -> FloatArray:
    """np.linspace(low, high, number, axis=1) of n rows, bit by bit, in a third of the time where there are few."""
    found: FloatArray = np.arange(float(number)) * ((high - low) / (number - 1))[:, None] + low[:, None]
    found[:, -1] = high
    return found


def _likelihoods(means: FloatArray, variances: FloatArray, spreads: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(log likelihood, likeliest centre) of each of some spreads of each row, (n, s)."""
    weights = 1.0 / (spreads[:, :, None] + variances[:, None])
    centres = np.vecdot(weights, means[:, None]) / weights.sum(axis=2)
    apart = np.vecdot(weights, (means[:, None] - centres[:, :, None]) ** 2)
    return np.asarray(0.5 * (np.log(weights).sum(axis=2) - apart)), centres


# --- The chance that an arm is within epsilon of the best one, by what the past suggests. For what is shown only.

HEURISTIC_SHORT_LIST = 200  # arms whose chance is looked at; the others have none
HEURISTIC_DRAWS = 400  # of the parameter
HEURISTIC_PLACES = (-2.0, -1.0, 0.0, 1.0, 2.0)  # errors at which the distribution of the best mean is worked out ...
HEURISTIC_PLACED = 40  # ... of so many arms
MANY = 16_384  # arms of which only those are looked at that can be on the short list
FURTHER_AT_ONCE = 500  # arms beyond the short list
_SETTLED = -60.0  # log of a chance that is nothing beside rounding
_CERTAIN = 9.0  # errors above an arm, where log Phi is nothing beside rounding
HEURISTIC_RIVALS = 2000  # arms that are looked at one by one; of the others a sample of that size


def chances_of_means(scores: FloatArray, errors: FloatArray, epsilon: float) -> FloatArray:
    """P(h_c >= max_j h_j - epsilon) for independent h_j ~ N(f_j, s_j^2), f the scores and s their errors, (K,)."""
    return np.asarray(chances_in_rows(scores[None], errors[None], epsilon)[0])


def chances_in_rows(scores: FloatArray, errors: FloatArray, epsilon: float) -> FloatArray:
    """The same of many studies, all of shape (n, K).

        E prod_{j != c} Phi((h_c + epsilon - f_j) / s_j)            over h_c

    The product is worked out at places where a factor rises or an arm may lie; between two of them it counts with its
    mean there, times the chance that h_c lies between. A place and the one epsilon below it share what is alike.

    Cost: O(K log K), and at most 4,000 arms at 400 places: none at a place that is settled, or far above an arm.
    """
    order = np.argsort(-(scores + 2.0 * errors), axis=1, kind="stable")
    columns, times = _sampled(scores.shape[1])
    rivals, short = order[:, columns], order[:, :HEURISTIC_SHORT_LIST]
    centres, widths = (np.take_along_axis(one, rivals, 1) for one in (scores, errors))
    beside, few = centres[:, :HEURISTIC_PLACED], short.shape[1]
    places = beside[:, :, None] + np.array(HEURISTIC_PLACES) * widths[:, :HEURISTIC_PLACED, None]
    places = places.reshape(len(scores), -1)
    at, above, beneath = (
        (moved[:, :, None] - centres[:, None, :few]) / widths[:, None, :few]
        for moved in (places, places + epsilon, places - epsilon)
    )
    (here, log_here), (_, log_above), (below, _) = _phis(at, above, beneath)
    others = []
    for logs, moved in ((log_above, places + epsilon), (log_here, places)):
        total = logs @ times[:few]
        if len(times) > few:
            least = _SETTLED + logs.min(axis=2)
            _add_further(total, least, moved, centres[:, few:], widths[:, few:], times[few:])
        others.append(total[:, :, None] - logs)
    places = places[:, :, None]
    reached = np.concatenate([here, below], axis=1)
    product = np.exp(np.minimum(np.concatenate(others, axis=1), 0.0))
    rising = np.argsort(np.concatenate([places, places - epsilon], axis=1), axis=1)
    reached, product = (np.take_along_axis(one, rising, 1) for one in (reached, product))
    between = np.sum((reached[:, 1:] - reached[:, :-1]) * 0.5 * (product[:, 1:] + product[:, :-1]), axis=1)
    beyond = reached[:, 0] * product[:, 0] + (1.0 - reached[:, -1]) * product[:, -1]
    chances = np.zeros_like(scores)
    np.put_along_axis(chances, short, between + beyond, 1)
    return chances


def _add_further(
    total: FloatArray, least: FloatArray, places: FloatArray, centres: FloatArray, widths: FloatArray, times: FloatArray
) -> None:
    """Add t_j log Phi((place - f_j) / s_j) of more arms, (n, m), to the totals at places, (n, p), that are above
    `least`: below it no chance is left. Each place by itself, so that others change no bit of it."""
    for first in range(0, len(times), FURTHER_AT_ONCE):
        study, place = np.nonzero(total > least)
        some = slice(first, first + FURTHER_AT_ONCE)
        x = (places[study, place, None] - centres[study, some]) / widths[study, some]
        near = np.flatnonzero(x.min(axis=1) < _CERTAIN)
        total[study[near], place[near]] += np.vecdot(log_ndtr(x[near]), times[some])


def _phis(*arrays: FloatArray) -> list[tuple[FloatArray, FloatArray]]:
    """(Phi(x), log Phi(x)) of each array of n rows, entry by entry: of one study, with few entries, all in one step."""
    if len(arrays[0]) > 1:
        return [_phi(one) for one in arrays]
    both = _phi(np.concatenate([one.ravel() for one in arrays]))
    ends = np.cumsum([0, *(one.size for one in arrays)]).tolist()
    parts = zip(arrays, ends[:-1], ends[1:], strict=True)
    return [(both[0][at:to].reshape(one.shape), both[1][at:to].reshape(one.shape)) for one, at, to in parts]


def _phi(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    tail = log_tail(x)
    beneath, right = np.exp(tail), x > 0.0
    return np.where(right, 1.0 - beneath, beneath), np.where(right, np.log1p(-beneath), tail)


def _sampled(num_arms: int) -> tuple[IntArray, FloatArray]:
    """(the first arms and some of the others, for how many arms each stands)."""
    first, others = np.arange(min(num_arms, HEURISTIC_RIVALS)), np.arange(HEURISTIC_RIVALS, num_arms)
    some = others[:: max(1, -(-len(others) // HEURISTIC_RIVALS))]
    stands = len(others) / max(len(some), 1)
    return np.concatenate([first, some]), np.concatenate([np.ones(len(first)), np.full(len(some), stands)])


def chances_of_vectors(
    scores: FloatArray, coordinates: FloatArray, epsilon: float, *, noise_scale: float = 1.0
) -> FloatArray:
    """P(h_c >= max_j h_j - epsilon) for h = f + s U z, z ~ N(0, I), by draws that are always the same; U: (K, r).

    Cost: O(K r), and a product of 200 x r and r x 400.
    """
    everybody = np.arange(len(scores))
    return _chances_among(everybody, scores, coordinates.__getitem__, epsilon, noise_scale)


def chances_of_fit(fitted: RegularLeastSquares, lengths: FloatArray, epsilon: float, noise_scale: float) -> FloatArray:
    """The same for a fit whose coordinates are formed of some arms only; `lengths` are ||z||, shape (K,).

    ||u_i - u_c|| is at most g (||z_i|| + ||z_c||), g the largest singular value of `to_unit`: that leaves few arms that
    can be on the short list.
    """
    scores, leader = fitted.scores, int(np.argmax(fitted.scores))
    if len(scores) <= MANY:
        everybody = fitted.coordinates_of(np.arange(len(scores)))
        return chances_of_vectors(scores, everybody, epsilon, noise_scale=noise_scale)
    centre = fitted.coordinates_of(np.array([leader]))[0]
    best = _smallest(-scores, HEURISTIC_SHORT_LIST)
    least = float(_promise(scores[best], fitted.coordinates_of(best), centre, noise_scale).max())
    reach = 2.0 * noise_scale * float(thin_svd(fitted.to_unit)[1][0]) * ROUNDED_UP
    among = np.flatnonzero(scores + reach * (lengths + lengths[leader]) >= -least - (ROUNDED_UP - 1.0) * abs(least))
    return _chances_among(among, scores, fitted.coordinates_of, epsilon, noise_scale)


def _chances_among(
    among: IntArray, scores: FloatArray, of: Callable[[IntArray], FloatArray], epsilon: float, noise_scale: float
) -> FloatArray:
    """The same where only some arms can be on the short list; `of` gives their coordinates."""
    leader, promise, chances = of(np.array([np.argmax(scores)]))[0], np.empty(len(among)), np.zeros(len(scores))

    def promised(rows: slice) -> None:
        arms = among[rows]
        promise[rows] = _promise(scores[arms], of(arms), leader, noise_scale)

    each_row_block(promised, len(among))
    short = among[_smallest(promise, HEURISTIC_SHORT_LIST)]
    chances[short] = _drawn(scores[short], of(short), epsilon, noise_scale)
    return chances


def _promise(scores: FloatArray, coordinates: FloatArray, leader: FloatArray, noise_scale: float) -> FloatArray:
    """-(f + 2 s ||u - u_c||) of some arms, shape (n,), for u_c of shape (r,): the less, the more they promise."""
    apart = noise_scale * coordinates
    apart -= noise_scale * leader
    apart **= 2
    return np.asarray(-(scores + 2.0 * np.sqrt(np.sum(apart, axis=1))))


def _drawn(scores: FloatArray, coordinates: FloatArray, epsilon: float, noise_scale: float) -> FloatArray:
    """How often each of some arms, shape (n,), is within epsilon of the best of them."""
    drawn = scores[:, None] + (noise_scale * coordinates) @ _draws(coordinates.shape[1])
    return np.asarray(np.mean(drawn >= drawn.max(axis=0) - epsilon, axis=1))


@lru_cache(maxsize=2)
def _draws(rank: int) -> FloatArray:
    """Of a standard normal vector, (r, HEURISTIC_DRAWS)."""
    return _read_only(stream(0, "chances", rank).standard_normal((rank, HEURISTIC_DRAWS)))


def _smallest(values: FloatArray, number: int) -> IntArray:
    """Where the smallest values are, ascending, equal ones in their order; without a sort of all."""
    if len(values) > number:
        among = np.flatnonzero(values <= np.partition(values, number - 1)[number - 1])
    else:
        among = np.arange(len(values))
    return among[np.argsort(values[among], kind="stable")][:number]
