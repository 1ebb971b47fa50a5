"""The first batch of a certifying policy: in which dimension, and by which design."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from surepick.core.design import Design, Embedding, IndependentArms
from surepick.designs import PosedArms, on_fewer_arms
from surepick.embeddings import ArmEmbedding
from surepick.errors import ContractError
from surepick.policies import model_checks
from surepick.policies.base import Problem
from surepick.policies.certified import sampling_rule
from surepick.policies.certified.dear_designs import HEURISTIC_MANY
from surepick.policies.dimension import DesignOf, best_found, cheapest_dimension

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
    """The dimension that tells all differences to within epsilon for the fewest pulls, and its design.

    Args:
        dim: the one to take; None: it is chosen.
        tolerance: relative gap of the design.
        design_of: (embedding, tolerance) -> a design for all differences.
    """
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
    problem: Problem, embedded: Embedding | IndependentArms, design: Design, *, posed: Callable[[], PosedArms]
) -> Design:
    """The design of a first batch on fewer arms, if these tell all differences to epsilon with a pull or two of each.

    Args:
        design: for the differences from a central arm.
        posed: gives the arms as designs see them.
    """
    if isinstance(embedded, IndependentArms) or embedded.num_arms <= HEURISTIC_MANY:
        return design
    unit = (HEURISTIC_TOLD * problem.sigma / problem.epsilon) ** 2
    return on_fewer_arms(posed(), sampling_rule.middle_of(embedded), np.ones(embedded.num_arms), design, unit=unit)
