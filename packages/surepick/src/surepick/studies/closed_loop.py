"""The closed loop: ask, measure and tell until the study stops."""

from __future__ import annotations

import inspect
import math
import sys
import time
import warnings
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, get_args

import numpy as np
from numpy.typing import ArrayLike

from surepick.core.arms import Originals
from surepick.core.certificate import Certificate, Listed
from surepick.core.plans import RoundRecord
from surepick.core.records import FloatArray, IntArray, record
from surepick.core.values import as_number, check_order, real_numbers, reason, whole_number
from surepick.drawings import cards
from surepick.drawings.records import Candidates
from surepick.errors import InvalidInput, MeasurementFailed, SurepickError, UnusualResult, UnusualWarning
from surepick.noise import known_scale
from surepick.policies.base import Policy
from surepick.policies.prices import Costs, added, checked_budget
from surepick.questions import Constraint
from surepick.studies.ledger import Batch
from surepick.studies.logs.base import INDEPENDENT_OF_VALUE
from surepick.studies.parallel import Call, Workers
from surepick.studies.progress import Progress
from surepick.studies.recording import Accept
from surepick.text import money, printable, quoted

if TYPE_CHECKING:
    from surepick.assumptions import Assumption, Reading

# --- The function of a user that measures: recognised before anything is asked, called, and its answer read.

# ids -> rewards; of test items (ids, items) -> scores; in blocks also (ids, blocks); with constraints a row for each id
Measure = Callable[..., ArrayLike | Awaitable[ArrayLike]]
EACH = "measure gets a list of ids and returns a reward for each, in the same order"
ONE_BY_ONE = "If yours measures one id, give lambda ids: [measure(i) for i in ids]."
NO_COROUTINE = (
    "measure returned coroutines, and nobody waits for them: make measure itself a coroutine function, "
    "async def measure(ids), which returns the rewards."
)


def check_measure(measure: object) -> None:
    """Refuse what cannot measure, before anything is asked."""
    if not callable(measure):
        raise InvalidInput(f"measure is {quoted(measure)}, which is no function: {EACH}.")
    if inspect.isasyncgenfunction(measure):
        raise InvalidInput("measure is an asynchronous generator: return the rewards of all ids as one list.")


def _takes_two(measure: Measure) -> bool:
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
    """What a function measured, checked as far as its form goes."""
    try:
        given: Any = measure(ids, *beside)
        if isinstance(given, Iterator):
            given = list(islice(given, len(ids) + 1))
    except (TypeError, AttributeError, KeyError) as error:
        if isinstance(error, KeyError):  # is it that of a function which was made for one id?
            made_for_one = any(one is ids or (isinstance(one, str) and one == str(ids)) for one in error.args)
        else:
            made_for_one = not {"list", "sequence"}.isdisjoint(reason(error).replace("'", " ").split())
        if not made_for_one:
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
    """Refuse what holds no rewards in an order."""
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


Told = TypeVar("Told")
OnUnusual = Literal["warn", "accept", "refuse"]
EndedBy = Literal["policy", "batches", "repeats", "pulls", "cost", "seconds"]
PASSED = (
    "The next plan would have passed {:,} measurements, the usual limit: 20 times what measuring every candidate "
    "equally often takes. More than that points at a mistake (in a reward, the noise, the unit). max_pulls=N sets "
    "another limit, max_pulls=math.inf none."
)
TRIES = 3  # of a measurement that gives NaN


class Askable(Protocol):
    """What the loop needs of a study."""

    @property
    def ids(self) -> tuple[str, ...]: ...
    @property
    def missing(self) -> IntArray: ...
    @property
    def trace(self) -> tuple[RoundRecord, ...]: ...
    @property
    def prices(self) -> Costs | None: ...
    @property
    def constraints(self) -> tuple[Constraint, ...]: ...
    @property
    def originals(self) -> Originals: ...
    @property
    def item_originals(self) -> Originals: ...
    def ask(self) -> Batch | None: ...
    def progress(self) -> Progress: ...
    def tell(self, ids: Any, rewards: ArrayLike, *, accept_unusual: Accept = False) -> object: ...
    def fail(self, ids: Sequence[object]) -> object: ...
    def withdraw(self, ids: Sequence[object], reason: str) -> None: ...
    def certificate(self) -> Certificate: ...
    def candidates(self) -> Candidates: ...
    def read(self, assumed: str | Assumption) -> Reading: ...


