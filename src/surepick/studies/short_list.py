"""What follows a study that shortens a long list: the study of the short list."""

from __future__ import annotations

from typing import Any

from surepick.errors import OutOfTurn
from surepick.policies.base import Policy
from surepick.policies.long_lists import after_selection
from surepick.policies.registry import make_policy
from surepick.studies.study import Study


def short_list_policy(study: Study) -> Policy[Any]:
    """The policy for the list to which a study has shortened a longer one; `Study` or `create_study` takes it.

    Its answer is for the whole list, and its certificate says so.

    Args:
        study: of rows in blocks. The same measurements may minimize: give the next study the same `minimize`.

    Raises:
        InvalidInput: the study shortens no list, or its files are not what they were.
        OutOfTurn: the list is not short yet.

    Cost: a pass over the files.
    """
    policy, state = study.policy, study.state
    if policy.traits.rows is not None and not policy.claim(state).finished:
        raise OutOfTurn(f"the list is not short yet: {state.left:,} candidates are left. Ask and tell on.")
    return after_selection(make_policy, policy, state)
