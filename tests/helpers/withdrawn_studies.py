"""Small studies whose candidates come and go."""

import numpy as np

import surepick as sp
from surepick.core.random_streams import stream
from surepick.studies.logs.base import INDEPENDENT_OF_VALUE

ARMS = sp.Arms([[1.0, 0.0], [0.0, 1.0], [0.6, 0.6], [-0.4, 0.3], [0.9, 0.1]], ["a", "b", "c", "d", "e"])
MEANS = ARMS.features @ np.array([0.9, 0.2])  # .9, .2, .66, -.3, .83
SIGMA = 0.3
POLICIES = {
    "certified-independent": {},
    "certified-linear": {"norm_bound": 2.0},
    "normal": {"noise": sp.Normal()},
    "bounded": {"noise": sp.Bounded(-3.0, 3.0)},
    "few": {"batch_size": 7},
}


def policy_of(kind: str = "certified-independent", **changes):
    name = kind if kind.startswith("certified") else "certified-independent"
    asked = {"epsilon": 0.2, "delta": 0.05, "noise": sp.SubGaussian(SIGMA)} | POLICIES[kind] | changes
    return sp.make_policy(name, ARMS, **asked)


def tell_plan(study: sp.Study) -> None:
    """All that is missing of the open plan."""
    batch = study.ask()
    arms = np.repeat(np.arange(5), study.missing)
    noise = stream(7, "rewards", batch.number).normal(0.0, SIGMA, len(arms))
    study.tell([ARMS.ids[arm] for arm in arms], MEANS[arms] + noise)


def finish(study: sp.Study) -> sp.Certificate:
    for _ in range(300):
        if study.ask() is None:
            return study.certificate()
        tell_plan(study)
    raise AssertionError("it does not end")


def asked_of(study: sp.Study) -> dict[str, int]:
    return {name: pulls for name, pulls in study.ask().table() if pulls}


def begun(url: str | None = None) -> sp.Study:
    """A study of which d went because of results, and a for another reason; in a database if its address is given."""
    study = sp.Study(policy_of()) if url is None else sp.create_study(url, "paint", policy_of())
    for _ in range(2):
        tell_plan(study)
    study.ask()
    study.withdraw(["d"], "it looks hopeless")
    tell_plan(study)
    study.withdraw(["a"], INDEPENDENT_OF_VALUE)
    return study


LATER = ("a", "e")


def grown(url: str | None = None, kind: str = "certified-independent") -> sp.Study:
    """A study that begins without a and e; e came after its first plan."""
    policy = policy_of(kind, later=LATER)
    study = sp.Study(policy) if url is None else sp.create_study(url, "paint", policy)
    study.ask()
    study.add(["e"])
    tell_plan(study)
    return study
