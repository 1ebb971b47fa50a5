"""Where certified-neural measures next. Nothing here can make a certificate wrong.

Every rule is a function of what was told before the batch (docs/decisions/0009 has what was tried).
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr

from surepick.core.arrays import FloatArray, IntArray, record
from surepick.core.design import Design, Embedding, IndependentArms
from surepick.core.observations import Observations
from surepick.designs import round_design
from surepick.estimators import bias_ahead, estimate
from surepick.policies.base import Problem
from surepick.policies.certified import sampling_rule
from surepick.policies.certified.conclusion import CertifiedState, current_test, threshold_of
from surepick.policies.certified.learned_embedding import Learnt
from surepick.policies.certified.sampling_rule import PlugInMeans

HEURISTIC_ADVANTAGE = 0.9  # the embedding must be predicted to cost less than this share
CUTS = (0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 1.0)  # shares of the rivals to reject through the embedding
HEURISTIC_ENOUGH = 0.7  # of the standard errors that reject a rival; it then counts as rejected by the batch
HEURISTIC_LEAST_FIT = 2.0  # pulls for each dimension of a batch through the embedding
SAMPLED = 40  # rivals from which the bias of all is guessed
LEAST_SEARCHED = 16  # arms for each that is searched at a time
LARGEST_SEARCH = 4  # arms for each pull of a search
HEURISTIC_HOPELESS = 4  # with more than a fourth of the arms to search the network knows too little
HEURISTIC_MISSED = 0.05  # arms better than the leader by epsilon/2 that a search may expect to leave out
PATIENCE = 2  # batches after which arms that the network cannot tell are all measured
SEARCHES = 6  # the last batch that may look for a first candidate
HEDGES = 2  # runners-up whose epochs open together with the first candidate's


@record
class PlannedBatch:
    """A batch: what for, through which embedding, where.

    Args:
        candidate: c.
        embedded: psi_b, or arms without structure.
        weights: where to measure, shape (K,), sum 1.
        predicted: pulls that rejecting all rivals is predicted to take still.
        batch: pulls of the batch.
    """

    candidate: int
    embedded: Embedding | IndependentArms
    weights: FloatArray
    predicted: float
    batch: int


@record
class NeuralSamplingRule:
    """What a batch is steered by.

    Args:
        problem: what is asked.
        state: where the study stands.
        embedded: psi_b with its bound, or arms without structure where the network is not used.
        plug_in: the means as they look so far.
        noise_scales: s, shape (K,), in reward units.
        norm_bound: C of psi_b.
        tolerance: relative gap of the designs.
    """

    problem: Problem
    state: CertifiedState
    embedded: Embedding | IndependentArms
    plug_in: PlugInMeans
    noise_scales: FloatArray
    norm_bound: float
    tolerance: float

    def next_batch(self) -> PlannedBatch:
        """The candidate to go on with, and the batch that is predicted to bring it nearer to its certificate."""
        best = int(np.argmax(self.plug_in.scores))
        candidate = best if self.state.candidate < 0 else self.state.candidate
        batch = self.batch_for(candidate)
        if best != candidate:
            other = self.batch_for(best)
            if other.predicted < sampling_rule.HEURISTIC_SWITCH * batch.predicted:
                return other
        return batch

    def batch_for(self, candidate: int) -> PlannedBatch:
        """Arm by arm, or the far rivals through the embedding first: whichever is predicted to take fewer pulls."""
        num_arms = len(self.noise_scales)
        rivals = current_test(self.state, candidate).open_rivals()
        independent = IndependentArms(num_arms)
        plain = self._design_for(independent, candidate, rivals)
        batch = sampling_rule.batch_total(plain.value, self.state.seen.total)
        if isinstance(self.embedded, IndependentArms):
            return PlannedBatch(candidate, independent, plain.weights, plain.value, batch)
        predicted = max(plain.value, len(rivals) + 1.0)
        alone = PlannedBatch(candidate, independent, plain.weights, predicted, batch)
        through = self._through(self.embedded, candidate, rivals, HEURISTIC_ADVANTAGE * predicted)
        return alone if through is None else through

    def _through(self, embedded: Embedding, candidate: int, rivals: IntArray, limit: float) -> PlannedBatch | None:
        """The batch that rejects the rivals for which the embedding is cheap, the others to follow arm by arm; None if
        both together are predicted to take at least `limit` pulls."""
        margins = self.plug_in.margins(candidate, self.problem.epsilon)[rivals]
        evidence = current_test(self.state, candidate).evidence[rivals]
        need = sampling_rule.efforts(evidence, threshold_of(self.problem)) * float(self.noise_scales.max())
        first = self._design_for(embedded, candidate, rivals, np.zeros(len(rivals)))
        counts = np.ceil(thinned(first.weights, 3 * embedded.dim) * 4.0 * embedded.dim).astype(np.int64)
        beta = self._sampled_bias(embedded, counts, candidate, rivals, margins)
        widths = self._widths(embedded, counts, candidate, rivals) * need
        costs = counts.sum() * (widths / np.maximum(margins - beta, 1e-9)) ** 2
        pulls, far = self._cheapest_cut(embedded, candidate, rivals, costs, limit)
        if len(far) == 0:
            return None
        batch = math.ceil(pulls)
        weights = thinned(self._design_for(embedded, candidate, rivals[far], beta[far]).weights, batch)
        counts = round_design(weights, max(batch, int(np.count_nonzero(weights))))
        slack = np.maximum(margins[far] - beta[far], 1e-9)
        exact = self._bias(embedded, counts, candidate, rivals[far], slack)
        widths = self._widths(embedded, counts, candidate, rivals[far]) * need[far]
        kept = rivals[far][margins[far] - exact > HEURISTIC_ENOUGH * widths]
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
        self, embedded: Embedding | IndependentArms, candidate: int, rivals: IntArray, bias: FloatArray | None = None
    ) -> Design:
        test = sampling_rule.OpenTest(
            candidate,
            rivals,
            current_test(self.state, candidate).evidence,
            threshold_of(self.problem),
            self.plug_in,
            self.noise_scales,
            self.problem.epsilon,
        )
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
        slack = np.maximum(margins[some] - plain[some], 0.1 * margins[some])
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
            scores=self.plug_in.scores - self.plug_in.scores.mean(),
        )


def search(problem: Problem, state: CertifiedState, learnt: Learnt, first_pulls: int) -> IntArray:
    """Pulls that look for a first candidate; none where it is known well enough (evidence for no arm).

        P_j = P(N(score_j - score_leader, error_j^2 + error_leader^2) > epsilon/2)

    A highest guess is too high by selection, and a candidate that trails the best by nearly epsilon costs many
    times another. So arms with large P_j are measured until the others' P_j sum up to little; where these would be
    too many, the network knows too little, and every arm not yet seen is measured as `certified-independent` does.

    Args:
        first_pulls: what `certified-independent` measures of each arm first.

    Returns:
        Pulls, shape (K,); all 0 where no search is needed, or none is possible any more.
    """
    num_arms, epsilon = problem.num_arms, problem.epsilon
    pulls = np.zeros(num_arms, np.int64)
    if state.epochs or learnt.vectors is None or state.round > SEARCHES:
        return pulls
    leader = int(np.argmax(learnt.scores))
    errors = np.sqrt(learnt.errors**2 + learnt.errors[leader] ** 2)
    better = ndtr((learnt.scores - learnt.scores[leader] - epsilon / 2.0) / errors)
    better[leader] = 1.0
    order = np.argsort(-better, kind="stable")
    rest = float(better.sum()) - np.cumsum(better[order])
    chosen = order[: 1 + int(np.argmax(rest <= HEURISTIC_MISSED))]
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


def hedges(state: CertifiedState, candidate: int | None, learnt: Learnt, epsilon: float) -> tuple[int, ...]:
    """The runners-up that may turn out better than the candidate: their epochs open with the first one.

    What a batch says for one candidate it says for the others too: a change costs their weights, not all evidence.
    """
    if candidate is None or state.epochs:
        return ()
    near = learnt.scores >= learnt.scores[candidate] - epsilon
    order = np.flatnonzero(near & (np.arange(len(learnt.scores)) != candidate))
    return tuple(order[np.argsort(-learnt.scores[order], kind="stable")][:HEDGES].tolist())


def thinned(weights: FloatArray, most: int) -> FloatArray:
    """The largest `most` weights, normalised: a batch of few pulls has no use for more arms."""
    kept = weights.copy()
    kept[np.argsort(-weights, kind="stable")[most:]] = 0.0
    thinned: FloatArray = kept / kept.sum()
    return thinned
