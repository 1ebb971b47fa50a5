"""Which of 37 language models is best at a task of programming, without asking all of them everything?

LiveCodeBench has 442 questions of the kind "what does this test expect?". A team wants to know which of 37 models
answers them best on average. To ask every model every question takes 16,354 answers, each paid for and graded. Most of
that money is spent on models that are plainly not the best.

A measurement: draw one of the 442 questions at random, put it to one model, and grade the answer between 0 and 1. The
next one draws again from all 442, so a model can meet a question twice, and each model draws its own questions.

Promised: the mean score of the model that is named, over this set of questions, is at most 0.05 below the largest of
all 37; that is wrong with probability at most 5 %. Assumed: only that scores are between 0 and 1 and that the questions
are drawn at random. Nothing is said about other questions: whoever wants the best model for questions yet to come
needs a set that was drawn from the same source.

The grades were really given (share of ten answers that passed) and are recorded on the benchmark's site (LiveCodeBench,
CC BY-SA 4.0; not part of this repository). `sp.bench.datasets.livecodebench` says how to obtain them where they are
missing. To ask a model is here to look its grade up.

    python docs/examples/language_models.py FOLDER        # holds testgen.csv or testgen.csv.gz
"""

import sys
from pathlib import Path

import numpy as np

import surepick as sp
from surepick.environments import Environment

QUESTIONS = 442


def ask_models(batch: sp.Batch, recorded: Environment, rng: np.random.Generator) -> sp.Observations:
    """Stands for the models and the grader: so many random questions to each model, its scores added up."""
    return recorded.pull(batch.counts, rng)


def run(directory: str | Path, *, epsilon: float = 0.05, seed: int = 0) -> sp.Study:
    """Ask, grade, tell, until one model is certified."""
    recorded, rng = sp.bench.datasets.livecodebench(directory, "testgen"), np.random.default_rng(seed)
    policy = sp.make_policy(
        "certified-independent", recorded.arms, epsilon=epsilon, delta=0.05, noise=sp.Bounded(0.0, 1.0)
    )
    study = sp.Study(policy)
    while (batch := study.ask()) is not None:
        scores = ask_models(batch, recorded, rng)
        study.tell_totals(batch, scores.counts, scores.sums, scores.squares)  # squares: how much models vary
        judged = study.trace[-1]
        print(f"{judged.total_pulls:5,} questions asked, models that may be the best: {len(judged.active)}")
    return study


def main(directory: str) -> None:
    study = run(directory)
    answer, everything = study.certificate(), QUESTIONS * study.arms.num_arms
    print(f"\nThe model to take: {answer.best_arm}")
    print(f"{answer.verdict}: {answer.promise}")
    print(f"{answer.pulls:,} questions instead of {everything:,}, {answer.pulls / everything:.0%}.")
    short = sp.bench.datasets.livecodebench(directory, "testgen").gaps[answer.arm]
    print(f"By all recorded answers the mean score of {answer.best_arm} is {short:.3f} below the largest.")


if __name__ == "__main__":
    main(sys.argv[1]) if len(sys.argv) == 2 else sys.exit(__doc__)
