"""Options of policies: a field with its default, and the check that refuses values without meaning."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, fields
from typing import Any, TypeVar

import numpy as np

from surepick.core import validation
from surepick.core.validation import (
    as_number,
    check_choice,
    check_size,
    check_slack,
    positive_number,
    share_of_pulls,
    whole_number,
)
from surepick.errors import InvalidInput
from surepick.noise import Noise, PilotGaussian, known_scale
from surepick.text import quoted

T = TypeVar("T")
Check = Callable[[str, object], object]  # (name of the option, its value); raises InvalidInput
MOST_GROWTH = 1000.0
RESERVED = ("id", "key", "reward", "pulls", "sum", "squares")
GROWTH = f"by what share a batch adds pulls; at most {MOST_GROWTH:g}."


def option(default: T, check: Check) -> T:
    """A field of a record with that default, for `check_options`; None is accepted where it is the default."""
    made: T = field(default=default, metadata={"check": check})
    return made


def check_options(settings: Any) -> None:
    """Call the check of each field that has one.

    Raises:
        InvalidInput: from the first that refuses its value.
    """
    for each in fields(settings):
        check = each.metadata.get("check")
        if check is not None and (getattr(settings, each.name) is not None or each.default is not None):
            check(each.name, getattr(settings, each.name))


def positive(meaning: str) -> Check:
    return lambda name, value: positive_number(name, value, meaning)


def not_negative(meaning: str) -> Check:
    return lambda name, value: validation.not_negative(name, value, meaning)


def one_of(*known: str) -> Check:
    return lambda name, value: check_choice(name, value, known)


def whole(meaning: str, *, least: int = 1) -> Check:
    return lambda name, value: whole_number(name, value, least=least, meaning=meaning)


def _growth(name: str, value: object) -> None:
    if as_number(name, value) > MOST_GROWTH:
        raise InvalidInput(
            f"{name} is {quoted(value)}; it must be at most {MOST_GROWTH:g}: by what share a batch adds pulls."
        )


def growth(name: str, value: object) -> None:
    """Refuse batches that do not grow, or beyond what anybody could measure."""
    positive_number(name, value, GROWTH)
    _growth(name, value)


def growth_or_none(name: str, value: object) -> None:
    """The same, but 0 has a meaning too."""
    validation.not_negative(name, value, GROWTH)
    _growth(name, value)


def slack(_: str, value: object) -> None:
    check_slack(value)


check_share = share_of_pulls
tolerance = positive("the relative gap to which designs are solved.")
accuracy = positive("the half-width at which intervals are tightest, in reward units.")
largest_batch = whole("a batch has at least one pull.")
batch_size = whole("smaller batches tell a candidate and its rivals apart too slowly.", least=4)
max_batches = whole("the first batch finds a candidate, and a later one tests it.", least=2)
batch_cost = not_negative("what each batch costs beside its measurements.")
regularization = positive("what holds the weights near their start.")
block_size = whole("a block has room for a candidate and a rival.", least=2)


def check_noise(name: str, noise: Noise, given: Mapping[str, Any], *, unknown_scale: bool) -> None:
    """Refuse a noise that a policy cannot do with.

    Args:
        name: of the policy.
        noise: what is assumed of the rewards.
        given: the options.
        unknown_scale: the policy can do without a scale that is known beforehand.

    Raises:
        InvalidInput: the policy, or one of its options, rests on a scale that nobody knows; or it would have to take
            a pilot's failure from delta, and does not; or a scale is too small or too large for numbers.
    """
    if isinstance(noise, PilotGaussian) and not name.startswith("certified-"):
        raise InvalidInput(
            f"the noise's pilot may fail with probability {noise.failure:g}, which would have to be taken from delta; "
            f"{name} does not, only the certified policies do. Declare subgaussian:SIGMA, or take "
            "certified-independent (--policy certified-independent)."
        )
    if known_scale(noise):
        check_size("a scale of the noise", float(np.min(noise.sigma)), float(np.max(noise.sigma)))
        return
    if not unknown_scale:
        raise InvalidInput(
            f"noise is normal with unknown scales, and {name} rests on a scale that is known beforehand. Take "
            "certified-independent (--policy certified-independent), certified-linear or certified-kernel, or declare "
            "subgaussian:SIGMA."
        )
    for option, allowed in (("evidence", (None, "carried", "paired", "lists")),):
        value = given.get(option)
        if value not in allowed:
            raise InvalidInput(
                f"{option} is {quoted(value)}, which rests on a scale of the noise that is known beforehand, and noise "
                f"is normal with unknown scales. Leave {option} out, or declare subgaussian:SIGMA."
            )


def block_name(name: str, value: object) -> None:
    """Refuse what cannot be the name of a column of results."""
    if not isinstance(value, str) or not value.strip() or value in RESERVED:
        raise InvalidInput(
            f"{name} is {quoted(value)}; say what measurements that belong together are called, e.g. 'plate' or 'day': "
            f"the column of results that names each row's block. {', '.join(RESERVED)} are other columns."
        )


def arm_id(name: str, value: object) -> None:
    """Refuse what is no id."""
    if not isinstance(value, str):
        raise InvalidInput(f"{name} is {quoted(value)}; give the id of a candidate.")


def share_of_delta(name: str, value: object) -> None:
    """Refuse what is no share."""
    if not 0.0 < as_number(name, value) < 1.0:
        raise InvalidInput(f"{name} is {quoted(value)}; it must lie strictly between 0 and 1: a share of delta.")


def arm_ids(name: str, value: object) -> None:
    """Refuse what are no ids."""
    if isinstance(value, str) or not isinstance(value, list | tuple) or not all(isinstance(one, str) for one in value):
        raise InvalidInput(f"{name} is {quoted(value)}; give a list of ids of candidates.")


def yes(name: str, value: object) -> None:
    """Refuse all but True: what is not wanted is left out."""
    if value is not True:
        raise InvalidInput(f"{name} is {quoted(value)}; it is True, or left out.")
