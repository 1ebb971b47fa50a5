"""Certified elimination with an embedding that is learnt anew for every batch, from the batches before it."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtr

from surepick.designs import round_design
from surepick.embeddings.neural import ArmNetwork, Network
from surepick.errors import InvalidInput
from surepick.estimators import (
    LeastSquaresEstimate,
    arm_means,
    bias_ahead,
    estimate,
    evidence_gains,
    lack_of_fit,
    noise_allowance,
    with_squares,
)
from surepick.estimators.network import left_out, plausible_regularization, train
from surepick.linalg import thin_svd, whitened
from surepick.noise import Noise, failure_probability, largest_scale, scales
from surepick.policies import certification, steering
from surepick.policies.answers import check_common, known_gap_bound
from surepick.policies.belief import believed, check_level
from surepick.policies.certification import CertifiedState, certified_gap, epoch_ahead
from surepick.policies.protocol import CERTIFIED_NEURAL_OPTIONS, NETWORK_OPTIONS, plain_options
from surepick.policies.schedules import check_choice
from surepick.policies.steering import Guess
from surepick.records import (
    Certificate,
    Design,
    Embedding,
    FloatArray,
    IndependentArms,
    IntArray,
    Observations,
    Plan,
    Step,
    freeze,
    record,
)
from surepick.settings import not_negative, positive_number, share_of_pulls, whole_number

VECTORS = ("gradient", "last-layer")
ENERGY_LEFT = 1e-3  # of the squares of the gradients; the embedding's default dimension leaves out at most this
HEURISTIC_LARGEST_SHARE = 8  # arms for each dimension, at least; with fewer the features save little
HEURISTIC_ADVANTAGE = 0.9  # the embedding must be predicted to cost less than this share
CUTS = (0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 1.0)  # shares of the rivals to settle through the embedding
LEAST_SEARCHED = 16  # arms for each that is searched at a time
DEAREST_SEARCH = 4  # arms for each pull of a search
HEURISTIC_HOPELESS = 4  # with more than a fourth of the arms to search the network knows too little
PATIENCE = 2  # batches after which arms that the network cannot tell are all measured
HEDGES = 2  # runners-up whose epochs open together with the first candidate's
SEARCHES = 6  # the last batch that may look for a first candidate
HEURISTIC_MISSED = 0.05  # arms better than the leader by epsilon/2 that a search may expect to leave out
HEURISTIC_LEAST_DOUBT = 0.5  # of epsilon; one odd arm does not show in a mean square
HEURISTIC_ENOUGH = 0.7  # of the standard errors that settle a rival; it then counts as settled by the batch
HEURISTIC_LEAST_FIT = 2.0  # pulls for each dimension of a batch through the embedding
SAMPLED = 40  # rivals from which the bias of all is guessed
SIZE_IN_SIGMAS = 1e6
ROUNDED_UP = 1.0 + 1e-6
UNDECLARED = (
    "No bound on the misspecification of the network's embeddings was declared (misspecification=...), so the bias "
    "that they cause was estimated from the rewards: nothing guarantees it."
)


@record
class Learnt:
    """What the past says of the arms: an embedding, and a guess of the means.

    Args:
        vectors: Z, shape (K, r), Z'Z = K I; None where the network is not used.
        scores: guesses of the mean rewards, shape (K,).
        doubt: root mean square error of the network's guess for an arm that it has not seen; infinite before any.
        errors: the same for each guess, the arm's own measurements included, shape (K,).
    """

    vectors: FloatArray | None
    scores: FloatArray
    doubt: float
    errors: FloatArray


@record
class CertifiedNeural:
    """`CertifiedElimination` with an embedding that a network learns from everything before the batch.

        psi_b(x) = (1, f(x; theta_b), e_1 u_x1, ..., e_d u_xd) in orthonormal coordinates

        theta_b trained on the batches before b, (e, u) from the gradients (or the last layer) at theta_b

    Given the past, psi_b is fixed; the least squares on the fresh rewards of batch b is a batch of
    `CertifiedElimination` with |eta| <= gamma, and its gains multiply into the same e-processes
    (docs/neural-guarantee.md). No batch is ever analysed again under a later embedding. Each batch uses psi_b or the
    embedding without structure, whichever is predicted to need fewer pulls in all: through psi_b the rivals whose
    margin exceeds the bias by enough are settled, the others arm by arm.

    Args:
        features: X, shape (K, D), finite.
        network: its kind and start.
        epsilon: the shortfall that is tolerated, in reward units, > 0.
        delta: error probability, in (0, 1).
        noise: what is assumed of a reward.
        misspecification: gamma, a bound that holds for every embedding that the procedure may produce, in reward units:
            some linear function of psi_b is within gamma of the mean of every arm. None: not known; it is then
            estimated, and the verdict is heuristic unless no batch used the network.
        gap_bound: an upper bound on the largest gap; only used to answer at once when it is at most epsilon.
        dim: d; None: what leaves out 1/1000 of the squared gradients, at most K/8.
        vectors: "gradient" or "last-layer".
        regularization: alpha of the training, in pulls; None: the most plausible one (`plausible_regularization`).
        tolerance, reserve, largest_batch: as in `CertifiedElimination`.

    Raises:
        InvalidInput: a setting has no meaning, or the arms have no features.

    Source: ours.
    """

    name: ClassVar[str] = "certified-neural"
    state_type: ClassVar[type[Any]] = CertifiedState
    stops: ClassVar[str] = "own"
    eliminates: ClassVar[bool] = False

    features: FloatArray
    network: Network
    epsilon: float
    delta: float
    noise: Noise
    misspecification: float | None = None
    gap_bound: float | None = None
    dim: int | None = None
    vectors: str = "gradient"
    regularization: float | None = None
    tolerance: float = 0.05
    reserve: float = 0.05
    largest_batch: int | None = None

    def __post_init__(self) -> None:
        freeze(self, features=np.float64)
        ArmNetwork(self.features, self.network).check_size()
        check_common(epsilon=self.epsilon, delta=self.delta, slack=0.1, gap_bound=self.gap_bound)
        check_choice("vectors", self.vectors, VECTORS)
        positive_number("tolerance", self.tolerance, "the relative gap to which designs are solved.")
        share_of_pulls("reserve", self.reserve)
        scales(self.noise, self.num_arms)
        if self.misspecification is not None:
            not_negative("misspecification", self.misspecification, "how far means may be from the embeddings.")
        if self.regularization is not None:
            positive_number("regularization", self.regularization, "what holds the weights near their start.")
        if self.largest_batch is not None:
            whole_number("largest_batch", self.largest_batch, least=1, meaning="a batch has at least one pull.")
        if self.dim is not None:
            whole_number("dim", self.dim, least=1, meaning="directions of the network that are kept.")
        if self.test_delta <= 0.0:
            raise InvalidInput(
                f"the noise's pilot may fail with probability {failure_probability(self.noise):g}, and delta is "
                f"{self.delta:g}: nothing is left for the test. Raise delta, or repeat the pilot with a smaller one."
            )

    @property
    def num_arms(self) -> int:
        return len(self.features)

    @property
    def known_gap(self) -> float | None:
        """An upper bound on the largest gap to rely upon, or None."""
        return known_gap_bound(self.noise, self.gap_bound)

    @property
    def test_delta(self) -> float:
        """delta, less what a pilot of the noise may fail with."""
        return self.delta - failure_probability(self.noise)

    @property
    def threshold(self) -> float:
        """log(1/delta)."""
        return -math.log(self.test_delta)

    @property
    def size_bound(self) -> float:
        """B >= |h| for every arm: from the range of the rewards, else a million noise scales; it bounds rounding."""
        if self.noise.support is not None:
            return max(abs(self.noise.support[0]), abs(self.noise.support[1]))
        return SIZE_IN_SIGMAS * largest_scale(self.noise)

    @property
    def assumptions(self) -> tuple[str, ...]:
        size = f"No candidate's mean reward is beyond {self.size_bound:g} in size."
        if self.misspecification is None:
            return ("The network's embeddings are about as wrong as the measurements suggest.", size)
        return (
            "Whatever embedding the network has learnt before a batch, some linear function of it is within "
            f"{self.misspecification:g} of the mean reward of every candidate.",
            size,
        )

    @property
    def caveats(self) -> tuple[str, ...]:
        return (UNDECLARED.replace("was ", "is "),) if self.misspecification is None else ()

    @property
    def spec(self) -> dict[str, Any] | None:
        network = {name: getattr(self.network, name) for name in NETWORK_OPTIONS}
        return {"name": self.name, **plain_options(self, CERTIFIED_NEURAL_OPTIONS), **network}

    def init(self) -> CertifiedState:
        return certification.initial_state(self.num_arms, self.epsilon, self.known_gap)

    def stopped(self, state: CertifiedState) -> bool:
        return state.finished != ""

    def ask(self, state: CertifiedState) -> Plan:
        learnt = self._learnt(state.seen)
        if state.seen.total == 0:
            return self._opening(state, self._embedded(learnt, state.seen))
        searched = self._search(state, learnt)
        if searched.any():
            return self._search_plan(state, learnt, searched)
        aim = self._aim(state, learnt, self._guess(learnt, state.seen))
        counts = round_design(aim.weights, self._capped(aim.batch, aim.weights))
        used, through = aim.embedded, self._embedded(learnt, state.seen)
        if state.compressed and np.count_nonzero(counts) <= through.dim < self.num_arms:
            used = through  # of so few arms least squares is the difference of means, and it says something of others
        return Plan(
            round=state.round,
            counts=counts + self._reserved(aim.embedded, counts),
            dim=used.dim,
            value=aim.predicted,
            lower_bound=None,
            misspecification=used.misspecification,
            candidate=aim.candidate,
        )

    def tell(self, state: CertifiedState, plan: Plan, seen: Observations) -> Step[CertifiedState]:
        learnt = self._learnt(state.seen)  # of the past: the embedding of this batch
        used: Embedding | IndependentArms = IndependentArms(self.num_arms)
        if plan.dim < self.num_arms:
            used = self._embedded(learnt, state.seen)
        pooled = state.seen.plus(seen)
        return certification.concluded(
            state,
            plan,
            seen,
            gains=self._gains(state, learnt, used, seen),
            threshold=self.threshold,
            leader=int(np.argmax(self._learnt(pooled).scores)),
            compressed=plan.dim < self.num_arms and plan.candidate is not None,
            alarms=self._misfit(plan, used, seen),
            gap=self._gap,
            also=self._hedges(state, plan, learnt),
        )

    def recommend(self, state: CertifiedState) -> int:
        return state.leader

    def certificate(self, state: CertifiedState) -> Certificate:
        answer = certification.certificate(
            state,
            epsilon=self.epsilon,
            delta=self.delta,
            test_delta=self.test_delta,
            noise=self.noise,
            gap_bound=self.known_gap,
            needed=self.assumptions if state.compressed else (),
            obstacle=lambda _: "",
        )
        unbacked = UNDECLARED if state.compressed and self.misspecification is None else ""
        return believed(answer, state.alarms, heuristic=unbacked)

    def _gap(self, finished: str) -> float | None:
        return certified_gap(finished, self.epsilon, self.known_gap)

    def _learnt(self, seen: Observations) -> Learnt:
        return _remembered(_Request.of(self, seen))

    def _embedded(self, learnt: Learnt, seen: Observations) -> Embedding | IndependentArms:
        """psi_b with its bound, declared or estimated from the past."""
        if learnt.vectors is None:
            return IndependentArms(self.num_arms)
        if self.misspecification is not None:
            return Embedding(learnt.vectors, self.misspecification)
        return Embedding(learnt.vectors, self._estimated(learnt.vectors, seen))

    def _estimated(self, vectors: FloatArray, seen: Observations) -> float:
        """Three times the root mean square by which the means may miss the embedding, at least epsilon/20.

        What noise could hide counts as missed: twice the standard deviation of the sum of squares of pure noise.
        """
        if seen.total == 0:
            return self.epsilon  # of a batch that is evidence for nothing
        pulled = np.flatnonzero(seen.counts)
        fitted = estimate(Embedding(vectors, 0.0), seen)
        freedom = max(len(pulled) - vectors.shape[1], 1)
        misfit = seen.means[pulled] - fitted.scores[pulled]
        misfit -= np.average(misfit, weights=seen.counts[pulled])
        noise = largest_scale(self.noise) ** 2
        excess = max(float(seen.counts[pulled] @ misfit**2) - freedom * noise, 0.0)
        hidden = 2.0 * noise * math.sqrt(2.0 * freedom)
        return max(self.epsilon / 20.0, 3.0 * math.sqrt((excess + hidden) / max(seen.total, 1)))

    def _guess(self, learnt: Learnt, seen: Observations) -> Guess:
        noise_scales = noise_allowance(self.noise, seen).noise_scales(self.epsilon)
        return Guess(learnt.scores, arm_means(seen), float(noise_scales.max()))

    def _opening(self, state: CertifiedState, embedded: Embedding | IndependentArms) -> Plan:
        """The first batch: all differences alike. It finds a candidate, and is evidence for none."""
        if isinstance(embedded, IndependentArms):
            counts = np.full(self.num_arms, self._first_pulls() // self.num_arms)
        else:
            known = self.noise.support is None
            total = steering.opening_total(embedded, largest_scale(self.noise), self.epsilon, known=known)
            design = steering.opening_design(embedded, self.tolerance)
            weights = _thinned(design.weights, max(total, 2 * embedded.dim))
            counts = round_design(weights, self._capped(total, weights))
            counts = counts + self._reserved(embedded, counts)
        return Plan(round=state.round, counts=counts, dim=embedded.dim, misspecification=embedded.misspecification)

    def _first_pulls(self) -> int:
        """What `certified-independent` measures first, in all."""
        return steering.opening_total(
            IndependentArms(self.num_arms),
            largest_scale(self.noise),
            self.epsilon,
            known=self.noise.support is None,
        )

    def _search(self, state: CertifiedState, learnt: Learnt) -> IntArray:
        """Pulls that look for a first candidate; none where it is known well enough (evidence for no arm).

            P_j = P(N(score_j - score_leader, error_j^2 + error_leader^2) > epsilon/2)

        A highest guess is too high by selection, and a candidate that trails the best by nearly epsilon costs many
        times another. So arms with large P_j are measured until the others' P_j sum up to little; where these would be
        too many, the network knows too little, and every arm not yet seen is measured as `certified-independent` does.
        """
        pulls = np.zeros(self.num_arms, np.int64)
        if state.epochs or learnt.vectors is None or state.round > SEARCHES:
            return pulls
        leader = int(np.argmax(learnt.scores))
        errors = np.sqrt(learnt.errors**2 + learnt.errors[leader] ** 2)
        better = ndtr((learnt.scores - learnt.scores[leader] - self.epsilon / 2.0) / errors)
        better[leader] = 1.0
        order = np.argsort(-better, kind="stable")
        rest = float(better.sum()) - np.cumsum(better[order])
        chosen = order[: 1 + int(np.argmax(rest <= HEURISTIC_MISSED))]
        if len(chosen) > self.num_arms // HEURISTIC_HOPELESS and state.round > PATIENCE:
            pulls[state.seen.counts == 0] = self._first_pulls() // self.num_arms
            return pulls
        for goal in (self.epsilon / 2.0, self.epsilon / 4.0):
            vague = chosen[learnt.errors[chosen] > 1.01 * goal][: self.num_arms // LEAST_SEARCHED]
            missing = goal**-2 - learnt.errors[vague] ** -2
            asked = np.ceil(largest_scale(self.noise) ** 2 * missing).astype(np.int64)
            asked = np.minimum(asked, max(self.num_arms // DEAREST_SEARCH // 4, 1))
            pulls[vague] = np.where(np.cumsum(asked) <= self.num_arms // DEAREST_SEARCH, asked, 0)
            if pulls.any():
                return pulls
        return pulls

    def _search_plan(self, state: CertifiedState, learnt: Learnt, searched: IntArray) -> Plan:
        through = self._embedded(learnt, state.seen)
        few = np.count_nonzero(searched) <= through.dim
        used = through if few else IndependentArms(self.num_arms)
        return Plan(round=state.round, counts=searched, dim=used.dim, misspecification=used.misspecification)

    def _hedges(self, state: CertifiedState, plan: Plan, learnt: Learnt) -> tuple[int, ...]:
        """The runners-up that may turn out better than the candidate: their epochs open with the first one.

        What a batch says for one candidate it says for the others too: a change costs their weights, not all evidence.
        """
        if plan.candidate is None or state.epochs:
            return ()
        near = learnt.scores >= learnt.scores[plan.candidate] - self.epsilon
        order = np.flatnonzero(near & (np.arange(self.num_arms) != plan.candidate))
        return tuple(order[np.argsort(-learnt.scores[order], kind="stable")][:HEDGES].tolist())

    def _aim(self, state: CertifiedState, learnt: Learnt, guess: Guess) -> Aim:
        """The candidate to go on with, and the batch that is predicted to bring it nearer to its certificate."""
        best = int(np.argmax(guess.scores))
        candidate = best if state.candidate < 0 else state.candidate
        aim = self._remaining(state, candidate, learnt, guess)
        if best != candidate:
            other = self._remaining(state, best, learnt, guess)
            if other.predicted < steering.HEURISTIC_SWITCH * aim.predicted:
                return other
        return aim

    def _remaining(self, state: CertifiedState, candidate: int, learnt: Learnt, guess: Guess) -> Aim:
        """Arm by arm, or the far rivals through the embedding first: whichever is predicted to take fewer pulls."""
        epoch = epoch_ahead(state, candidate, self.num_arms)
        noise_scales = noise_allowance(self.noise, state.seen).noise_scales(self.epsilon)
        independent = IndependentArms(self.num_arms)

        def settled(embedded: Embedding | IndependentArms, rivals: IntArray, bias: FloatArray | None = None) -> Design:
            return steering.remaining(
                embedded,
                candidate,
                rivals=rivals,
                evidence=epoch.evidence,
                threshold=self.threshold,
                guess=guess,
                noise_scales=noise_scales,
                epsilon=self.epsilon,
                tolerance=self.tolerance,
                bias=bias,
            ).design

        def alone(rivals: IntArray) -> float:
            return max(settled(independent, rivals).value, len(rivals) + 1.0) if len(rivals) else 0.0

        rivals = epoch.unsettled()
        plain = settled(independent, rivals)
        predicted = max(plain.value, len(rivals) + 1.0)
        batch = steering.batch_total(plain.value, state.seen.total)
        aim = Aim(candidate, independent, plain.weights, predicted, batch)
        embedded = self._embedded(learnt, state.seen)
        if isinstance(embedded, IndependentArms):
            return aim
        margins = guess.margins(candidate, self.epsilon)[rivals]
        first = settled(embedded, rivals, np.zeros(len(rivals)))
        counts = np.ceil(_thinned(first.weights, 3 * embedded.dim) * 4.0 * embedded.dim).astype(np.int64)
        beta = self._bias_ahead(embedded, counts, candidate, rivals, margins, noise_scales, guess)
        spread = estimate(embedded, Observations(counts, np.zeros(self.num_arms)), reference=candidate)
        lengths = math.sqrt(counts.sum()) * spread.distances(rivals, np.array([candidate]))[:, 0]
        need = steering.efforts(epoch.evidence[rivals], self.threshold) * float(noise_scales.max())
        costs = (lengths * need / np.maximum(margins - beta, 1e-9)) ** 2
        order = np.argsort(costs, kind="stable")
        best, pulls, far = HEURISTIC_ADVANTAGE * predicted, 0.0, order[:0]
        for share in CUTS:
            cut = math.ceil(share * len(rivals))
            through = max(float(costs[order[cut - 1]]), HEURISTIC_LEAST_FIT * embedded.dim)
            total = through + alone(np.sort(rivals[order[cut:]]))
            if total < best:
                best, pulls, far = total, through, order[:cut]
        if len(far) == 0:
            return aim
        far = np.sort(far)
        batch = math.ceil(pulls)
        weights = _thinned(settled(embedded, rivals[far], beta[far]).weights, batch)
        counts = round_design(weights, max(batch, int(np.count_nonzero(weights))))
        rooms = np.maximum(margins[far] - beta[far], 1e-9)
        exact = self._bias(embedded, counts, candidate, rivals[far], rooms, noise_scales, guess)
        spread = estimate(embedded, Observations(counts, np.zeros(self.num_arms)), reference=candidate)
        width = spread.distances(rivals[far], np.array([candidate]))[:, 0] * need[far]
        kept = rivals[far][margins[far] - exact > HEURISTIC_ENOUGH * width]
        left = alone(np.setdiff1d(rivals, kept))
        if batch + left >= HEURISTIC_ADVANTAGE * predicted:
            return aim
        return Aim(candidate, embedded, weights, batch + left, batch)

    def _bias_ahead(
        self,
        embedded: Embedding,
        counts: IntArray,
        candidate: int,
        rivals: IntArray,
        margins: FloatArray,
        noise_scales: FloatArray,
        guess: Guess,
    ) -> FloatArray:
        """A guess of beta for each rival: that of least squares, times what steady weights save on some of them."""

        plain = self._bias(embedded, counts, candidate, rivals, None, noise_scales, guess)
        some = np.unique(np.linspace(0, len(rivals) - 1, SAMPLED).astype(np.int64))
        rooms = np.maximum(margins[some] - plain[some], 0.1 * margins[some])
        saved = self._bias(embedded, counts, candidate, rivals[some], rooms, noise_scales, guess)
        return np.asarray(plain * float(np.median(saved / np.maximum(plain[some], 1e-300))))

    def _bias(
        self,
        embedded: Embedding,
        counts: IntArray,
        candidate: int,
        rivals: IntArray,
        rooms: FloatArray | None,
        noise_scales: FloatArray,
        guess: Guess,
    ) -> FloatArray:
        return bias_ahead(
            embedded,
            counts,
            centre=candidate,
            rivals=rivals,
            noise_scales=noise_scales,
            norm_bound=self._norm_bound(embedded),
            rooms=rooms,
            scores=guess.scores,
        )

    def _norm_bound(self, embedded: Embedding) -> float:
        """C >= ||theta||: Z'Z = K I, so ||theta|| is the root mean square of h - eta, at most B + gamma."""
        return (self.size_bound + embedded.misspecification) * ROUNDED_UP

    def _gains(
        self, state: CertifiedState, learnt: Learnt, used: Embedding | IndependentArms, seen: Observations
    ) -> Callable[[int], FloatArray]:
        """candidate -> the batch's log e-values; embedding, bets and allowances are from before the batch."""
        allowance = noise_allowance(self.noise, state.seen)
        noise_scales = allowance.noise_scales(self.epsilon)
        batch = with_squares(self.noise, seen)
        guess = self._guess(learnt, state.seen) if state.seen.total > 0 else None

        def gains(centre: int) -> FloatArray:
            if guess is None:
                return np.zeros(self.num_arms)
            epoch = epoch_ahead(state, centre, self.num_arms)
            margins = guess.margins(centre, self.epsilon)
            margins[epoch.settled] = 0.0
            return evidence_gains(
                used,
                batch,
                centre=centre,
                epsilon=self.epsilon,
                margins=margins,
                allowance=allowance,
                noise_scales=noise_scales,
                steady=True,
                scores=guess.scores,
                needs=self.threshold - epoch.evidence,
                norm_bound=self._norm_bound(used) if isinstance(used, Embedding) else None,
            )

        return gains

    def _capped(self, total: int, weights: FloatArray) -> int:
        limit = total if self.largest_batch is None else int(self.largest_batch / (1.0 + self.reserve))
        return max(min(total, limit), int(np.count_nonzero(weights)))

    def _reserved(self, embedded: Embedding | IndependentArms, counts: IntArray) -> IntArray:
        """Single pulls of arms that the batch leaves out, spread evenly over them, so that a lack of fit can show."""
        extra = np.zeros_like(counts)
        if isinstance(embedded, IndependentArms):
            return extra
        free = np.flatnonzero(counts == 0)
        room = min(int(self.reserve * counts.sum()), len(free))
        extra[free[np.linspace(0, len(free) - 1, room).astype(np.int64)]] = 1
        return extra

    def _misfit(self, plan: Plan, used: Embedding | IndependentArms, seen: Observations) -> tuple[str, ...]:
        """What the fit of the batch says against the declared bound, in words."""
        if isinstance(used, IndependentArms) or seen.total == 0 or self.misspecification is None:
            return ()
        fitted = estimate(used, seen)
        if not isinstance(fitted, LeastSquaresEstimate):
            return ()
        found = lack_of_fit(
            fitted,
            seen,
            misspecification=used.misspecification,
            sigma=largest_scale(self.noise),
            level=check_level(plan.round, 1),
        )
        return (found,) if found else ()


