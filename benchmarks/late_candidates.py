"""What candidates that come later cost: 10 from the start and 20 later, beside all 30 at once.

    python benchmarks/late_candidates.py [--seeds 160] [--first 0] [--groups 1,20] [--shares usual,0.1]

Means are drawn from N(0, 1), the noise is normal with standard deviation 1, epsilon is .5 and delta .05. Groups of
equal size come after the first rounds, one a round.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

import surepick as sp

FIRST, LATER, EPSILON = 10, 20, 0.5
IDS = [str(number) for number in range(FIRST + LATER)]


@dataclass(frozen=True)
class Played:
    pulls: int
    right: bool


def played(seed: int, groups: int, share: float | None) -> Played:
    """A study in which the later ones come in so many groups; 0: all are there at once."""
    means = np.random.default_rng([seed, 1]).standard_normal(len(IDS))
    noise = np.random.default_rng([seed, 2])
    options = {"later": IDS[FIRST:], "later_share": share} if groups else {}
    policy = sp.make_policy(
        "certified-independent", sp.Arms(ids=IDS), epsilon=EPSILON, delta=0.05, noise="subgaussian:1", **options
    )
    study, coming = sp.Study(policy, study_id="late"), later_ones(groups)
    while (batch := study.ask()) is not None:
        study.tell(batch, [means[int(name)] + noise.standard_normal() for name in batch.pulls()])
        if group := next(coming, None):
            study.add(group)
    answer = study.certificate()
    return Played(answer.pulls, bool(means.max() - means[int(answer.best_arm)] <= EPSILON))


def later_ones(groups: int) -> Iterator[list[str]]:
    """Who comes, group by group."""
    for group in range(groups):
        yield IDS[FIRST + group * LATER // groups : FIRST + (group + 1) * LATER // groups]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=160)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--groups", default="1,20")
    parser.add_argument("--shares", default="usual,0.1")
    given = parser.parse_args()
    seeds = range(given.first, given.first + given.seeds)
    at_once = np.array([played(seed, 0, None).pulls for seed in seeds])
    print(f"all at once: {at_once.mean():.0f} measurements, {given.seeds} seeds")
    for groups in map(int, given.groups.split(",")):
        for share in given.shares.split(","):
            found = [played(seed, groups, None if share == "usual" else float(share)) for seed in seeds]
            pulls = np.array([one.pulls for one in found])
            ratio = pulls.mean() / at_once.mean()
            error = (pulls - ratio * at_once).std(ddof=1) / at_once.mean() / len(pulls) ** 0.5
            wrong = sum(not one.right for one in found)
            print(f"{groups:3} groups, share {share:>5}: {ratio:.2f} times as many (+- {error:.2f}), {wrong} wrong")


if __name__ == "__main__":
    main()
