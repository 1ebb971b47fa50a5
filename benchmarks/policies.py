"""Own-stop pulls of the policies, beside two references that know the means.

    OMP_NUM_THREADS=1 python benchmarks/policies.py [--seeds 100] [--first 300000] [--only sphere,soare] [--mnist DIR]
    OMP_NUM_THREADS=1 python benchmarks/policies.py --all [--seeds 3] [--policies rage,lucb] [--data DIR] ...

Epsilon .1, delta .05. "pulls" are those that a user pays: the mean over fresh seeds until the own stop (MNIST: a fifth
of the seeds). "must" is the most that the mean may be. The references are surepick_bench.theory's:

    reference = 2 sigma^2 rho* log(1/(2.4 delta))        rho* for accuracy max(gap, epsilon)
    pac       = 2 sigma^2 H log(1/delta)                 H = min over epsilon-best i, designs, of
                                                             max over j of ||x_i - x_j||^2 / (h_i - h_j + epsilon)^2

both in the dimension of the policy's first batch. Constants of the policy were chosen on other instances
(docs/decisions/0008); seeds from 300,000 on were never looked at for that.

--all: every policy, with its default settings and the environment's noise, on every environment. There the references
are in the vectors that the means are linear in, and the ratios are those of the mean. Norm bounds hold, on the two
clusters but for 1e-4; a star marks a policy that takes the means to be linear in the features, or a function of them,
where they are not, so that its answer is not covered. A study that would pass --max-pulls, or a cell that takes longer
than --seconds, ends as "pull budget" or "time budget"; the pulls until then count, and ">" marks what would have been
more. Environments that are read from files need --mnist and --data (livecodebench, obd, pvlab in one folder).
"""

import argparse
import math
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

import surepick as sp
from surepick.core.plans import Embedding, IndependentArms
from surepick.embeddings import GaussianKernel
from surepick.linalg.rows import one_thread
from surepick.noise import largest_scale
from surepick.policies.registry import policy_options
from surepick_bench.theory.complexity import hardness, pac_complexity, reference_pulls
from surepick_bench.theory.neural import reward_norm

EPSILON, DELTA = 0.1, 0.05
MNIST = "../shared/data/mnist"


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    make: Callable[[int], sp.environments.Environment]
    norm_bound: float
    must: int
    share: float = 1.0


def rows(mnist: str) -> dict[str, Row]:
    """The environments, each with the most pulls that the default policy may take on average."""
    clusters, sphere = sp.environments.two_clusters, sp.environments.sphere
    return {
        "two clusters, K 250": Row(lambda seed: clusters(num_arms=250, dim=25, seed=seed), 0.9, 75),
        "two clusters, K 1000": Row(lambda seed: clusters(num_arms=1000, dim=25, seed=seed), 0.9, 75),
        "norm reward, K 200": Row(lambda seed: clusters(num_arms=200, dim=20, reward="norm", seed=seed), 1.2, 85),
        "perturbation 1e-3": Row(lambda seed: clusters(num_arms=250, dim=25, perturbation=1e-3, seed=seed), 0.9, 80),
        "sphere": Row(lambda seed: sphere(100, 10, seed), 1.0, 7_200),
        "soare": Row(lambda seed: sp.environments.soare(10, 0.6, seed), 1.0, 420),
        "digits": Row(sp.environments.digits, 2.0, 23_000),
        "mnist": Row(lambda seed: sp.bench.datasets.mnist(mnist, seed), 2.0, 75_000, 0.2),
    }


def references(embedded, environment, epsilon: float = EPSILON) -> tuple[float, float]:
    """(reference, pac), in pulls."""
    sigma = largest_scale(environment.noise)
    asked = reference_pulls(hardness(embedded, environment.means, epsilon).value, sigma=sigma, delta=DELTA)
    found = pac_complexity(embedded, environment.means, epsilon, sigma=sigma)
    return asked, found.value * math.log(1.0 / DELTA)