@record
class Aim:
    """A batch: what for, through which embedding, where.

    Args:
        candidate: c.
        embedded: psi_b, or arms without structure.
        weights: where to measure, shape (K,), sum 1.
        predicted: pulls that settling all rivals is predicted to take still.
        batch: pulls of the batch.
    """

    candidate: int
    embedded: Embedding | IndependentArms
    weights: FloatArray
    predicted: float
    batch: int


@dataclass(frozen=True)
class _Request:
    """What an embedding is a function of; two are equal when the digests are."""

    digest: str
    policy: CertifiedNeural = field(compare=False)
    seen: Observations = field(compare=False)

    @staticmethod
    def of(policy: CertifiedNeural, seen: Observations) -> _Request:
        settings = (policy.network, policy.dim, policy.vectors, policy.regularization, policy.epsilon)
        digest = hashlib.sha256(repr((*settings, policy.noise, policy.features.shape)).encode())
        for array in (policy.features, seen.counts, seen.sums):
            digest.update(np.ascontiguousarray(array).tobytes())
        return _Request(digest.hexdigest(), policy, seen)


@lru_cache(maxsize=4)
def _remembered(request: _Request) -> Learnt:
    """`learn`, kept for the next call: ask, tell and the next ask need the same embedding."""
    return learn(request.policy, request.seen)


