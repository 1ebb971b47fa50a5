"""What a study is about: arms, and a policy for them."""

from __future__ import annotations

from typing import Any

from surepick.core.arms import Arms
from surepick.errors import InvalidInput
from surepick.policies.base import Policy


def check_subject(arms: Arms, policy: Policy[Any]) -> None:
    """Refuse what is no study.

    Raises:
        InvalidInput: not arms and a policy, or a policy for another number of arms.
    """
    if not isinstance(arms, Arms) or not isinstance(policy, Policy):
        raise InvalidInput(
            f"Study(arms, policy) was given a {type(arms).__name__} and a {type(policy).__name__}; the arms come first."
        )
    if policy.problem.num_arms != arms.num_arms:
        raise InvalidInput(
            f"the policy is for {policy.problem.num_arms} arms and there are {arms.num_arms}; build it from them."
        )
