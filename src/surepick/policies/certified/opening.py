"""The first batch of a certifying policy: in which dimension, and by which design."""

from __future__ import annotations

import numpy as np

from surepick.core.design import Design, Embedding, IndependentArms
from surepick.embeddings import ArmEmbedding
from surepick.errors import ContractError
from surepick.policies import model_checks
from surepick.policies.base import Problem
from surepick.policies.certified import sampling_rule
from surepick.policies.dimension import best_found, cheapest_dimension


def embedded_in(embedding: ArmEmbedding, num_arms: int, dim: int) -> Embedding | IndependentArms:
    """psi_d; arms without structure where d is so large that nothing is assumed of the arms, for speed."""
    if embedding.num_distinct == num_arms and model_checks.is_saturated(embedding, dim):
        return IndependentArms(num_arms)
    return embedding.at(dim)


def first_dimension(
    problem: Problem, embedding: ArmEmbedding, *, dim: int | None, tolerance: float
) -> tuple[int, Design]:
    """The dimension that tells all differences to within epsilon for the fewest pulls, and its design.

    Args:
        dim: the one to take; None: it is chosen.
        tolerance: relative gap of the design.
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
                design_of=sampling_rule.opening_design,
            )
        except ContractError:  # no room for equal arms anywhere; arms that differ by more may still be rejected
            taken = embedding.max_dim
        else:
            return choice.dim, choice.design
    embedded = embedded_in(embedding, problem.num_arms, taken)
    return taken, best_found(sampling_rule.opening_design, embedded, tolerance)