def learn(policy: CertifiedNeural, seen: Observations) -> Learnt:
    """The embedding and the guess of the means, from everything seen so far: a function of it and of the seed.

    The network is trained on the arms' means less their common mean. The guess weighs an arm's own mean against what
    the network says of it without them, as if that erred as it does on the arms measured so far.
    """
    arms = ArmNetwork(policy.features, policy.network)
    if seen.total == 0:
        nothing = np.zeros(policy.num_arms)
        return Learnt(_vectors(policy, arms, arms.start, nothing), nothing, np.inf, np.full(policy.num_arms, np.inf))
    sigma, offset = largest_scale(policy.noise), float(seen.sums.sum()) / seen.total
    centred = Observations(seen.counts, seen.sums - offset * seen.counts)
    alpha = policy.regularization or plausible_regularization(arms, centred, sigma=sigma)
    trained = train(arms, centred, regularization=alpha)
    others = left_out(arms, trained.weights, centred, regularization=alpha)
    pulled = np.flatnonzero(seen.counts)
    noise = sigma**2 / seen.counts[pulled]
    error = float(np.mean((centred.means[pulled] - others[pulled]) ** 2 - noise))
    doubt = max(math.sqrt(max(error, 0.0)), HEURISTIC_LEAST_DOUBT * policy.epsilon)
    own, prior = seen.counts / sigma**2, doubt**-2
    scores = offset + (prior * others + own * centred.means) / (prior + own)
    return Learnt(_vectors(policy, arms, trained.weights, trained.scores), scores, doubt, (prior + own) ** -0.5)


