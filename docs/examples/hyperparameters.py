"""Which of 30 settings of a model is best? Each measurement trains it and tests it.

Somebody has 569 tissue samples, each known to be malignant or not, and a support vector machine with two settings, C
and gamma. There are 30 combinations to choose from. How well a setting does depends on which samples it learns from and
which it is tested on, so a single trial is a noisy measurement, and the best of 30 single trials is often a lucky one.

A measurement: shuffle the samples, train on the first 60, and take the share of right answers on the next 100, a number
between 0 and 1. (Tested on all 509 that are left it would have the same mean, vary less and take longer.)

Promised: the mean of the setting that is named is at most 0.05 below the largest of all 30; that is wrong with
probability at most 5 %. The mean is the expected share of right answers on samples held out, when 60 of these 569 are
drawn to learn from. It is not the accuracy on the patients of another hospital, nor that of the final model, which
learns from more than 60. What is assumed holds by construction here: each measurement shuffles anew.

How the settings lie to one another is not used. A kernel over log C and log gamma would claim that the mean is smooth
in them, up to a norm that nobody knows, and on this table it saves nothing worth that claim.

    python docs/examples/hyperparameters.py [EPSILON]      # needs scikit-learn: pip install 'surepick[demo]'
"""

import sys

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.svm import SVC

import surepick as sp

SAMPLES, MALIGNANT = load_breast_cancer(return_X_y=True)
SAMPLES = (SAMPLES - SAMPLES.mean(axis=0)) / SAMPLES.std(axis=0)
SETTINGS = {
    f"C={c:g} gamma={gamma:g}": {"C": c, "gamma": gamma}
    for c in (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
    for gamma in (0.0001, 0.001, 0.01, 0.1, 1.0)
}


def train_and_test(setting: str, rng: np.random.Generator) -> float:
    """One measurement: the share of right answers of a freshly trained model on samples that it has not seen."""
    shuffled = rng.permutation(len(SAMPLES))
    seen, held_out = shuffled[:60], shuffled[60:160]
    model = SVC(**SETTINGS[setting]).fit(SAMPLES[seen], MALIGNANT[seen])
    return float(np.mean(model.predict(SAMPLES[held_out]) == MALIGNANT[held_out]))


def run(*, epsilon: float = 0.05, seed: int = 0) -> sp.Study:
    """Train and test where it tells most, until one setting is certified."""
    rng, arms = np.random.default_rng(seed), sp.Arms(ids=list(SETTINGS))
    policy = sp.make_policy("certified-independent", arms, epsilon=epsilon, delta=0.05, noise=sp.Bounded(0.0, 1.0))
    study = sp.Study(policy)
    while (batch := study.ask()) is not None:
        study.tell(batch, [train_and_test(setting, rng) for setting in batch.pulls()])
        judged = study.trace[-1]
        print(f"{judged.total_pulls:5,} models trained, settings that may be the best: {len(judged.active)}")
    return study


def main(epsilon: float = 0.05) -> None:
    study = run(epsilon=epsilon)
    answer, rng = study.certificate(), np.random.default_rng(1)
    fresh = np.mean([train_and_test(answer.best_arm, rng) for _ in range(200)])
    print(f"\nThe setting to take: {answer.best_arm}")
    print(f"{answer.verdict}: {answer.promise}")
    print(f"200 fresh trials of it: {fresh:.1%} right.")


if __name__ == "__main__":
    main(*map(float, sys.argv[1:]))
