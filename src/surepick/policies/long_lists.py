"""Lists too long to be compared one by one: a part of the list answers for all of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from surepick.blocks.rows import RowBlocks
from surepick.core.arms import Arms
from surepick.errors import InvalidInput
from surepick.noise import Noise, parse_noise
from surepick.policies.base import Policy, Problem, spec_of
from surepick.policies.questions.one_of import OneOfShare, arms_of, sample_of
from surepick.policies.subset.best import BestOfSubset
from surepick.policies.subset.chosen import Subset
from surepick.policies.subset.selection import SubsetSelection
from surepick.questions import OneOf, question_spec

USUAL_SHARE = 0.1  # of delta, for the short list
SETTINGS = ("size", "slack", "executor", "meter")


def selection_from(
    rows: RowBlocks, *, delta: float, noise: Noise | str, norm_bound: float | None, **settings: Any
) -> SubsetSelection:
    """The policy that shortens a list, as `SubsetSelection.over` makes it.

    Args:
        rows: the candidates.
        delta: probability that the best is not on the short list.
        noise: what is assumed of a reward.
        norm_bound: the largest norm that the linear reward function can have.
        settings: some of `SETTINGS`.

    Raises:
        InvalidInput: there is no norm bound, or as `SubsetSelection.over`.
    """
    if norm_bound is None:
        raise InvalidInput("candidates in blocks need norm_bound: the largest norm that the linear reward can have.")
    return SubsetSelection.over(rows, delta=delta, noise=noise, norm_bound=norm_bound, **settings)


def best_of_subset(
    make: Callable[..., Policy[Any]],
    name: str,
    arms: Arms,
    *,
    epsilon: float,
    delta: float,
    selected: Any,
    **options: Any,
) -> Policy[Any]:
    """The policy of that name for arms that were selected from a longer list, as the answer for that list.

    Args:
        make: makes the policy for the arms alone.
        selected: where they come from, a `Subset` or its plain data.

    Raises:
        InvalidInput: nothing of delta or epsilon is left, or the arms are not those of the selection.
    """
    subset = Subset.of(selected)
    left, finer = delta - subset.rules.delta, epsilon - subset.rules.slack
    if not (left > 0.0 and finer > 0.0):
        raise InvalidInput(
            f"the selection has taken {subset.rules.delta:g} of delta and {subset.rules.slack:g} of epsilon; delta is "
            f"{delta:g} and epsilon {epsilon:g}, so nothing is left for the answer."
        )
    inner = make(name, arms, epsilon=finer, delta=left, **options)
    spec, asked = spec_of(inner), {"epsilon": epsilon, "delta": delta, "selected": subset.spec()}
    problem = replace(inner.problem, epsilon=epsilon, delta=delta)
    return BestOfSubset(problem, inner, subset, spec=None if spec is None else {**spec, **asked})


def one_of_share(
    make: Callable[..., Policy[Any]],
    question: OneOf,
    name: str,
    arms: Arms,
    *,
    epsilon: float,
    delta: float,
    noise: Noise | str,
    **options: Any,
) -> Policy[Any]:
    """The policy of that name for a random sample of the arms, as the answer of the whole list.

    Args:
        make: makes the policy for the sample alone.
    """
    assumed = parse_noise(noise) if isinstance(noise, str) else noise
    problem = Problem(arms.num_arms, epsilon, delta, assumed, options.get("gap_bound"), arms, question)
    members = sample_of(question, arms.num_arms, delta)
    sampled = arms_of(arms, members)
    inner = make(name, sampled, epsilon=epsilon, delta=delta / 2.0, noise=noise, **options)
    spec = spec_of(inner)
    asked = {"delta": delta, "question": question_spec(question)}
    return OneOfShare(problem, inner, members, spec=None if spec is None else {**spec, **asked})
