"""Small studies and their certificates, for the tests of files of certificates."""

import numpy as np
from typer.testing import CliRunner

import surepick as sp
from surepick.certificates.signature import digest
from surepick.cli.app import app
from surepick.core.random_streams import stream

FEATURES = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.6], [-0.4, 0.3], [0.2, -0.5]])
MEANS = FEATURES @ np.array([0.9, 0.2])
POLICIES = {
    "certified-linear": {"norm_bound": 2.0},
    "certified-independent": {},
    "linear-embedding": {"norm_bound": 2.0},
    "action-elimination": {"growth": 1.0},
    "xy-adaptive": {},
}


def study_of(
    name: str,
    *,
    most: int = 6,
    minimize: bool = False,
    seed: int = 0,
    epsilon: float = 0.4,
    costs=None,
    study_id=None,
    **options,
) -> sp.Study:
    """A small study: bounded rewards, told in parts, up to its end or to so many plans."""
    arms = sp.Arms(FEATURES, [*"abcde"], columns=["x", "y"], costs=costs)
    policy = sp.make_policy(name, arms, epsilon=epsilon, delta=0.1, noise=sp.Bounded(-2.0, 2.0), **options)
    study = sp.Study(arms, policy, minimize=minimize, study_id=study_id)
    for number in range(most):
        plan = study.ask()
        if plan is None:
            break
        rng = stream(seed, "file", number)
        ids = [one for one, pulls in plan.table() for _ in range(pulls)]
        study.tell(ids, [float(np.clip(MEANS["abcde".index(one)] + rng.normal(0, 0.3), -2, 2)) for one in ids])
    return study


def resealed(document: dict) -> dict:
    """With the digest of what it holds now."""
    return {**document, "sha256": digest(document)}


def cli(*words: str):
    return CliRunner(env={"COLUMNS": "200", "TERM": "dumb"}).invoke(app, list(words))
