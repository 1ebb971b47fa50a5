"""Truths of which every outcome is enumerated, read under classes of which each contains them."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from carried_outcomes import TwoValued, few_pulls, signs

import surepick as sp
from surepick.assumptions import AllOf, Effects, InRange, Linear, Near, NoStructure, Scatter, Smooth, SumOf
from surepick.assumptions.lines import Lines
from surepick.assumptions.reading import best_along
from surepick.assumptions.records import Assumption, alternatives, scatter_of
from surepick.core.observations import Observations
from surepick.core.plans import Plan
from surepick.core.records import FloatArray
from surepick.estimators.flows import ArmFlows, BatchWeights, FlowLedger, Weighed

DELTAS = (0.7, 0.5, 0.3, 0.2, 0.1, 0.05, 0.02)
LARGEST = 50.0


def evidence(features: FloatArray, candidate: int, means: FloatArray, held: ArmFlows, assumption: Assumption):
    """The largest log(1/delta) at which U of each row is below the true difference, shape (R,).

    max over u of (h_j - h_c - B(u)) / u + L, the threshold of `held` being 0.
    """
    lines, scatter = Lines(features, candidate, held), scatter_of(assumption)
    gained, found = held.log_values, np.full(len(held.arms), -np.inf)
    if scatter is not None:
        gained = held.log_values + held.spent - 0.5 * scatter**2 * held.squares
    lead = means[held.arms] - means[candidate]
    special = (1.0 / np.where(lines.at(candidate) == 0.0, np.nan, lines.at(candidate)),)
    for part in alternatives(assumption):
        support = part.support(lines)

        def excess(inverse, support=support):
            room, bound = lead - support.at(inverse), gained
            with np.errstate(invalid="ignore", divide="ignore"):
                return np.where(inverse > 0.0, room / inverse + bound, np.where(room > 0.0, np.inf, -np.inf))

        found = np.maximum(found, best_along(excess, held.lengths, special))
    return np.minimum(found, LARGEST)


@dataclass(frozen=True)
class Truth:
    """Arms, and classes that contain their means.

    Args:
        shift: what is added to all rewards of a batch at most; its sign is chosen from the past.
    """

    features: np.ndarray
    law: TwoValued
    classes: tuple[Assumption, ...]
    shift: float = 0.0

    @property
    def means(self) -> np.ndarray:
        return self.law.means

    @property
    def best(self) -> int:
        return int(np.argmax(self.means))


def truth(seed: int, *, shift: float = 0.0, declared: float = 1.3, steep: float = 0.5) -> Truth:
    """Linear means with a level, of two-valued noise whose scale is declared too large; all classes hold exactly."""
    rng = np.random.default_rng([seed, 40])
    features, theta, level = rng.normal(0.0, 1.0, (4, 2)), steep * rng.normal(0.0, 1.0, 2), rng.normal(0.0, 2.0)
    means, sigma = features @ theta, rng.uniform(0.4, 0.8)
    law = signs(means + level, np.full(4, sigma))
    law = replace(law, noise=sp.SubGaussian(declared * sigma))
    least = 1e-9
    linear = Linear(float(np.hypot(np.linalg.norm(theta), level / 100.0)) + least)
    smooth = Smooth(sp.GaussianKernel(0.5), 1.0)
    gram = smooth.kernel.gram(features, features)
    smooth = replace(smooth, norm=float(np.hypot(np.sqrt(means @ np.linalg.solve(gram, means)), level / 100.0)) + least)
    half = theta * np.array([1.0, 0.0])
    off = float(np.abs(features @ (theta - half)).max()) + least
    near = Near(Linear(float(np.hypot(np.linalg.norm(half), level / 100.0)) + least), off)
    classes = [linear, smooth, near, NoStructure(), InRange(law.means.min() - least, law.means.max() + least)]
    if shift > 0.0:
        classes = [SumOf((one, Effects("round", shift))) for one in classes]
    classes += [AllOf((classes[0], Scatter(sigma))), AllOf((classes[1], classes[4]))]
    return Truth(features, law, tuple(classes), shift)


@dataclass(frozen=True)
class Path:
    """An outcome of some batches, with what a reader sees of each.

    Args:
        state: of a policy; or L of each arm, where the weights are not those of one.
        parent: its place among the outcomes of one batch less.
    """

    chance: float
    state: object
    told: tuple[tuple[Weighed, np.ndarray], ...] = ()
    parent: int = 0


Step = Callable[[Path, Plan, Observations], tuple[object, Weighed | None]]


def policy_for(truth: Truth, name: str) -> sp.Policy:
    arms = sp.Arms(truth.features)
    more = {"certified-linear": {"norm_bound": 3.0}, "certified-kernel": {"norm_bound": 0.3, "kernel": "gaussian:0.5"}}
    return sp.make_policy(name, arms, epsilon=0.3, delta=0.1, noise=truth.law.noise, **more.get(name, {}))


def told_to(policy: sp.Policy) -> Step:
    """What a policy makes of a batch."""
    return lambda path, plan, seen: (
        policy.tell(path.state, plan, seen).state,
        policy.traits.weigh(path.state, plan, seen),
    )


Weights = Callable[[np.random.Generator, Path, Observations], BatchWeights]


def drawn_weights(rng: np.random.Generator, _path: Path, seen: Observations, size: float = 1.2) -> BatchWeights:
    """Weights that are drawn from the past and the counts alone, as large as make evidence that matters."""
    pulled = np.flatnonzero(seen.counts)
    weights = size * rng.normal(0.0, 1.0, (len(seen.counts), len(pulled))) / np.sqrt(seen.counts[pulled])
    return BatchWeights(np.arange(len(seen.counts)), pulled, seen.counts[pulled], weights)


def bet_with(weights: Weights, sigma: float, seed: int) -> Step:
    """Processes with other weights than a policy's: L grows by sum w r - sum sigma^2 w^2 / 2."""

    def step(path: Path, plan: Plan, seen: Observations) -> tuple[object, Weighed | None]:
        rng = np.random.default_rng(
            [seed, plan.round, *(int(1e6 * mean) % 2**32 for _, seen in path.told for mean in seen)]
        )
        batch = weights(rng, path, seen)
        gained = batch.weights @ seen.sums[batch.measured] - 0.5 * sigma**2 * batch.weights**2 @ batch.counts
        values = np.array(path.state, float)
        values[batch.arms] += gained
        return values, Weighed(batch, np.ones(len(values), np.int64), values, 0.0)

    return step


