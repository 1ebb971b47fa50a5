"""Small studies in databases that go wrong."""

import numpy as np
import sqlalchemy as sa

import surepick as sp
from surepick.studies.database import list_stored_studies, resume_stored_study

ARMS = sp.Arms([[1.0, 0.0], [0.0, 1.0], [0.6, 0.6], [-0.4, 0.3]], ["a", "b", "c", "d"])
MEANS = np.array([0.9, 0.2, 0.66, -0.3])
SECRET = "secretword"


def policy():
    asked = {"epsilon": 0.6, "delta": 0.05, "noise": sp.SubGaussian(0.5)}
    return sp.make_policy("certified-independent", ARMS, batch_size=8, **asked)  # the first plan asks for every arm


def tell_plan(study, *, pad: str = "") -> None:
    """All that is missing of the open plan, each result with a key."""
    plan = study.ask()
    arms = np.repeat(np.arange(4), study.missing)
    keys = [f"{plan.round}-{plan.ids[arm]}-{place}{pad}" for place, arm in enumerate(arms.tolist())]
    study.tell([plan.ids[arm] for arm in arms], MEANS[arms], keys)


def start(url: str, plans: int = 3):
    """A study with some judged plans, and an open one that is half told."""
    study = sp.create_study(url, "x", ARMS, policy())
    for _ in range(plans):
        tell_plan(study)
    study.tell([study.ask().ids[0]], [MEANS[0]], ["open"])
    return study


def finish(study) -> sp.Certificate:
    for _ in range(200):
        if study.ask() is None:
            break
        tell_plan(study)
    assert study.stopped
    return study.certificate()


def acknowledged(study) -> list[tuple]:
    """The stored results, as they are in the database."""
    with study.log._engine.connect() as connection:
        question = "SELECT key, plan, status, arm, pulls, sum FROM observation ORDER BY id"
        return [tuple(row) for row in connection.execute(sa.text(question))]


def released(study):
    study.log._engine.dispose()
    return study


def unharmed(url: str, before: list[tuple]) -> None:
    """Opened and computed again, with all that was acknowledged, and able to go on to its end."""
    study = sp.open_study(url, "x")
    assert acknowledged(study)[: len(before)] == before
    assert finish(study).verdict == "certified"
    released(study)
    released(sp.open_study(url, "x"))


def files_of(url: str) -> list:
    """Calls that must refuse what is no database of ours."""
    return [
        lambda: sp.open_study(url, "x"),
        lambda: resume_stored_study(url, "x"),
        lambda: list_stored_studies(url),
        lambda: sp.create_study(url, "x", ARMS, policy()),
    ]


def execute(url: str, *statements: str) -> None:
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        for statement in statements:
            connection.execute(sa.text(statement))
    engine.dispose()
