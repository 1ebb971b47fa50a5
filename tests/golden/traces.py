"""Golden traces: what every policy plans and answers, for every combination of question, noise, features and rule.

    python tests/golden/traces.py           compares with traces.json, and says which differ
    python tests/golden/traces.py --write   makes traces.json anew: only where a decision names why a trace changes

A case is a small study with rewards that are a function of the seed and of the number of the plan. Its trace is the
hash of every plan (counts, candidate, dimension) and of the verdict, the measurements and the lists at the end. A
combination that is refused is written down as refused, so that one that is accepted later is seen, too.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_CORETYPE", "Haswell")  # as in tests/conftest.py: last bits decide where designs tie

import numpy as np

import surepick as sp
from surepick.core.random_streams import stream

TRACES = Path(__file__).with_name("traces.json")
SEEDS = (0, 1, 2)
MOST_PLANS = 6
REFUSED = "refused"
IDS = ("a", "b", "c", "d", "e", "f")
FEATURES = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.6], [-0.4, 0.3], [0.2, -0.8], [0.9, 0.1]])
MEANS = FEATURES @ np.array([0.9, 0.2])
SIGMA = 0.3
TEMPERATURE = np.array([0.9, 0.2, 0.5, 0.1, 0.8, 0.4])  # the constrained quantity
ITEMS = 60

OWN = {  # what a policy cannot start without
    "certified-linear": {"norm_bound": 2.0},
    "certified-kernel": {"norm_bound": 4.0, "gamma": 0.5},
    "linear-embedding": {"norm_bound": 2.0},
    "fixed-linear": {"norm_bound": 2.0},
    "kernel-embedding": {"norm_bound": 4.0, "gamma": 0.5},
    "fixed-kernel": {"norm_bound": 4.0, "gamma": 0.5},
    "neural-embedding": {"width": 16},
    "certified-neural": {"width": 16, "misspecification": 0.05},
    "sequential-halving": {"budget": 120},
    "lingape": {"norm_bound": 2.0},
    "lingame": {"norm_bound": 2.0},
    "action-elimination": {"growth": 0.3},
    "lucb": {"growth": 0.3},
}
NOISES = {"known": f"subgaussian:{SIGMA}", "normal": "normal", "bounded": "bounded:-2:2"}
QUESTIONS: dict[str, dict[str, Any]] = {
    "best": {},
    "above": {"question": "above", "threshold": 0.4},
    "control": {"question": "above", "control": "c"},
    "top": {"question": "top", "m": 2},
    "all-good": {"question": "all-good"},
    "feasible": {"constraints": ["temperature<=0.7"]},
}
RULES: dict[str, dict[str, Any]] = {
    "plain": {},
    "readings": {"evidence": "readings"},
    "plates": {"blocks": "plate", "block_size": 4},
    "days": {"blocks": "day"},
    "streams": {"streams": "seed"},
    "batch-size": {"batch_size": 7},
    "max-batches": {"max_batches": 4},
    "batch-cost": {"batch_cost": 5.0},
    "later": {"later": 2},
}
ARMS = ("plain", "costs", "segments")
DEEDS = ("withdraw", "add")
MIXED = (  # where mixtures are the usual evidence: carried evidence is asked for there, and both have a trace
    "certified-independent known",
    "certified-independent bounded",
    "certified-independent best known plain",
    "certified-independent best known batch-size",
    "certified-independent best known max-batches",
    "certified-independent best known batch-cost",
    "certified-independent best known withdraw",
)


@dataclass(frozen=True)
class Case:
    """One combination.

    Args:
        key: its name in the file.
        policy: name of the policy.
        arms: what of `ARMS` its candidates have beside features.
        options: of the policy.
        noise: as a text.
        deed: what happens to the list after the first plan; "" for nothing.
    """

    key: str
    policy: str
    arms: str = "plain"
    options: dict[str, Any] = field(default_factory=dict)
    noise: str = NOISES["known"]
    deed: str = ""


def cases() -> Iterator[Case]:
    """Every combination, with each evidence where the usual one is mixtures."""
    for case in combinations():
        if case.key not in MIXED:
            yield case
            continue
        yield replace(case, options={**case.options, "evidence": "carried"})
        yield replace(case, key=f"{case.key} mixtures")


def combinations() -> Iterator[Case]:
    """All policies by noise, then the certified ones by question, rule, candidates and deed."""
    for name, noise in itertools.product(sp.policy_names(None), NOISES):
        asked = (
            {}
            if name in sp.policy_names()
            else next(QUESTIONS[each] for each in QUESTIONS if name in sp.policy_names(each))
        )
        yield Case(f"{name} {noise}", name, options=OWN.get(name, {}) | asked, noise=NOISES[noise])
    for name in ("certified-independent", "certified-linear", "certified-kernel"):
        for question, noise, rule in itertools.product(QUESTIONS, ("known", "normal"), RULES):
            options = OWN.get(name, {}) | QUESTIONS[question] | RULES[rule]
            if name != "certified-kernel" or question in ("best", "top"):
                yield Case(f"{name} {question} {noise} {rule}", name, options=options, noise=NOISES[noise])
        for question, arms in itertools.product(QUESTIONS, ARMS[1:]):
            options = OWN.get(name, {}) | QUESTIONS[question]
            yield Case(f"{name} {question} {arms}", name, arms, options)
        for question, noise, deed in itertools.product(QUESTIONS, ("known", "normal"), DEEDS):
            options = OWN.get(name, {}) | QUESTIONS[question] | ({"later": 1} if deed == "add" else {})
            yield Case(f"{name} {question} {noise} {deed}", name, options=options, noise=NOISES[noise], deed=deed)
    yield Case("certified-items", "certified-items", options={"items": ITEMS, "seed": 5}, noise="bernoulli")


def arms_of(case: Case) -> sp.Arms:
    """The six candidates of a case."""
    more: dict[str, Any] = {"costs": [1.0, 4.0, 1.0, 2.0, 1.0, 9.0]} if case.arms == "costs" else {}
    if case.arms == "segments":
        more = {"segments": ["north", "north", "north", "south", "south", "south"]}
    return sp.Arms(FEATURES, IDS, columns=["x", "y"], **more)


def policy_of(case: Case) -> Any:
    """The policy of a case.

    Raises:
        InvalidInput: the combination is refused.
    """
    options = dict(case.options)
    if "later" in options:
        options["later"] = list(IDS[-options["later"] :])
    return sp.make_policy(case.policy, arms_of(case), epsilon=0.3, delta=0.1, noise=case.noise, **options)


def tell(study: sp.Study, batch: Any, seed: int) -> None:
    """What came of a batch: a function of the seed and of the number of the plan."""
    rng = stream(seed, "golden", batch.number)
    arms = np.repeat(np.arange(len(IDS)), batch.counts)
    if batch.items is not None:
        study.tell(batch, (rng.random(len(arms)) < 0.5 + 0.3 * MEANS[arms]).astype(float))
        return
    rewards = np.clip(MEANS[arms] + SIGMA * rng.standard_normal(len(arms)), -2.0, 2.0)
    if batch.blocks:
        effects = {name: 0.2 * stream(seed, "block", name).standard_normal() for name in set(batch.blocks)}
        rewards = rewards + np.array([effects[name] for name in batch.blocks])
    if study.constraints:
        rewards = np.column_stack([rewards, TEMPERATURE[arms] + SIGMA * rng.standard_normal(len(arms))])
    study.tell(batch, rewards)


def done(study: sp.Study, deed: str) -> None:
    """What happens to the list of candidates after the first plan."""
    if deed == "withdraw":
        study.withdraw(["d"], "independent-of-value")
    if deed == "add":
        study.add([IDS[-1]])


def played(case: Case, seed: int) -> tuple[sp.Study, list[Any]]:
    """The study of a case until it stops, or for so many plans; and what each plan was."""
    study, plans = sp.Study(policy_of(case)), []
    for number in range(MOST_PLANS):
        batch = study.ask()
        if batch is None:
            break
        plans.append([batch.counts.tolist(), batch.candidate, batch.dim])
        tell(study, batch, seed)
        if number == 0 and not study.stopped:
            done(study, case.deed)
    return study, plans


def trace(case: Case, seed: int) -> str:
    """The hash of what a study planned, and of what it answers."""
    study, plans = played(case, seed)
    answer = study.certificate()
    lists = answer.lists and [list(answer.lists.inside), list(answer.lists.outside), list(answer.lists.undecided)]
    told = [plans, answer.verdict, answer.best_arm, answer.pulls, lists]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:12]


def traced(case: Case) -> list[str] | str:
    """The traces of a case, one a seed, or that it is refused."""
    try:
        return [trace(case, seed) for seed in SEEDS]
    except sp.InvalidInput:
        return REFUSED


def main(arguments: list[str]) -> int:
    """Compare, or write."""
    found = {case.key: traced(case) for case in cases()}
    if arguments == ["--write"]:
        lines = ",\n".join(f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in found.items())
        TRACES.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
    stored = json.loads(TRACES.read_text(encoding="utf-8"))
    differ = sorted(key for key in {*found, *stored} if found.get(key) != stored.get(key))
    for key in differ:
        print(f"{key}: {stored.get(key)} became {found.get(key)}")
    print(f"{len(found)} combinations, {list(found.values()).count(REFUSED)} refused, {len(differ)} differ")
    return bool(differ)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
