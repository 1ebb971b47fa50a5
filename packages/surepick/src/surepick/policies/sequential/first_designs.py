"""Designs for a certifying policy: which it takes where they take long, and that of its first batch."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from surepick import designs
from surepick.core.plans import Design, Embedded, Embedding
from surepick.core.records import FloatArray, IntArray, record
from surepick.designs import DesignInput
from surepick.embeddings import ArmEmbedding
from surepick.embeddings.base import free_dim
from surepick.errors import ContractError
from surepick.policies import model_checks, tuning
from surepick.policies.base import Problem
from surepick.policies.dimension import DesignOf, best_found, cheapest_dimension, embedding_design
from surepick.policies.sequential.engine import embedded_in

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
        taken = (free_dim(embedding) or embedding.max_dim) if dim is None else dim
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
            taken = free_dim(embedding) or embedding.max_dim
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
