"""Certified elimination with an embedding that is learnt anew for every batch, from the batches before it.

What the network says, an embedding and a guess of the means, is a function of the past and of the seed;
docs/neural-guarantee.md says why that matters.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from surepick.core.observations import Observations
from surepick.core.plans import Design, Embedded, Embedding, IndependentArms, Plan
from surepick.core.records import FloatArray, IntArray, freeze, record
from surepick.core.special_functions import ndtr
from surepick.designs import round_design
from surepick.embeddings.network import ArmNetwork, Network
from surepick.estimators import arm_means, bias_ahead, estimate, only
from surepick.estimators.network_training import left_out, plausible_regularization, train
from surepick.estimators.posterior import PooledFit, Posterior, efforts, pooled_fit
from surepick.linalg.factorisations import thin_svd, whitened
from surepick.policies import options, tuning
from surepick.policies.base import Problem, Traits, check_arms, delta_for_test, threshold_of
from surepick.policies.certified import sampling_rule
from surepick.policies.certified.elimination import Epochs, current_test, opens
from surepick.policies.model_checks import FITTED, misfit, why_heuristic
from surepick.policies.options import at_least_zero, check_options, one_of, option, whole
from surepick.policies.sequential.batches import batch_total, capped
from surepick.policies.sequential.engine import SequentialTest, typical_scales
from surepick.policies.sequential.state import SequentialState

# --- What a network learns from the batches so far.

VECTORS = ("gradient", "last-layer")
ENERGY_LEFT = 1e-3  # of the squares of the gradients; the embedding's default dimension leaves out at most this
LEAST_DIRECTION = 1e-6  # of the largest singular value, or of a column's entries; below it is rounding
RANK_TOLERANCE = 1e-9
HEURISTIC_LARGEST_SHARE = 8  # arms for each dimension, at least; with fewer the features save little
HEURISTIC_LEAST_DOUBT = 0.5  # of epsilon; one odd arm does not show in a mean square


@record
class Learnt:
    """What the past says of the arms: an embedding, and a guess of the means."""

    vectors: FloatArray | None  # Z, (K, r), Z'Z = K I, its first column 1; None where the network is not used
    scores: FloatArray  # guesses of the mean rewards, (K,)
    doubt: float  # root mean square error of the network's guess for an arm that it has not seen; infinite before any
    errors: FloatArray  # the same for each guess, the arm's own measurements included, (K,)


def learn(learner: CertifiedNeural, seen: Observations) -> Learnt:
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


def estimated_misspecification(learner: CertifiedNeural, vectors: FloatArray, seen: Observations) -> float:
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


def _unlearnt(learner: CertifiedNeural, seen: Observations) -> Learnt:
    """The guess of `certified-independent`: the arms' own means."""
    problem, num_arms = learner.problem, len(learner.features)
    scores = pooled_fit(IndependentArms(num_arms), seen, typical_scales(problem, seen)).scores
    return Learnt(None, scores, np.inf, np.full(num_arms, np.inf))


def _vectors(learner: CertifiedNeural, arms: ArmNetwork, weights: Any, outputs: FloatArray) -> FloatArray | None:
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

    policy: CertifiedNeural
    state: SequentialState  # where the study stands
    embedded: Embedded  # psi_b with its bound, or arms without structure where the network is not used
    posterior: Posterior  # the means as they look so far
    noise_scales: FloatArray  # s, (K,), in reward units

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
        rivals = current_test(self.state, candidate).open_rivals(threshold_of(self.policy.problem))
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
        margins = self.posterior.margins(candidate, self.policy.problem.epsilon)[rivals]
        evidence = current_test(self.state, candidate).values[rivals]
        need = efforts(evidence, threshold_of(self.policy.problem)) * float(self.noise_scales.max())
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
        test = replace(sampling_rule.OpenTest.of(self.policy.problem, self.state, epoch, self.posterior), rivals=rivals)
        return sampling_rule.next_batch(embedded, test, tolerance=self.policy.tolerance, bias=bias).design

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
            norm_bound=self.policy.norm_bound_of(self.embedded),
            slack=slack,
            scores=self.posterior.scores - self.posterior.scores.mean(),
        )


