"""Certified elimination: one e-process for each rival of a candidate, and batches aimed at those still open."""

from collections.abc import Callable
from dataclasses import field, replace
from functools import partial

import numpy as np

from surepick import designs
from surepick.core.observations import Observations
from surepick.core.plans import Design, Embedding, IndependentArms, Plan, Step
from surepick.core.records import FloatArray, IntArray, record
from surepick.designs import DesignInput
from surepick.embeddings import ArmEmbedding
from surepick.errors import ContractError
from surepick.estimators import Evidence, batch_evidence, noise_mgf_after, only, with_squares
from surepick.estimators.posterior import Posterior, pooled_fit
from surepick.linalg.factorisations import Whitened
from surepick.policies import model_checks, options, tuning
from surepick.policies.base import Claim, Problem, Spec, Traits, designed
from surepick.policies.certified import conclusion, sampling_rule
from surepick.policies.certified.conclusion import CertifiedState, current_test, opens, threshold_of
from surepick.policies.certified.sampling_rule import NextBatch, OpenTest, is_expensive
from surepick.policies.dimension import DesignOf, best_found, cheapest_dimension, larger_dimensions
from surepick.policies.options import option
from surepick.policies.sequential.batches import batch_total, capped
from surepick.policies.sequential.memo import Memo

# --- The first batch of a certifying policy: in which dimension, and by which design.

HEURISTIC_TOLD = 2.0  # standard errors in epsilon: so well a first batch on few arms must tell all differences


def embedded_in(embedding: ArmEmbedding, num_arms: int, dim: int) -> Embedding | IndependentArms:
    """psi_d; arms without structure where d is so large that nothing is assumed of the arms, for speed."""
    if embedding.num_distinct == num_arms and model_checks.is_saturated(embedding, dim):
        return IndependentArms(num_arms)
    return embedding.at(dim)


def first_dimension(
    problem: Problem,
    embedding: ArmEmbedding,
    *,
    dim: int | None,
    tolerance: float,
    design_of: DesignOf = sampling_rule.opening_design,
) -> tuple[int, Design]:
    """The dimension that tells all differences to within epsilon for the fewest pulls, and its design."""
    everybody = np.arange(problem.num_arms)
    if dim is not None or model_checks.norm_bound_uninformative(embedding, problem.epsilon):
        taken = embedding.max_dim if dim is None else dim
    else:
        distinct = embedding.num_distinct > 2
        try:
            choice = cheapest_dimension(
                embedding,
                everybody,
                problem.epsilon,
                tolerance=tolerance,
                least_dim=2 if distinct else 1,
                least_value=1.0 if distinct else 0.0,
                design_of=design_of,
            )
        except ContractError:  # no room for equal arms anywhere; arms that differ by more may still be rejected
            taken = embedding.max_dim
        else:
            return choice.dim, choice.design
    embedded = embedded_in(embedding, problem.num_arms, taken)
    return taken, best_found(design_of, embedded, tolerance)


def on_few_first_arms(
    problem: Problem, embedded: Embedding | IndependentArms, design: Design, *, posed: Callable[[], DesignInput]
) -> Design:
    """The design of a first batch on fewer arms, if a pull or two of each tells all differences to epsilon."""
    if isinstance(embedded, IndependentArms) or embedded.num_arms <= tuning.HEURISTIC_MANY:
        return design
    unit = (HEURISTIC_TOLD * problem.sigma / problem.epsilon) ** 2
    return designs.on_fewer_arms(
        posed(), sampling_rule.middle_of(embedded), np.ones(embedded.num_arms), design, unit=unit
    )


