"""Studies that are read after every batch by an adversary: how often is the best arm above what a true class allows?

    OMP_NUM_THREADS=1 python benchmarks/hostile_readers.py [--runs 10000] [--first 0] [--deltas .1,.3] [--saboteur]

Twelve arms, truths of five kinds, four policies, six batches. After each batch the adversary takes every class that
contains the truth (with the truth's own norm), every arm c and every T, and looks for

    L_j + T (h_j - h_c) - sup over f of the class of sum_x D(x) f(x) >= log(1/delta),    D = F_j - T 1{c} + T 1{j}

for the best arm j. By line 38 of docs/certified-elimination.md that happens in at most delta of the studies. The
formulas of the classes are written anew here; none of the product's is used to read. With --saboteur the costs of
weights are forgotten, which has to be noticed.
"""

import argparse
import math
from dataclasses import dataclass

import numpy as np
from scipy.stats import binom

import surepick as sp
from surepick.estimators.flows import FlowLedger

ARMS, SIGMA, BATCHES, LEVEL = 12, 0.5, 6, 100.0
KERNEL = sp.GaussianKernel(0.7)
TRUTHS = ("linear", "linear with a level", "smooth", "one arm off", "nothing")
POLICIES = {
    "certified-readings": {"assume": "linear", "trust": 0.2},
    "certified-linear": {"norm_bound": 2.0, "max_batches": BATCHES},
    "certified-kernel": {"norm_bound": 3.0, "kernel": KERNEL, "max_batches": BATCHES},
    "certified-independent": {"max_batches": BATCHES},
}
CERTAINTY = 1e-6


@dataclass(frozen=True)
class Class:
    """Functions Z theta with |theta| <= norm, each value off by at most gamma; or values between two numbers."""

    coordinates: np.ndarray | None = None  # (K, r)
    norm: float = 0.0
    gamma: float = 0.0
    between: tuple[float, float] | None = None

    def support(self, differences: np.ndarray) -> np.ndarray:
        """sup of sum_x D(x) f(x), of rows D."""
        if self.between is not None:
            low, high = self.between
            return np.maximum(differences * low, differences * high).sum(axis=-1)
        found = self.gamma * np.abs(differences).sum(axis=-1)
        if self.coordinates is not None:
            found = found + self.norm * np.linalg.norm(differences @ self.coordinates, axis=-1)
        return found


def drawn(kind: str, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, tuple[Class, ...]]:
    """(features, means, classes that contain them)."""
    features, level = rng.normal(0.0, 0.7, (ARMS, 2)), rng.normal() if kind != "linear" else 0.0
    plane = features @ rng.normal(0.0, 0.7, 2)
    if kind == "smooth":
        plane = KERNEL.gram(features, features) @ (0.4 * rng.normal(size=ARMS))
    if kind == "nothing":
        plane = 0.5 * rng.normal(size=ARMS)
    means = plane + level
    if kind == "one arm off":
        means[rng.integers(ARMS)] += 0.6
    flat, slack = np.column_stack([features, np.full(ARMS, LEVEL)]), 1.0 + 1e-9
    theta = np.linalg.lstsq(flat, means, rcond=None)[0]
    missed = float(np.abs(flat @ theta - means).max())
    gram = KERNEL.gram(features, features) + LEVEL**2
    values, vectors = np.linalg.eigh(gram)
    kernel = vectors * np.sqrt(np.maximum(values, 0.0))
    bent = np.linalg.lstsq(kernel, means, rcond=None)[0]
    rest = float(np.abs(kernel @ bent - means).max())
    classes = (
        Class(between=(float(means.min()), float(means.max()))),
        Class(flat, float(np.linalg.norm(theta)) * slack, missed * slack + 1e-12),
        Class(kernel, float(np.linalg.norm(bent)) * slack, rest * slack + 1e-12),
    )
    return features, means, classes


