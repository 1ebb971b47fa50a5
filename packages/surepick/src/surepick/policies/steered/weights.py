"""What processes bet where the means are nearly in a class: Gaussian-process weights with an independent part.

For the flows F of a rival's process, a = 1{c} - 1{j}, a batch that changes F by v, and D = T a - F - v,

    U <= epsilon   if   log(1/delta) - L + C |D|_K + nu |D|_1 <= T epsilon,       C |D| <= C^2 |D|^2 / (2 rho) + rho / 2

so that the v of least  sum s^2 v^2 / (2 n) + (C^2 / (2 rho)) D' (K + (nu/C)^2 I) D  is a ridge. Of a kernel Z has some
directions, and what they leave out counts as nu of each arm. With K = Z Z', p_x = 1 / (1 + n_x nu^2 / (rho s_x^2)) and
S = (rho/C^2) I + sum_x p_x n_x z_x z_x' / s_x^2 it is

    w = v / n = p (Z S^-1 Z'(p D) + (nu^2/rho) D) / s^2          with D = T a - F

Nothing here enters a proof: weights are fixed before their rewards, and readings say what they are worth.
Source: ours, after Donoho (1994) for minimax linear estimates.
"""

from __future__ import annotations

from dataclasses import field, replace

import numpy as np

from surepick.core.observations import Observations
from surepick.core.records import FloatArray, IntArray, frozen, record
from surepick.linalg.factorisations import cholesky, solve_lower, thin_svd

HEURISTIC_BIAS = 0.4  # nats that bias may cost a rival
HEURISTIC_LEAD_CAUTION = 1.0  # standard deviations of a lead by which it is guessed too small
HEURISTIC_NEW_START = 0.5  # nats that a new start must be predicted to bring
HEURISTIC_LEAST_LEAD = 0.2  # of epsilon
HEURISTIC_DESIGN_STEPS = 24  # of the design
HEURISTIC_WHOLE_STEPS, HEURISTIC_URGENT = 3, 80  # at all rivals every so many steps; so many rivals in the others
HEURISTIC_AVERAGED = 2 / 3  # of them go by before the mean of the others is formed
HEURISTIC_EXPONENT = 0.7
HEURISTIC_TEMPERATURES = (4.0, 0.3)  # nats, in the first and in the last step
LEAST_SHARE = 1e-3  # of the pulls, on all arms alike: no arm is lost that another rival needs
EXTREMES = (0.05, 20.0)  # of the factors of a step
BISECTIONS, MOST_PULLS = 12, 1e9


