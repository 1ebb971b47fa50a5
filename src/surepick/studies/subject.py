"""What a study is about: arms, and a policy for them."""

from __future__ import annotations

from typing import Any

from surepick.core.arms import Arms
from surepick.errors import InvalidInput
from surepick.policies.base import Policy


def subject_of(arms: Arms | Policy[Any], policy: Policy[Any] | None = None) -> tuple[Arms, Policy[Any]]:
    """The arms and the policy of a study, given as (arms, policy), or as a policy that knows its arms.

    Raises:
        InvalidInput: not arms and a policy, a policy for another number of arms, or one that does not know its arms.
    """
    if policy is None and isinstance(arms, Policy):
        policy = arms
        if policy.problem.arms is None:
            raise InvalidInput(
                f"this {type(policy).__name__} does not know its arms, only their number: it was not made by "
                "make_policy. Give both: Study(arms, policy)."
            )
        arms = policy.problem.arms
    if not isinstance(arms, Arms) or not isinstance(policy, Policy):
        raise InvalidInput(
            f"Study(arms, policy) was given a {type(arms).__name__} and a {type(policy).__name__}; the arms come first."
        )
    if policy.problem.num_arms != arms.num_arms:
        raise InvalidInput(
            f"the policy is for {policy.problem.num_arms} arms and there are {arms.num_arms}; build it from them."
        )
    return arms, policy
