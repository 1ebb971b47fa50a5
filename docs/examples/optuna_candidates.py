"""Optuna found good settings, but its scores were noisy: which of the best twenty is really the best?

Somebody tunes the controller of a heating with Optuna: how cool the house is at night, and how many minutes before six
it begins to warm up. A trial simulates one winter day with random weather and gives it a score, warmth against cost.
Scores scatter by 0.5 from day to day. Optuna reports the trial with the highest score; of 200 noisy trials that is
usually a good setting that was also lucky, and its score is too good to be true.

So the twenty best distinct settings become candidates, and are simulated again until one is certified.

A measurement: one more day of one setting. Promised: the mean score of the setting that is named is at most 0.1 below
the largest of the twenty (not of all settings that could be tried); that is wrong with probability at most 5 %.
Assumed: each day is an independent draw around the mean of its setting, with a scale of at most 0.5. The scores by
which Optuna chose the twenty are not used again: they were chosen for being high.

The answer goes back into the Optuna study as its user attributes. A finished trial of Optuna cannot be changed any
more, so what is known of each trial is stored with the study, under the number of the trial.

    python docs/examples/optuna_candidates.py             # needs Optuna: pip install optuna
"""

from collections.abc import Callable

import numpy as np
import optuna

import surepick as sp
from surepick.integrations.optuna import confirm


def true_score(night: float, minutes: int) -> float:
    """The mean score of a setting; hidden in real life."""
    return 8.0 - ((night - 16.5) / 2.5) ** 2 - ((minutes - 75) / 40.0) ** 2


def simulate_day(params: dict[str, float], rng: np.random.Generator) -> float:
    """One day of random weather: its score."""
    return true_score(**params) + rng.normal(0.0, 0.5)


def objective_of(rng: np.random.Generator) -> Callable[[optuna.Trial], float]:
    """What Optuna maximizes: one day of the setting that a trial suggests."""

    def objective(trial: optuna.Trial) -> float:
        setting = {
            "night": trial.suggest_float("night", 12.0, 20.0, step=0.5),
            "minutes": trial.suggest_int("minutes", 0, 150, step=10),
        }
        return simulate_day(setting, rng)

    return objective


def tune(rng: np.random.Generator) -> optuna.Study:
    """The tuning as it was done before: 200 trials, one day each."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    tuning = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=0))
    tuning.optimize(objective_of(rng), n_trials=200)
    return tuning


def run(tuning: optuna.Study, rng: np.random.Generator) -> sp.Study:
    """Simulate the twenty again until one is certified; the answer is written into the Optuna study."""
    return confirm(tuning, objective_of(rng), top=20, epsilon=0.1, noise="subgaussian:0.5").study


def main() -> None:
    rng = np.random.default_rng(0)
    tuning = tune(rng)
    run(tuning, rng)
    known, lucky = tuning.user_attrs, tuning.best_trial
    for who, trial in (("Optuna's", lucky), ("surepick's", tuning.trials[known["surepick_best_trial"]])):
        pulls, mean = (known[name][str(trial.number)] for name in ("surepick_pulls", "surepick_means"))
        print(f"{who} best, trial {trial.number}: {trial.params['night']} degrees, {trial.params['minutes']} minutes")
        print(f"    scored {trial.value:.2f} once, {mean:.2f} on average in {pulls} days more")
        print(f"    in truth {true_score(**trial.params):.2f} on average")
    if known["surepick_means"][str(lucky.number)] < lucky.value - 0.1:
        print("The score of Optuna's best trial was a lucky one.")
    print(f"\n{known['surepick_verdict']}: {known['surepick_promise']}")
    print(f"Days simulated for that: {sum(known['surepick_pulls'].values()):,}")


if __name__ == "__main__":
    main()
