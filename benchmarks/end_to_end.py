"""What a whole certified study takes, by phase, from a thousand to a million candidates.

    python benchmarks/end_to_end.py [--arms 1000,10000,100000,1000000] [--seeds 1] [--durable] [--document]

Gaussian features in 20 dimensions, rewards linear with a unit vector, noise sub-Gaussian with sigma .5;
certified-linear with norm bound 1, epsilon .1, delta .05. With --seeds, so many instances of each size. Each study
runs in a process of its own, in which a small one was begun before, with BLAS on one thread. Seconds of

    build         Arms and the policy with its embedding (with --durable: the study in SQLite too)
    ask, tell     the policy's work: designs and rounding, estimates and evidence
    pull          the simulator's draws
    certificate   of the finished study
    document      with --document: the certificate written as a file that can be verified

and their sum; then rounds, pulls, the verdict, whether the answer is within epsilon of the best, and the most memory
that the process held, features included. The growth exponent is the slope of log seconds against log K. A million
candidates are asked to fit in 300 s and 4 GB. --durable keeps the study in a file, up to 100,000 candidates.
A line a round goes to stderr; after --limit seconds no new round is begun.
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np

import surepick as sp
from peak_memory import peak_memory
from surepick.core.random_streams import stream
from surepick.linalg.rows import one_thread

DIM, SIGMA, EPSILON, DELTA, NORM_BOUND = 20, 0.5, 0.1, 0.05, 1.0
ARMS = "1000,10000,100000,1000000"
MOST_DURABLE = 100_000
ASKED_ARMS, ASKED_SECONDS, ASKED_MEGABYTES = 1_000_000, 300.0, 4_000.0
UNFINISHED = "not finished"
PHASES = ("build", "ask", "pull", "tell", "certificate")

T = TypeVar("T")


@dataclass(frozen=True)
class Outcome:
    """What one study took and found.

    Args:
        num_arms: K.
        seconds: of each phase.
        rounds: plans that were pulled.
        pulls: measurements.
        verdict: of the certificate; "not finished" where the limit of time came first.
        right: the arm returned is within epsilon of the best.
        megabytes: the most memory that the process held.
        file_megabytes: of the database; 0 without one.
    """

    num_arms: int
    seconds: dict[str, float]
    rounds: int
    pulls: int
    verdict: str
    right: bool
    megabytes: float
    file_megabytes: float

    @property
    def total(self) -> float:
        return sum(self.seconds.values())


class Clock:
    """Seconds by phase."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(PHASES, 0.0)  # a phase that is not always there comes last

    def timed(self, phase: str, work: Callable[[], T]) -> T:
        """The result of the work, whose time is added to the phase."""
        started = time.perf_counter()
        result = work()
        self.seconds[phase] = self.seconds.get(phase, 0.0) + time.perf_counter() - started
        return result

    @property
    def total(self) -> float:
        return sum(self.seconds.values())