@record
class Result:
    """What a closed loop came to.

    Args:
        best_arm: the recommended arm as it was given: its id, or the object whose text that is. None where the answer
            is lists and nobody is on the first one. Of several on it the one that looks best.
        verdict: of the certificate; "budget-exhausted" where the next batch would have passed max_pulls, max_cost or
            max_batches, or where repeats that are all equal prove nothing.
        pulls: measurements in the closed plans of the study.
        certificate: the answer, and what it rests on.
        study: the `Study`; `study.run(measure)` goes on after a budget was exhausted.
        ended_by: "policy", by itself; "repeats", which are all equal; "batches", "pulls", "cost" or "seconds", the
            budget that was exhausted. After "batches" and "repeats" the study is over.
        features: the features that `find_best` used, in a line; "" where it used none.
        promise: what `confirm` promises, and of which candidates; "" of `find_best`.
    """

    best_arm: Any
    verdict: str
    pulls: int
    certificate: Certificate
    study: Askable
    ended_by: EndedBy = "policy"
    features: str = ""
    promise: str = ""

    @property
    def lists(self) -> Listed | None:
        """The lists of the certificate with the candidates as they were given; None where one best is asked for."""
        found = self.certificate.lists
        if found is None:
            return None
        segments = None if found.segments is None else tuple(map(self._given, found.segments))
        given: Listed = replace(self._given(found), segments=segments)
        return given

    def _given(self, lists: Any) -> Any:
        """A record with lists of ids, with the candidates as they were given."""
        named = {name: getattr(lists, name) for name in ("inside", "outside", "undecided")}
        return replace(lists, **{name: tuple(self.study.originals.all_of(ids)) for name, ids in named.items()})

    @property
    def cost(self) -> float | None:
        """Money spent on these measurements, in the currency of the costs; None where nothing has a cost."""
        return self.certificate.cost

    def read(self, assumed: str | Assumption) -> Reading:
        """What the results say of the answer under another assumption, as `Study.read` has it."""
        return self.study.read(assumed)

    def __str__(self) -> str:
        return "\n".join(filter(None, (str(self.certificate), self.features, self.promise)))

    def __repr__(self) -> str:
        gap = self.certificate.certified_gap
        proved = "" if gap is None or self.lists is not None else f", at most {gap:.4g} worse than the best"
        return f"<Result: {self.certificate.headline}, {self.verdict}{proved}, {self.pulls:,} measurements>"

    def _repr_html_(self) -> str:
        """The answer, the candidates by mean, how the gap closed, and what it rests on, for notebooks."""
        from surepick.assumptions.shown import html_of  # noqa: PLC0415 (few answers are shown so)
        from surepick.studies.readings import shown_readings  # noqa: PLC0415

        found = None if getattr(self.study, "elsewhere", None) is not None else self.study.candidates()
        readings = html_of(shown_readings(self.study))
        return cards.notebook(*self.certificate.html_parts(found), readings)


