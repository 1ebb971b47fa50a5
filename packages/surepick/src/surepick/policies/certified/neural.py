"""Certified elimination with an embedding that is learnt anew for every batch, from the batches before it."""

from functools import partial
from typing import Any

import numpy as np

from surepick.core.observations import Observations
from surepick.core.plans import Embedded, Embedding, IndependentArms, Plan
from surepick.core.records import FloatArray, IntArray, freeze, record
from surepick.designs import round_design
from surepick.embeddings.network import ArmNetwork, Network
from surepick.estimators import arm_means, estimate, noise_mgf_after, only
from surepick.estimators.posterior import PooledFit, Posterior
from surepick.policies import options
from surepick.policies.base import Traits, check_arms, delta_for_test, threshold_of
from surepick.policies.certified import learned_embedding, sampling_rule
from surepick.policies.certified.elimination import Epochs, Judged, current_test, judged, opens
from surepick.policies.model_checks import FITTED, misfit, why_heuristic
from surepick.policies.options import at_least_zero, check_options, one_of, option, whole
from surepick.policies.sequential.batches import capped
from surepick.policies.sequential.engine import SequentialTest, typical_scales
from surepick.policies.sequential.state import SequentialState

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
    vectors: str = option("gradient", one_of(*learned_embedding.VECTORS))
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
        searched = learned_embedding.search(self.problem, state, learnt, first_pulls)
        if searched.any():
            return self._search_plan(state, learnt, searched)
        batch = self._sampling_rule(state, learnt).next_batch()
        counts = round_design(batch.weights, self._capped(batch.batch, batch.weights))
        used, through = batch.embedded, self._embedded(learnt, state.seen)
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

    def learnt(self, seen: Observations) -> learned_embedding.Learnt:
        """What the past says of the arms: ask, tell and the next ask need the same embedding."""
        return self._cache.last("learnt", seen, lambda: learned_embedding.learn(self, seen), most=2)

    def wager(self, state: SequentialState, plan: Plan, centre: int, rivals: IntArray) -> Judged:
        noise_mgf = noise_mgf_after(self.problem.noise, state.seen)
        epsilon, threshold = self.problem.epsilon, threshold_of(self.problem)
        learnt, used, epoch = self.learnt(state.seen), self._used(state, plan), current_test(state, centre)
        posterior = self._posterior(learnt, state.seen)
        rivals = rivals[~epoch.rejected(threshold)[rivals]]  # the bets on them are over, in the intervals too
        return partial(
            judged,
            rivals=rivals,
            embedded=used,
            centre=centre,
            epsilon=epsilon,
            margins=only(posterior.margins(centre, epsilon), rivals),
            noise_mgf=noise_mgf,
            noise_scales=noise_mgf.noise_scales(epsilon),
            bias_robust=True,
            scores=posterior.scores,
            offset=self._offset(state.seen),
            needs=None if learnt.vectors is None else threshold - epoch.values,
            norm_bound=self._norm_bound(used),
        )

    def best(self, seen: Observations, _: int) -> int:
        return int(np.argmax(self.learnt(seen).scores))

    def runners_up(self, state: SequentialState, plan: Plan) -> tuple[int, ...]:
        learnt = self.learnt(state.seen)
        return (
            ()
            if learnt.vectors is None
            else learned_embedding.hedges(state, plan.candidate, learnt, self.problem.epsilon)
        )

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

    def _embedded(self, learnt: learned_embedding.Learnt, seen: Observations) -> Embedded:
        """psi_b with its bound, declared or estimated from the past."""
        if learnt.vectors is None:
            return IndependentArms(self.problem.num_arms)
        if self.misspecification is not None:
            return Embedding(learnt.vectors, self.misspecification)
        return Embedding(learnt.vectors, learned_embedding.estimated_misspecification(self, learnt.vectors, seen))

    def _posterior(self, learnt: learned_embedding.Learnt, seen: Observations) -> Posterior:
        scale = float(typical_scales(self.problem, seen).max())
        return PooledFit(learnt.scores, arm_means(seen), scale).posterior()

    def _opening(self, state: SequentialState, embedded: Embedded) -> Plan:
        """The first batch: all differences alike. It finds a candidate, and is evidence for none."""
        if not embedded.structured:
            counts = np.full(self.problem.num_arms, self._first_pulls(self.problem.num_arms))
        else:
            total = sampling_rule.opening_total(embedded, self.problem)
            design = sampling_rule.opening_design(embedded, self.tolerance)
            weights = learned_embedding.thinned_vectors(design.weights, max(total, 2 * embedded.dim))
            counts = round_design(weights, self._capped(total, weights))
            counts = counts + self._reserved(embedded, counts)
        return Plan(round=state.round, counts=counts, dim=embedded.dim, misspecification=embedded.misspecification)

    def _first_pulls(self, num_measured: int) -> int:
        """What `certified-independent` measures of each arm first, less if the largest batch demands it."""
        num_arms = self.problem.num_arms
        each = sampling_rule.opening_total(IndependentArms(num_arms), self.problem) // num_arms
        return each if self.largest_batch is None else max(1, min(each, self.largest_batch // max(num_measured, 1)))

    def _search_plan(self, state: SequentialState, learnt: learned_embedding.Learnt, searched: IntArray) -> Plan:
        through = self._embedded(learnt, state.seen)
        few = np.count_nonzero(searched) <= through.dim
        used = through if few else IndependentArms(self.problem.num_arms)
        return Plan(round=state.round, counts=searched, dim=used.dim, misspecification=used.misspecification)

    def _sampling_rule(
        self, state: SequentialState, learnt: learned_embedding.Learnt
    ) -> learned_embedding.NeuralSamplingRule:
        embedded = self._embedded(learnt, state.seen)
        return learned_embedding.NeuralSamplingRule(
            problem=self.problem,
            state=state,
            embedded=embedded,
            posterior=self._posterior(learnt, state.seen),
            noise_scales=typical_scales(self.problem, state.seen),
            norm_bound=self._norm_bound(embedded),
            tolerance=self.tolerance,
        )

    def _norm_bound(self, embedded: Embedded) -> float:
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