def paths_of(
    truth: Truth, start: object, step: Step, batches: int, seed: int, *, dims: tuple[int, ...] = (4,), pulls: int = 3
) -> list[list[Path]]:
    """All outcomes after each batch; counts, candidates, dimensions and shifts are drawn anew after each past."""
    grown, found = [Path(1.0, start)], []
    for batch in range(batches):
        before, grown = grown, []
        for place, path in enumerate(before):
            rng = np.random.default_rng([seed, batch, place])
            counts = few_pulls(rng, 4, pulls)
            more = float(counts.sum()) * rng.choice([1.0, 4.0])
            opening = batch == 0 or rng.random() < 0.1
            asked = {} if opening else {"candidate": int(rng.integers(4)), "predicted_pulls": more}
            plan = Plan(round=batch + 1, counts=counts, dim=int(rng.choice(dims)), **asked)
            shift = truth.shift * rng.choice([-1.0, 1.0])
            for chance, seen in truth.law.outcomes(counts):
                squares = seen.squares + 2.0 * shift * seen.sums + shift**2 * counts
                shifted = Observations(counts, seen.sums + shift * counts, squares)
                state, weighed = step(path, plan, shifted)
                told = path.told if weighed is None else (*path.told, (weighed, shifted.means))
                grown.append(Path(path.chance * chance, state, told, place))
        found.append(grown)
    return found


def rows_of(truth: Truth, path: Path, batches: int) -> ArmFlows:
    """What the processes hold at the end of a path; log(1/delta) = 0."""
    ledger, last = FlowLedger(4, np.arange(4), batches, np.full(4, truth.law.noise.sigma)), -1
    for weighed, means in path.told:
        last = max(last, int(ledger.add(weighed, means).max(initial=-1)))
    return ledger.held(0.0, np.arange(last + 1))


def joined(parts: list[ArmFlows]) -> ArmFlows:
    """The rows of many paths, to be read at once."""
    names = ("arms", "flows", "lengths", "log_values", "squares", "spent", "batches")
    columns = {name: np.concatenate([getattr(one, name) for one in parts]) for name in names}
    return ArmFlows(pulled=np.arange(4), threshold=0.0, terms=max(one.terms for one in parts), **columns)


def largest_evidence(truth: Truth, paths: list[Path], batches: int, arm: int, classes=None) -> np.ndarray:
    """For each path the largest log(1/delta) at which some class bounds some c too low against `arm`, (n,)."""
    parts = [rows_of(truth, path, batches) for path in paths]
    owner = np.repeat(np.arange(len(paths)), [len(one.arms) for one in parts])
    held = joined(parts)
    mine = held.arms == arm
    held, owner = held.rows(mine), owner[mine]
    found = np.full(len(paths), -LARGEST)
    for candidate, one in itertools.product(range(4), truth.classes if classes is None else classes):
        if candidate != arm and len(owner) and truth.means[arm] >= truth.means[candidate]:
            np.maximum.at(found, owner, evidence(truth.features, candidate, truth.means, held, one))
    return found


def largest_so_far(truth: Truth, ends: list[list[Path]], batches: int, arm: int) -> np.ndarray:
    """The same after any batch, for each path to the end."""
    found = np.full(1, -LARGEST)
    for paths in ends:
        before = found[[path.parent for path in paths]]
        found = np.maximum(before, largest_evidence(truth, paths, batches, arm))
    return found


def chances_of(paths: list[Path]) -> np.ndarray:
    return np.array([path.chance for path in paths])


def failing(chances: np.ndarray, found: np.ndarray) -> list[float]:
    """How likely U is below the truth, for each of some delta."""
    return [float(chances[found >= -np.log(delta)].sum()) for delta in DELTAS]


def log_martingales(truth: Truth, path: Path, batches: int) -> np.ndarray:
    """log sum over the starts of p_k M_j with the true means, without starts that never bet, shape (4,)."""
    held = rows_of(truth, path, batches)
    found = np.zeros(4)
    np.add.at(found, held.arms, np.exp(held.log_values - held.flows @ truth.means))
    with np.errstate(divide="ignore"):
        return np.log(found)
