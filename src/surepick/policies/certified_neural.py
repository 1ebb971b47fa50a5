"""Certified elimination with an embedding that is learnt anew for every batch, from the batches before it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from surepick.designs import round_design
from surepick.embeddings.neural import ArmNetwork, Network
from surepick.estimators import (
    Evidence,
    LeastSquaresEstimate,
    arm_means,
    batch_evidence,
    estimate,
    lack_of_fit,
    noise_allowance,
    only,
    with_squares,
)
from surepick.noise import Noise, largest_scale, scales
from surepick.policies import certification, steering
from surepick.policies.answers import check_common, known_gap_bound
from surepick.policies.belief import FITTED, believed, check_level
from surepick.policies.certification import CertifiedState, certified_gap, epoch_ahead, opens
from surepick.policies.learning import VECTORS, Learnt, estimated_misspecification, remembered
from surepick.policies.neural_steering import Steering, hedges, search, thinned
from surepick.policies.protocol import CERTIFIED_NEURAL_OPTIONS, NETWORK_OPTIONS, Traits, plain_options
from surepick.policies.steering import Guess
from surepick.records import (
    Certificate,
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
from surepick.settings import check_choice, not_negative, positive_number, share_of_pulls, whole_number

SIZE_IN_SIGMAS = 1e6
ROUNDED_UP = 1.0 + 1e-6
UNDECLARED = (
    "No bound on the misspecification of the network's embeddings was declared (misspecification=...), so the bias "
    "that they cause was estimated from the rewards: nothing guarantees it."
)


@record
class CertifiedNeural:
    """`CertifiedElimination` with an embedding that a network learns from everything before the batch.

        psi_b(x) = (1, f(x; theta_b), e_1 u_x1, ..., e_d u_xd) in orthonormal coordinates

        theta_b trained on the batches before b, (e, u) from the gradients (or the last layer) at theta_b

    Given the past, psi_b is fixed; linear estimates from the fresh rewards of batch b are a batch of
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
            some linear function of psi_b is within gamma of the mean of every arm. From epsilon on the network cannot
            help and is not used. None: not known; it is then estimated, and the verdict is heuristic unless no batch
            used the network.
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
    traits: ClassVar[Traits] = Traits(uses_features=True, certifies="candidate")

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
        _ = self.test_delta

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
        return certification.delta_for_test(self.delta, self.noise)

    @property
    def threshold(self) -> float:
        """log(1/delta)."""
        return -math.log(self.test_delta)

    @property
    def uses_network(self) -> bool:
        """Whether the declared bound leaves the network any use: a bias of about 5 gamma is taken from every margin."""
        return self.misspecification is None or self.misspecification < self.epsilon

    @property
    def size_bound(self) -> float:
        """B, in reward units: from the range of the rewards, else a million noise scales; it only bounds rounding.

        |h| <= B for rewards with a range; else |h - what was measured on average| <= B. For every arm.
        """
        if self.noise.support is not None:
            return max(abs(self.noise.support[0]), abs(self.noise.support[1]))
        return SIZE_IN_SIGMAS * largest_scale(self.noise)

    @property
    def assumptions(self) -> tuple[str, ...]:
        size = f"No candidate's mean reward is farther than {self.size_bound:g} from " + (
            "the average of the measurements." if self.noise.support is None else "0."
        )
        if self.misspecification is None:
            return ("The network's embeddings are about as wrong as the measurements suggest.", size)
        return (
            "Whatever embedding the network has learnt before a batch, some linear function of it is within "
            f"{self.misspecification:g} of the mean reward of every candidate.",
            size,
        )

    @property
    def checks(self) -> tuple[str, ...]:
        return () if self.misspecification is None else (FITTED,)

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
        searched = search(
            state,
            learnt,
            epsilon=self.epsilon,
            sigma=largest_scale(self.noise),
            first_pulls=self._first_pulls(int(np.count_nonzero(state.seen.counts == 0))),
        )
        if searched.any():
            return self._search_plan(state, learnt, searched)
        aim = self._steering(state, learnt).aim()
        counts = round_design(aim.weights, self._capped(aim.batch, aim.weights))
        used, through = aim.embedded, self._embedded(learnt, state.seen)
        if state.compressed and np.count_nonzero(counts) <= through.dim < self.num_arms:
            used = through  # of so few arms least squares is the difference of means, and it says something of others
        return Plan(
            round=state.round,
            counts=counts + self._reserved(aim.embedded, counts),
            dim=used.dim,
            value=aim.predicted,
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
            evidence=self._evidence(state, learnt, used, seen),
            threshold=self.threshold,
            epsilon=self.epsilon,
            leader=int(np.argmax(self._learnt(pooled).scores)),
            compressed=plan.dim < self.num_arms and self._collects(state, plan, seen),
            alarms=self._misfit(plan, used, seen),
            gap=self._gap,
            also=() if learnt.vectors is None else hedges(state, plan.candidate, learnt, self.epsilon),
        )

    def _collects(self, state: CertifiedState, plan: Plan, seen: Observations) -> bool:
        """Whether the batch is evidence for some candidate."""
        if seen.total == 0 or state.epochs:
            return seen.total > 0
        return plan.candidate is not None and opens(state, plan.candidate, plan.value or 0.0)

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
        return believed(answer, state.alarms if state.compressed else (), heuristic=unbacked)

    def _gap(self, finished: str) -> float | None:
        return certified_gap(finished, self.epsilon, self.known_gap)

    def _learnt(self, seen: Observations) -> Learnt:
        return remembered(self, seen)

    def _embedded(self, learnt: Learnt, seen: Observations) -> Embedding | IndependentArms:
        """psi_b with its bound, declared or estimated from the past."""
        if learnt.vectors is None:
            return IndependentArms(self.num_arms)
        if self.misspecification is not None:
            return Embedding(learnt.vectors, self.misspecification)
        return Embedding(learnt.vectors, estimated_misspecification(self, learnt.vectors, seen))

    def _guess(self, learnt: Learnt, seen: Observations) -> Guess:
        noise_scales = noise_allowance(self.noise, seen).noise_scales(self.epsilon)
        return Guess(learnt.scores, arm_means(seen), float(noise_scales.max()))

    def _opening(self, state: CertifiedState, embedded: Embedding | IndependentArms) -> Plan:
        """The first batch: all differences alike. It finds a candidate, and is evidence for none."""
        if isinstance(embedded, IndependentArms):
            counts = np.full(self.num_arms, self._first_pulls(self.num_arms))
        else:
            known = self.noise.support is None
            total = steering.opening_total(embedded, largest_scale(self.noise), self.epsilon, known=known)
            design = steering.opening_design(embedded, self.tolerance)
            weights = thinned(design.weights, max(total, 2 * embedded.dim))
            counts = round_design(weights, self._capped(total, weights))
            counts = counts + self._reserved(embedded, counts)
        return Plan(round=state.round, counts=counts, dim=embedded.dim, misspecification=embedded.misspecification)

    def _first_pulls(self, num_measured: int) -> int:
        """What `certified-independent` measures of each arm first, less if the largest batch demands it."""
        each = (
            steering.opening_total(
                IndependentArms(self.num_arms),
                largest_scale(self.noise),
                self.epsilon,
                known=self.noise.support is None,
            )
            // self.num_arms
        )
        return each if self.largest_batch is None else max(1, min(each, self.largest_batch // max(num_measured, 1)))

    def _search_plan(self, state: CertifiedState, learnt: Learnt, searched: IntArray) -> Plan:
        through = self._embedded(learnt, state.seen)
        few = np.count_nonzero(searched) <= through.dim
        used = through if few else IndependentArms(self.num_arms)
        return Plan(round=state.round, counts=searched, dim=used.dim, misspecification=used.misspecification)

    def _steering(self, state: CertifiedState, learnt: Learnt) -> Steering:
        embedded = self._embedded(learnt, state.seen)
        return Steering(
            state=state,
            embedded=embedded,
            guess=self._guess(learnt, state.seen),
            noise_scales=noise_allowance(self.noise, state.seen).noise_scales(self.epsilon),
            norm_bound=self._norm_bound(embedded),
            epsilon=self.epsilon,
            threshold=self.threshold,
            tolerance=self.tolerance,
        )

    def _norm_bound(self, embedded: Embedding | IndependentArms) -> float:
        """C >= ||theta||: Z'Z = K I, so ||theta|| is the root mean square of h - eta, at most B + gamma."""
        return (self.size_bound + embedded.misspecification) * ROUNDED_UP

    def _evidence(
        self, state: CertifiedState, learnt: Learnt, used: Embedding | IndependentArms, seen: Observations
    ) -> Callable[[int, IntArray], Evidence]:
        """(candidate, rivals) -> the batch's log e-values; embedding, bets and allowances are from before the batch."""
        allowance = noise_allowance(self.noise, state.seen)
        noise_scales = allowance.noise_scales(self.epsilon)
        batch = with_squares(self.noise, seen)
        guess = self._guess(learnt, state.seen) if state.seen.total > 0 else None

        def evidence(centre: int, rivals: IntArray) -> Evidence:
            epoch = epoch_ahead(state, centre, self.num_arms)
            rivals = np.setdiff1d(rivals, epoch.settled)  # the bets of a settled rival are over, in the intervals too
            if guess is None or len(rivals) == 0:
                return Evidence.nothing(self.num_arms)
            return batch_evidence(
                used,
                batch,
                centre=centre,
                epsilon=self.epsilon,
                margins=only(guess.margins(centre, self.epsilon), rivals),
                allowance=allowance,
                noise_scales=noise_scales,
                steady=True,
                scores=guess.scores,
                offset=self._offset(state.seen),
                needs=None if learnt.vectors is None else self.threshold - epoch.evidence,
                norm_bound=self._norm_bound(used),
            )

        return evidence

    def _offset(self, seen: Observations) -> float:
        """What is taken from every reward, so that large means of small differences round as small ones do."""
        return 0.0 if self.noise.support is not None or seen.total == 0 else float(seen.sums.sum()) / seen.total

    def _capped(self, total: int, weights: FloatArray) -> int:
        return certification.capped(total, weights, largest_batch=self.largest_batch, reserve=self.reserve)

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