@record
class CertifiedElimination:
    """Certify one candidate c: collect evidence, for each rival j, against "j is better than c by more than epsilon".

        E_j = p_c product over batches since c was first tried of exp(gain_j)        (`batch_evidence`)
        recommend c when every E_j has once reached 1/delta

    A wrong recommendation needs the process of one single rival, the best arm, to exceed 1/delta; so there is no union
    over rivals, and candidates pay through their weights p_c, which sum to 1. With probability at least 1 - delta the
    answer is epsilon-best, for any rule that chooses arms, batch sizes, dimensions and candidates from earlier batches
    (docs/certified-elimination.md has the proof). These rules are in `sampling_rule.py`: the candidate has the highest
    score, and each batch is the design that is predicted to reject its open rivals first.

    Results may be judged after each batch and nowhere else; a batch may be as small as one likes.

    Args:
        problem, embedding, dim, tolerance, reserve, largest_batch: as in `CarriedElimination`.

    Source: ours, after Robbins (1970), Howard et al. (2020, 2021) and Ramdas et al. (2023) for e-processes, Fiez et al.
    (2019) for designs aimed at differences. `active` loses arms and may gain some with a new candidate, so it does not
    eliminate in the paper's sense.
    """

    problem: Problem
    embedding: ArmEmbedding
    dim: int | None = None
    tolerance: float = option(0.05, options.tolerance)
    reserve: float = option(0.05, options.check_share)
    largest_batch: int | None = option(None, options.largest_batch)
    evidence: str = field(default="epochs", init=False, compare=False, repr=False)
    _cache: Memo = field(default_factory=Memo, init=False, compare=False, repr=False)
    spec: Spec | None = field(default=None, compare=False, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        conclusion.check_certifying(self)

    @property
    def traits(self) -> Traits:
        own = self.embedding.traits
        return Traits(
            uses_features=own.family != "independent",
            certifies="candidate",
            assumptions=own.assumptions,
            checks=model_checks.checks_of(self.embedding),
            caveats=own.caveats,
            embedding=self.embedding,
            misspecification=self.embedding.misspecification,
        )

    def init(self) -> CertifiedState:
        return conclusion.initial_state(self.problem)

    def ask(self, state: CertifiedState) -> Plan:
        if state.seen.total == 0:
            return self._opening(state.round)
        batch = self._next_batch(state)
        design, pulls = batch.design, state.seen.total
        total = self._capped(batch_total(design.value, pulls), design.weights)
        embedded = self.embedded(batch.dim)
        counts = self._with_check_pulls(batch.dim, designs.round_design(design.weights, total))
        return designed(state.round, counts, design, embedded, candidate=batch.candidate)

    def tell(self, state: CertifiedState, plan: Plan, seen: Observations) -> Step[CertifiedState]:
        return conclusion.concluded(
            self.problem,
            state,
            plan,
            seen,
            evidence=self._evidence(state, plan, seen),
            leader=int(np.argmax(self._posterior(plan.dim, state.seen.plus(seen)).scores)),
            compressed=not isinstance(self.embedded(plan.dim), IndependentArms),
            alarms=self._failed_checks(plan, seen),
        )

    def claim(self, state: CertifiedState) -> Claim:
        return conclusion.claim(
            self.problem,
            state,
            needed=model_checks.active_assumptions(self.embedding, state.seen.total, state.compressed),
            why_heuristic=model_checks.why_not_certified(self.embedding, state.alarms, state.compressed),
            remark=lambda: self._obstacle(state),
        )

    def embedded(self, dim: int) -> Embedding | IndependentArms:
        """psi_d; arms without structure where d is so large that nothing is assumed of the arms, for speed."""
        return embedded_in(self.embedding, self.problem.num_arms, dim)

    def _opening(self, round_number: int) -> Plan:
        """The first batch: all differences alike. It finds a candidate, and is evidence for none."""
        design_of = partial(sampling_rule.opening_design, posed=self._posed)
        dim, design = first_dimension(
            self.problem, self.embedding, dim=self.dim, tolerance=self.tolerance, design_of=design_of
        )
        embedded = self.embedded(dim)
        total = sampling_rule.opening_total(embedded, self.problem)
        counts = designs.round_design(design.weights, self._capped(total, design.weights))
        return designed(round_number, self._with_check_pulls(dim, counts), design, embedded)

    def _next_batch(self, state: CertifiedState) -> NextBatch:
        """The candidate to go on with, and the design that is predicted to certify it first."""
        posterior = self._posterior(state.dim, state.seen)
        best = int(np.argmax(posterior.scores))
        candidate = best if state.candidate < 0 else state.candidate
        dear = is_expensive(self.embedded(state.dim))
        if dear and best != candidate and self._better(state, best, candidate, posterior):
            candidate = best
        batch = self._batch_for(state, candidate, state.dim, posterior)
        if best != candidate and not dear:
            worth = tuning.HEURISTIC_SWITCH_OF_EPOCHS * batch.effort
            vectors = state.dim < self.problem.num_arms  # then a design has so many arms at least:
            least = (
                min(len(current_test(state, best).open_rivals(threshold_of(self.problem))), state.dim) if vectors else 0
            )
            other = self._batch_for(state, best, state.dim, posterior) if least < worth else batch
            if other.effort < worth:
                batch = other
        if self.dim is None and opens(state, batch.candidate, batch.design.value):
            batch = self._other_dimension(state, batch, posterior)
        return batch

    def _better(self, state: CertifiedState, best: int, candidate: int, posterior: Posterior) -> bool:
        """Whether a better candidate is worth going on with, where a design for each takes long: by what both need in
        the proportions of the pulls so far."""
        embedded = self.embedded(state.dim)
        if isinstance(embedded, IndependentArms):
            return False
        worth = tuning.HEURISTIC_SWITCH_OF_EPOCHS * self._pulls(state, candidate, embedded, posterior)
        return self._pulls(state, best, embedded, posterior) < worth

    def _pulls(self, state: CertifiedState, candidate: int, embedded: Embedding, posterior: Posterior) -> float:
        """What a candidate is predicted to need in the proportions of the pulls so far."""
        test, white = self._open_test(state, candidate, posterior), self._white(embedded, embedded.dim)
        return sampling_rule.pulls_by(embedded, test, state.seen.counts, white=white)

    def _open_test(self, state: CertifiedState, candidate: int, posterior: Posterior) -> OpenTest:
        epoch, threshold = current_test(state, candidate), threshold_of(self.problem)
        return OpenTest(
            candidate,
            epoch.open_rivals(threshold),
            epoch.values,
            threshold,
            posterior,
            sampling_rule.noise_scales(self.problem, state.seen),
            self.problem.epsilon,
        )

    def _other_dimension(self, state: CertifiedState, batch: NextBatch, posterior: Posterior) -> NextBatch:
        """A larger dimension, if misspecification costs more than its extra directions would."""
        best = batch
        for dim in larger_dimensions(self.embedding, state.dim, self.problem.epsilon):
            here = self.embedded(best.dim)
            if is_expensive(here) and isinstance(here, Embedding):  # with its misspecification and no more directions
                less = replace(here, misspecification=self.embedding.misspecification(dim))
                now, then = (self._pulls(state, batch.candidate, one, posterior) for one in (here, less))
                if then >= tuning.HEURISTIC_DIMENSION * now:
                    break
            other = self._batch_for(state, batch.candidate, dim, posterior)
            if other.effort >= best.effort:
                break
            best = other
        return best

    def _batch_for(self, state: CertifiedState, candidate: int, dim: int, posterior: Posterior) -> NextBatch:
        embedded = self.embedded(dim)
        posed = None if isinstance(embedded, IndependentArms) else partial(self._posed, embedded)
        return sampling_rule.next_batch(
            embedded,
            self._open_test(state, candidate, posterior),
            tolerance=self.tolerance,
            posed=posed,
            counts=state.seen.counts,
            white=self._white(embedded, dim),
        )

    def _posed(self, embedded: Embedding) -> DesignInput:
        white = partial(self._cache.white, self.embedding, embedded.dim)
        return self._cache.last("posed", embedded.dim, lambda: DesignInput.of(embedded.features, white=white))

    def _posterior(self, dim: int, seen: Observations) -> Posterior:
        def form() -> Posterior:
            used, noise_scales = self.embedded(dim), sampling_rule.noise_scales(self.problem, seen)
            white, norm_bound = self._white(used, dim), self.embedding.norm_bound
            return pooled_fit(used, seen, noise_scales, white=white, norm_bound=norm_bound).posterior()

        return self._cache.last("posterior", (dim, seen), form)

    def _white(self, used: Embedding | IndependentArms, dim: int) -> Whitened | None:
        return None if isinstance(used, IndependentArms) else self._cache.white(self.embedding, dim)

    def _evidence(self, state: CertifiedState, plan: Plan, seen: Observations) -> Callable[[int, IntArray], Evidence]:
        """(candidate, rivals) -> the batch's log e-values; bets and allowances are from before it (lines 2 to 4)."""
        noise_mgf = noise_mgf_after(self.problem.noise, state.seen)
        noise_scales = noise_mgf.noise_scales(self.problem.epsilon)
        batch = with_squares(self.problem.noise, seen)
        posterior = self._posterior(state.dim, state.seen) if state.seen.total > 0 else None
        few = self.problem.num_arms <= conclusion.FEW  # one product for all: its size may decide a row's last bit

        def evidence(centre: int, rivals: IntArray) -> Evidence:
            if posterior is None or len(rivals) == 0:
                return Evidence.nothing(self.problem.num_arms)
            used, margins = self.embedded(plan.dim), posterior.margins(centre, self.problem.epsilon)
            found = batch_evidence(
                used,
                batch,
                centre=centre,
                epsilon=self.problem.epsilon,
                margins=margins if few else only(margins, rivals),
                noise_mgf=noise_mgf,
                noise_scales=noise_scales,
                norm_bound=self.embedding.norm_bound,
                white=self._white(used, plan.dim),
            )
            return found.only(rivals) if few else found

        return evidence

    def _capped(self, total: int, weights: FloatArray) -> int:
        return capped(total, weights, largest_batch=self.largest_batch, reserve=self.reserve)

    def _with_check_pulls(self, dim: int, counts: IntArray) -> IntArray:
        if isinstance(self.embedded(dim), IndependentArms) or np.count_nonzero(counts) < dim:
            return counts  # of few arms each difference is told by these alone; with more it would be fitted
        return model_checks.with_check_pulls(self.embedding, dim, counts, share=self.reserve)

    def _failed_checks(self, plan: Plan, seen: Observations) -> tuple[str, ...]:
        embedded = self.embedded(plan.dim)
        white = self._white(embedded, plan.dim)
        return model_checks.misfits(self.embedding, embedded, plan, seen, self.problem, white=white)

    def _obstacle(self, state: CertifiedState) -> str:
        """Why more pulls would not help, if they are asked for and misspecification leaves no room."""
        if state.finished or state.seen.total == 0:
            return ""
        batch = self._next_batch(state)
        return model_checks.no_room(batch.dim, len(batch.bias_limited))
