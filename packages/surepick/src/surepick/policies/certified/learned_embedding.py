"""What a network learns from the batches so far: an embedding for the next one, and a guess of the means.

Both are functions of the past and of the seed; docs/neural-guarantee.md says why that matters.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from surepick.core.observations import Observations
from surepick.core.plans import Design, Embedded, Embedding, IndependentArms
from surepick.core.records import FloatArray, IntArray, record
from surepick.core.special_functions import ndtr
from surepick.designs import round_design
from surepick.embeddings.network import ArmNetwork, Network
from surepick.estimators import bias_ahead, estimate
from surepick.estimators.network_training import left_out, plausible_regularization, train
from surepick.estimators.posterior import Posterior, efforts, pooled_fit
from surepick.linalg.factorisations import thin_svd, whitened
from surepick.policies import tuning
from surepick.policies.base import Problem, threshold_of
from surepick.policies.certified import sampling_rule
from surepick.policies.certified.elimination import current_test
from surepick.policies.sequential.batches import batch_total
from surepick.policies.sequential.engine import typical_scales
from surepick.policies.sequential.state import SequentialState

VECTORS = ("gradient", "last-layer")
ENERGY_LEFT = 1e-3  # of the squares of the gradients; the embedding's default dimension leaves out at most this
LEAST_DIRECTION = 1e-6  # of the largest singular value, or of a column's entries; below it is rounding
RANK_TOLERANCE = 1e-9
HEURISTIC_LARGEST_SHARE = 8  # arms for each dimension, at least; with fewer the features save little
HEURISTIC_LEAST_DOUBT = 0.5  # of epsilon; one odd arm does not show in a mean square


class EmbeddingLearner(Protocol):
    """The settings that an embedding is a function of; their meaning is in `CertifiedNeural`."""

    @property
    def problem(self) -> Problem: ...
    @property
    def features(self) -> FloatArray: ...
    @property
    def network(self) -> Network: ...
    @property
    def dim(self) -> int | None: ...
    @property
    def vectors(self) -> str: ...
    @property
    def regularization(self) -> float | None: ...
    @property
    def uses_network(self) -> bool: ...


@record
class Learnt:
    """What the past says of the arms: an embedding, and a guess of the means."""

    vectors: FloatArray | None  # Z, (K, r), Z'Z = K I, its first column 1; None where the network is not used
    scores: FloatArray  # guesses of the mean rewards, (K,)
    doubt: float  # root mean square error of the network's guess for an arm that it has not seen; infinite before any
    errors: FloatArray  # the same for each guess, the arm's own measurements included, (K,)


def learn(learner: EmbeddingLearner, seen: Observations) -> Learnt:
    """The embedding and the guess of the means, from everything seen so far: a function of it and of the seed.

    The network is trained on the arms' means less their common mean. The guess weighs an arm's own mean against what
    the network says of it without them, as if that erred as it does on the arms measured so far.
    """
    if not learner.uses_network:
        return _unlearnt(learner, seen)
    arms = ArmNetwork(learner.features, learner.network)
    if seen.total == 0:
        nothing = np.zeros(len(learner.features))
        return Learnt(
            _vectors(learner, arms, arms.start, nothing), nothing, np.inf, np.full(len(learner.features), np.inf)
        )
    sigma, offset = learner.problem.sigma, float(seen.sums.sum()) / seen.total
    centred = Observations(seen.counts, seen.sums - offset * seen.counts)
    alpha = learner.regularization or plausible_regularization(arms, centred, sigma=sigma)
    trained = train(arms, centred, regularization=alpha)
    others = left_out(arms, trained.weights, centred, regularization=alpha)
    pulled = np.flatnonzero(seen.counts)
    noise = sigma**2 / seen.counts[pulled]
    error = float(np.mean((centred.means[pulled] - others[pulled]) ** 2 - noise))
    doubt = max(math.sqrt(max(error, 0.0)), HEURISTIC_LEAST_DOUBT * learner.problem.epsilon)
    own, prior = seen.counts / sigma**2, doubt**-2
    scores = offset + (prior * others + own * centred.means) / (prior + own)
    return Learnt(_vectors(learner, arms, trained.weights, trained.scores), scores, doubt, (prior + own) ** -0.5)


def estimated_misspecification(learner: EmbeddingLearner, vectors: FloatArray, seen: Observations) -> float:
    """Three times the root mean square by which the means may miss the embedding, at least epsilon/20.

    What noise could hide counts as missed: twice the standard deviation of the sum of squares of pure noise. Before
    anything is seen: epsilon, for a batch that is evidence for nothing.
    """
    if seen.total == 0:
        return learner.problem.epsilon
    pulled = np.flatnonzero(seen.counts)
    fitted = estimate(Embedding(vectors, 0.0), seen)
    freedom = max(len(pulled) - vectors.shape[1], 1)
    misfit = seen.means[pulled] - fitted.scores[pulled]
    misfit -= np.average(misfit, weights=seen.counts[pulled])
    noise = learner.problem.sigma**2
    excess = max(float(seen.counts[pulled] @ misfit**2) - freedom * noise, 0.0)
    hidden = 2.0 * noise * math.sqrt(2.0 * freedom)
    return max(learner.problem.epsilon / 20.0, 3.0 * math.sqrt((excess + hidden) / seen.total))


def _unlearnt(learner: EmbeddingLearner, seen: Observations) -> Learnt:
    """The guess of `certified-independent`: the arms' own means."""
    problem, num_arms = learner.problem, len(learner.features)
    scores = pooled_fit(IndependentArms(num_arms), seen, typical_scales(problem, seen)).scores
    return Learnt(None, scores, np.inf, np.full(num_arms, np.inf))