def search(problem: Problem, state: SequentialState, learnt: Learnt, first_pulls: int) -> IntArray:
    """Pulls, (K,), that look for a first candidate; none where it is known well enough, or none is possible any more.

        P_j = P(N(score_j - score_leader, error_j^2 + error_leader^2) > epsilon/2)

    A highest guess is too high by selection, and a candidate that trails the best by nearly epsilon costs many
    times another. So arms with large P_j are measured until the others' P_j sum up to little; where these would be
    too many, the network knows too little, and every arm not yet seen is measured as `certified-independent` does.
    These pulls are evidence for no arm.
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


# --- The policy.

SIZE_IN_SIGMAS = 1e6
ROUNDED_UP = 1.0 + 1e-6
UNDECLARED = (
    "No bound on the misspecification of the network's embeddings was declared (misspecification=...), so the bias "
    "that they cause was estimated from the rewards: nothing guarantees it."
)


@record
class CertifiedNeural(Epochs, SequentialTest):
    """`CertifiedElimination` with an embedding that a network learns from everything before the batch.

        psi_b(x) = (1, f(x; theta_b), e_1 u_x1, ..., e_d u_xd) in orthonormal coordinates

        theta_b trained on the batches before b, (e, u) from the gradients (or the last layer) at theta_b

    Given the past, psi_b is fixed; linear estimates from the fresh rewards of batch b are a batch of
    `CertifiedElimination` with |eta| <= gamma, and its gains multiply into the same e-processes
    (docs/neural-guarantee.md). No batch is ever analysed again under a later embedding. Each batch uses psi_b or the
    embedding without structure, whichever is predicted to need fewer pulls in all: through psi_b the rivals whose
    margin exceeds the bias by enough are rejected, the others arm by arm.

    Args:
        problem: what is asked.
        features: X, shape (K, D), finite.
        network: its kind and start.
        misspecification: gamma, a bound that holds for every embedding that the procedure may produce, in reward units:
            some linear function of psi_b is within gamma of the mean of every arm. From epsilon on the network cannot
            help and is not used. None: not known; it is then estimated, and the verdict is heuristic unless no batch
            used the network.
        dim: d; None: what leaves out 1/1000 of the squared gradients, at most K/8.
        vectors: "gradient" or "last-layer".
        regularization: alpha of the training, in pulls; None: the most plausible one (`plausible_regularization`).
        tolerance, reserve, largest_batch: as in `CertifiedElimination`.

    Raises:
        InvalidInput: a setting has no meaning, or the arms have no features.

    Source: ours.
    """

    features: FloatArray
    network: Network
    misspecification: float | None = option(None, at_least_zero("how far means may be from the embeddings."))
    dim: int | None = option(None, whole("directions of the network that are kept."))
    vectors: str = option("gradient", one_of(*VECTORS))
    regularization: float | None = option(None, options.regularization)
    tolerance: float = option(0.05, options.tolerance)
    reserve: float = option(0.05, options.check_share)
    largest_batch: int | None = option(None, options.largest_batch)

    def __post_init__(self) -> None:
        freeze(self, features=np.float64)
        check_arms(self.problem, len(self.features))
        ArmNetwork(self.features, self.network).check_size()
        check_options(self)
        delta_for_test(self.problem)

    @property
    def uses_network(self) -> bool:
        """Whether the declared bound leaves the network any use: a bias of about 5 gamma is taken from every margin."""
        return self.misspecification is None or self.misspecification < self.problem.epsilon

    @property
    def size_bound(self) -> float:
        """B, in reward units: from the range of the rewards, else a million noise scales; it only bounds rounding.

        |h| <= B for rewards with a range; else |h - what was measured on average| <= B. For every arm.
        """
        if self.problem.noise.support is not None:
            return max(abs(self.problem.noise.support[0]), abs(self.problem.noise.support[1]))
        return SIZE_IN_SIGMAS * self.problem.sigma

    @property
    def traits(self) -> Traits:
        gamma, unbounded = self.misspecification, self.problem.noise.support is None
        near = "the average of the measurements" if unbounded else "0"
        linear = "The network's embeddings are about as wrong as the measurements suggest."
        if gamma is not None:
            linear = (
                "Whatever embedding the network has learnt before a batch, some linear function of it is within "
                f"{gamma:g} of the mean reward of every candidate."
            )
        return Traits(
            uses_features=True,
            certifies="candidate",
            assumptions=(linear, f"No candidate's mean reward is farther than {self.size_bound:g} from {near}."),
            checks=() if gamma is None else (FITTED,),
            caveats=(UNDECLARED.replace("was ", "is "),) if gamma is None else (),
            features=self.features,
            network_depth=self.network.depth,
            misspecification=lambda _: None,
        )

    def ask(self, state: SequentialState) -> Plan:
        learnt = self.learnt(state.seen)
        if state.seen.total == 0:
            return self._opening(state, self._embedded(learnt, state.seen))
        first_pulls = self._first_pulls(int(np.count_nonzero(state.seen.counts == 0)))
        searched = search(self.problem, state, learnt, first_pulls)
        if searched.any():
            return self._search_plan(state, learnt, searched)
        through, posterior = self._embedded(learnt, state.seen), self._posterior(learnt, state.seen)
        scales = typical_scales(self.problem, state.seen)
        batch = NeuralSamplingRule(self, state, through, posterior, scales).next_batch()
        counts = round_design(batch.weights, self._capped(batch.batch, batch.weights))
        used = batch.embedded
        if state.compressed and np.count_nonzero(counts) <= through.dim < self.problem.num_arms:
            used = through  # of so few arms least squares is the difference of means, and it says something of others
        return Plan(
            round=state.round,
            counts=counts + self._reserved(batch.embedded, counts),
            dim=used.dim,
            predicted_pulls=batch.predicted,
            misspecification=used.misspecification,
            candidate=batch.candidate,
        )

    def learnt(self, seen: Observations) -> Learnt:
        """What the past says of the arms: ask, tell and the next ask need the same embedding."""
        return self._cache.last("learnt", seen, lambda: learn(self, seen), most=2)

    def wager(self, state: SequentialState, plan: Plan, centre: int, rivals: IntArray) -> dict[str, Any]:
        threshold = threshold_of(self.problem)
        learnt, used, epoch = self.learnt(state.seen), self._used(state, plan), current_test(state, centre)
        posterior = self._posterior(learnt, state.seen)
        rivals = rivals[~epoch.rejected(threshold)[rivals]]  # the bets on them are over, in the intervals too
        return {
            "rivals": rivals,
            "embedded": used,
            "margins": only(posterior.margins(centre, self.problem.epsilon), rivals),
            "bias_robust": True,
            "scores": posterior.scores,
            "offset": self._offset(state.seen),
            "needs": None if learnt.vectors is None else threshold - epoch.values,
            "norm_bound": self.norm_bound_of(used),
        }

    def best(self, seen: Observations, _: int) -> int:
        return int(np.argmax(self.learnt(seen).scores))

    def runners_up(self, state: SequentialState, plan: Plan) -> tuple[int, ...]:
        learnt = self.learnt(state.seen)
        return () if learnt.vectors is None else hedges(state, plan.candidate, learnt, self.problem.epsilon)

    def failed_checks(self, state: SequentialState, plan: Plan, seen: Observations) -> tuple[str, ...]:
        used = self._used(state, plan)
        if not used.structured or seen.total == 0 or self.misspecification is None:
            return ()
        return misfit(plan, seen, estimate(used, seen), self.problem)

    def _compresses(self, state: SequentialState, plan: Plan, seen: Observations) -> bool:
        """Whether the batch is evidence for some candidate, through the network."""
        if plan.dim >= self.problem.num_arms or seen.total == 0:
            return False
        opening = plan.candidate is not None and opens(state, plan.candidate, plan.predicted_pulls or 0.0)
        return bool(state.collected) or opening

    def _answer(self, state: SequentialState) -> dict[str, Any]:
        if not state.compressed:
            return {}
        unbacked = UNDECLARED if self.misspecification is None else ""
        return {"assumptions": self.traits.assumptions, "why_heuristic": why_heuristic(state.alarms, unbacked)}

    def _used(self, state: SequentialState, plan: Plan) -> Embedded:
        """The embedding of a batch, which is of the past."""
        if plan.dim >= self.problem.num_arms:
            return IndependentArms(self.problem.num_arms)
        return self._embedded(self.learnt(state.seen), state.seen)

    def _embedded(self, learnt: Learnt, seen: Observations) -> Embedded:
        """psi_b with its bound, declared or estimated from the past."""
        if learnt.vectors is None:
            return IndependentArms(self.problem.num_arms)
        if self.misspecification is not None:
            return Embedding(learnt.vectors, self.misspecification)
        return Embedding(learnt.vectors, estimated_misspecification(self, learnt.vectors, seen))

    def _posterior(self, learnt: Learnt, seen: Observations) -> Posterior:
        scale = float(typical_scales(self.problem, seen).max())
        return PooledFit(learnt.scores, arm_means(seen), scale).posterior()

    def _opening(self, state: SequentialState, embedded: Embedded) -> Plan:
        """The first batch: all differences alike. It finds a candidate, and is evidence for none."""
        if not embedded.structured:
            counts = np.full(self.problem.num_arms, self._first_pulls(self.problem.num_arms))
        else:
            total = sampling_rule.opening_total(embedded, self.problem)
            design = sampling_rule.opening_design(embedded, self.tolerance)
            weights = thinned_vectors(design.weights, max(total, 2 * embedded.dim))
            counts = round_design(weights, self._capped(total, weights))
            counts = counts + self._reserved(embedded, counts)
        return Plan(round=state.round, counts=counts, dim=embedded.dim, misspecification=embedded.misspecification)

    def _first_pulls(self, num_measured: int) -> int:
        """What `certified-independent` measures of each arm first, less if the largest batch demands it."""
        num_arms = self.problem.num_arms
        each = sampling_rule.opening_total(IndependentArms(num_arms), self.problem) // num_arms
        return each if self.largest_batch is None else max(1, min(each, self.largest_batch // max(num_measured, 1)))

    def _search_plan(self, state: SequentialState, learnt: Learnt, searched: IntArray) -> Plan:
        through = self._embedded(learnt, state.seen)
        few = np.count_nonzero(searched) <= through.dim
        used = through if few else IndependentArms(self.problem.num_arms)
        return Plan(round=state.round, counts=searched, dim=used.dim, misspecification=used.misspecification)

    def norm_bound_of(self, embedded: Embedded) -> float:
        """C >= ||theta||: Z'Z = K I, so ||theta|| is the root mean square of h - eta, at most B + gamma."""
        return (self.size_bound + embedded.misspecification) * ROUNDED_UP

    def _offset(self, seen: Observations) -> float:
        """What is taken from every reward, so that large means of small differences round as small ones do."""
        return 0.0 if self.problem.noise.support is not None or seen.total == 0 else float(seen.sums.sum()) / seen.total

    def _capped(self, total: int, weights: FloatArray) -> int:
        return capped(total, weights, largest_batch=self.largest_batch, reserve=self.reserve)

    def _reserved(self, embedded: Embedded, counts: IntArray) -> IntArray:
        """Single pulls of arms that the batch leaves out, spread evenly over them, so that a lack of fit can show."""
        extra = np.zeros_like(counts)
        if not embedded.structured:
            return extra
        free = np.flatnonzero(counts == 0)
        room = min(int(self.reserve * counts.sum()), len(free))
        extra[free[np.linspace(0, len(free) - 1, room).astype(np.int64)]] = 1
        return extra