def truth(num_arms: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """(features, means) of the candidates."""
    rng = stream(seed, "end_to_end", num_arms)
    theta = rng.standard_normal(DIM)
    features = rng.standard_normal((num_arms, DIM))
    return features, features @ (theta / np.sqrt(theta @ theta))


def new_study(features: np.ndarray, file: Path | None) -> sp.Study:
    """The study, in memory or in a database."""
    arms = sp.Arms(features)
    policy = sp.make_policy(
        "certified-linear", arms, epsilon=EPSILON, delta=DELTA, noise=sp.SubGaussian(SIGMA), norm_bound=NORM_BOUND
    )
    if file is None:
        return sp.Study(arms, policy)
    return sp.create_study(f"sqlite:///{file}", "benchmark", arms, policy)


def played(num_arms: int, *, seed: int, file: Path | None, document: Path | None, limit: float) -> Outcome:
    """One study to its end, or until no new round may be begun."""
    features, means = truth(num_arms, seed)
    clock, rounds, pulls = Clock(), 0, 0
    study = clock.timed("build", lambda: new_study(features, file))
    world = sp.environments.Environment(arms=study.arms, means=means, noise=sp.SubGaussian(SIGMA))
    while clock.total < limit and (plan := clock.timed("ask", study.ask)) is not None:
        counts, drawn = plan.counts, stream(seed, "rewards", rounds)
        seen = clock.timed("pull", lambda counts=counts, drawn=drawn: world.pull(counts, drawn))
        clock.timed("tell", lambda seen=seen: study.tell_totals(study.ids, seen.counts, seen.sums, seen.squares))
        rounds, pulls = rounds + 1, pulls + plan.total
        measured = f"{plan.total:,} pulls of {np.count_nonzero(counts):,} candidates, {pulls:,} in all"
        print(f"K = {num_arms:,}, round {rounds}: {measured}, {clock.total:.1f} s", file=sys.stderr, flush=True)
    verdict, arm = UNFINISHED, -1
    if study.stopped:
        answer = clock.timed("certificate", study.certificate)
        verdict, arm = answer.verdict, answer.arm
        if document is not None:
            clock.timed("document", lambda: sp.write_certificate(study, document))
    return Outcome(
        num_arms,
        clock.seconds,
        rounds,
        pulls,
        verdict,
        arm >= 0 and bool(means[arm] >= means.max() - EPSILON),
        peak_memory(),
        0.0 if file is None else sum(part.stat().st_size for part in file.parent.glob(f"{file.name}*")) / 1e6,
    )


def in_a_process(num_arms: int, seed: int, chosen: argparse.Namespace) -> Outcome:
    """The same in a process of its own, so that its memory is the study's alone."""
    options = ["--one", str(num_arms), "--first", str(seed), "--limit", str(chosen.limit)]
    flags = [f"--{name}" for name in ("durable", "document") if getattr(chosen, name)]
    command = [sys.executable, __file__, *options, *flags]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return Outcome(**json.loads(done.stdout))


def here(num_arms: int, chosen: argparse.Namespace) -> Outcome:
    """One study, in this process."""
    with one_thread(), tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        new_study(truth(50, 0)[0], folder / "small.db" if chosen.durable else None).ask()  # loads what is needed
        with one_thread():  # once more, for what was loaded
            return played(
                num_arms,
                seed=chosen.first,
                file=folder / "study.db" if chosen.durable else None,
                document=folder / "certificate.json" if chosen.document else None,
                limit=chosen.limit,
            )


def line(outcome: Outcome) -> str:
    """One line of the table."""
    phases = "".join(f"{seconds:>12.3f}" for seconds in outcome.seconds.values())
    found = f"{outcome.rounds:>7d}{outcome.pulls:>10,d}  {outcome.verdict:13s}{'yes' if outcome.right else 'no':>5s}"
    memory = f"{outcome.megabytes:>9,.0f} MB" + (
        f"{outcome.file_megabytes:>9,.1f} MB" if outcome.file_megabytes else ""
    )
    return f"{outcome.num_arms:>9,d}{phases}{outcome.total:>12.3f}{found}{memory}"


def growth(outcomes: Sequence[Outcome]) -> str:
    """Slope of log seconds against log K, of all phases together and of each."""
    sizes = np.log([outcome.num_arms for outcome in outcomes])

    def slope(seconds: Sequence[float]) -> str:
        return f"{np.polyfit(sizes, np.log(np.maximum(seconds, 1e-9)), 1)[0]:.2f}"

    phases = [phase for phase in outcomes[0].seconds if all(phase in outcome.seconds for outcome in outcomes)]
    each = ", ".join(f"{phase} {slope([outcome.seconds[phase] for outcome in outcomes])}" for phase in phases)
    return f"growth with K, exponent: {slope([outcome.total for outcome in outcomes])} ({each})"


def asked(outcome: Outcome) -> str:
    """Whether a million candidates fit."""
    fits = outcome.total <= ASKED_SECONDS and outcome.megabytes <= ASKED_MEGABYTES
    holds = "holds" if fits and outcome.verdict == "certified" and outcome.right else "misses"
    limits = f"{ASKED_SECONDS:.0f} s and {ASKED_MEGABYTES:,.0f} MB"
    return f"{outcome.num_arms:,} candidates, certified and right in {limits}: {holds}"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arms", default=ARMS, help="numbers of candidates")
    parser.add_argument("--seeds", type=int, default=1, help="studies at each number of candidates")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--durable", action="store_true", help="in SQLite, up to 100,000 candidates")
    parser.add_argument("--document", action="store_true", help="write the certificate too")
    parser.add_argument("--limit", type=float, default=1_800.0, help="no new round after so many seconds")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.one:
        print(json.dumps(asdict(here(chosen.one, chosen))))
        return
    sizes = [int(number) for number in chosen.arms.split(",")]
    if chosen.durable:
        sizes = [size for size in sizes if size <= MOST_DURABLE]
    phases = (*PHASES, *(["document"] if chosen.document else []), "seconds")
    names = "".join(f"{phase:>12s}" for phase in phases)
    file = "       file" if chosen.durable else ""
    print(
        f"{'K':>9s}{names}{'rounds':>7s}{'pulls':>10s}  {'verdict':13s}{'right':>5s}{'memory':>12s}{file}", flush=True
    )
    outcomes = []
    for size, seed in itertools.product(sizes, range(chosen.first, chosen.first + chosen.seeds)):
        outcomes.append(in_a_process(size, seed, chosen))
        print(line(outcomes[-1]), flush=True)
    finished = [outcome for outcome in outcomes if outcome.verdict != UNFINISHED]
    if len({outcome.num_arms for outcome in finished}) > 1:
        print(growth(finished))
    for outcome in outcomes:
        if outcome.num_arms == ASKED_ARMS:
            print(asked(outcome))


if __name__ == "__main__":
    main()
