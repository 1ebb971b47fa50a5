"""The main job in one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from surepick.blocks.rows import RowBlocks
from surepick.core.arms import Arms
from surepick.errors import InvalidInput
from surepick.noise import Noise
from surepick.policies.parts import fitting_policy
from surepick.policies.registry import make_policy
from surepick.studies.closed_loop import Measure, Result
from surepick.studies.short_list import short_list_policy
from surepick.studies.study import Study


def find_best(
    arms: Arms | Sequence[object],
    measure: Measure,
    *,
    epsilon: float,
    delta: float = 0.05,
    noise: Noise | str,
    policy: str | None = None,
    minimize: bool = False,
    max_pulls: float | None = None,
    max_cost: float | None = None,
    progress: bool | None = None,
    **options: Any,
) -> Result:
    """Find an arm whose mean is within epsilon of the best, by measuring what tells most.

    Args:
        arms: what is chosen among; ids alone for arms without features; or rows in blocks, too many for memory, as
            `read_arms` gives them with blocks=True: then a short list that has the best is found first (docs/large.md).
        measure: gets ids, one for each pull, and returns as many rewards in the same order. With `items=` (a finite set
            of test items, their ids) it gets the items too, as a second list. With `constraints=` it returns a row for
            each id: the reward, then each constrained quantity, NaN where it was not measured. A reward of NaN failed:
            it is asked again, three times in all; then we go on without the candidate, and say so.
        epsilon: how much worse than the best the answer may be, in reward units, > 0.
        delta: probability that the answer is worse than that, in (0, 1).
        noise: what is assumed of a reward, a record or its text ("bernoulli", "subgaussian:0.5").
        policy: one of `policy_names()`; None: the one that the options speak of (`certified-linear` where there is a
            norm_bound, `certified-kernel` where there is a kernel too, `certified-items` where there are items, else
            `certified-independent`).
        minimize: small rewards are good.
        max_pulls: no batch is begun that would bring the measurements above it; None: 20 times what measuring all
            equally often takes (docs/forecasts.md); math.inf: no limit.
        max_cost: the same in money, for arms that have costs, batches included; None: no limit.
        progress: show a bar on standard error; None: if that is a terminal.
        options: settings of the policy, as in `make_policy`.

    Returns:
        The answer with its certificate.

    Raises:
        InvalidInput: a setting or a reward is refused; `error.study` has the results before.
        MeasurementFailed: a candidate gave NaN three times, and the policy cannot go on without it.
    """
    if isinstance(arms, RowBlocks):
        if max_cost is not None:
            raise InvalidInput("candidates in blocks have no costs: leave out max_cost, or give max_pulls.")
        chosen = fitting_policy(options) if policy is None else policy
        asked: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "noise": noise, **options}
        budget: dict[str, Any] = {"max_pulls": max_pulls, "progress": progress}
        return _best_of_many(chosen, arms, measure, minimize=minimize, **budget, **asked)
    known = arms if isinstance(arms, Arms) else Arms(ids=arms)
    chosen = fitting_policy(options) if policy is None else policy
    made = make_policy(chosen, known, epsilon=epsilon, delta=delta, noise=noise, **options)
    return Study(made, minimize=minimize).run(measure, max_pulls=max_pulls, max_cost=max_cost, progress=progress)


def _best_of_many(
    name: str,
    rows: RowBlocks,
    measure: Measure,
    *,
    minimize: bool,
    max_pulls: float | None,
    progress: bool | None,
    **options: Any,
) -> Result:
    """A short list that has the best of all, by few measurements; then the best of it."""
    study = Study(make_policy(name, rows, **options), minimize=minimize)
    first = study.run(measure, max_pulls=max_pulls, progress=progress)
    if not study.state.finished:
        return first
    left = None if max_pulls is None else max(max_pulls - first.pulls, 0)
    following = Study(short_list_policy(study), minimize=minimize)
    answer = following.run(measure, max_pulls=left, progress=progress)
    return replace(answer, pulls=first.pulls + answer.pulls)