@record
class Steered:
    """The class that is steered for, and what is known so far of the open rivals of a candidate."""

    coordinates: FloatArray  # Z, (K, r)
    left_out: FloatArray  # squared lengths of what Z leaves out of each arm, as if no two arms shared it, (K,)
    norm: float  # C
    off: float  # nu, in reward units
    scales: FloatArray  # s, (K,)
    epsilon: float
    candidate: int  # c
    rivals: IntArray  # (m,)
    flows: FloatArray  # F of each rival, (m, K)
    lack: FloatArray  # log(1/delta) - L of each rival, (m,)
    lack_anew: FloatArray  # the same where its process starts anew, without flows, (m,)
    means: FloatArray  # guesses, (K,)
    margins: FloatArray  # cautious guesses of epsilon + h_c - h_j, (m,)
    anew: IntArray = field(default_factory=lambda: np.empty(0, np.int64))  # arms whose processes do start anew

    def of(self, rows: IntArray) -> Steered:
        """Some of the rivals."""
        names = ("rivals", "flows", "lack", "lack_anew", "margins")
        return replace(self, **{name: getattr(self, name)[rows] for name in names})

    def renewed(self, pulls: FloatArray) -> Steered:
        """With new starts where these pulls are predicted to bring more evidence so."""
        fresh = replace(self, flows=np.zeros_like(self.flows), lack=self.lack_anew)
        better = fresh.planned(pulls)[1] > self.planned(pulls)[1] + HEURISTIC_NEW_START
        if not better.any():
            return self
        flows, lack = np.where(better[:, None], 0.0, self.flows), np.where(better, self.lack_anew, self.lack)
        return replace(self, flows=flows, lack=lack, anew=self.rivals[better])

    def planned(self, pulls: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(w, the evidence beyond what is needed that each rival's process is predicted to have after these pulls).

        Args:
            pulls: whole or not, shape (K,).

        Returns:
            Of shapes (m, K), also where there are no pulls, and (m,), in nats.
        """
        z, rows, squares = self.coordinates, np.arange(len(self.rivals)), self.scales**2
        candidate, rivals = self.candidate, self.rivals
        apart = (self.off**2 + self.norm**2 * self.left_out) / HEURISTIC_BIAS  # nu^2 / rho
        share = 1.0 / (1.0 + pulls * apart / squares)
        inner = (z * (share * pulls / squares)[:, None]).T @ z
        inner[np.diag_indices_from(inner)] += HEURISTIC_BIAS / self.norm**2
        factor = cholesky(inner)
        while factor is None:  # rounding took what kept it positive
            inner[np.diag_indices_from(inner)] += 1e-12 * float(np.trace(inner))
            factor = cholesky(inner)
        towards = share[candidate] * z[candidate] - share[rivals, None] * z[rivals]
        held = (self.flows * share) @ z
        ahead = solve_lower(factor, towards.T).T  # (m, r)
        behind = solve_lower(factor, held.T).T
        alone = apart * share
        length = np.sum(ahead**2, axis=1) + alone[candidate] + alone[rivals]
        own = alone[candidate] * self.flows[:, candidate] - alone[rivals] * self.flows[rows, rivals]
        across = np.sum(ahead * behind, axis=1) + own
        times = np.maximum((self.margins + across) / np.maximum(length, 1e-300), 0.0)  # T
        direction = solve_lower(factor, (times[:, None] * ahead - behind).T, transposed=True).T
        weights = direction @ z.T
        if apart.any():
            missing = -apart * self.flows
            missing[:, candidate] += apart[candidate] * times
            missing[rows, rivals] -= apart[rivals] * times
            weights += missing
        weights *= share / squares
        moved = weights * pulls
        left = -self.flows - moved
        left[:, candidate] += times
        left[rows, rivals] -= times
        bias = self.norm * np.sqrt(np.sum((left @ z) ** 2, axis=1) + left**2 @ self.left_out)
        bias += self.off * np.abs(left).sum(axis=1)
        gained = moved @ self.means - 0.5 * np.sum(moved * weights * squares, axis=1)
        return weights, gained + times * self.epsilon - bias - self.lack


def design_for(steered: Steered) -> FloatArray:
    """Pulls of each arm, whole or not, after which every open rival is predicted to be out; shape (K,).

    Multiplicative weights for the softmin of the predicted evidence, whose derivative is s^2 w^2 / 2.
    """
    num_arms = len(steered.scales)
    shares, total = np.full(num_arms, 1.0 / num_arms), 16.0
    first, last = HEURISTIC_TEMPERATURES
    mean = np.zeros(num_arms)  # of the last steps: one step alone goes to and fro between rivals
    some = steered
    for step in range(HEURISTIC_DESIGN_STEPS):
        whole = step % HEURISTIC_WHOLE_STEPS == 0  # at all rivals; at the most urgent ones in the steps between
        weights, evidence = (steered if whole else some).planned(total * shares)
        if whole:
            some = steered.of(np.argsort(evidence, kind="stable")[:HEURISTIC_URGENT])
        temperature = first * (last / first) ** (step / (HEURISTIC_DESIGN_STEPS - 1))
        urgency = np.exp((evidence.min() - evidence) / temperature)
        slope = (urgency / urgency.sum()) @ weights**2 * steered.scales**2
        middle = float(slope @ shares)
        if middle <= 0.0:
            break
        shares *= np.clip((slope / middle) ** HEURISTIC_EXPONENT, *EXTREMES)
        shares = np.maximum(shares / shares.sum(), LEAST_SHARE / num_arms)
        if step >= HEURISTIC_AVERAGED * HEURISTIC_DESIGN_STEPS:
            mean = mean + shares
        total *= float(np.clip(_growth(steered if whole else some, evidence), 0.5, 2.0))
    shares = mean if mean.any() else shares
    return _sized(steered, shares / shares.sum(), total)


def _growth(steered: Steered, evidence: FloatArray) -> float:
    """By what factor pulls have to grow, if evidence is proportional to them."""
    gained = evidence + np.maximum(steered.lack, 0.1)
    return float(np.max(np.where(gained > 0.0, np.maximum(steered.lack, 0.1) / np.maximum(gained, 1e-12), 2.0)))


def _sized(steered: Steered, shares: FloatArray, total: float) -> FloatArray:
    """The fewest pulls in these proportions after which the evidence suffices, about."""

    def enough(size: float) -> bool:
        return bool(steered.planned(size * shares)[1].min() >= 0.0)

    low, high = 0.0, total
    while not enough(high) and high < MOST_PULLS:
        low, high = high, 2.0 * high
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high) if low == 0.0 else float(np.sqrt(low * high))
        low, high = (low, middle) if enough(middle) else (middle, high)
        if high < 1.02 * low or high < 1.0:
            break
    return high * shares


# --- What the results suggest of the means.

SCALES = np.geomspace(1e-4, 1e4, 161)
HEURISTIC_OFF_SHARES = (0.0, 0.25, 0.5, 1.0)  # of how far means may be off: how far they are, as a standard deviation


@frozen
class Fit:
    """The most likely means under a Gaussian prior on the class, and how sure that is."""

    means: FloatArray  # (K,)
    roots: FloatArray  # R R' the posterior covariance of the means' part in the class, (K, r)
    own: FloatArray  # posterior variance of what else a mean has, (K,)
    log_likelihood: float  # the largest, over the scales of the prior

    def margins(self, candidate: int, rivals: IntArray, epsilon: float) -> FloatArray:
        """Cautious guesses of epsilon + h_c - h_j, (m,)."""
        apart = np.sum((self.roots[candidate] - self.roots[rivals]) ** 2, axis=1)
        spread = np.sqrt(apart + self.own[candidate] + self.own[rivals])
        leads = self.means[candidate] - self.means[rivals]
        cautious = np.maximum(leads - HEURISTIC_LEAD_CAUTION * spread, np.minimum(leads, 0.0))
        return np.asarray(np.maximum(epsilon + cautious, HEURISTIC_LEAST_LEAD * epsilon))


def fitted(coordinates: FloatArray, seen: Observations, sigma: FloatArray, off: float, size: float) -> Fit:
    """h ~ N(0, tau^2 Z Z' + nu^2 I) with tau and nu of the largest marginal likelihood.

    Args:
        sigma: scales of the noise, (K,).
        off: the most that each mean may be off the class, in reward units.
        size: of the differences of rewards that are looked for, in reward units.
    """
    measured = np.flatnonzero(seen.counts)
    means, z = seen.means[measured], coordinates[measured]
    length = float(np.sqrt(np.mean(np.sum(coordinates**2, axis=1)))) or 1.0
    scales = SCALES * max(float(np.ptp(means)), size) / length
    best: tuple[float, float, float] | None = None
    for share in HEURISTIC_OFF_SHARES if off > 0.0 else (0.0,):
        variances = sigma[measured] ** 2 / seen.counts[measured] + (share * off) ** 2
        left, singular, _ = thin_svd(z / np.sqrt(variances)[:, None])
        values = means / np.sqrt(variances)
        along = left.T @ values
        grown = 1.0 + (scales[:, None] * singular) ** 2
        likelihood = 0.5 * np.sum(along**2 * (1.0 - 1.0 / grown) - np.log(grown), axis=1)
        likelihood -= 0.5 * float(values @ values + np.log(variances).sum())
        place = int(np.argmax(likelihood))
        if best is None or likelihood[place] > best[0]:
            best = float(likelihood[place]), float(scales[place]), (share * off) ** 2
    assert best is not None
    likeliest, tau, variance = best
    noise = sigma[measured] ** 2 / seen.counts[measured]
    left, singular, right = thin_svd(z / np.sqrt(noise + variance)[:, None])
    shrunk = 1.0 / (singular**2 + tau**-2)
    theta = right.T @ (singular * shrunk * (left.T @ (means / np.sqrt(noise + variance))))
    guesses, own = coordinates @ theta, np.full(len(coordinates), variance)
    guesses[measured] += variance / (noise + variance) * (means - z @ theta)
    own[measured] = variance * noise / (noise + variance)
    roots = tau * (coordinates - (coordinates @ right.T) @ right)
    return Fit(guesses, np.column_stack([roots, coordinates @ right.T * np.sqrt(shrunk)]), own, likeliest)


def opening(coordinates: FloatArray, pulls: int, share: float) -> IntArray:
    """Pulls of the arms of which most is unknown, one after the other, shape (K,).

    Args:
        share: variance of a result, in units of the mean variance of the means.
    """
    length = float(np.mean(np.sum((coordinates - coordinates.mean(axis=0)) ** 2, axis=1))) or 1.0
    counts, rows = np.zeros(len(coordinates), np.int64), np.zeros((pulls, len(coordinates)))
    variances = np.sum(coordinates**2, axis=1) / length
    for number in range(pulls):
        arm = int(np.argmax(variances))
        covariance = coordinates @ coordinates[arm] / length - rows[:number].T @ rows[:number, arm]
        rows[number] = covariance / np.sqrt(max(float(variances[arm]), 0.0) + share)
        variances = variances - rows[number] ** 2
        counts[arm] += 1
    return counts


def spread_pulls(wanted: FloatArray, total: int, order: FloatArray) -> IntArray:
    """So many whole pulls in these proportions, shape (K,): so too in any range of `order`, of shape (K,)."""
    arms = np.argsort(order, kind="stable")
    reached = np.floor(np.cumsum(wanted[arms]) * (total / wanted.sum()) + 0.5)
    reached[-1] = total
    counts = np.zeros(len(wanted), np.int64)
    counts[arms] = np.diff(reached, prepend=0.0).astype(np.int64)
    return counts