def _thinned(weights: FloatArray, most: int) -> FloatArray:
    """The largest `most` weights, normalised: a batch of few pulls has no use for more arms."""
    kept = weights.copy()
    kept[np.argsort(-weights, kind="stable")[most:]] = 0.0
    thinned: FloatArray = kept / kept.sum()
    return thinned


def _vectors(policy: CertifiedNeural, arms: ArmNetwork, weights: Any, outputs: FloatArray) -> FloatArray | None:
    """(1, f, leading directions) in orthonormal coordinates; None where they would be too many to save anything."""
    num_arms = policy.num_arms
    if policy.vectors == "gradient":
        spectrum = arms.spectrum(weights)
        left, values = spectrum.vectors, spectrum.values
    else:
        left, values, _ = thin_svd(arms.last_layer(weights))
    tails = np.append(np.cumsum((values**2)[::-1])[::-1], 0.0)
    dim = policy.dim or min(int(np.argmax(tails <= ENERGY_LEFT * tails[0])), num_arms // HEURISTIC_LARGEST_SHARE)
    if dim < 1 or min(dim, len(values)) + 2 >= num_arms:
        return None
    columns = np.column_stack([np.ones(num_arms), outputs, left[:, :dim] * values[:dim]])
    basis = whitened(columns, rank_tolerance=1e-9).basis
    return basis if basis.shape[1] < num_arms else None
