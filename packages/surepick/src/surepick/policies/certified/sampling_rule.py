"""Where a certified elimination measures next, and for which candidate. Nothing here can make a certificate wrong.

Every rule is a function of what was told before the batch. The constants were chosen on instances other than those of
benchmarks/policies.py (docs/decisions/0008).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from surepick import designs
from surepick.core.plans import Design, Embedded, Embedding
from surepick.core.records import FloatArray, IntArray, record
from surepick.designs import DesignInput
from surepick.embeddings import ArmEmbedding
from surepick.errors import ContractError
from surepick.estimators.e_values import EProcesses
from surepick.estimators.posterior import Posterior, efforts
from surepick.linalg.factorisations import Whitened, row_norms, weighted_range, whitened
from surepick.linalg.rows import each_row_block
from surepick.policies import model_checks, tuning
from surepick.policies.base import Problem, threshold_of
from surepick.policies.dimension import DesignOf, best_found, cheapest_dimension, embedding_design, whole_pulls
from surepick.policies.sequential.engine import embedded_in, typical_scales
from surepick.policies.sequential.state import SequentialState

# --- Where a design takes seconds: many directions, and many arms. What is asked of it then.

HEURISTIC_ROUGH = 0.3  # gap that is proved where designs take long; what is true is mostly a few per cent
HEURISTIC_SURE = 0.67  # of the pulls of a batch on few arms: so many must be predicted to be enough


def tolerance_of(embedded: Embedded, tolerance: float) -> float:
    """Relative gap that is asked of a design: where designs take long more than is asked of others."""
    return max(tolerance, HEURISTIC_ROUGH) if is_expensive(embedded) else tolerance


def is_expensive(embedded: Embedded) -> bool:
    """Whether a design takes seconds: many directions, and many arms."""
    many = embedded.dim >= tuning.MANY_DIRECTIONS and embedded.num_arms > tuning.HEURISTIC_MANY
    return embedded.structured and many


@record
class FewArms:
    """Whether a design may be one on few arms: where designs take long, if a pull of each is predicted to be enough."""

    unit: float | None  # pulls that a value of 1 stands for; None: the tolerance alone decides
    accept: Callable[[FloatArray], bool] | None  # whether given weights, (K,), are enough

    @staticmethod
    def of(needed: Callable[[FloatArray], float] | None, embedded: Embedded) -> FewArms:
        """For designs whose value is in pulls."""
        if needed is None or not is_expensive(embedded):
            return FewArms(None, None)

        def accept(weights: FloatArray) -> bool:
            once = (weights > 0.0).astype(np.float64)
            return needed(once / once.sum()) <= HEURISTIC_SURE * float(once.sum())

        return FewArms(1.0, accept)


HEURISTIC_OPENING_PULLS = 0.12  # the first batch: this times d s^2 / epsilon^2 pulls, twice that without structure
HEURISTIC_SHORTEST_EPOCH = 0.03  # an epoch opens once this share of the pulls still to come has been spent
MOST_PULLS_UNSEEN = 10  # an arm of unknown variance gets at most so many pulls in the first batch
UNSEEN = 1e-7  # of the root mean square length of the arms: what of a difference counts as outside the range


@record
class NextBatch:
    """What is still to be measured for a candidate."""

    candidate: int  # c
    dim: int  # d of the embedding that the design is for
    design: Design  # weights over the arms; value: the pulls that rejecting all rivals is predicted to take
    # open rivals whose margin the bias nearly or fully eats; no number of pulls would reject them if the means were as
    # guessed
    bias_limited: IntArray

    @property
    def effort(self) -> float:
        """The predicted pulls; with vectors one more of each arm, because a batch has that many, however few it needs.

        Without structure the arms are the rivals, whatever is planned.
        """
        arms = np.count_nonzero(self.design.weights) if self.dim < len(self.design.weights) else 0
        return self.design.value + float(arms)


@record
class OpenTest:
    """A candidate against its open rivals, and what is guessed of the means."""

    candidate: int  # c
    rivals: IntArray  # the open ones, at least one, (m,)
    evidence: FloatArray  # log of weight times e-process, (K,)
    threshold: float  # log(1/delta)
    posterior: Posterior  # the means as they look so far
    noise_scales: FloatArray  # s, (K,), in reward units
    epsilon: float  # in reward units

    @staticmethod
    def of(problem: Problem, state: SequentialState, epoch: EProcesses, posterior: Posterior) -> OpenTest:
        """That of a candidate, by its epoch."""
        threshold = threshold_of(problem)
        rivals, scales = epoch.open_rivals(threshold), typical_scales(problem, state.seen)
        return OpenTest(int(epoch.name), rivals, epoch.values, threshold, posterior, scales, problem.epsilon)

    def efforts(self) -> FloatArray:
        """By how many standard errors the margin of each rival must exceed 0, shape (m,)."""
        return efforts(self.evidence[self.rivals], self.threshold)

    def margins(self) -> FloatArray:
        """Guesses of epsilon + h_c - h_j of each rival, shape (m,)."""
        return self.posterior.margins(self.candidate, self.epsilon, self.rivals)


def next_batch(
    embedded: Embedded,
    test: OpenTest,
    *,
    tolerance: float,
    bias: FloatArray | None = None,
    posed: Callable[[], DesignInput] | None = None,
    counts: IntArray | None = None,  # of the pulls so far, (K,): where designs take long their bias stands for that
    white: Whitened | None = None,
) -> NextBatch:
    """The design that is predicted to reject the open rivals of a candidate with the fewest pulls.

        need_j = max(log(1/delta) - evidence_j, 0)
        R_j = 2 (need_j + min(need_j, 1)/2) / (margin_j - bias_j)^2
        V = min over lambda of max over rivals j of R_j ||z_j - z_c||^2 in A(lambda)^-1,   A = sum lambda_x z z' / s_x^2

    A bet on the right margin m gains m^2 / (2 D) a batch on average, D = ||y||^2 / N: so V pulls bring every rival to
    1/delta, and half a unit beyond, because all must get there together.

    Source: ours (docs/decisions/0008 has what was tried).
    """
    candidate, rivals, noise_scales, gamma = test.candidate, test.rivals, test.noise_scales, embedded.misspecification
    effort, margins = test.efforts(), test.margins()

    def accuracies(slack: FloatArray) -> FloatArray:
        found = np.ones(embedded.num_arms)
        found[rivals] = slack / effort
        return found

    def solved(bias: FloatArray) -> tuple[Design, IntArray]:
        slack = np.maximum(margins - bias, tuning.LEAST_SLACK * margins)
        needed = partial(pulls_by, embedded, test, white=white) if embedded.structured else None
        few = FewArms.of(needed, embedded)
        design = star_design(embedded, candidate, accuracies(slack), rivals, noise_scales, tolerance, posed, few)
        return design, rivals[margins - bias < tuning.LEAST_SLACK * margins]

    alone = None
    if bias is None and embedded.structured and len(rivals) + 1 < embedded.dim:
        alone = _one_by_one(embedded, candidate, accuracies(margins), rivals, noise_scales)
        if alone.effort <= embedded.dim:  # which no design for all directions can be
            return alone
    least = np.full(len(rivals), 2.0 * gamma) if bias is None else bias
    matters = gamma * (2.0 + 2.0 * math.sqrt(embedded.dim)) > tuning.NEGLIGIBLE_BIAS * test.epsilon
    if bias is None and matters and embedded.structured:
        before = counts if counts is not None and is_expensive(embedded) else solved(least)[0].weights
        own = _lengths(embedded, candidate, rivals, before, white)
        least = gamma * (2.0 + np.where(np.isfinite(own), own, 0.0))
    design, bias_limited = solved(least)
    batch = NextBatch(candidate, embedded.dim, design, bias_limited)
    return batch if alone is None or batch.effort <= alone.effort else alone


def pulls_by(
    embedded: Embedding, test: OpenTest, weights: FloatArray | IntArray, *, white: Whitened | None = None
) -> float:
    """Pulls in given proportions, bias included, predicted to reject the open rivals; infinite if one is unseen."""
    lengths, margins = _lengths(embedded, test.candidate, test.rivals, weights, white), test.margins()
    if np.isinf(lengths).any():
        return math.inf
    slack = np.maximum(margins - embedded.misspecification * (2.0 + lengths), tuning.LEAST_SLACK * margins)
    return float(np.max((lengths * test.efforts() / slack) ** 2)) * float(test.noise_scales.max()) ** 2


def _one_by_one(
    embedded: Embedding, candidate: int, accuracies: FloatArray, rivals: IntArray, noise_scales: FloatArray
) -> NextBatch:
    """The candidate and its rivals themselves: few arms where rivals are few, and no bias, however poor the vectors."""
    design = designs.independent_star_design(candidate, accuracies, rivals=rivals, noise_scales=noise_scales)
    design = replace(design, lower_bound=0.0, rank=embedded.dim)  # that of designs that use the vectors is another
    return NextBatch(candidate, embedded.dim, design, rivals[:0])


def star_design(
    embedded: Embedded,
    candidate: int,
    accuracies: FloatArray,
    rivals: IntArray,
    noise_scales: FloatArray,
    tolerance: float,
    posed: Callable[[], DesignInput] | None,
    few: FewArms,
) -> Design:
    """The design that tells each rival from the candidate to its accuracy."""
    if not embedded.structured:
        return designs.independent_star_design(candidate, accuracies, rivals=rivals, noise_scales=noise_scales)
    uneven = np.ptp(noise_scales) > 0.0
    return best_found(  # a worse design costs pulls, not validity
        designs.solve_star_design,
        embedded.features if uneven or posed is None else posed(),
        candidate,
        accuracies if uneven else accuracies / noise_scales[0],
        rivals=rivals,
        noise_scales=noise_scales if uneven else None,
        tolerance=tolerance_of(embedded, tolerance),
        unit=few.unit,
        accept=few.accept,
    )


def _lengths(
    embedded: Embedding, candidate: int, rivals: IntArray, weights: FloatArray | IntArray, white: Whitened | None
) -> FloatArray:
    """sqrt(N) ||z_j - z_c|| in A^-1 for N pulls in these proportions: what bias costs; infinite where it is unseen."""
    basis = (whitened(embedded.features) if white is None else white).basis
    counts = np.floor(1e9 * weights / weights.sum())
    pulled, lengths = np.flatnonzero(counts), np.empty(len(rivals))
    span = weighted_range(basis[pulled], counts[pulled])

    whole = span.directions.shape[1] == basis.shape[1]

    def measure(some: slice) -> None:
        towards = basis[rivals[some]] - basis[candidate]
        lengths[some] = row_norms(towards @ span.to_unit)
        if not whole:
            missed = row_norms(towards - (towards @ span.directions) @ span.directions.T)
            lengths[some][missed > UNSEEN * math.sqrt(basis.shape[1])] = math.inf

    each_row_block(measure, len(rivals))
    return lengths * math.sqrt(counts.sum())


def opening_design(
    embedded: Embedded, tolerance: float, posed: Callable[[Embedding], DesignInput] | None = None
) -> Design:
    """Where to look before anything is known: the design for all differences; of many arms, for those from a central
    arm, whose value is at most the same and at least a quarter (triangle inequality).
    """
    if not embedded.structured or embedded.num_arms <= tuning.HEURISTIC_MANY:
        return embedding_design(embedded, tolerance=tolerance)
    return opening_from_middle(embedded, tolerance, posed=None if posed is None else posed(embedded))


def opening_from_middle(
    embedded: Embedding,
    tolerance: float,
    noise_scales: FloatArray | None = None,  # of each arm, (K,); None: all alike
    *,
    posed: DesignInput | None = None,
) -> Design:
    """The design for the differences from a central arm."""
    arms, accuracies = embedded.features if posed is None else posed, np.ones(embedded.num_arms)
    tolerance = tolerance_of(embedded, tolerance)
    return designs.solve_star_design(
        arms, middle_of(embedded), accuracies, noise_scales=noise_scales, tolerance=tolerance
    )


def middle_of(embedded: Embedding) -> int:
    """A central arm."""
    offsets = embedded.features - embedded.features.mean(axis=0)
    return int(np.argmin(np.einsum("ij,ij->i", offsets, offsets)))


def opening_total(embedded: Embedded, problem: Problem) -> int:
    """Pulls of the first batch, in all; for arms without structure a multiple of K."""
    known = problem.noise.support is None  # the scale is declared, not just bounded by a range
    ratio = HEURISTIC_OPENING_PULLS * (problem.sigma / problem.epsilon) ** 2
    if not embedded.structured:
        each = whole_pulls(2.0 * ratio) if known else max(1, math.ceil(2.0 * min(ratio, MOST_PULLS_UNSEEN)))
        return embedded.num_arms * (each if known else min(each, MOST_PULLS_UNSEEN))
    return max(2 * embedded.dim, 4, whole_pulls(ratio * embedded.dim))


# --- The first batch of a certifying policy: in which dimension, and by which design.

HEURISTIC_TOLD = 2.0  # standard errors in epsilon: so well a first batch on few arms must tell all differences


def first_dimension(
    problem: Problem,
    embedding: ArmEmbedding,
    *,
    dim: int | None,
    tolerance: float,
    design_of: DesignOf = opening_design,
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
    embedded = embedded_in(embedding, taken)
    return taken, best_found(design_of, embedded, tolerance)


def on_few_first_arms(
    problem: Problem, embedded: Embedded, design: Design, *, posed: Callable[[], DesignInput]
) -> Design:
    """The design of a first batch on fewer arms, if a pull or two of each tells all differences to epsilon."""
    if not embedded.structured or embedded.num_arms <= tuning.HEURISTIC_MANY:
        return design
    unit = (HEURISTIC_TOLD * problem.sigma / problem.epsilon) ** 2
    return designs.on_fewer_arms(posed(), middle_of(embedded), np.ones(embedded.num_arms), design, unit=unit)