def most(flows: np.ndarray, log_value: float, best: int, means: np.ndarray, classes: tuple[Class, ...]) -> float:
    """The largest evidence against the truth that the adversary finds, over arms, classes and T."""
    others = np.delete(np.arange(ARMS), best)
    usual = np.abs(flows).sum() / 2.0
    usual = usual if usual > 0.0 else 1.0
    grid = usual * np.geomspace(1e-5, 1e5, 121)
    times = np.column_stack(
        [np.tile(grid, (len(others), 1)), np.abs(flows[others]), np.full(len(others), -flows[best])]
    )
    times = np.maximum(times, 1e-12 * usual)  # (c, T)
    differences = np.broadcast_to(flows, (*times.shape, ARMS)).copy()
    differences[np.arange(len(others))[:, None], np.arange(times.shape[1])[None], others[:, None]] -= times
    differences[..., best] += times
    gained = log_value + times * (means[best] - means[others])[:, None]
    found = max(float((gained - one.support(differences)).max()) for one in classes)
    alone = np.flatnonzero(np.delete(flows, best))  # nothing is assumed: the flows are on c and j alone, alike
    if len(alone) == 1:
        c = others[alone[0]]
        if flows[c] > 0.0 and abs(flows[best] + flows[c]) <= 1e-12 * flows[c]:
            found = max(found, log_value + float(flows[c] * (means[best] - means[c])))
    return found


def evidence_against(kind: str, policy: str, delta: float, seed: int, *, saboteur: bool = False) -> float:
    """The largest log-evidence against a true class at any batch of a study."""
    rng = np.random.default_rng([seed, TRUTHS.index(kind), list(POLICIES).index(policy), round(1000 * delta)])
    features, means, classes = drawn(kind, rng)
    made = sp.make_policy(
        policy, sp.Arms(features), epsilon=0.4, delta=delta, noise=sp.SubGaussian(SIGMA), **POLICIES[policy]
    )
    state, best, worst = made.init(), int(np.argmax(means)), -math.inf
    ledger = FlowLedger(ARMS, np.arange(ARMS), 30, np.full(ARMS, SIGMA))
    for _ in range(BATCHES):
        if made.claim(state).finished:
            break
        plan = made.ask(state)
        noise = SIGMA * rng.normal(size=(2, ARMS))
        sums = plan.counts * means + np.sqrt(plan.counts) * noise[0]
        spread = np.maximum(plan.counts - 1, 0)
        squares = SIGMA**2 * rng.chisquare(np.maximum(spread, 1)) * (spread > 0)
        squares += np.divide(sums**2, plan.counts, out=np.zeros(ARMS), where=plan.counts > 0)
        seen = sp.Observations(plan.counts, sums, squares)
        weighed = made.traits.weigh(state, plan, seen)
        state = made.tell(state, plan, seen).state
        if weighed is None:
            continue
        held = ledger.held(0.0, ledger.add(weighed, seen.means))
        for row in np.flatnonzero(held.arms == best):
            flows = np.zeros(ARMS)
            flows[held.pulled] = held.flows[row]
            value = float(held.log_values[row]) + (float(held.spent[row]) if saboteur else 0.0)
            worst = max(worst, most(flows, value, best, means, classes))
    return worst


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000, help="studies at each delta")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--deltas", default="0.1,0.3")
    parser.add_argument("--saboteur", action="store_true")
    asked = parser.parse_args()
    each = max(asked.runs // (len(TRUTHS) * len(POLICIES)), 1)
    print("| policy | truth | delta | studies | violated |\n|---|---|---|---|---|")
    for delta in map(float, asked.deltas.split(",")):
        total = violated = 0
        for policy in POLICIES:
            for kind in TRUTHS:
                seeds = range(asked.first, asked.first + each)
                found = [evidence_against(kind, policy, delta, seed, saboteur=asked.saboteur) for seed in seeds]
                wrong = sum(one >= -math.log(delta) for one in found)
                total, violated = total + each, violated + wrong
                print(f"| {policy} | {kind} | {delta:g} | {each} | {wrong} |", flush=True)
        allowed = int(binom.isf(CERTAINTY, total, delta))
        print(f"| all | all | {delta:g} | {total} | **{violated}**, at most {allowed} if delta is kept |", flush=True)


if __name__ == "__main__":
    main()
