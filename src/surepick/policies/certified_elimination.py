"""Certified elimination: one e-process for each rival of a candidate, and batches aimed at those still unsettled."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import field
from typing import Any, ClassVar

import numpy as np

from surepick.complexity import cheapest_dimension
from surepick.designs import round_design
from surepick.embeddings import ArmEmbedding
from surepick.errors import ContractError, InvalidInput, NotConverged
from surepick.estimators import Evidence, batch_evidence, estimate, noise_allowance, only, with_squares
from surepick.linalg import Whitened
from surepick.noise import Noise, largest_scale, scales
from surepick.policies import certification, steering
from surepick.policies.answers import check_common, known_gap_bound
from surepick.policies.belief import (
    assumed,
    believed,
    checkable_counts,
    checks_of,
    representable,
    suspicions,
    unbacked,
    vacuous,
)
from surepick.policies.certification import CertifiedState, certified_gap, epoch_ahead, opens
from surepick.policies.prepared import Prepared, white_for
from surepick.policies.protocol import Traits, plain_options
from surepick.policies.steering import Guess, Remaining
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
    record,
)
from surepick.settings import positive_number, share_of_pulls, whole_number

CERTIFIED_FAMILIES = ("linear", "kernel", "independent")
OPTIONS = ("gap_bound", "dim", "tolerance", "reserve", "largest_batch")


@record
class CertifiedElimination:
    """Certify one candidate c: collect evidence, for each rival j, against "j is better than c by more than epsilon".

        E_j = p_c product over batches since c was first tried of exp(gain_j)        (`batch_evidence`)
        recommend c when every E_j has once reached 1/delta

    A wrong recommendation needs the process of one single rival, the best arm, to exceed 1/delta; so there is no union
    over rivals, and candidates pay through their weights p_c, which sum to 1. With probability at least 1 - delta the
    answer is epsilon-best, for any rule that chooses arms, batch sizes, dimensions and candidates from earlier batches
    (docs/certified-elimination.md has the proof). These rules are `policies/steering.py`: the candidate has the highest
    score, and each batch is the design that is predicted to settle its unsettled rivals first.

    Results may be judged after each batch and nowhere else; a batch may be as small as one likes.

    Args:
        embedding: the family psi_d with its misspecification bound.
        epsilon: the shortfall that is tolerated, in reward units, > 0.
        delta: error probability, in (0, 1).
        noise: what is assumed of a reward; scales per arm, and the variance of rewards that have a range, are used.
        gap_bound: an upper bound on the largest gap between two arms; only used to answer at once when it is at most
            epsilon.
        dim: fixes d; None: chosen, and chosen anew for a new candidate.
        tolerance: relative gap of the designs.
        reserve: the share of a batch's pulls, in [0, 1), that is added on arms spread over the set, so that a lack of
            fit can show; none where every list of means is representable.
        largest_batch: most pulls in a batch, or the arms that a design needs if these are more; None: no limit.

    Raises:
        InvalidInput: a setting has no meaning, or the embedding declares no norm bound.

    Source: ours, after Robbins (1970), Howard et al. (2020, 2021) and Ramdas et al. (2023) for e-processes, Fiez et al.
    (2019) for designs aimed at differences. `active` loses arms and may gain some with a new candidate, so it does not
    eliminate in the paper's sense.
    """

    name: ClassVar[str] = "certified-elimination"
    state_type: ClassVar[type[Any]] = CertifiedState
    stops: ClassVar[str] = "own"
    eliminates: ClassVar[bool] = False

    embedding: ArmEmbedding
    epsilon: float
    delta: float
    noise: Noise
    gap_bound: float | None = None
    dim: int | None = None
    tolerance: float = 0.05
    reserve: float = 0.05
    largest_batch: int | None = None
    _prepared: Prepared = field(default_factory=Prepared, init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        check_common(epsilon=self.epsilon, delta=self.delta, slack=0.1, gap_bound=self.gap_bound)
        positive_number("tolerance", self.tolerance, "the relative gap to which designs are solved.")
        share_of_pulls("reserve", self.reserve)
        scales(self.noise, self.num_arms)
        if self.largest_batch is not None:
            whole_number("largest_batch", self.largest_batch, least=1, meaning="a batch has at least one pull.")
        if self.dim is not None:
            self.embedding.at(self.dim)
        if self.embedding.norm_bound is None and self.embedding.family != "independent":
            raise InvalidInput(
                "the embedding declares no norm bound, so what an inexact weight misses cannot be bounded. Give "
                "norm_bound, or IndependentEmbedding."
            )
        _ = self.test_delta

    @property
    def num_arms(self) -> int:
        return self.embedding.num_arms

    @property
    def traits(self) -> Traits:
        return Traits(uses_features=self.embedding.family != "independent", certifies="candidate")

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
    def assumptions(self) -> tuple[str, ...]:
        return self.embedding.assumptions

    @property
    def checks(self) -> tuple[str, ...]:
        return checks_of(self.embedding)

    @property
    def caveats(self) -> tuple[str, ...]:
        return self.embedding.caveats

    @property
    def spec(self) -> dict[str, Any] | None:
        family = self.embedding.family
        if family not in CERTIFIED_FAMILIES or (self.embedding.spec is None and family != "independent"):
            return None
        return {"name": f"certified-{family}", **plain_options(self, OPTIONS), **(self.embedding.spec or {})}

    def init(self) -> CertifiedState:
        return certification.initial_state(self.num_arms, self.epsilon, self.known_gap)

    def stopped(self, state: CertifiedState) -> bool:
        return state.finished != ""

    def ask(self, state: CertifiedState) -> Plan:
        if state.seen.total == 0:
            return self._opening(state.round)
        aim = self._aim(state)
        design, pulls = aim.design, state.seen.total
        total = self._capped(steering.batch_total(design.value, pulls), design.weights)
        embedded = self.embedded(aim.dim)
        return Plan(
            round=state.round,
            counts=self._checkable(aim.dim, round_design(design.weights, total)),
            dim=embedded.dim,
            value=design.value,
            lower_bound=design.lower_bound,
            misspecification=embedded.misspecification,
            candidate=aim.candidate,
        )

    def tell(self, state: CertifiedState, plan: Plan, seen: Observations) -> Step[CertifiedState]:
        return certification.concluded(
            state,
            plan,
            seen,
            evidence=self._evidence(state, plan, seen),
            threshold=self.threshold,
            epsilon=self.epsilon,
            leader=int(np.argmax(self._guess(plan.dim, state.seen.plus(seen)).scores)),
            compressed=not isinstance(self.embedded(plan.dim), IndependentArms),
            alarms=self._suspicions(plan, seen),
            gap=self._gap,
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
            needed=assumed(self.embedding, state.seen.total, state.compressed),
            obstacle=self._obstacle,
        )
        return believed(answer, state.alarms, heuristic=unbacked(self.embedding, state.compressed))

    def embedded(self, dim: int) -> Embedding | IndependentArms:
        """psi_d; arms without structure where d is so large that nothing is assumed of the arms, for speed."""
        if self.embedding.num_distinct == self.num_arms and representable(self.embedding, dim):
            return IndependentArms(self.num_arms)
        return self.embedding.at(dim)

    def _opening(self, round_number: int) -> Plan:
        """The first batch: all differences alike. It finds a candidate, and is evidence for none."""
        dim, design = self._first_dimension()
        embedded = self.embedded(dim)
        total = steering.opening_total(
            embedded, largest_scale(self.noise), self.epsilon, known=self.noise.support is None
        )
        counts = round_design(design.weights, self._capped(total, design.weights))
        return Plan(
            round=round_number,
            counts=self._checkable(dim, counts),
            dim=embedded.dim,
            value=design.value,
            lower_bound=design.lower_bound,
            misspecification=embedded.misspecification,
        )

    def _first_dimension(self) -> tuple[int, Design]:
        """The dimension that tells all differences to within epsilon for the fewest pulls, and its design."""
        everybody = np.arange(self.num_arms)
        if self.dim is not None or vacuous(self.embedding, self.epsilon):
            dim = self.embedding.max_dim if self.dim is None else self.dim
        else:
            distinct = self.embedding.num_distinct > 2
            try:
                choice = cheapest_dimension(
                    self.embedding,
                    everybody,
                    self.epsilon,
                    tolerance=self.tolerance,
                    least_dim=2 if distinct else 1,
                    least_value=1.0 if distinct else 0.0,
                    design_of=steering.opening_design,
                )
            except ContractError:  # no room for equal arms anywhere; arms that differ by more may still be settled
                dim = self.embedding.max_dim
            else:
                return choice.dim, choice.design
        try:
            return dim, steering.opening_design(self.embedded(dim), self.tolerance)
        except NotConverged as unfinished:
            return dim, unfinished.best

    def _aim(self, state: CertifiedState) -> Remaining:
        """The candidate to go on with, and the design that is predicted to certify it first."""
        guess = self._guess(state.dim, state.seen)
        best = int(np.argmax(guess.scores))
        candidate = best if state.candidate < 0 else state.candidate
        aim = self._remaining(state, candidate, state.dim, guess)
        if best != candidate:
            other = self._remaining(state, best, state.dim, guess)
            if other.design.value < steering.HEURISTIC_SWITCH * aim.design.value:
                aim = other
        if self.dim is None and opens(state, aim.candidate, aim.design.value):
            aim = self._other_dimension(state, aim, guess)
        return aim

    def _other_dimension(self, state: CertifiedState, aim: Remaining, guess: Guess) -> Remaining:
        """A larger dimension, if misspecification costs more than its extra directions would."""
        best, dim = aim, state.dim
        while self.embedding.misspecification(dim) > 0.0 and dim < self.embedding.max_dim:
            if 2.0 * self.embedding.misspecification(dim) < steering.NEGLIGIBLE_BIAS * self.epsilon / 2.0:
                break
            dim = min(self.embedding.max_dim, math.ceil(1.25 * dim))
            other = self._remaining(state, aim.candidate, dim, guess)
            if other.design.value >= best.design.value:
                break
            best = other
        return best

    def _remaining(self, state: CertifiedState, candidate: int, dim: int, guess: Guess) -> Remaining:
        epoch = epoch_ahead(state, candidate, self.num_arms)
        return steering.remaining(
            self.embedded(dim),
            candidate,
            rivals=epoch.unsettled(),
            evidence=epoch.evidence,
            threshold=self.threshold,
            guess=guess,
            noise_scales=noise_allowance(self.noise, state.seen).noise_scales(self.epsilon),
            epsilon=self.epsilon,
            tolerance=self.tolerance,
        )

    def _guess(self, dim: int, seen: Observations) -> Guess:
        def form() -> Guess:
            used, noise_scales = self.embedded(dim), noise_allowance(self.noise, seen).noise_scales(self.epsilon)
            return steering.guess_of(used, seen, noise_scales, white=self._white(used, dim))

        return self._prepared.guess(dim, seen, form)

    def _white(self, used: Embedding | IndependentArms, dim: int) -> Whitened | None:
        return white_for(self._prepared, self.embedding, used, dim)

    def _evidence(self, state: CertifiedState, plan: Plan, seen: Observations) -> Callable[[int, IntArray], Evidence]:
        """(candidate, rivals) -> the batch's log e-values; bets and allowances are from before it (lines 2 to 4)."""
        allowance = noise_allowance(self.noise, state.seen)
        noise_scales = allowance.noise_scales(self.epsilon)
        batch = with_squares(self.noise, seen)
        guess = self._guess(state.dim, state.seen) if state.seen.total > 0 else None

        def evidence(centre: int, rivals: IntArray) -> Evidence:
            if guess is None or len(rivals) == 0:
                return Evidence.nothing(self.num_arms)
            used, margins = self.embedded(plan.dim), guess.margins(centre, self.epsilon)
            few = self.num_arms <= certification.FEW  # one product for all: its size may decide the last bit of a row
            found = batch_evidence(
                used,
                batch,
                centre=centre,
                epsilon=self.epsilon,
                margins=margins if few else only(margins, rivals),
                allowance=allowance,
                noise_scales=noise_scales,
                norm_bound=self.embedding.norm_bound,
                white=self._white(used, plan.dim),
            )
            return found.only(rivals) if few else found

        return evidence

    def _capped(self, total: int, weights: FloatArray) -> int:
        return certification.capped(total, weights, largest_batch=self.largest_batch, reserve=self.reserve)

    def _checkable(self, dim: int, counts: IntArray) -> IntArray:
        if isinstance(self.embedded(dim), IndependentArms):
            return counts
        return checkable_counts(self.embedding, dim, counts, share=self.reserve)

    def _suspicions(self, plan: Plan, seen: Observations) -> tuple[str, ...]:
        embedded = self.embedded(plan.dim)
        if isinstance(embedded, IndependentArms) or seen.total == 0:
            return ()
        fitted = estimate(embedded, seen, white=self._white(embedded, plan.dim))
        return suspicions(self.embedding, plan, seen, fitted, sigma=largest_scale(self.noise), epsilon=self.epsilon)

    def _gap(self, finished: str) -> float | None:
        return certified_gap(finished, self.epsilon, self.known_gap)

    def _obstacle(self, state: CertifiedState) -> str:
        """Why more pulls would not help, if misspecification leaves no room."""
        if state.seen.total == 0:
            return ""
        aim = self._aim(state)
        if len(aim.cramped) == 0:
            return ""
        return (
            f" More of them may not help: what {aim.dim} dimensions leave out can move a difference of two arms by as "
            f"much as must be told apart for {len(aim.cramped)} rivals. Raise epsilon, use a larger dimension, or a "
            "smaller valid norm bound."
        )
