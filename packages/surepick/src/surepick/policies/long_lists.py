"""Lists too long to be compared one by one: a part of the list answers for all of it."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from surepick.chunks.sources import RowBlocks
from surepick.core.arms import Arms
from surepick.core.values import as_number
from surepick.embeddings.kernel_functions import GaussianKernel, Kernel
from surepick.errors import InvalidInput
from surepick.noise import Noise, parse_noise
from surepick.policies.base import Policy, Problem, spec_of
from surepick.policies.questions.one_of_share import OneOfShare
from surepick.policies.subset.evidence import Subset
from surepick.policies.subset.selection import USUAL_SIZE, BestOfSubset, SubsetSelection
from surepick.questions import BEST, OneOf, question_spec

USUAL_SHARE = 0.1  # of delta, for the short list
HEURISTIC_SLACK = 0.25  # of epsilon, with a kernel: many rows near the best one are nearly as good
LINEAR, KERNEL = SHORTENED = ("certified-linear", "certified-kernel")
FEW = 64  # made-up rows on which settings are tried
TRANSIENT = ("executor", "meter")  # who makes the passes, and who watches; no part of what is promised
OF_THE_LIST = ("share", "size", "slack", "first_look")
Make = Callable[..., Policy[Any]]


def shortened_first(
    make: Make,
    check: Callable[[str, Mapping[str, Any]], None],
    refused: Mapping[str, Any],
    name: str,
    rows: Any,
    *,
    epsilon: float,
    delta: float,
    noise: Noise | str,
    **options: Any,
) -> Policy[Any]:
    """The policy that shortens a list, after which one of that name finds the best of the short list."""
    if not isinstance(rows, RowBlocks):
        raise InvalidInput(
            "this policy shortens a long list, and the rows of that list are not here: open the study where its "
            "files lie. What is certified is the answer of the study that follows it."
        )
    if name not in SHORTENED:
        raise InvalidInput(
            f"candidates in blocks are compared by certified-linear or certified-kernel, not by {name}: give "
            "norm_bound, and a kernel or none."
        )
    own = {option: options.pop(option) for option in (*OF_THE_LIST, *TRANSIENT) if option in options}
    check(name, options)
    if options.get("norm_bound") is None:
        raise InvalidInput("candidates in blocks need norm_bound: the largest norm that the linear reward can have.")
    if options.get("question") not in (None, BEST):
        raise InvalidInput(
            "candidates in blocks answer which is the best, and no other question: of those that are not among the few "
            "that may be the best hardly anything is measured. Ask the other question of a table of those that matter."
        )
    said = [option for option in options if options[option] not in (None, refused.get(option, options[option]))]
    if said:
        raise InvalidInput(
            f"candidates in blocks take no {said[0]}: the list is shortened by few measurements of its own, which come "
            "in batches of their own. Leave it out."
        )
    share, size = as_number("share", own.get("share", USUAL_SHARE)), own.get("size", USUAL_SIZE)
    if not 0.0 < share < 1.0:
        raise InvalidInput(f"share is {share}; it is the part of delta for the short list, between 0 and 1.")
    of_kernel = _kernel_of(name, options)
    slack = as_number("slack", own.get("slack", 0.0 if of_kernel is None else HEURISTIC_SLACK * epsilon))
    if not 0.0 <= slack < epsilon:
        raise InvalidInput(f"slack is {slack:g}; it is taken off epsilon, {epsilon:g}, so it lies between 0 and that.")
    if "first_look" not in own:
        few = Arms(np.random.default_rng(0).standard_normal((FEW, rows.num_columns)))
        tried: dict[str, Any] = {"epsilon": epsilon - slack, "delta": (1.0 - share) * delta, "noise": noise}
        make(name, few, **tried, **options)  # refuses settings before anything is read or measured
    selection = SubsetSelection.over(
        rows,
        delta=share * delta,
        noise=noise,
        norm_bound=options["norm_bound"],
        size=size,
        slack=slack,
        max_rank=options.get("max_rank"),
        kernel=of_kernel,
        epsilon=None if of_kernel is None else epsilon,
        look=own.get("first_look"),
        promised=(epsilon, delta),
        **{option: own[option] for option in TRANSIENT if option in own},
    )
    asked = {"name": name, "epsilon": epsilon, "delta": delta, "noise": selection.rules.noise}
    kept = {**options, "share": share, "size": size, "slack": slack}
    if kept.get("kernel") is not None:
        kept["kernel"] = selection.rules.kernel
    object.__setattr__(selection, "spec", {**asked, **kept, "first_look": selection.look.spec()})
    return selection


def _kernel_of(name: str, options: Mapping[str, Any]) -> Kernel | str | None:
    if name == LINEAR:
        return None
    gamma, kernel = options.get("gamma"), options.get("kernel")
    if (gamma is None) == (kernel is None):
        raise InvalidInput("certified-kernel over candidates in blocks takes gamma or kernel, one of them.")
    return kernel if gamma is None else GaussianKernel(gamma)


def check_rows(policy: Policy[Any]) -> None:
    """Go through the rows of a policy that shortens a list, and refuse them if they are not those of its first look."""
    if isinstance(policy, SubsetSelection):
        policy.look.tree_of(policy.passes)


def after_selection(
    make: Make, policy: Policy[Any], state: Any, *, minimize: bool = False, facts: tuple[str, ...] = ()
) -> Policy[Any]:
    """The policy that finds the best of the list to which another one shortened a longer one."""
    if not isinstance(policy, SubsetSelection) or policy.spec is None:
        raise InvalidInput("this study shortens no list: its candidates are not rows in blocks.")
    arms, selected = policy.selected(state)
    subset = replace(selected, minimize=minimize, facts=facts)
    options = {option: value for option, value in policy.spec.items() if option not in OF_THE_LIST}
    return make(arms=arms, selected=subset, **options)


def best_of_subset(
    make: Make, name: str, arms: Arms, *, epsilon: float, delta: float, selected: Any, **options: Any
) -> Policy[Any]:
    """The policy of that name for arms that were selected from a longer list, as the answer for that list."""
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
    make: Make,
    question: OneOf,
    name: str,
    arms: Arms,
    *,
    epsilon: float,
    delta: float,
    noise: Noise | str,
    **options: Any,
) -> Policy[Any]:
    """The policy of that name for a random sample of the arms, as the answer of the whole list."""
    if options.get("prefer") is not None:
        raise InvalidInput("question 'one-of' names any of the best, and prefers none: leave prefer out.")
    if options.get("later") is not None:
        raise InvalidInput(
            "the sample of question 'one-of' is drawn before the first measurement, from candidates that are all "
            "there: leave later out."
        )
    assumed = parse_noise(noise) if isinstance(noise, str) else noise
    problem = Problem(arms.num_arms, epsilon, delta, assumed, options.get("gap_bound"), arms, question)
    members = question.sample(arms.num_arms, delta)
    sampled = arms.only(members)
    inner = make(name, sampled, epsilon=epsilon, delta=delta / 2.0, noise=noise, **options)
    spec = spec_of(inner)
    asked = {"delta": delta, "question": question_spec(question)}
    return OneOfShare(problem, inner, members, spec=None if spec is None else {**spec, **asked})
