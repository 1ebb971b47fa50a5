"""Studies as an earlier version left them, of ten policies and on both databases: opened and gone on with.

`landed/` in tests/fixtures was written once, before the policies were rebuilt: dumps of two databases whose studies are
in the middle of their second plan, and what that version made of them afterwards. Nothing writes it again; the function
that did is at the end, run with `python tests/studies/test_landed_studies.py FOLDER`.
"""

import contextlib
import json
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy.engine import make_url

import surepick as sp
from surepick.core.json import to_json
from surepick.studies.database import migrate_studies

LANDED = Path(__file__).parents[1] / "fixtures" / "landed"
PLACES = np.arange(12)
FEATURES = np.column_stack([np.cos(PLACES), np.sin(2 * PLACES), 0.5 * np.cos(3 * PLACES + 1)])
ARMS = sp.Arms(FEATURES, [f"sku-{place}" for place in PLACES], columns=["x", "y", "z"])
MEANS = FEATURES @ np.array([0.21, -0.12, 0.15])
POLICIES = {
    "certified-linear": {"norm_bound": 2.0},
    "certified-kernel": {"norm_bound": 2.0, "gamma": 0.1},
    "certified-independent": {"gap_bound": 3.0},
    "linear-embedding": {"norm_bound": 2.0, "looks": 3},
    "fixed-kernel": {"norm_bound": 4.0, "gamma": 0.5},
    "rage": {},
    "action-elimination": {"boundary": "mixture"},
    "unknown-misspecification": {},
    "lucb": {"growth": 0.2},
    "xy-adaptive": {},
}
MOST_PLANS = 6  # what is compared; some go on for long


def make(name: str):
    noise = sp.SubGaussian(0.5)
    return sp.make_policy(name, ARMS, epsilon=0.05, delta=0.05, noise=noise, **POLICIES[name])


def measured(plan, place: int) -> float:
    """A reward that depends on nothing but the arm and the place of the result in its plan."""
    arm = int(np.repeat(PLACES, plan.counts)[place])
    return float(MEANS[arm] + 0.3 * np.cos(1.7 * place + arm + plan.round))


def tell_rest(study) -> None:
    """What is missing of the open plan."""
    plan, missing = study.ask(), study.missing
    arms, totals = np.flatnonzero(missing), []
    for arm in arms:
        places = np.flatnonzero(np.repeat(PLACES, plan.counts) == arm)[-missing[arm] :]
        totals.append([sum(measured(plan, place) for place in places), sum(measured(plan, p) ** 2 for p in places)])
    sums, squares = np.array(totals).T
    study.tell_totals([ARMS.ids[arm] for arm in arms], missing[arms], sums, squares)


def begin(url: str, name: str):
    """One plan told, and of the second one a lease and the first half of its arms."""
    study = sp.create_study(url, name, ARMS, make(name))
    tell_rest(study)
    plan = study.lease(worker="bench-1", max_pulls=3, duration="2d")
    keys = plan.keys()
    study.tell([keys[0][0]], [0.25], [keys[0][1]], worker="bench-1")
    return study


def go_on(study) -> dict:
    """What is asked and concluded from here on, and the certificate."""
    plans = []
    while len(plans) < MOST_PLANS and (plan := study.ask()) is not None:
        plans.append({"round": plan.round, "counts": plan.counts.tolist(), "value": plan.value, "dim": plan.dim})
        tell_rest(study)
    trace = [
        {"active": row.active.tolist(), "leader": row.leader, "gap": row.certified_gap, "pulls": row.total_pulls}
        for row in study.trace
    ]
    certificate = json.loads(to_json(study.certificate()))
    for entry, row in zip(certificate["rounds"], study.trace, strict=True):
        del entry["design_value"], entry["predicted_pulls"]
        entry["value"] = row.value
    return {"plans": plans, "trace": trace, "certificate": certificate}


def load(file: Path, url: str) -> None:
    text = file.read_text(encoding="utf-8")
    if url.startswith("sqlite"):
        with contextlib.closing(sqlite3.connect(make_url(url).database)) as database:
            database.executescript(text)
        return
    import psycopg

    with psycopg.connect(make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)) as server:
        server.execute(text)


@pytest.fixture
def landed(database_url) -> str:
    """The address of a database as that version left it."""
    load(LANDED / ("sqlite.sql" if database_url.startswith("sqlite") else "postgresql.sql"), database_url)
    migrate_studies(database_url)
    return database_url


def close_to(expected):
    """The same, whole numbers and words exactly, the others up to the last bits of another processor."""
    if isinstance(expected, dict):
        return {key: close_to(value) for key, value in expected.items()}
    if isinstance(expected, list):
        return [close_to(value) for value in expected]
    return pytest.approx(expected, rel=1e-9) if isinstance(expected, float) else expected


def expected_of(name: str) -> dict:
    return json.loads((LANDED / f"{name}.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", POLICIES)
def test_a_landed_study_goes_on_as_it_would_have(landed, name):
    study = sp.open_study(landed, name)
    expected = expected_of(name)
    assert json.loads(to_json(study.policy.spec)) == expected["spec"]
    assert go_on(study) == close_to(expected["went on"])
    assert sp.open_study(landed, name).certificate() == study.certificate()


def write_all(folder: Path, server: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    database = Path(tempfile.mkdtemp()) / "studies.db"
    urls = {"sqlite.sql": f"sqlite:///{database}", "postgresql.sql": server}
    for name in POLICIES:
        for url in urls.values():
            begin(url, name).log._engine.dispose()
    with contextlib.closing(sqlite3.connect(database)) as connection:
        (folder / "sqlite.sql").write_text("\n".join(connection.iterdump()) + "\n", encoding="utf-8")
    plain = make_url(server).set(drivername="postgresql").render_as_string(hide_password=False)
    dump = subprocess.run(["pg_dump", "--inserts", "--no-owner", plain], check=True, capture_output=True, text=True)
    lines = [line for line in dump.stdout.splitlines() if line and not line.startswith(("\\", "--", "SET "))]
    (folder / "postgresql.sql").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for name in POLICIES:
        study = sp.open_study(urls["sqlite.sql"], name)
        went_on = go_on(study)
        text = json.dumps({"spec": json.loads(to_json(study.policy.spec)), "went on": went_on})
        (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    write_all(Path(sys.argv[1]), sys.argv[2])
