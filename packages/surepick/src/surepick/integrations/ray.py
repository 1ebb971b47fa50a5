"""Ray Tune: the best trials of an experiment are measured anew, and trials race until one is certified."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

from surepick.core.arms import Arms
from surepick.core.certificate import Certificate
from surepick.core.values import whole_number
from surepick.errors import InvalidInput, OutOfTurn
from surepick.find_best import USUAL_NAME, confirm as confirm_candidates
from surepick.integrations.finalists import fresh_seed
from surepick.noise import Noise
from surepick.policies.options import fitting_policy
from surepick.policies.registry import settled_policy
from surepick.studies.closed_loop import Result, tell_measured
from surepick.studies.opening import kept_study
from surepick.studies.recording import Accept
from surepick.studies.study import Study
from surepick.text import quoted

try:
    import ray
    from ray import tune
    from ray.tune.stopper import Stopper
except ImportError as error:
    raise ImportError('ray is absent: pip install "surepick[ray]".') from error

Mode = Literal["max", "min"]
PULL = "surepick_pull"  # the parameter by which a Tuner tells measurements apart


def confirm(
    results: tune.ResultGrid,
    trainable: Callable[[dict[str, Any]], Any],
    *,
    metric: str,
    mode: Mode,
    top: int | None = None,
    epsilon: float | None = None,
    seed: str | None = None,
    tuner: bool = False,
    run_config: Any = None,
    resources: Mapping[str, Any] | None = None,
    n_jobs: int | None = None,
    **options: Any,
) -> Result:
    """Measure the best trials of an experiment anew until one is certified.

    Args:
        results: of `Tuner.fit()`. The last value of the metric chooses the finalists, and never counts; of trials with
            equal configurations the best one stands for all, and those with an error are none.
        trainable: config -> the metric, or a dict that has it, anew at each call: a function, which is called in Ray
            tasks, each result stored as it comes. With `tuner=True` one that reports, as the search ran it: each
            round is an experiment of `Tuner`, whose last reports count.
        metric, mode: as in `TuneConfig`; "max": large values are good.
        top: how many finalists, those with the best values; None: 10.
        epsilon: how much worse than the best finalist the answer may be, in the unit of the metric, > 0; None beside a
            `budget`.
        seed: the key of the config that becomes another number for each measurement; None: the function draws anew by
            itself.
        run_config: of the Tuner's experiments.
        resources: what a measurement takes, {"cpu": 1, "gpu": 0.5}; None: one processor.
        n_jobs: tasks at a time; None: as many as the cluster has processors.
        options: the others of `sp.confirm`: delta, noise, url, name, max_pulls, ...

    Returns:
        As `sp.confirm`; `best_arm` is a trial id, and `results` has its config.

    Raises:
        InvalidInput, MeasurementFailed: as `sp.confirm`; no trial has the metric, or the trainable gives none.
    """
    if mode not in ("max", "min"):
        raise InvalidInput(f"mode is {quoted(mode)}; it must be 'max' or 'min'.")
    configs, scores = _finalists(results, metric, mode)
    needs = {"cpu": 1.0} if resources is None else dict(resources)
    given = {"scores": scores, "top": top, "epsilon": epsilon, "minimize": mode == "min", **options}
    if tuner:
        return confirm_candidates(
            list(configs), _Tuned(trainable, configs, metric, mode, seed, needs, run_config), **given
        )

    def one_pull(config: dict[str, Any]) -> Any:  # Ray takes a function, and nothing else that can be called
        return trainable(config)

    task = ray.remote(one_pull).options(num_cpus=needs.pop("cpu", 1), num_gpus=needs.pop("gpu", 0), resources=needs)

    async def measure(ids: Sequence[str]) -> list[float]:
        return [_value(await task.remote(_fresh(configs[one], seed)), metric) for one in ids]

    most = max(1, int(ray.cluster_resources().get("CPU", 1))) if n_jobs is None else n_jobs
    return confirm_candidates(list(configs), measure, n_jobs=most, at_once=1, **given)


class CertifiedStopper(Stopper):  # type: ignore[misc, unused-ignore]  # without the package it is of no known type
    """Trials race: each report is a new measurement, those that are ruled out stop, and all once one is certified.

        stopper = CertifiedStopper(metric="score", mode="max", num_trials=8, epsilon=0.1)
        Tuner(trainable, ..., run_config=RunConfig(stop=stopper)).fit()
        stopper.best_trial, stopper.certificate().verdict

    The reports of a trial must be independent measurements of one thing, like evaluations with fresh seeds; those of a
    model that learns are none. All trials must run at the same time (`tune.with_resources(trainable, {"cpu": 0.1})`):
    the first round waits for a report of each. Reports that come before they are asked for wait, unseen, for the next
    round, so that nothing depends on how fast a trial is.

    Args:
        metric, mode: as in `TuneConfig`.
        num_trials: how many trials there are.
        epsilon, delta, noise, options: as in `find_best`.
        url, name: as in `find_best`: reports that count are kept there.

    Attributes:
        study: the `Study` of the trials; None until each of them has reported.
    """

    def __init__(
        self,
        *,
        metric: str,
        mode: Mode,
        num_trials: int,
        epsilon: float | None = None,
        delta: float | None = None,
        noise: Noise | str | None = None,
        url: str | None = None,
        name: str = USUAL_NAME,
        **options: Any,
    ) -> None:
        if mode not in ("max", "min"):
            raise InvalidInput(f"mode is {quoted(mode)}; it must be 'max' or 'min'.")
        self.num_trials = whole_number("num_trials", num_trials, least=1, meaning="a number of trials.")
        self.metric, self.mode, self.url, self.name = metric, mode, url, name
        self.asked = {"epsilon": epsilon, "delta": delta, "noise": noise, **options}
        self.study: Study | None = None
        self._waiting: dict[str, deque[float]] = {}
        settled_policy(fitting_policy(options), Arms(ids=["a", "b"]), **self.asked)  # what is wrong is said at once

    def __getstate__(self) -> dict[str, Any]:
        """A study stays in the process that has it, or in its database."""
        return {**self.__dict__, "study": None, "_waiting": {}}

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        """Take a report; whether its trial is ruled out, or all are done."""
        if self.metric not in result:
            raise InvalidInput(f"a report has no {quoted(self.metric)}; it has {', '.join(map(quoted, result))}.")
        self._waiting.setdefault(trial_id, deque()).append(float(result[self.metric]))
        if self.study is None:
            if len(self._waiting) < self.num_trials:
                return False
            self._begin()
        self._tell()
        return self.stop_all() or self._is_out(trial_id)

    def stop_all(self) -> bool:
        """Whether a trial is certified; Ray asks after each report."""
        return self.study is not None and self.study.stopped

    @property
    def best_trial(self) -> str:
        """The id of the trial that is named."""
        return self._begun().recommend()

    def certificate(self) -> Certificate:
        """The answer, and what it rests on."""
        return self._begun().certificate()

    def _begun(self) -> Study:
        if self.study is None:
            raise OutOfTurn(
                f"{len(self._waiting)} of {self.num_trials} trials have reported, and a round takes all: let them run "
                'at the same time, tune.with_resources(trainable, {"cpu": 0.1}).'
            )
        return self.study

    def _begin(self) -> None:
        """The study of the trials, whatever they reported."""
        arms = Arms(ids=sorted(self._waiting))
        options = {name: value for name, value in self.asked.items() if name not in ("epsilon", "delta", "noise")}
        policy = settled_policy(fitting_policy(options), arms, **self.asked)
        self.study, _ = kept_study(self.url, self.name, arms, policy, minimize=self.mode == "min")

    def _tell(self) -> None:
        """Tell what waits and is asked for, round by round."""
        study = self._begun()
        while (batch := study.ask()) is not None:
            ids = [one for one, left in zip(batch.ids, study.missing.tolist(), strict=True) for _ in range(left)]
            taken = [(one, self._waiting[one].popleft()) for one in ids if self._waiting.get(one)]
            if not taken:
                return
            names, values = zip(*taken, strict=True)
            told = (list(names), list(values))
            tell_measured(partial(self._report, study, told), "accept")

    @staticmethod
    def _report(study: Study, told: tuple[list[str], list[float]], accept: Accept) -> object:
        return study.tell(*told, accept_unusual=accept)

    def _is_out(self, trial_id: str) -> bool:
        """Ruled out by the closed rounds, and not asked for."""
        study = self._begun()
        if not study.trace:
            return False
        place = study.ids.index(trial_id)
        return place not in study.trace[-1].active and not study.missing[place]


class _Tuned:
    """Measurements as trials of a Tuner, an experiment for each round."""

    def __init__(
        self,
        trainable: Callable[[dict[str, Any]], Any],
        configs: Mapping[str, dict[str, Any]],
        metric: str,
        mode: Mode,
        seed: str | None,
        resources: dict[str, Any],
        run_config: Any,
    ) -> None:
        self.trainable, self.configs, self.metric, self.mode = trainable, configs, metric, mode
        self.seed, self.resources, self.run_config = seed, resources, run_config

    def __call__(self, ids: Sequence[str]) -> list[float]:
        trainable, asked = self.trainable, [_fresh(self.configs[one], self.seed) for one in ids]

        def one_pull(config: dict[str, Any]) -> Any:
            return trainable(asked[config[PULL]])

        tuner = tune.Tuner(
            tune.with_resources(one_pull, self.resources),
            param_space={PULL: tune.grid_search(list(range(len(ids))))},
            tune_config=tune.TuneConfig(metric=self.metric, mode=self.mode, reuse_actors=True),
            run_config=self.run_config or tune.RunConfig(verbose=0),
        )
        ended = sorted(tuner.fit(), key=lambda one: one.config[PULL])
        return [math.nan if one.error else _value(one.metrics, self.metric) for one in ended]


def _finalists(results: tune.ResultGrid, metric: str, mode: Mode) -> tuple[dict[str, dict[str, Any]], list[float]]:
    """(trial id -> config, their values): the best first, of equal configs the best one."""
    scored = [one for one in results if one.error is None and metric in (one.metrics or {})]
    if not scored:
        raise InvalidInput(f"no trial has the metric {quoted(metric)} without an error, so that none is a finalist.")
    sign = 1.0 if mode == "min" else -1.0
    distinct: dict[str, Any] = {}
    for one in sorted(scored, key=lambda one: sign * float(one.metrics[metric])):
        distinct.setdefault(repr(sorted(one.config.items())), one)
    configs = {str(one.metrics["trial_id"]): dict(one.config) for one in distinct.values()}
    return configs, [float(one.metrics[metric]) for one in distinct.values()]


def _fresh(config: Mapping[str, Any], seed: str | None) -> dict[str, Any]:
    """The config of a measurement, with a number of its own."""
    return dict(config) if seed is None else {**config, seed: fresh_seed()}


def _value(given: Any, metric: str) -> float:
    """The metric, of what a trainable returned."""
    if given is None:
        raise InvalidInput(
            "the trainable returned nothing. One that reports is measured by tuner=True; or give a function that "
            f"returns {quoted(metric)}."
        )
    if isinstance(given, Mapping):
        if metric not in given:
            raise InvalidInput(f"the trainable gave no {quoted(metric)}; it gave {', '.join(map(quoted, given))}.")
        given = given[metric]
    return float(given)
