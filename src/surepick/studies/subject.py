"""What a study is about: arms, and a policy for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from surepick.errors import InvalidInput
from surepick.records import Arms

if TYPE_CHECKING:
    from surepick.policies import Policy


def check_subject(arms: Arms, policy: Policy[Any]) -> None:
    """Refuse what is no study.

    Raises:
        InvalidInput: not arms and a policy, or a policy for another number of arms.
    """
    from surepick.policies import Policy  # noqa: PLC0415 (only where a study is made: telling needs no policy)

    if not isinstance(arms, Arms) or not isinstance(policy, Policy):
        raise InvalidInput(
            f"Study(arms, policy) was given a {type(arms).__name__} and a {type(policy).__name__}; the arms come first."
        )
    if policy.num_arms != arms.num_arms:
        raise InvalidInput(
            f"the policy is for {policy.num_arms} arms and there are {arms.num_arms}; build it from them."
        )


def rounds_at_most(policy: Policy[Any]) -> int | None:
    """The rounds after which a policy is done if no result is missing; None where it knows no such number."""
    known = getattr(getattr(policy, "settings", policy), "num_rounds", None)
    return known if isinstance(known, int) else None
