"""The closed loop: ask, measure and tell until the study stops."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from surepick.core.arms import Arms
from surepick.core.arrays import IntArray, record
from surepick.core.certificate import Certificate
from surepick.core.validation import whole_number
from surepick.errors import InvalidInput
from surepick.noise import Noise
from surepick.policies.registry import fitting_policy, make_policy
from surepick.studies.batch import Batch
from surepick.studies.study import Study

Measure = Callable[[list[str]], ArrayLike]


@record
class Result:
    """What a closed loop came to.

    Args:
        best_arm: id of the recommended arm.
        verdict: of the certificate; "budget-exhausted" where the next batch would have passed max_pulls.
        pulls: measurements in the closed plans of the study.
        certificate: the answer, and what it rests on.
        study: the study; `study.run(measure)` goes on after a budget was exhausted.
    """

    best_arm: str
    verdict: str
    pulls: int
    certificate: Certificate
    study: Study

    def __str__(self) -> str:
        return str(self.certificate)

    def _repr_html_(self) -> str:
        return self.certificate._repr_html_()


def find_best(
    arms: Arms | Sequence[object],
    measure: Measure,
    *,
    epsilon: float,
    delta: float = 0.05,
    noise: Noise | str,
    policy: str | None = None,
    minimize: bool = False,
    max_pulls: int | None = None,
    progress: bool | None = None,
    **options: Any,
) -> Result:
    """Find an arm whose mean is within epsilon of the best, by measuring what tells most.

    Args:
        arms: what is chosen among; ids alone for arms without features.
        measure: gets ids, one for each pull, and returns as many rewards in the same order.
        epsilon: how much worse than the best the answer may be, in reward units, > 0.
        delta: probability that the answer is worse than that, in (0, 1).
        noise: what is assumed of a reward, a record or its text ("bernoulli", "subgaussian:0.5").
        policy: one of `policy_names()`; None: the one that the options speak of (`certified-linear` where there is a
            norm_bound, `certified-kernel` where there is a kernel too, else `certified-independent`).
        minimize: small rewards are good.
        max_pulls: no batch is begun that would bring the measurements above it; None: no limit.
        progress: show a bar on standard error; None: if that is a terminal.
        options: settings of the policy, as in `make_policy`.

    Returns:
        The answer with its certificate.

    Raises:
        InvalidInput: a setting or a reward is refused.
    """
    known = arms if isinstance(arms, Arms) else Arms(ids=arms)
    chosen = fitting_policy(options) if policy is None else policy
    made = make_policy(chosen, known, epsilon=epsilon, delta=delta, noise=noise, **options)
    return Study(made, minimize=minimize).run(measure, max_pulls=max_pulls, progress=progress)


def run_study(
    study: Study,
    measure: Measure,
    *,
    max_pulls: int | None = None,
    at_once: int | None = None,
    progress: bool | None = None,
) -> Result:
    """As `Study.run`, which has the arguments."""
    for name, limit in (("max_pulls", max_pulls), ("at_once", at_once)):
        if limit is not None:
            whole_number(name, limit, least=0 if name == "max_pulls" else 1, meaning="a number of pulls.")

    def carry_out(batch: Batch) -> None:
        for part in _parts(batch, study.missing, at_once):
            ids = part.pulls()
            rewards = np.asarray(measure(ids))
            if rewards.shape != (len(ids),):
                raise InvalidInput(
                    f"measure was called with {len(ids)} ids and returned rewards of shape {rewards.shape}; it must "
                    "return one reward for each id."
                )
            study.tell(part, rewards)

    with round_bars(progress) as show:
        return until_stopped(study, carry_out, max_pulls=max_pulls, on_batch=show)


def until_stopped(
    study: Study,
    carry_out: Callable[[Batch], None],
    *,
    max_pulls: int | None = None,
    on_batch: Callable[[Batch, Study], None] | None = None,
) -> Result:
    """Ask and carry out batches until the policy stops, or the next one would pass the budget.

    Args:
        study: is asked.
        carry_out: measures a batch and tells the study.
        max_pulls: the budget, of this call; None: no limit.
        on_batch: called with each batch before it is carried out.
    """
    spent, exhausted = 0, False
    while (batch := study.ask()) is not None:
        wanted = int(study.missing.sum())
        if max_pulls is not None and spent + wanted > max_pulls:
            exhausted = True
            break
        if on_batch is not None:
            on_batch(batch, study)
        carry_out(batch)
        spent += wanted
    answer = study.certificate()
    if exhausted:
        reason = f"The next plan would have passed the budget of {max_pulls:,} pulls. {answer.reason}"
        answer = replace(answer, verdict="budget-exhausted", reason=reason)
    return Result(answer.best_arm, answer.verdict, answer.pulls, answer, study)


def _parts(batch: Batch, missing: IntArray, most: int | None) -> Iterator[Batch]:
    """What is missing of a batch, in parts of at most so many pulls."""
    total = int(missing.sum())
    step, ends = most or max(total, 1), np.cumsum(missing)
    for start in range(0, total, step):
        counts: IntArray = np.diff(np.clip(ends, start, start + step), prepend=start).astype(np.int64)
        yield Batch.of(batch, batch.ids, batch.number, counts=counts)


@contextmanager
def round_bars(shown: bool | None = None) -> Iterator[Callable[[Batch, Study], None]]:
    """One bar on standard error, which tells the round, who is left, and how much of the work is in.

    The bar measures the looks of a round, or, where the plan predicts how many pulls are still to come, all pulls.

    Args:
        shown: draw it; if not, the callback does nothing. None: if standard error is a terminal.
    """
    if not (sys.stderr.isatty() if shown is None else shown):
        yield lambda _batch, _study: None
        return
    from rich.console import Console  # noqa: PLC0415 (slow to load, and seldom needed)
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[note]}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task("round 1", total=None, note="")

        def show(plan: Batch, study: Study) -> None:
            trace, num_arms = study.trace, len(study.ids)
            left = len(trace[-1].active) if trace else num_arms
            spent = trace[-1].total_pulls if trace else 0
            note = f"{left:,} of {num_arms:,} candidates left, {spent:,} measurements"
            total, completed = float(plan.looks), plan.look - 1
            if plan.predicted_pulls is not None:
                total, completed = spent + plan.predicted_pulls, spent
                note = f"{left:,} of {num_arms:,} possible, {spent:,} of about {total:,.0f} measured"
            progress.update(bar, description=f"round {plan.round}", total=total, completed=completed, note=note)

        yield show
