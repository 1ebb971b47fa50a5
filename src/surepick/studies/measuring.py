"""The function of a user that measures: recognised before anything is asked, called, and its answer read."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from surepick.core.values import check_order, real_numbers, reason
from surepick.errors import InvalidInput
from surepick.questions import Constraint
from surepick.text import quoted

# ids -> rewards; of test items (ids, items) -> scores; in blocks also (ids, blocks); with constraints a row for each id
Measure = Callable[..., ArrayLike]
EACH = "measure gets a list of ids and returns a reward for each, in the same order"
ONE_BY_ONE = "If yours measures one id, give lambda ids: [measure(i) for i in ids]."
NO_COROUTINE = (
    "measure is a coroutine function, and find_best waits for no coroutine: give a function that returns the rewards, "
    "lambda ids: asyncio.run(measure(ids))."
)


def check_measure(measure: object) -> None:
    """Refuse what cannot measure, before anything is asked.

    Raises:
        InvalidInput: it is no function, or one that returns no rewards but a coroutine.
    """
    if not callable(measure):
        raise InvalidInput(f"measure is {quoted(measure)}, which is no function: {EACH}.")
    inner: Any = measure
    while isinstance(inner, partial):
        inner = inner.func
    own = getattr(type(inner), "__call__", None)  # noqa: B004 (we look at what it is)
    for one in (inner, own):
        if inspect.iscoroutinefunction(one) or inspect.isasyncgenfunction(one):
            raise InvalidInput(NO_COROUTINE)


def takes_two(measure: Measure) -> bool:
    """Whether a function needs a second argument: the names of the blocks beside the ids."""
    try:
        wanted = inspect.signature(measure).parameters.values()
    except (TypeError, ValueError):  # it does not say
        return False
    placed = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = [one for one in wanted if one.default is one.empty and one.kind in placed]
    return len(needed) > 1


def measured(
    measure: Measure,
    ids: Sequence[object],
    names: Sequence[str],
    *beside: Sequence[object],
    constraints: Sequence[Constraint] = (),
) -> np.ndarray:
    """What a function measured, checked as far as its form goes.

    Args:
        measure: the function.
        ids: n ids, as they were given to us.
        names: their texts.
        beside: what it gets besides: the test items, or the names of the blocks.
        constraints: on what else is measured.

    Returns:
        Shape (n,); with r constraints (n, 1 + r). NaN where a measurement gave no number.

    Raises:
        InvalidInput: it did not return that many numbers, or it measures one id and failed on several; then its own
            exception is the cause. Other exceptions of it pass.
    """
    try:
        given: Any = measure(ids, *beside)
        if isinstance(given, Iterator):
            given = list(islice(given, len(ids) + 1))
    except (TypeError, AttributeError, KeyError) as error:
        if not _of_the_list(error, ids):
            raise
        said = f"{type(error).__name__}: {reason(error)}"
        raise InvalidInput(f"{EACH}; this one raised {quoted(said)[1:-1]}. {ONE_BY_ONE}") from error
    _refuse_kinds(given, len(ids))
    check_order("the rewards that measure returned", given, names)
    wanted = "one reward for each id"
    if constraints:
        wanted = f"a row for each id: the reward, then {', '.join(one.name for one in constraints)}"
    called = f"measure was called with {len(ids)} ids, and it must return {wanted}"
    rewards = real_numbers("rewards", given, wrong=f"{called}; what it returned are not numbers")
    if rewards.shape != ((len(ids), 1 + len(constraints)) if constraints else (len(ids),)):
        one = f" {ONE_BY_ONE}" if not rewards.shape else ""
        raise InvalidInput(f"{called}; it returned rewards of shape {rewards.shape}.{one}")
    return rewards


def _refuse_kinds(given: object, number: int) -> None:
    """Refuse what holds no rewards in an order.

    Raises:
        InvalidInput: nothing, a coroutine, a mapping or a set.
    """
    if given is None:
        raise InvalidInput(f"measure was called with {number} ids and returned None; does it end with return? {EACH}.")
    if inspect.isawaitable(given) or inspect.isasyncgen(given):
        if inspect.iscoroutine(given):
            given.close()
        raise InvalidInput(NO_COROUTINE)
    if isinstance(given, list | tuple) and any(map(inspect.isawaitable, given)):
        for one in filter(inspect.iscoroutine, given):
            one.close()
        raise InvalidInput(NO_COROUTINE)
    if isinstance(given, Mapping):
        raise InvalidInput(
            f"measure returned a {type(given).__name__}, and an id may be asked several times at once: return "
            "[rewards[i] for i in ids], one reward for each id in their order."
        )


def _of_the_list(error: Exception, ids: Sequence[object]) -> bool:
    """Whether an error looks like that of a function that was made for one id."""
    if isinstance(error, KeyError):
        return any(one is ids or (isinstance(one, str) and one == str(ids)) for one in error.args)
    return not {"list", "sequence"}.isdisjoint(reason(error).replace("'", " ").split())