def run_closed_loop(
    study: Askable,
    measure: Measure,
    *,
    max_pulls: float | None = None,
    max_cost: float | None = None,
    at_once: int | None = None,
    n_jobs: int = 1,
    progress: bool | None = None,
    unusual: OnUnusual = "warn",
) -> Result:
    """As `Study.run`, which has the arguments."""
    if unusual not in get_args(OnUnusual):
        raise InvalidInput(f"unusual is {quoted(unusual)}; it must be 'warn', 'accept' or 'refuse'.")
    if max_pulls is not None and as_number("max_pulls", max_pulls) != math.inf:
        whole_number("max_pulls", max_pulls, least=0, meaning="a number of pulls, or math.inf for no limit.")
    if at_once is not None:
        whole_number("at_once", at_once, least=1, meaning="a number of pulls.")
    whole_number("n_jobs", n_jobs, least=1, meaning="a number of workers.")
    check_measure(measure)
    measuring = Measuring(study, measure, _takes_two(measure), unusual, Workers(n_jobs))

    def carry_out(batch: Batch) -> None:
        missing = study.missing
        whole = measuring.knows_blocks
        most = at_once if n_jobs == 1 else min(at_once or sys.maxsize, -(-int(missing.sum()) // n_jobs))
        measuring.tell_all(_blocks_of(batch, missing, whole) if batch.blocks else _parts(batch, missing, most))

    try:
        with measuring.workers, round_bars(progress) as show:
            found = until_stopped(study, carry_out, max_pulls=max_pulls, max_cost=max_cost, on_batch=show)
    except SurepickError as error:
        error.study = study
        raise
    if not measuring.gone:
        return found
    names = ", ".join(map(quoted, measuring.gone))
    words = (
        f"Could not be measured in {TRIES} tries, and left out: {names}. The promise is about the others, if whether a "
        "measurement fails has nothing to do with its value."
    )
    return replace(found, certificate=replace(found.certificate, reason=f"{found.certificate.reason} {words}"))


def _known(given: Any, raised: BaseException | None, _: Call) -> tuple[Any, BaseException | None]:
    """What came of a call that was made before."""
    return given, raised


@dataclass(slots=True)
class Measuring:
    """A study measured by a function; what gives NaN is asked again, and then left out."""

    study: Askable
    measure: Measure
    knows_blocks: bool  # it wants the names of blocks beside the ids
    unusual: OnUnusual  # what becomes of results that stand out, as in `Study.run`
    workers: Workers = field(default_factory=Workers)
    gone: list[str] = field(default_factory=list)  # ids of the candidates that were left out

    def tell_all(self, parts: Iterator[Batch]) -> None:
        """Measure parts of a batch, as many at a time as there are workers, and tell what comes of each as it comes.

        Where one raises, the others are told before the error is raised.
        """
        if self.workers.jobs == 1:
            for part in parts:
                self.tell(part, self._outcome)
            return
        every, errors = list(parts), list[Exception]()
        asked = [[place for place, name in enumerate(part.pulls()) if name not in self.gone] for part in every]
        calls = [self._call(part, part.pulls(), places) for part, places in zip(every, asked, strict=True)]
        for number, given, raised in self.workers.outcomes(calls):
            ids = every[number].pulls()
            kept = [place for place, at in enumerate(asked[number]) if ids[at] not in self.gone]
            try:
                left = given
                if raised is None and len(kept) < len(asked[number]):  # another part showed that some give no results
                    left = [list(given)[place] for place in kept]
                self.tell(every[number], partial(_known, left, raised))
            except Exception as error:
                errors.append(error)
        if errors:
            raise errors[0]

    def tell(self, part: Batch, outcome: Callable[[Call], tuple[Any, BaseException | None]]) -> None:
        """Tell what came of measuring a part of a batch, all of it at first.

        Args:
            outcome: the call that measures it -> what that returned, and what it raised.
        """
        ids = part.pulls()
        asked = [place for place, name in enumerate(ids) if name not in self.gone]
        if not asked:
            return
        rewards = self._measured(part, ids, asked, outcome)
        failed = np.isnan(rewards) if rewards.ndim == 1 else np.isnan(rewards[:, 0])
        for _ in range(TRIES - 1):
            again = [place for place, bad in zip(asked, failed, strict=True) if bad]
            if not again:
                break
            if part.items is None:
                self.study.fail([ids[place] for place in again])
            rewards[failed] = self._measured(part, ids, again, self._outcome)
            failed = np.isnan(rewards) if rewards.ndim == 1 else np.isnan(rewards[:, 0])
        if len(asked) == len(ids) and not failed.any():
            self._tell(part, rewards)
            return
        came = [place for place, bad in zip(asked, failed, strict=True) if not bad]
        if came:
            beside: dict[str, Any] = {"plan": part.number}
            if part.items is not None:
                beside["items"] = [part.item_ids[place] for place in came]
            if part.blocks:
                beside["blocks"] = [part.blocks[place] for place in came]
            self._tell([ids[place] for place in came], rewards[~failed], **beside)
        self._leave_out([ids[place] for place, bad in zip(asked, failed, strict=True) if bad])

    def _tell(self, ids: Any, rewards: FloatArray, **beside: Any) -> None:
        tell_measured(lambda accept: self.study.tell(ids, rewards, accept_unusual=accept, **beside), self.unusual)

    def _call(self, part: Batch, ids: Sequence[str], places: Sequence[int]) -> Call:
        """The call that measures some pulls of a part."""
        beside: list[Sequence[object]] = []
        if part.items is not None:
            beside = [self.study.item_originals.all_of([part.item_ids[place] for place in places])]
        if part.blocks and self.knows_blocks:
            beside = [[part.blocks[place] for place in places]]
        return partial(self.measure, self.study.originals.all_of([ids[place] for place in places]), *beside)

    def _outcome(self, call: Call) -> tuple[Any, BaseException | None]:
        """What comes of a call by itself."""
        ((_, given, raised),) = self.workers.outcomes([call])
        return given, raised

    def _measured(
        self,
        part: Batch,
        ids: Sequence[str],
        places: Sequence[int],
        outcome: Callable[[Call], tuple[Any, BaseException | None]],
    ) -> FloatArray:
        """What `measure` returns of some pulls of a part, one row each."""
        call, names = self._call(part, ids, places), [ids[place] for place in places]

        def made(*_: object) -> Any:
            given, raised = outcome(call)
            if raised is not None:
                raise raised
            return given

        found = measured(made, call.args[0], names, constraints=self.study.constraints)
        return np.array(found, np.float64)

    def _leave_out(self, failed: Sequence[str]) -> None:
        """Go on without candidates that could not be measured."""
        names = [name for name in dict.fromkeys(failed) if name not in self.gone]
        if not names:
            return
        try:
            self.study.withdraw(names, INDEPENDENT_OF_VALUE)
        except InvalidInput as error:
            raise MeasurementFailed(
                f"{quoted(names[0])} gave no result in {TRIES} tries (NaN), and this study cannot go on without it. "
                "The results so far are kept: error.study.run(measure) goes on when it can be measured; "
                "error.study.abandon(reason, ids) gives its pulls up."
            ) from error
        self.gone += names


def tell_measured(tell: Callable[[Accept], Told], unusual: OnUnusual) -> Told:
    """Report what a program measured: nobody can be asked about results that stand out."""
    try:
        return tell("unasked" if unusual == "accept" else False)
    except UnusualResult as question:
        if unusual == "refuse":
            raise
        stands_out = str(question).partition(" Is it a typing error?")[0]
        warnings.warn(f"{stands_out} It counts, since a program measured it.", UnusualWarning, stacklevel=3)
        return tell("unasked")


def until_stopped(
    study: Askable,
    carry_out: Callable[[Batch], None],
    *,
    max_pulls: float | None = None,
    max_cost: float | None = None,
    max_seconds: float | None = None,
    on_batch: Callable[[Batch, Askable], None] | None = None,
) -> Result:
    """Ask and carry out batches until the policy stops, or the next one would pass the budget."""
    started, spent, paid = time.monotonic(), 0, 0.0
    prices = None if max_cost is None else study.prices
    limit = checked_budget(max_cost, prices)
    ended_by: EndedBy = "policy"
    over = ""
    while (batch := study.ask()) is not None:
        missing = study.missing
        wanted = int(missing.sum())
        due = paid if prices is None else added(paid, prices.total(missing, batches=int(wanted == batch.total)))
        most = limit_of(study) if max_pulls is None else max_pulls
        if most is not None and spent + wanted > most:
            passed = PASSED if max_pulls is None else "The next plan would have passed the budget of {:,} pulls."
            ended_by, over = "pulls", passed.format(most)
        elif limit is not None and due > limit:
            over = f"The next plan would have passed the budget of {money(limit)}: {money(due)} in all."
            ended_by = "cost"
        elif max_seconds is not None and time.monotonic() - started >= max_seconds:
            ended_by, over = "seconds", f"The time allowed, {max_seconds:g} s, is over."
        if over:
            break
        if on_batch is not None:
            on_batch(batch, study)
        carry_out(batch)
        spent, paid = spent + wanted, due
    answer = study.certificate()
    if over:
        answer = replace(answer, verdict="budget-exhausted", reason=f"{over} {answer.reason}")
    elif answer.verdict == "budget-exhausted":
        policy: Policy[Any] | None = getattr(study, "policy", None)
        spent = policy is not None and policy.traits.budget is not None
        equal = bool(study.trace) and study.trace[-1].equal is not None
        ended_by = "repeats" if equal else "pulls" if spent else "batches"
    nobody = answer.lists is not None and not answer.lists.inside
    best = None if nobody else study.originals.of_text(answer.best_arm)
    return Result(best, answer.verdict, answer.pulls, answer, study, ended_by)


def limit_of(study: Askable) -> int | None:
    """The limit of a loop that was given none; None where the policy ends by itself."""
    from surepick.policies.uniform import usual_limit  # noqa: PLC0415 - the daily work on a study needs none of it

    policy = getattr(study, "policy", None)
    if policy is None:
        return None
    if known_scale(policy.problem.noise):
        return usual_limit(policy, None)
    return usual_limit(policy, getattr(getattr(study, "state", None), "seen", None))


def _blocks_of(batch: Batch, missing: IntArray, whole: bool) -> Iterator[Batch]:
    """What is missing of a batch, whole or block by block; where some came before, in new blocks."""
    places = np.arange(batch.total)
    arms = np.repeat(np.arange(len(batch.counts)), batch.counts)
    left = np.cumsum(batch.counts)[arms] - places <= missing[arms]
    again = "" if left.all() else f"+{batch.total - int(left.sum())}"
    names = np.array([batch.blocks[place] + again for place in np.flatnonzero(left).tolist()])
    for name in [None] if whole else dict.fromkeys(names.tolist()):
        mine = np.full(len(names), True) if name is None else names == name
        counts: IntArray = np.bincount(arms[left][mine], minlength=len(batch.counts)).astype(np.int64)
        yield replace(Batch.of(batch, batch.ids, batch.number, counts=counts), blocks=tuple(names[mine].tolist()))


def _parts(batch: Batch, missing: IntArray, most: int | None) -> Iterator[Batch]:
    """What is missing of a batch, in parts of at most so many pulls."""
    total = int(missing.sum())
    step, ends = most or max(total, 1), np.cumsum(missing)
    for start in range(0, total, step):
        counts: IntArray = np.diff(np.clip(ends, start, start + step), prepend=start).astype(np.int64)
        items = None if batch.items is None else batch.items[start : start + step]
        names = batch.item_ids[start : start + step]
        yield Batch.of(batch, batch.ids, batch.number, counts=counts, items=items, item_ids=names)


@contextmanager
def round_bars(shown: bool | None = None) -> Iterator[Callable[[Batch, Askable], None]]:
    """One bar on standard error, of the looks of a round or of all predicted pulls; and what is proved, below it."""
    if not (sys.stderr.isatty() if shown is None else shown):
        yield lambda _batch, _study: None
        return
    from rich.console import Console, Group  # noqa: PLC0415 (slow to load, and seldom needed)
    from rich.live import Live  # noqa: PLC0415
    from rich.progress import BarColumn, Progress as Bars, TextColumn, TimeElapsedColumn  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[note]}"), TimeElapsedColumn())
    bars, proved = Bars(*columns), Text()
    with Live(Group(bars, proved), console=Console(stderr=True), transient=True):
        bar = bars.add_task("round 1", total=None, note="")

        def show(plan: Batch, study: Askable) -> None:
            trace, num_arms = study.trace, len(study.ids)
            left = len(trace[-1].active) if trace else num_arms
            spent = trace[-1].total_pulls if trace else 0
            note = f"{left:,} of {num_arms:,} candidates left, {spent:,} measurements"
            total, completed = float(plan.looks), plan.look - 1
            if plan.predicted_pulls is not None:
                total, completed = spent + plan.predicted_pulls, spent
                note = f"{left:,} of {num_arms:,} possible, {spent:,} of about {total:,.0f} measured"
            bars.update(bar, description=f"round {plan.round}", total=total, completed=completed, note=note)
            proved.plain = printable(study.progress().best)

        yield show
