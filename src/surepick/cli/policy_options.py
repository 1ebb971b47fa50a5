"""From options of the command line to policies."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

from surepick.core.arms import Arms
from surepick.embeddings.norm_bound import ESTIMATED
from surepick.errors import InvalidInput
from surepick.noise import Noise
from surepick.policies.base import Policy
from surepick.policies.parts import NAMES_OF_A_KERNEL
from surepick.policies.registry import make_policy, policy_options

WITHOUT_FEATURES, LINEAR, KERNEL = "certified-independent", "certified-linear", "certified-kernel"
NEURAL = "certified-neural"
WHO_KNOWS = {
    "norm_source": LINEAR,
    "norm_bound": LINEAR,
    **dict.fromkeys(NAMES_OF_A_KERNEL, KERNEL),
    "misspecification": NEURAL,
}


def check_one_norm(norm_bound: object, norm_estimate: object) -> None:
    """Refuse a norm that is said to be a bound and an estimate.

    Raises:
        InvalidInput: both were given.
    """
    if norm_bound is not None and norm_estimate is not None:
        raise InvalidInput(
            f"--norm-bound {norm_bound} and --norm-estimate {norm_estimate} were both given; the first makes the "
            "answer a theorem if it holds, the second cannot. Give the bound if you vouch for it, else the estimate."
        )


def norm_options(norm_bound: float | None, norm_estimate: float | None) -> dict[str, Any]:
    """The options of a policy that one of --norm-bound and --norm-estimate means.

    Raises:
        InvalidInput: both were given.
    """
    check_one_norm(norm_bound, norm_estimate)
    if norm_estimate is None:
        return {"norm_bound": norm_bound}
    return {"norm_source": ESTIMATED, "norm_bound": norm_estimate}


def chosen_policy(
    arms: Arms, noise: Noise, name: str | None, *, epsilon: float, delta: float, **given: Any
) -> Policy[Any]:
    """The policy that the options ask for; options that were not given are None.

    Raises:
        InvalidInput: an option was given that the policy has no use for, or a setting has no meaning.
    """
    chosen = name or fitting_policy(given)
    settings = {option: value for option, value in given.items() if value is not None}
    known = policy_options(chosen)
    for option in settings:
        if option in WHO_KNOWS and option not in known:
            raise InvalidInput(
                f"{_flag(option)} has no meaning for {chosen}; leave it out, or take --policy {WHO_KNOWS[option]}."
            )
    return make_policy(chosen, arms, epsilon=epsilon, delta=delta, noise=noise, **settings)


def fitting_policy(given: dict[str, Any]) -> str:
    """The policy that the given options speak of; options that were not given are None."""
    if given.get("misspecification") is not None:
        return NEURAL
    if any(given.get(option) is not None for option in NAMES_OF_A_KERNEL):
        return KERNEL
    return WITHOUT_FEATURES if given.get("norm_bound") is None else LINEAR


def policy_grid(names: Sequence[str], lists: dict[str, Sequence[Any]]) -> dict[str, tuple[str, dict[str, Any]]]:
    """Every named policy with every combination of the options that it knows: label -> (name, options).

    Args:
        names: policies to compare; none: those that the options speak of, and the one without features beside them.
        lists: values of each option, empty where none was given.

    Raises:
        InvalidInput: an option has values and no policy knows it.
    """
    given = {option: values for option, values in lists.items() if values}
    wanted = tuple(names) or _implied(given)
    for option in given:
        if not any(option in policy_options(name) for name in wanted):
            raise InvalidInput(
                f"{_flag(option)} has no meaning for {', '.join(wanted)}; leave it out, or add "
                f"--policy {WHO_KNOWS.get(option, LINEAR)}."
            )
    grid = {}
    for name in wanted:
        _check_estimate(name, given)
        known = {option: values for option, values in given.items() if option in policy_options(name)}
        for values in product(*known.values()):
            options = dict(zip(known, values, strict=True))
            grid[_label(name, options)] = (name, options)
    return grid


def _check_estimate(name: str, given: dict[str, Sequence[Any]]) -> None:
    """Refuse an estimated norm for a policy that would take it for a bound."""
    known = policy_options(name)
    if "norm_source" in given and "norm_bound" in known and "norm_source" not in known:
        raise InvalidInput(
            f"--norm-estimate has no meaning for {name}, which takes every norm for a bound; give --norm-bound if you "
            f"can vouch for it, or take --policy {LINEAR}."
        )


def _implied(given: dict[str, Sequence[Any]]) -> tuple[str, ...]:
    kernel = any(option in given for option in NAMES_OF_A_KERNEL)
    if "norm_bound" not in given:
        if kernel:
            raise InvalidInput(
                "a kernel needs --norm-bound as well: the largest norm that the reward can have in its space."
            )
        return (WITHOUT_FEATURES,)
    return (LINEAR, KERNEL, WITHOUT_FEATURES) if kernel else (LINEAR, WITHOUT_FEATURES)


def _label(name: str, options: dict[str, Any]) -> str:
    shown = [
        f"{option}={value:g}" if isinstance(value, float) else f"{option}={value}" for option, value in options.items()
    ]
    return " ".join([name, *shown])


def _flag(option: str) -> str:
    return "--norm-estimate" if option == "norm_source" else f"--{option.replace('_', '-')}"