def measured(row: Row, name: str, seeds: range) -> str:
    """One line: pulls, the two references and ratios, wrong answers, seconds."""
    pulls, seconds, wrong, uncertified, known = [], [], 0, 0, []
    for seed in seeds:
        environment = row.make(seed)
        started = time.perf_counter()
        options = {} if name == "certified-independent" else {"norm_bound": row.norm_bound}
        policy = sp.make_policy(
            name, environment.arms, epsilon=EPSILON, delta=DELTA, noise=environment.noise, **options
        )
        run = sp.simulate(policy, environment, seed=seed)
        seconds.append(time.perf_counter() - started)
        pulls.append(run.pulls)
        wrong += not run.success
        uncertified += run.verdict != "certified"
        if len(known) < 20:
            first_batch = policy.embedded(policy.ask(policy.init()).dim)
            known.append(references(first_batch, environment))
    asked, pac = np.mean(known, axis=0)
    mean, error = np.mean(pulls), np.std(pulls) / math.sqrt(len(pulls))
    some = np.array(pulls[: len(known)]).mean()
    return (
        f"{mean:>9,.0f} +-{error:>6,.0f} {np.median(pulls):>9,.0f} {row.must:>8,} {asked:>8,.0f} {some / asked:>6.1f} "
        f"{pac:>8,.0f} {some / pac:>6.1f} {wrong:>6} {uncertified:>12} {np.median(seconds):>8.2f}"
    )


def certified_table(chosen: argparse.Namespace, words: Sequence[str]) -> None:
    """One policy, and what its mean pulls must not exceed."""
    print(
        f"{chosen.policy}, {chosen.seeds} seeds from {chosen.first}\n{'':22s}{'pulls':>9s} {'':>8s} {'median':>9s} "
        f"{'must':>8s} {'refer.':>8s} {'ratio':>6s} {'pac':>8s} {'ratio':>6s} {'wrong':>6s} {'uncertified':>12s} "
        f"{'seconds':>8s}"
    )
    for label, row in rows(chosen.mnist).items():
        if not named(label, words):
            continue
        seeds = range(chosen.first, chosen.first + max(1, round(chosen.seeds * row.share)))
        try:
            line = measured(row, chosen.policy, seeds)
        except sp.errors.DatasetMissing as missing:
            line = f" skipped: {missing}"
        print(f"{label:22s}{line}", flush=True)


def named(label: str, words: Sequence[str]) -> bool:
    return not words or any(word in label for word in words)


# --- all policies on all environments


@dataclass(frozen=True)
class Place:
    """An environment, and the settings that policies get for it.

    Args:
        make: seed -> environment.
        norm_bound: of linear rewards.
        dim: of the linear embedding in which the references are; None: all of it; 0: arms that share nothing.
        kernel: (gamma of the Gaussian kernel, its norm bound); None: gamma is one over the median squared distance,
            the bound 1.05 times the true norm.
        epsilon: in reward units.
        neural_bound: of the misspecification of a network's embeddings; None: not known, and estimated.
        gap_bound: the largest possible gap; None: what the policies assume, 2 or the range of the rewards.
    """

    make: Callable[[int], sp.environments.Environment]
    norm_bound: float
    dim: int | None = None
    kernel: tuple[float, float] | None = None
    epsilon: float = EPSILON
    neural_bound: float | None = None
    gap_bound: float | None = None

    def vectors(self, environment: sp.environments.Environment) -> Embedding | IndependentArms:
        """In which the references are."""
        if self.dim == 0:
            return IndependentArms(environment.num_arms)
        family = sp.LinearEmbedding(environment.arms.features, norm_bound=1.0)
        return family.at(self.dim or family.max_dim)


def places(mnist: str, data: str) -> dict[str, Place]:
    """The environments of `rows`, and all others."""
    from_files, bandit = Path(data), {"epsilon": 0.005, "dim": 0}
    kernels = {"two clusters, K 250": (1.0, 1.2), "norm reward, K 200": (1.0, 1.5), "perturbation 1e-3": (1.0, 1.2)}
    bounds = {label: 0.001 for label in kernels if label != "perturbation 1e-3"}
    dims = {**dict.fromkeys(kernels, 2), "digits": 0, "mnist": 0}
    first = {
        label: Place(row.make, row.norm_bound, dims.get(label), kernels.get(label), neural_bound=bounds.get(label))
        for label, row in rows(mnist).items()
        if label != "two clusters, K 1000"
    }
    world = sp.environments
    return first | {
        "high-dimensional": Place(lambda seed: world.high_dimensional(20, EPSILON, seed), 1.0),
        "yahoo-like": Place(lambda seed: sp.bench.datasets.yahoo_like(seed=seed), 1.0, 0),
        "one better": Place(lambda seed: world.one_better(seed=seed), 5.1, 0),
        "random network": Place(lambda seed: sp.bench.datasets.random_network(num_arms=200, seed=seed), 1.0, 0),
        "crossed barrel": Place(lambda _: crossed_barrel(from_files), 20.0, 0, epsilon=10.0, gap_bound=60.0),
        "livecodebench": Place(
            lambda _: sp.bench.datasets.livecodebench(from_files / "livecodebench", features_from="execution"), 2.0, 0
        ),
        "open bandit": Place(lambda _: sp.bench.datasets.open_bandit(from_files / "obd"), 0.1, **bandit),
    }


