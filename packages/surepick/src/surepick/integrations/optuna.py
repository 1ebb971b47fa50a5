"""Optuna: the best trials of a study are measured anew, until one is certified.

A finalist is measured by a new call of the objective with a `FixedTrial` of its parameters: the search does not learn
from it, no sampler and no pruner sees it, and `study.trials` stays what the search did. `trial.number` is a number that
no other measurement has, so that an objective that takes it for a seed is measured with a new one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from threading import Lock
from typing import Any

from surepick.core.values import probability, whole_number
from surepick.errors import InvalidInput
from surepick.find_best import CHOSEN, PROMISE, USUAL_FINALISTS, confirm as confirm_candidates
from surepick.integrations.finalists import Measured, fresh_seed
from surepick.policies.registry import USUAL_DELTA
from surepick.studies.closed_loop import Result

try:
    import optuna
    from optuna.trial import FixedTrial, FrozenTrial, TrialState
except ImportError as error:
    raise ImportError('optuna is absent: pip install "surepick[optuna]".') from error

Objective = Callable[[Any], float]
LAST = "surepick_look"  # the user attribute that has the latest look of `CertifiedBest`


def confirm(
    study: optuna.Study,
    objective: Objective,
    *,
    top: int | None = None,
    epsilon: float | None = None,
    url: str | None = None,
    name: str | None = None,
    **options: Any,
) -> Result:
    """Measure the best trials of a study anew until one is certified, and write the verdict into the study.

    The user attributes of the study say it: `surepick_best_trial` (its number), `surepick_verdict`, `surepick_promise`,
    `surepick_certified_gap`, and by the number of its trial `surepick_pulls` and `surepick_means` of each finalist.

    Args:
        study: of one objective, with finished trials. Of trials with equal parameters the best one stands for all.
        objective: is called with a `FixedTrial` for each measurement, and must measure anew each time. One that is
            pruned, or gives NaN, failed: it is asked again, three times in all, and the finalist is left out then.
        top: how many finalists, those with the best values; None: 10.
        epsilon: how much worse than the best finalist the answer may be, in the unit of the objective, > 0; None beside
            a `budget`.
        url, name: as in `find_best`; None: the name of the Optuna study. Each measurement is stored as it comes.
        options: the others of `sp.confirm`: delta, noise, max_pulls, n_jobs, ...

    Returns:
        As `sp.confirm`; `best_arm` is the number of a trial.

    Raises:
        InvalidInput, MeasurementFailed: as `sp.confirm`; the study has several objectives, or no finished trial.
    """
    values = _distinct(study)
    scores = [trial.value for trial in values.values()]
    finalists = {"scores": scores, "top": top}
    return _confirmed(study, objective, values, finalists, epsilon=epsilon, url=url, name=name, **options)


class CertifiedBest:
    """A callback that ends a study once its best trial is certified among the finalists.

        study.optimize(objective, n_trials=1000, callbacks=[CertifiedBest(objective, epsilon=0.02)])

    After every `every` finished trials it looks: the best trials, and the one that was named by the look before, are
    measured anew, as by `confirm`. The study ends when the look certifies the trial that was the best before it: at
    first the one with the best value, then the one that the look before named. So it ends when `every` more trials have
    brought nothing that is shown to be better by more than epsilon. Looks have shares of delta, delta / (k (k + 1)),
    because whether there is a next one depends on results: that the trial of the last look is worse than the best of
    its finalists by more than epsilon has a probability of at most delta.

    A look is in the user attributes of the study from its beginning, so that a killed program goes on with it; its
    measurements, too, where there is a `url`.

    Args:
        objective, top, epsilon, url: as in `confirm`; `url` has a study for each look, "NAME, look K".
        every: finished trials between two looks.
        delta: of all looks together.
        options: the others of `sp.confirm`. With `max_pulls` a look ends without a certificate, and the search goes on.

    Attributes:
        result: of the last look; None before it.
    """

    def __init__(
        self,
        objective: Objective,
        *,
        epsilon: float,
        delta: float = USUAL_DELTA,
        every: int = 50,
        top: int = USUAL_FINALISTS,
        url: str | None = None,
        **options: Any,
    ) -> None:
        probability("delta", delta, "the probability of a wrong answer.")
        self.every = whole_number("every", every, least=1, meaning="a number of finished trials between two looks.")
        self.top = whole_number("top", top, least=1, meaning="a number of finalists.")
        self.objective, self.delta = objective, delta
        self.options = {"epsilon": epsilon, "url": url, **options}
        self.result: Result | None = None
        self._one_at_a_time = Lock()

    def __call__(self, study: optuna.Study, trial: FrozenTrial) -> None:  # noqa: ARG002 (Optuna gives it)
        """Look, if it is time; Optuna calls this after each trial."""
        with self._one_at_a_time:
            look = study.user_attrs.get(LAST)
            if look is None or not look["open"]:
                finished = len(study.get_trials(deepcopy=False, states=[TrialState.COMPLETE]))
                if finished < (0 if look is None else look["finished"]) + self.every:
                    return
                look = self._begin(study, look, finished)
            self._carry_out(study, look)

    def _begin(self, study: optuna.Study, last: dict[str, Any] | None, finished: int) -> dict[str, Any]:
        """The finalists of a look, stored before their first measurement."""
        trials = _distinct(study)
        best = next(iter(trials)) if last is None else last["best"]
        same = _settings(study.get_trials(deepcopy=False)[best])  # it stands for the trials with its parameters
        others = [number for number, trial in trials.items() if _settings(trial) != same]
        finalists = sorted([best, *others[: max(1, self.top - 1)]])
        number = 1 if last is None else last["number"] + 1
        look = {"number": number, "finished": finished, "finalists": finalists, "best": best, "open": True}
        study.set_user_attr(LAST, look)
        return look

    def _carry_out(self, study: optuna.Study, look: dict[str, Any]) -> None:
        number, trials = look["number"], study.get_trials(deepcopy=False)
        finalists = {one: trials[one] for one in look["finalists"]}
        asked = {"delta": self.delta / (number * (number + 1)), "name": f"{study.study_name}, look {number}"}
        self.result = _confirmed(study, self.objective, finalists, {}, **self.options, **asked)
        study.set_user_attr(LAST, {**look, "open": False, "best": self.result.best_arm})
        if self.result.verdict == "certified" and self.result.best_arm == look["best"]:
            study.stop()


def _distinct(study: optuna.Study) -> dict[int, FrozenTrial]:
    """The finished trials by number, the best first; of equal parameters the best one, and the first of equal ones."""
    if len(study.directions) > 1:
        raise InvalidInput(
            f"the study has {len(study.directions)} objectives, and the best trial is one of a single objective. "
            "Confirm a study of one, or give sp.confirm the candidates and a measure of what counts."
        )
    trials = study.get_trials(deepcopy=False, states=[TrialState.COMPLETE])
    if not trials:
        raise InvalidInput("the study has no finished trial, so that there is no finalist. Run study.optimize first.")
    sign = -1.0 if _minimizes(study) else 1.0
    found: dict[tuple[tuple[str, str], ...], FrozenTrial] = {}
    for trial in sorted(trials, key=lambda one: -sign * _value(one)):
        found.setdefault(_settings(trial), trial)
    return {trial.number: trial for trial in found.values()}


def _settings(trial: FrozenTrial) -> tuple[tuple[str, str], ...]:
    """What tells the parameters of trials apart."""
    return tuple(sorted((name, repr(value)) for name, value in trial.params.items()))


def _value(trial: FrozenTrial) -> float:
    return math.nan if trial.value is None else trial.value


def _minimizes(study: optuna.Study) -> bool:
    return bool(study.direction == optuna.study.StudyDirection.MINIMIZE)


def _confirmed(
    study: optuna.Study,
    objective: Objective,
    trials: dict[int, FrozenTrial],
    chosen: dict[str, Any],
    *,
    name: str | None = None,
    **options: Any,
) -> Result:
    """Measure finalists until one is certified, and say so in the study."""
    measure = _Measure(objective, {number: dict(trial.params) for number, trial in trials.items()})
    options = {"at_once": 1, "minimize": _minimizes(study), "name": name or study.study_name, **options}
    found = confirm_candidates(list(trials), measure, **chosen, **options)
    if not chosen:
        others = "were or could be tried"
        tried = len(study.get_trials(deepcopy=False, states=[TrialState.COMPLETE]))
        found = replace(found, promise=PROMISE.format(len(trials), CHOSEN.format(tried), others))
    _write(study, found)
    return found


def _write(study: optuna.Study, found: Result) -> None:
    """The verdict, as user attributes."""
    study.set_user_attr("surepick_best_trial", found.best_arm)
    study.set_user_attr("surepick_verdict", found.verdict)
    study.set_user_attr("surepick_promise", f"{found.certificate.promise} {found.promise}")
    gap = found.certificate.certified_gap
    study.set_user_attr("surepick_certified_gap", None if gap is None else float(gap))
    known = Measured.of(found)
    study.set_user_attr("surepick_pulls", {str(one): pulls for one, pulls in known.pulls.items()})
    study.set_user_attr("surepick_means", {str(one): mean for one, mean in known.means.items()})


class _Measure:
    """New calls of the objective with parameters of trials; a class, so that it can be sent to other processes."""

    def __init__(self, objective: Objective, params: dict[int, dict[str, Any]]) -> None:
        self.objective, self.params = objective, params

    def __call__(self, numbers: Sequence[int]) -> list[float]:
        return [self._one(FixedTrial(self.params[one], fresh_seed())) for one in numbers]

    def _one(self, trial: FixedTrial) -> float:
        try:
            return float(self.objective(trial))
        except optuna.TrialPruned:
            return math.nan
