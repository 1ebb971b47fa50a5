"""The main job in one call: the best of candidates, or of the finalists of a search."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from surepick.chunks.sources import RowBlocks
from surepick.core.arms import LOG, Arms
from surepick.core.frames import frame_of, is_frame
from surepick.core.records import record
from surepick.core.values import check_order, listed, real_numbers, whole_number
from surepick.errors import InvalidInput, OutOfTurn
from surepick.noise import USUAL_NOISE, Noise
from surepick.policies.base import Policy, name_of
from surepick.policies.long_lists import after_selection
from surepick.policies.option_types import Asked, Options
from surepick.policies.options import fitting_policy
from surepick.policies.registry import USUAL_DELTA, built_policy, make_policy, settled_policy, uses_features
from surepick.policies.verdict import certificate_of
from surepick.studies.closed_loop import Measure, OnUnusual, Result, check_measure
from surepick.studies.opening import kept_study
from surepick.studies.parallel import OUTER, Outer
from surepick.studies.study import Study
from surepick.tables import Names, read_arms
from surepick.tables.selection import not_used, wanted_features
from surepick.text import did_you_mean, quoted

# --- What follows a study that shortens a long list: the study of the short list.


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


USUAL_NAME = "best"  # of a study that is kept
AS_ARMS = "Rows of features go to sp.Arms(X, ids=[...]); where each row itself is a candidate, give tuples"


def find_best(
    arms: Arms | RowBlocks | Sequence[object] | Mapping[object, ArrayLike] | object,
    measure: Measure,
    *,
    id: Names | None = None,  # noqa: A002 (as in read_arms)
    features: Names | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    noise: Noise | str | None = None,
    policy: Policy[Any] | str | None = None,
    minimize: bool = False,
    max_pulls: float | None = None,
    max_cost: float | None = None,
    at_once: int | None = None,
    n_jobs: int = 1,
    progress: bool | None = None,
    unusual: OnUnusual = "warn",
    url: str | None = None,
    name: str = USUAL_NAME,
    **options: Unpack[Options],
) -> Result:
    """Find an arm whose mean is within epsilon of the best, by measuring what tells most.

    Args:
        arms: what is chosen among: `Arms`; or a data frame, read as `read_arms` does; or a mapping of ids to rows of
            features; or a sequence of candidates without features: texts, numbers, tuples, dicts, functions, whatever
            has a text of its own. Or rows in blocks, too many for memory, as `read_arms` gives them with blocks=True:
            then a short list that has the best is found first (docs/large.md).
        measure: gets a list of candidates as they were given in `arms` (of a data frame: its index, or the cells of
            the id), one for each pull, and returns as many rewards in the same order. With `items=` (a finite set
            of test items, their ids) it gets the items too, as a second list. With `constraints=` it returns a row for
            each id: the reward, then each constrained quantity, NaN where it was not measured. It may be a coroutine. A
            reward of NaN failed: it is asked again, three times in all; then we go on without the candidate and say so.
        id, features: the columns of a data frame, as in `read_arms`; a policy without features looks at none of them.
        epsilon: how much worse than the best the answer may be, in reward units, > 0. It is needed, but where `policy`
            is a policy, which has its own.
        delta: probability that the answer is worse than that, in (0, 1); None: 0.05, or the policy's own.
        noise: what is assumed of a reward, a record or its text ("bernoulli", "subgaussian:0.5"); None: "normal", or
            the policy's own.
        policy: a policy for these candidates, perhaps of another package; or one of `policy_names()`; None: the
            one that the options speak of (`certified-linear` where there is a norm_bound, `certified-kernel` where
            there is a kernel too, `certified-items` where there are items, else `certified-independent`).
        minimize: small rewards are good.
        max_pulls: no batch is begun that would bring the measurements above it; None: 20 times what measuring all
            equally often takes (docs/forecasts.md); math.inf: no limit.
        max_cost: the same in money, for arms that have costs, batches included; None: no limit.
        at_once: most ids in one call of `measure`; what came of a call is stored before the next. None: a batch.
        n_jobs: most calls of `measure` at a time, in threads or in what `joblib.parallel_config` says; a batch is
            divided among them (docs/parallel.md).
        progress: show a bar on standard error; None: if that is a terminal.
        unusual: what becomes of results that stand out, as in `Study.run`: "warn", "accept" or "refuse".
        url, name: keep results in this database, or on this server, as `create_study`, under that name: after a kill
            the same call goes on, and at the end `surepick verify`, `report` and the like work on it. None: in memory.
        options: settings of the policy, as in `make_policy`.

    Returns:
        The answer with its certificate. `best_arm` is the candidate as it was given; the certificate has its text.

    Raises:
        InvalidInput: the candidates, a setting or a reward is refused; where `measure` was made for one id, its own
            exception is the cause. `error.study` has the results before.
        MeasurementFailed: a candidate gave NaN three times, and the policy cannot go on without it.
    """
    check_measure(measure)
    if not is_frame(arms) and (id is not None or features is not None):
        raise InvalidInput("id and features are columns of a data frame, and the candidates are none: leave them out.")
    chosen = fitting_policy(options) if policy is None else policy
    if isinstance(arms, RowBlocks):
        if not isinstance(chosen, str):
            raise InvalidInput("candidates in blocks take a policy by its name; give policy='certified-...'.")
        if epsilon is None:
            raise InvalidInput("find_best needs epsilon: how much worse than the best the answer may be.")
        if max_cost is not None:
            raise InvalidInput("candidates in blocks have no costs: leave out max_cost, or give max_pulls.")
        if url is not None:
            raise InvalidInput("candidates in blocks are two studies: take create_study, or leave out url.")
        asked: dict[str, Any] = {
            "epsilon": epsilon,
            "delta": USUAL_DELTA if delta is None else delta,
            "noise": USUAL_NOISE if noise is None else noise,
            **options,
        }
        how: dict[str, Any] = {"max_pulls": max_pulls, "at_once": at_once, "n_jobs": n_jobs}
        how |= {"progress": progress, "unusual": unusual}
        return _best_of_many(chosen, arms, measure, how, minimize=minimize, **asked)
    looks = uses_features(chosen)
    known = _of_frame(arms, id, features, used=looks) if is_frame(arms) else _arms_of(arms)
    made = settled_policy(chosen, known, epsilon=epsilon, delta=delta, noise=noise, **options)
    used = known.features_said if looks else ""
    if used:
        LOG.info("%s uses %s.", chosen if isinstance(chosen, str) else name_of(made), used)
    study, _ = kept_study(url, name, known, made, minimize=minimize)
    limits: dict[str, Any] = {"max_pulls": max_pulls, "max_cost": max_cost, "at_once": at_once, "n_jobs": n_jobs}
    answer = study.run(measure, **limits, progress=progress, unusual=unusual)
    return replace(answer, features=used)


async def find_best_async(arms: Any, measure: Measure, **asked: Unpack[Asked]) -> Result:
    """`find_best` for programs with an event loop, which goes on meanwhile.

    Args:
        arms: as in `find_best`.
        measure: a coroutine function, which is awaited in this loop; or a plain function, which is called in a thread.
        asked: the other arguments of `find_best`; `n_jobs` is how many calls are awaited at a time.

    Returns:
        The answer with its certificate, as `find_best`. Cancelled, it asks for nothing more.
    """
    import asyncio  # noqa: PLC0415 (slow to load, and few need it)

    outer = Outer(asyncio.get_running_loop())
    OUTER.set(outer)
    try:
        return await asyncio.to_thread(find_best, arms, measure, **asked)
    except asyncio.CancelledError:
        outer.cancelled = True  # what is under way is stored; nothing more is asked
        raise


# --- The last round of a search.

USUAL_FINALISTS = 10
PROMISE = "All results that count are new{1}. What is promised is about {0:,} finalists, not about others that {2}."
CHOSEN = ": the scores of {:,} candidates chose the finalists, and do not count"


@record
class Finalists:
    """The candidates that a search leaves to be measured again."""

    arms: Arms
    tried: int  # candidates with a score, from which their scores chose these; 0: they were given as they are

    @staticmethod
    def of(arms: Arms, scores: object, top: int | None, *, minimize: bool) -> "Finalists":
        """Those with the best scores, the first of equal ones, in the order of the list; NaN is no score."""
        if scores is None:
            if top is not None:
                raise InvalidInput(f"top is {quoted(top)}, and nothing says whose scores are best: give scores.")
            return Finalists(arms, 0)
        most = whole_number("top", USUAL_FINALISTS if top is None else top, least=1, meaning="a number of finalists.")
        check_order("scores", scores, arms.ids)
        found = real_numbers("scores", scores, truths=False)
        if found.shape != (arms.num_arms,):
            raise InvalidInput(f"scores have shape {found.shape}; they must be ({arms.num_arms},), one a candidate.")
        scored = np.flatnonzero(np.isfinite(found))
        if not len(scored):
            raise InvalidInput("no candidate has a finite score, so that none is a finalist.")
        best = scored[np.argsort(found[scored] if minimize else -found[scored], kind="stable")[:most]]
        return Finalists(arms.only(np.sort(best)), len(scored))

    @property
    def promise(self) -> str:
        """What is promised of the best of them, and what is not."""
        chosen = CHOSEN.format(self.tried) if self.tried else ""
        others = "were or could be tried" if self.tried else "could be tried"
        return PROMISE.format(self.arms.num_arms, chosen, others)


def confirm(
    finalists: Arms | Sequence[object] | object,
    measure: Measure,
    *,
    epsilon: float | None = None,
    scores: ArrayLike | str | None = None,
    top: int | None = None,
    id: Names | None = None,  # noqa: A002 (as in read_arms)
    minimize: bool = False,
    **options: Any,
) -> Result:
    """The last round of any search: measure its finalists anew until the best of them is certified.

    A search names the candidate with the best score, and of many noisy scores the best is lucky. Here scores choose the
    finalists, before the first new measurement, and never count.

    Args:
        finalists: candidates, as `find_best` takes them; those of the whole search where there are `scores`.
        measure: as in `find_best`: ids -> new results, one for each.
        epsilon: how much worse than the best finalist the answer may be, in reward units, > 0; None beside a `budget`.
        scores: of the search, one for each candidate, or the column of a data frame that has them; NaN: it failed, and
            is no finalist. None: all candidates are finalists.
        top: how many finalists, those with the best scores; None: 10.
        id: the column of a data frame that names the candidates; None: its index.
        minimize: small rewards and scores are good.
        options: the others of `find_best`: delta, noise, max_pulls, budget, prefer, url, ...

    Returns:
        As `find_best`; its text says what is promised.

    Raises:
        InvalidInput, MeasurementFailed: as `find_best`; `scores` or `top` have no meaning.
    """
    if isinstance(scores, str):
        if not is_frame(finalists):
            raise InvalidInput(f"scores is {quoted(scores)}, the column of a data frame, and the candidates are none.")
        columns = frame_of(finalists).columns
        if scores not in columns:
            meant = did_you_mean(scores, list(columns))
            raise InvalidInput(f"the data frame has no column {quoted(scores)}, of scores.{meant}")
        scores = columns[scores]
    known = read_arms(finalists, id, []) if is_frame(finalists) else _arms_of(finalists)
    chosen = Finalists.of(known, scores, top, minimize=minimize)
    found = find_best(chosen.arms, measure, epsilon=epsilon, minimize=minimize, **options)
    return replace(found, promise=chosen.promise)


def _of_frame(frame: object, id: Names | None, features: Names | None, *, used: bool) -> Arms:  # noqa: A002 (as in find_best)
    """The candidates of a data frame, of which the policy looks at the features or not."""
    found = read_arms(frame, id, wanted_features(features, used=used))
    if not used and (words := not_used(features, said=f"features={quoted(features)} is")):
        LOG.warning("%s", words)
    return found


def _arms_of(given: Any) -> Arms:
    """The candidates, from whatever a caller has."""
    if isinstance(given, Arms):
        return given
    if isinstance(given, Mapping):
        return _of_mapping(given)
    shape = getattr(given, "shape", ())
    if isinstance(shape, tuple) and len(shape) > 1:
        raise InvalidInput(f"the candidates are an array of shape {shape}. {AS_ARMS}.")
    if isinstance(given, str | bytes | bytearray):
        raise InvalidInput(
            f"the candidates are the text {quoted(given)}; give a list of them, [{quoted(given)}] for one."
        )
    _refuse_labelled(given)
    candidates = listed("candidates", given)
    if any(isinstance(one, list | np.ndarray) for one in candidates):
        raise InvalidInput(f"a candidate is a {type(candidates[0]).__name__}, {quoted(candidates[0])}. {AS_ARMS}.")
    return Arms(ids=candidates)


def _of_mapping(given: Mapping[object, Any]) -> Arms:
    """The candidates of a mapping of ids to rows of features."""
    rows, cause = [], None
    try:
        rows = [real_numbers("features", row) for row in given.values()]
    except InvalidInput as error:
        cause = error
    if cause is not None or not rows or any(row.shape != rows[0].shape or row.ndim != 1 for row in rows):
        raise InvalidInput(
            f"the candidates are a mapping, {quoted(given)}, whose values are not rows of equally many features. For "
            "its keys give list(x), for its values list(x.values()), and for columns of a table a data frame."
        ) from cause
    return Arms(np.stack(rows), ids=list(given))


def _refuse_labelled(given: Any) -> None:
    """Refuse a column of numbers whose labels are texts: which of the two are the candidates?"""
    if not (hasattr(type(given), "iloc") and hasattr(type(given), "index")) or len(given) == 0:
        return
    labels, values = given.index.tolist(), given.tolist()
    if all(isinstance(one, str) for one in labels) and not any(isinstance(one, str) for one in values):
        raise InvalidInput(
            f"the candidates are a column of {quoted(values[0])}, ... labelled {quoted(labels[0])}, ...: give "
            "list(x.index) or list(x), whichever are the candidates."
        )


def _best_of_many(
    name: str, rows: RowBlocks, measure: Measure, how: dict[str, Any], *, minimize: bool, **options: Any
) -> Result:
    """A short list that has the best of all, by few measurements; then the best of it."""
    study = Study(make_policy(name, rows, **options), minimize=minimize)
    first, max_pulls = study.run(measure, **how), how["max_pulls"]
    if not study.state.finished:
        return first
    left = None if max_pulls is None else max(max_pulls - first.pulls, 0)
    following = Study(short_list_policy(study), minimize=minimize)
    answer = following.run(measure, **{**how, "max_pulls": left})
    return replace(answer, pulls=first.pulls + answer.pulls)