def crossed_barrel(folder: Path) -> sp.environments.Environment:
    """A recorded table: 600 designs of a barrel, three measurements of each."""
    path = folder / "pvlab" / "Crossed_barrel_dataset.csv"
    if not path.exists():
        raise sp.errors.DatasetMissing(f"{path} is not there; give its folder with --data.")
    return sp.environments.table(
        path, "n,theta,r,t", "toughness", "n,theta,r,t", noise=sp.SubGaussian(19.0), standardize=True, intercept=True
    )


LINEAR = ("linear", "rage", "xy-", "ling")  # policies that take the means to be linear in the features


def is_linear(environment: sp.environments.Environment, epsilon: float) -> bool:
    """Whether the means are linear in the features, up to a hundredth of epsilon."""
    features, means = environment.arms.features, environment.means
    fitted = features @ np.linalg.lstsq(features, means, rcond=1e-9)[0]
    return bool(np.abs(fitted - means).max() <= 0.01 * epsilon)


def kernel_of(place: Place, environment: sp.environments.Environment) -> tuple[float, float]:
    """(gamma, norm bound); infinite where no function has these means, as where arms of equal features differ."""
    if place.kernel is not None:
        return place.kernel
    features = environment.arms.features
    norms = np.einsum("ij,ij->i", features, features)
    apart = (norms[:, None] + norms - 2.0 * features @ features.T)[np.triu_indices(len(features), 1)]
    gamma = 1.0 / float(np.median(apart))
    return gamma, 1.05 * reward_norm(GaussianKernel(gamma).gram(features, features), environment.means)


def options_of(name: str, place: Place, kernel: tuple[float, float]) -> dict[str, Any]:
    """The settings that the policy needs, and nothing else."""
    known = policy_options(name)
    options: dict[str, Any] = {}
    if "gap_bound" in known and place.gap_bound is not None:
        options["gap_bound"] = place.gap_bound
    if "gamma" in known:
        options |= {"gamma": kernel[0], "norm_bound": kernel[1] if np.isfinite(kernel[1]) else place.norm_bound}
    elif "norm_bound" in known:
        options["norm_bound"] = place.norm_bound
    if name == "unknown-misspecification" and place.dim:
        options["dim"] = place.dim
    if name == "sequential-halving":
        options["budget"] = 100_000
    if name == "certified-neural":
        options |= {"misspecification": place.neural_bound, "width": 64}
    return options


VARIANTS = {"action-elimination": {"boundary": "mixture"}}  # lines of their own: (name, options) beside the default


def variants(names: Sequence[str]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """(label, name, options) of every line."""
    for name in names:
        yield name, name, {}
        if name in VARIANTS:
            yield " ".join([name, *VARIANTS[name].values()]), name, VARIANTS[name]


class OutOfTime(BaseException):
    """A cell has taken its seconds; no `except Exception` may hold it."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise OutOfTime after so many seconds, where the system has timers."""

    def ring(*_: object) -> None:
        raise OutOfTime

    if not hasattr(signal, "setitimer"):
        yield
        return
    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-3))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


@dataclass
class Cell:
    """What came of one policy in one environment, seed by seed."""

    pulls: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    verdicts: Counter[str] = field(default_factory=Counter)
    right: int = 0

    def line(self, asked: float, pac: float) -> str:
        mean, tries = float(np.mean(self.pulls)), len(self.pulls)
        more = ">" if any("budget" in verdict for verdict in self.verdicts) else ""
        ratios = [f"{ratio:,.1f}" if ratio >= 1.0 else f"{ratio:.3f}" for ratio in (mean / asked, mean / pac)]
        numbers = (f"{mean:,.0f}", f"{np.median(self.pulls):,.0f}", *ratios)
        cells = "".join(f"{more + text:>{width}s}" for text, width in zip(numbers, (13, 13, 11, 11), strict=True))
        words = ", ".join(f"{count} {verdict}" for verdict, count in self.verdicts.most_common())
        return f"{cells}{self.right:>5d}/{tries}{np.median(self.seconds):>9.2f}  {words}"


