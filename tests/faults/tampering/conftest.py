"""A study that a test may tamper with."""

import shutil
import sqlite3

import pytest
from tampered_studies import ARMS, PLAN, address, closed, tell_all

import surepick as sp
from surepick.studies.database import resume_stored_study


@pytest.fixture(scope="session")
def template(tmp_path_factory):
    """A study of five judged plans, with a lease and an abandonment, and a sixth that is half told."""
    path = tmp_path_factory.mktemp("template") / "study.db"
    asked = {"epsilon": 0.05, "delta": 0.05, "noise": sp.SubGaussian(0.5)}
    policy = sp.make_policy("action-elimination", ARMS, growth=0.3, **asked)  # its plans ask for every arm
    study = sp.create_study(address(path), "x", ARMS, policy)
    for number in range(1, 6):
        plan = study.ask()
        if number == PLAN:
            study.lease(worker="w", max_pulls=2)
        if number == PLAN - 1:
            study.abandon("independent-of-value", ["d"])
            plan = study.lease(worker="w")
        tell_all(study, plan)
    study.tell([study.ask().ids[0]], [1.0])
    assert len(study.trace) == 5
    closed(study)
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA journal_mode = DELETE")
    database.close()
    return path


@pytest.fixture
def path(template, tmp_path):
    return shutil.copy(template, tmp_path / "study.db")


@pytest.fixture(scope="session")
def template_aside(template, tmp_path_factory):
    """The study with prior and late results, closed early."""
    path = shutil.copy(template, tmp_path_factory.mktemp("aside") / "study.db")
    study = resume_stored_study(address(path), "x")
    study.tell_prior(["a", "b"], [0.5, 0.25], ["before", "long before"])
    study.tell(["c"], [0.75], ["p1.0@c"], plan=1)
    study.tell_prior(["d"], [0.125])
    study.close("the instrument is needed elsewhere")
    closed(study)
    closed(sp.open_study(address(path), "x"))
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA journal_mode = DELETE")
    database.close()
    return path


@pytest.fixture
def aside(template_aside, tmp_path):
    return shutil.copy(template_aside, tmp_path / "study.db")