def _vectors(learner: EmbeddingLearner, arms: ArmNetwork, weights: Any, outputs: FloatArray) -> FloatArray | None:
    """(1, f, leading directions) in orthonormal coordinates; None where they would be too many to save anything."""
    num_arms = arms.num_arms
    if learner.vectors == "gradient":
        spectrum = arms.spectrum(weights)
        left, values = spectrum.vectors, spectrum.values
    else:
        left, values, _ = thin_svd(arms.last_layer(weights))
    tails = np.append(np.cumsum((values**2)[::-1])[::-1], 0.0)
    dim = learner.dim or min(int(np.argmax(tails <= ENERGY_LEFT * tails[0])), num_arms // HEURISTIC_LARGEST_SHARE)
    kept = np.flatnonzero(values[:dim] > LEAST_DIRECTION * values[0])
    columns = np.column_stack([outputs, left[:, kept] * values[kept]])
    centred = columns - columns.mean(axis=0)
    told = np.abs(centred).max(axis=0) > LEAST_DIRECTION * np.abs(columns).max(axis=0)  # the others are rounding
    if dim < 1 or not told.any() or np.count_nonzero(told) + 1 >= num_arms:
        return None
    basis = whitened(centred[:, told], rank_tolerance=RANK_TOLERANCE).basis
    return np.column_stack([np.ones(num_arms), basis])


# --- Where certified-neural measures next. Nothing here can make a certificate wrong.
#
# Every rule is a function of what was told before the batch (docs/decisions/0009 has what was tried).

HEURISTIC_ADVANTAGE = 0.9  # the embedding must be predicted to cost less than this share
CUTS = (0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 1.0)  # shares of the rivals to reject through the embedding
HEURISTIC_REJECTED = 0.7  # of the standard errors that reject a rival; it then counts as rejected by the batch
HEURISTIC_LEAST_FIT = 2.0  # pulls for each dimension of a batch through the embedding
SAMPLED = 40  # rivals from which the bias of all is guessed
LEAST_SEARCHED = 16  # arms for each that is searched at a time
LARGEST_SEARCH = 4  # arms for each pull of a search
HEURISTIC_HOPELESS = 4  # with more than a fourth of the arms to search the network knows too little
HEURISTIC_LEFT_OUT = 0.05  # arms better than the leader by epsilon/2 that a search may expect to leave out
PATIENCE = 2  # batches after which arms that the network cannot tell are all measured
SEARCHES = 6  # the last batch that may look for a first candidate
HEDGES = 2  # runners-up whose epochs open together with the first candidate's


@record
class PlannedBatch:
    """A batch: what for, through which embedding, where."""

    candidate: int  # c
    embedded: Embedded  # psi_b, or arms without structure
    weights: FloatArray  # where to measure, (K,), sum 1
    predicted: float  # pulls that rejecting all rivals is predicted to take still
    batch: int  # pulls of the batch


@record
class NeuralSamplingRule:
    """What a batch is steered by."""

    problem: Problem  # what is asked
    state: SequentialState  # where the study stands
    # psi_b with its bound, or arms without structure where the network is not used
    embedded: Embedded
    posterior: Posterior  # the means as they look so far
    noise_scales: FloatArray  # s, (K,), in reward units
    norm_bound: float  # C of psi_b
    tolerance: float  # relative gap of the designs

    def next_batch(self) -> PlannedBatch:
        """The candidate to go on with, and the batch that is predicted to bring it nearer to its certificate."""
        best = int(np.argmax(self.posterior.scores))
        candidate = best if self.state.candidate < 0 else self.state.candidate
        batch = self.batch_for(candidate)
        if best != candidate:
            other = self.batch_for(best)
            if other.predicted < tuning.HEURISTIC_SWITCH_OF_EPOCHS * batch.predicted:
                return other
        return batch

    def batch_for(self, candidate: int) -> PlannedBatch:
        """Arm by arm, or the far rivals through the embedding first: whichever is predicted to take fewer pulls."""
        num_arms = len(self.noise_scales)
        rivals = current_test(self.state, candidate).open_rivals(threshold_of(self.problem))
        independent = IndependentArms(num_arms)
        plain = self._design_for(independent, candidate, rivals)
        batch = batch_total(plain.value, self.state.seen.total)
        if not self.embedded.structured:
            return PlannedBatch(candidate, independent, plain.weights, plain.value, batch)
        predicted = max(plain.value, len(rivals) + 1.0)
        alone = PlannedBatch(candidate, independent, plain.weights, predicted, batch)
        through = self._through(self.embedded, candidate, rivals, HEURISTIC_ADVANTAGE * predicted)
        return alone if through is None else through

    def _through(self, embedded: Embedding, candidate: int, rivals: IntArray, limit: float) -> PlannedBatch | None:
        """The batch that rejects rivals for which the embedding is cheap; None if with others it takes `limit`."""
        margins = self.posterior.margins(candidate, self.problem.epsilon)[rivals]
        evidence = current_test(self.state, candidate).values[rivals]
        need = efforts(evidence, threshold_of(self.problem)) * float(self.noise_scales.max())
        first = self._design_for(embedded, candidate, rivals, np.zeros(len(rivals)))
        counts = np.ceil(thinned_vectors(first.weights, 3 * embedded.dim) * 4.0 * embedded.dim).astype(np.int64)
        beta = self._sampled_bias(embedded, counts, candidate, rivals, margins)
        widths = self._widths(embedded, counts, candidate, rivals) * need
        costs = counts.sum() * (widths / np.maximum(margins - beta, 1e-9)) ** 2
        pulls, far = self._cheapest_cut(embedded, candidate, rivals, costs, limit)
        if len(far) == 0:
            return None
        batch = math.ceil(pulls)
        weights = thinned_vectors(self._design_for(embedded, candidate, rivals[far], beta[far]).weights, batch)
        counts = round_design(weights, max(batch, int(np.count_nonzero(weights))))
        slack = np.maximum(margins[far] - beta[far], 1e-9)
        exact = self._bias(embedded, counts, candidate, rivals[far], slack)
        widths = self._widths(embedded, counts, candidate, rivals[far]) * need[far]
        kept = rivals[far][margins[far] - exact > HEURISTIC_REJECTED * widths]
        predicted = batch + self._alone(candidate, np.setdiff1d(rivals, kept))
        return None if predicted >= limit else PlannedBatch(candidate, embedded, weights, predicted, batch)

    def _cheapest_cut(
        self, embedded: Embedding, candidate: int, rivals: IntArray, costs: FloatArray, limit: float
    ) -> tuple[float, IntArray]:
        """(pulls of the batch, which of the rivals it is to reject): the cut with the fewest pulls in all."""
        order = np.argsort(costs, kind="stable")
        best, pulls, far = limit, 0.0, order[:0]
        for share in CUTS:
            cut = math.ceil(share * len(rivals))
            through = max(float(costs[order[cut - 1]]), HEURISTIC_LEAST_FIT * embedded.dim)
            total = through + self._alone(candidate, np.sort(rivals[order[cut:]]))
            if total < best:
                best, pulls, far = total, through, order[:cut]
        return pulls, np.sort(far)

    def _design_for(
        self, embedded: Embedded, candidate: int, rivals: IntArray, bias: FloatArray | None = None
    ) -> Design:
        epoch = current_test(self.state, candidate)
        test = replace(sampling_rule.OpenTest.of(self.problem, self.state, epoch, self.posterior), rivals=rivals)
        return sampling_rule.next_batch(embedded, test, tolerance=self.tolerance, bias=bias).design

    def _alone(self, candidate: int, rivals: IntArray) -> float:
        """Pulls that rejecting rivals arm by arm is predicted to take: at least one of each."""
        if len(rivals) == 0:
            return 0.0
        return max(
            self._design_for(IndependentArms(len(self.noise_scales)), candidate, rivals).value, len(rivals) + 1.0
        )

    def _widths(self, embedded: Embedding, counts: IntArray, candidate: int, rivals: IntArray) -> FloatArray:
        """||z_j - z_c|| in A(n)^-1 for each rival."""
        fitted = estimate(embedded, Observations(counts, np.zeros(len(counts))), reference=candidate)
        return fitted.distances(rivals, np.array([candidate]))[:, 0]

    def _sampled_bias(
        self, embedded: Embedding, counts: IntArray, candidate: int, rivals: IntArray, margins: FloatArray
    ) -> FloatArray:
        """A guess of the bias for each rival: that of least squares, times what steady weights save on some of them."""
        plain = self._bias(embedded, counts, candidate, rivals, None)
        some = np.unique(np.linspace(0, len(rivals) - 1, SAMPLED).astype(np.int64))
        slack = np.maximum(margins[some] - plain[some], tuning.LEAST_SLACK * margins[some])
        saved = self._bias(embedded, counts, candidate, rivals[some], slack)
        return np.asarray(plain * float(np.median(saved / np.maximum(plain[some], 1e-300))))

    def _bias(
        self, embedded: Embedding, counts: IntArray, candidate: int, rivals: IntArray, slack: FloatArray | None
    ) -> FloatArray:
        return bias_ahead(
            embedded,
            counts,
            centre=candidate,
            rivals=rivals,
            noise_scales=self.noise_scales,
            norm_bound=self.norm_bound,
            slack=slack,
            scores=self.posterior.scores - self.posterior.scores.mean(),
        )


def search(problem: Problem, state: SequentialState, learnt: Learnt, first_pulls: int) -> IntArray:
    """Pulls that look for a first candidate; none where it is known well enough (evidence for no arm).

        P_j = P(N(score_j - score_leader, error_j^2 + error_leader^2) > epsilon/2)

    A highest guess is too high by selection, and a candidate that trails the best by nearly epsilon costs many
    times another. So arms with large P_j are measured until the others' P_j sum up to little; where these would be
    too many, the network knows too little, and every arm not yet seen is measured as `certified-independent` does.

    Returns:
        Pulls, shape (K,); all 0 where no search is needed, or none is possible any more.
    """
    num_arms, epsilon = problem.num_arms, problem.epsilon
    pulls = np.zeros(num_arms, np.int64)
    if state.collected or learnt.vectors is None or state.round > SEARCHES:
        return pulls
    leader = int(np.argmax(learnt.scores))
    errors = np.sqrt(learnt.errors**2 + learnt.errors[leader] ** 2)
    better = ndtr((learnt.scores - learnt.scores[leader] - epsilon / 2.0) / errors)
    better[leader] = 1.0
    order = np.argsort(-better, kind="stable")
    rest = float(better.sum()) - np.cumsum(better[order])
    chosen = order[: 1 + int(np.argmax(rest <= HEURISTIC_LEFT_OUT))]
    if len(chosen) > num_arms // HEURISTIC_HOPELESS and state.round > PATIENCE:
        pulls[state.seen.counts == 0] = first_pulls
        return pulls
    for goal in (epsilon / 2.0, epsilon / 4.0):
        vague = chosen[learnt.errors[chosen] > 1.01 * goal][: num_arms // LEAST_SEARCHED]
        missing = goal**-2 - learnt.errors[vague] ** -2
        most = max(num_arms // LARGEST_SEARCH // 4, 1)
        asked = np.minimum(np.ceil(problem.sigma**2 * missing), most).astype(np.int64)
        pulls[vague] = np.where(np.cumsum(asked) <= num_arms // LARGEST_SEARCH, asked, 0)
        if pulls.any():
            return pulls
    return pulls


def hedges(state: SequentialState, candidate: int | None, learnt: Learnt, epsilon: float) -> tuple[int, ...]:
    """The runners-up that may turn out better than the candidate: their epochs open with the first one.

    What a batch says for one candidate it says for the others too: a change costs their weights, not all evidence.
    """
    if candidate is None or state.collected:
        return ()
    near = learnt.scores >= learnt.scores[candidate] - epsilon
    order = np.flatnonzero(near & (np.arange(len(learnt.scores)) != candidate))
    return tuple(order[np.argsort(-learnt.scores[order], kind="stable")][:HEDGES].tolist())


def thinned_vectors(weights: FloatArray, most: int) -> FloatArray:
    """The largest `most` weights, normalised: a batch of few pulls has no use for more arms."""
    kept = weights.copy()
    kept[np.argsort(-weights, kind="stable")[most:]] = 0.0
    thinned: FloatArray = kept / kept.sum()
    return thinned
