"""What follows a study that shortens a long list: the study of the short list."""

from typing import Any

from surepick.errors import InvalidInput, OutOfTurn
from surepick.policies.base import Policy
from surepick.policies.long_lists import after_selection
from surepick.policies.registry import built_policy
from surepick.policies.verdict import certificate_of
from surepick.studies.study import Study


def short_list_policy(study: Study) -> Policy[Any]:
    """The policy for the list to which a study has shortened a longer one; `Study` or `create_study` takes it.

    Its answer is for the whole list, and its certificate says so.

    Args:
        study: of rows in blocks. Where it minimizes, so must the next one, or it is refused.

    Raises:
        InvalidInput: the study shortens no list, its files are not what they were, or measurements were left out of it
            for a reason that may depend on their values.
        OutOfTurn: the list is not short yet.

    Cost: a pass over the files.
    """
    policy, state = study.policy, study.state
    if policy.traits.rows is not None and not policy.claim(state).finished:
        over = "The study was closed; begin another" if study.early_end() is not None else "Ask and tell on"
        raise OutOfTurn(f"the list is not short yet: {state.left:,} candidates are left. {over}.")
    last = study.log.last_decision()
    if last is not None and last.deviations.doubtful:
        raise InvalidInput(
            "measurements of this study were left out for a reason that may depend on their values, so nothing is "
            "certain of its short list, nor of what would follow. Begin another study of the list."
        )
    if last is not None and last.deviations.contradicted:
        raise InvalidInput(
            "repeats of this study contradict its declared noise, so nothing is certain of its short list, nor of what "
            "would follow. Begin another study of the list, with a scale that holds."
        )
    usual = certificate_of(policy, state).assumptions
    facts = tuple(one for one in study.certificate().assumptions if one not in usual)
    return after_selection(built_policy, policy, state, minimize=study.minimize, facts=facts)