def played(
    name: str,
    place: Place,
    worlds: Sequence[tuple],
    *,
    max_pulls: int,
    seconds: float,
    options: Mapping[str, Any] = MappingProxyType({}),
) -> Cell:
    """One policy on one environment, seed by seed, until the seconds are over."""
    cell, end = Cell(), time.monotonic() + seconds
    for seed, environment, kernel in worlds:
        asked, started = [0], time.perf_counter()
        try:
            with time_limit(end - time.monotonic()):
                policy = sp.make_policy(
                    name,
                    environment.arms,
                    epsilon=place.epsilon,
                    delta=DELTA,
                    noise=environment.noise,
                    **options_of(name, place, kernel),
                    **options,
                )
                run = sp.simulate(
                    policy,
                    environment,
                    seed=seed,
                    max_pulls=max_pulls,
                    on_plan=lambda plan, _, asked=asked: asked.append(plan.total),
                )
            cell.right += run.success
            cell.verdicts["pull budget" if run.verdict == "budget-exhausted" else run.verdict] += 1
            cell.pulls.append(run.pulls)
        except OutOfTime:
            cell.verdicts["time budget"] += 1
            cell.pulls.append(sum(asked))
        cell.seconds.append(time.perf_counter() - started)
        if time.monotonic() >= end:
            break
    return cell


def all_lines(place: Place, names: Sequence[str], seeds: Sequence[int], chosen: argparse.Namespace) -> Iterator[str]:
    """The lines of one environment."""
    made = [(seed, place.make(seed)) for seed in seeds]
    worlds = [(seed, world, kernel_of(place, world)) for seed, world in made]
    asked, pac = np.mean([references(place.vectors(world), world, place.epsilon) for _, world in made], axis=0)
    linear = all(is_linear(world, place.epsilon) for _, world in made)
    smooth = all(np.isfinite(bound) for _, _, (_, bound) in worlds)
    yield f"K {made[0][1].num_arms}, reference {asked:,.0f}, pac {pac:,.0f}"
    for label, name, options in variants(names):
        covered = smooth if "kernel" in name else linear or not any(word in name for word in LINEAR)
        starred = label if covered else f"{label} *"
        try:
            cell = played(name, place, worlds, max_pulls=chosen.max_pulls, seconds=chosen.seconds, options=options)
            line = cell.line(float(asked), float(pac))
        except sp.SurepickError as error:
            line = f"  {type(error).__name__}: {str(error)[:100]}"
        yield f"  {starred:27s}{line}"


def whole_table(chosen: argparse.Namespace, words: Sequence[str]) -> None:
    """All policies on all environments."""
    picked = [name for name in chosen.policies.split(",") if name]
    names = [name for name in sp.policy_names() if named(name, picked)]
    seeds = range(chosen.first, chosen.first + chosen.seeds)
    print(
        f"{chosen.seeds} seeds from {chosen.first}; at most {chosen.max_pulls:,} pulls a study, {chosen.seconds:g} s a "
        f"cell\n{'':29s}{'mean pulls':>13s}{'median':>13s}{'reference':>11s}{'pac':>11s}{'right':>7s}{'seconds':>9s}"
    )
    for label, place in places(chosen.mnist, chosen.data).items():
        if not named(label, words):
            continue
        try:
            for number, line in enumerate(all_lines(place, names, seeds, chosen)):
                print(line if number else f"{label}: {line}", flush=True)
        except sp.errors.DatasetMissing as missing:
            print(f"{label}: skipped: {str(missing).splitlines()[0]}", flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="every policy on every environment")
    parser.add_argument("--seeds", type=int, help="100; with --all 3")
    parser.add_argument("--first", type=int, default=300_000)
    parser.add_argument("--only", default="", help="environments whose name holds one of these words")
    parser.add_argument("--policy", default="certified-linear", help="without --all")
    parser.add_argument("--policies", default="", help="with --all: those whose name holds one of these words")
    parser.add_argument("--max-pulls", type=int, default=1_000_000, help="with --all")
    parser.add_argument("--seconds", type=float, default=20.0, help="with --all: of a policy in an environment")
    parser.add_argument("--mnist", default=MNIST)
    parser.add_argument("--data", default="", help="with --all: the folder of the other data sets")
    chosen = parser.parse_args(arguments)
    chosen.seeds = chosen.seeds or (3 if chosen.all else 100)
    words = [word for word in chosen.only.split(",") if word]
    if not chosen.all:
        certified_table(chosen, words)
        return
    with one_thread():
        whole_table(chosen, words)


if __name__ == "__main__":
    sys.exit(main())
