"""Workers are killed with signal 9 at any instant: what was acknowledged is there once, and the study is the same."""

import json
import random
import re
import signal
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa
from budgets import budget
from study_storms import Storm, run_storm
from study_supervisor import run_supervisor, start_alone
from study_workers import QUESTIONS, SUBJECTS, UNDOING, WORKERS, Order, heats_of, read_journal, rewards_of, subject

from surepick import write_certificate, write_report
from surepick.certificates.verify import verify_certificate
from surepick.core.records import to_json
from surepick.questions import wrongly_listed
from surepick.studies.database import create_stored_study, list_stored_studies, open_stored_study
from surepick.studies.logs.base import Planned, pull_key
from surepick.studies.logs.keys import item_key
from surepick.studies.logs.sql import schema as tables
from surepick.studies.logs.sql.chain import STUDY, UNDONE_ROWS
from surepick.studies.study import Study

ALL = tuple(SUBJECTS)
MOST_STUDIES = 12  # a study may be over before enough workers were killed; then another one is begun


def create(url: str, order: Order) -> None:
    create_stored_study(url, order.study, *subject(order.subject, order.seed)).log._engine.dispose()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """Of a subject and a seed: what two workers whom nobody kills leave behind, on a database of its own."""
    known: dict[tuple[str, int], tuple[float, dict]] = {}

    def run(name: str, seed: int) -> tuple[float, dict]:
        if (name, seed) not in known:
            folder = tmp_path_factory.mktemp("undisturbed")
            order = Order(f"sqlite:///{folder / 'whole.db'}", f"{name} {seed}", name, seed, str(folder))
            create(order.url, order)
            report = run_supervisor(order)
            assert report["problems"] == []
            known[name, seed] = (report["seconds"], left_behind(order))
        return known[name, seed]

    return run


UNLIKE = re.compile(  # when who came or went, and how often somebody mistyped: that depends on who works when
    r',\\"(at|undone)\\":[0-9.e+]+|,?\\"[0-9]+ results? taken back[^"]*"'
)
DECIDED = ("plan", "round", "state", "seen", "trace", "deviations", "leader", "stopped", "verdict")  # but the times


def left_behind(order: Order) -> dict:
    """The certificate, the plans and the decisions of a study that has stopped, after all of it was computed again."""
    study = open_stored_study(order.url, order.study)
    try:
        assert study.stopped
        plan, decision = tables.plan.c, tables.decision.c
        decided = [decision[name] for name in DECIDED]
        with study.log._engine.connect() as connection:

            def rows(columns: list, table: sa.Table, place: sa.Column) -> list:
                mine = sa.select(*columns).where(table.c.study == study.log._study).order_by(place)
                return list(map(tuple, connection.execute(mine)))

            plans = rows([plan.number, plan.plan], tables.plan, plan.number)
            decisions = rows(decided, tables.decision, decision.plan)
        whole = {"certificate": to_json(study.certificate()), "plans": plans, "decisions": decisions}
        return json.loads(UNLIKE.sub("", json.dumps(whole)))
    finally:
        study.log._engine.dispose()


def check_results(order: Order) -> None:
    """Every result that was asked is there once, with the value that its key says; so is all that was acknowledged."""
    study = open_stored_study(order.url, order.study)
    try:
        columns = tables.observation.c
        with study.log._engine.connect() as connection:
            rows = connection.execute(
                sa.select(columns.plan, columns.status, columns.key, columns.arm, columns.pulls, columns.sum).where(
                    columns.study == study.log._study, columns.id.not_in(UNDONE_ROWS)
                ),
                {STUDY: study.log._study},
            ).all()
            taken_back = connection.execute(UNDONE_ROWS, {STUDY: study.log._study}).scalars().all()
        asked = {key: planned.number for planned in study.log.plans() for key in keys_asked(study, planned)}
    finally:
        study.log._engine.dispose()
    assert bool(taken_back) == order.subject.endswith(UNDOING)
    keys = [row.key for row in rows]
    acknowledged = set().union(*(read_journal(Path(order.folder) / f"{name}.journal")[0] for name in WORKERS))
    there, wanted = Counter(keys), Counter(asked.keys())
    assert there == wanted, f"lost: {sorted(wanted - there)[:5]}; stored twice: {(there - wanted).most_common(5)}"
    differ = asked.keys() ^ acknowledged
    assert not differ, f"acknowledged and never asked, or not: {sorted(differ)[:5]}"
    reward = rewards_of(order.subject, order.seed)
    for row in rows:
        assert (row.status, row.pulls, row.sum) == ("counted", 1, reward(study.ids[row.arm], row.key)), row
        assert asked[row.key] == row.plan
        assert row.key.endswith(f"@{study.ids[row.arm]}")


def keys_asked(study: Study, planned: Planned) -> list[str]:
    """The keys of all pulls of a plan: an arm and an item, or an arm and a number."""
    plan = planned.plan
    arms = np.repeat(np.arange(len(plan.counts)), plan.counts).tolist()
    if plan.places is not None:
        items = study.policy.order.order[plan.places].tolist()
        return [item_key(item, study.ids[arm]) for arm, item in zip(arms, items, strict=True)]
    ordinals = [ordinal for count in plan.counts.tolist() for ordinal in range(count)]
    return [pull_key(planned.number, ordinal, study.ids[arm]) for arm, ordinal in zip(arms, ordinals, strict=True)]


def check(order: Order, report: dict, undisturbed) -> None:
    assert report["problems"] == [], f"{order}: {report['problems'][0]}"
    check_results(order)
    assert left_behind(order) == undisturbed(order.subject, order.seed)[1], order


def kill_workers(
    url: str, folder: Path, undisturbed, *, kills: int, studies: int, first_seed: int, subjects: tuple[str, ...] = ALL
) -> Counter[str]:
    """Kill so many workers, spread over some studies, and check each study; where the workers were when they died."""
    phases: Counter[str] = Counter()
    for row in range(MOST_STUDIES * studies):
        left = kills - phases.total()
        if left <= 0:
            break
        name, seed = subjects[row % len(subjects)], first_seed + row // len(subjects)
        seconds, _ = undisturbed(name, seed)
        order = Order(
            url, f"{name} {seed}", name, seed, str(folder / f"{row}"), min(left, -(-kills // studies)), seconds
        )
        Path(order.folder).mkdir()
        create(url, order)
        report = run_supervisor(order)
        check(order, report, undisturbed)
        phases.update(report["phases"])
    return phases


# Questions that are stored as those with a constraint, and test items whose results are taken back as others' are.
IN_PROOFS = ("above", "discovery", "top", "all-good", "one-of", "items, undone")


def shared_out(*names: str) -> list:
    """Each subject on one of the two databases, in turn, and on the other one in the proofs; five kills are on both."""
    return [
        pytest.param(
            *(name, kind),
            marks=pytest.mark.slow if (place % 2 == 1) != (kind == "postgresql") or name.endswith(IN_PROOFS) else (),
        )
        for place, name in enumerate(names)
        for kind in ("sqlite", "postgresql")
    ]


def test_five_kills_on_each_database(database_url, tmp_path, undisturbed):
    phases = kill_workers(database_url, tmp_path, undisturbed, kills=5, studies=1, first_seed=1)
    assert phases.total() >= 5


@pytest.mark.parametrize(("name", "database_url"), shared_out("certified-items"), indirect=["database_url"])
def test_kills_among_test_items(name, database_url, tmp_path, undisturbed):
    phases = kill_workers(database_url, tmp_path, undisturbed, kills=2, studies=1, first_seed=1, subjects=(name,))
    assert phases.total() >= 2


@pytest.mark.parametrize(
    ("name", "database_url"),
    shared_out("certified-items, undone", "certified-independent, changing"),
    indirect=["database_url"],
)
def test_kills_of_those_who_take_back_what_they_mistyped(name, database_url, tmp_path, undisturbed):
    """In the second, candidates come and go as well."""
    phases = kill_workers(database_url, tmp_path, undisturbed, kills=2, studies=1, first_seed=1, subjects=(name,))
    assert phases.total() >= 2
    study = open_stored_study(database_url, f"{name} 1")
    try:
        assert any("taken back by whoever reported" in one for one in study.certificate().assumptions)
        assert verify_certificate(write_certificate(study, tmp_path / "lab.json")).holds
    finally:
        study.log._engine.dispose()


@pytest.mark.parametrize(("name", "database_url"), shared_out("certified-linear, blocks"), indirect=["database_url"])
def test_kills_of_a_study_in_blocks(name, database_url, tmp_path, undisturbed):
    """What is left is certified, verified and reported."""
    phases = kill_workers(database_url, tmp_path, undisturbed, kills=2, studies=1, first_seed=1, subjects=(name,))
    assert phases.total() >= 2
    study = open_stored_study(database_url, f"{name} 1")
    try:
        assert study.certificate().verdict == "certified"
        assert study.log.last_decision().seen.blocks.number > 1
        assert verify_certificate(write_certificate(study, tmp_path / "lab.json")).holds
        assert write_report(study, tmp_path / "lab.html", forecast_up_to=0).stat().st_size > 0
    finally:
        study.log._engine.dispose()


@pytest.mark.parametrize(("name", "database_url"), shared_out(*QUESTIONS), indirect=["database_url"])
def test_kills_of_a_study_of_a_question(name, database_url, tmp_path, undisturbed):
    """What is left is a right answer, certified, verified from its file alone, and reported."""
    phases = kill_workers(database_url, tmp_path, undisturbed, kills=2, studies=1, first_seed=1, subjects=(name,))
    assert phases.total() >= 2
    arms, policy = subject(name, 1)
    means = arms.features.sum(axis=1) / np.sqrt(arms.features.shape[1])
    study = open_stored_study(database_url, f"{name} 1")
    try:
        certificate = study.certificate()
        assert certificate.verdict == "certified"
        assert certificate.lists.inside
        assert not certificate.lists.undecided
        heats = heats_of(name, 1)[:, None]
        assert not wrongly_listed(policy.problem, certificate.lists, arms, means, heats).any()
        file = write_certificate(study, tmp_path / "lists.json")
        page = write_report(study, tmp_path / "lists.html", forecast_up_to=0)
    finally:
        study.log._engine.dispose()
    assert verify_certificate(file).holds
    shown = page.read_text()
    assert certificate.lists.question in shown
    assert all(one in shown for one in certificate.lists.inside)


@pytest.mark.slow
def test_three_hundred_kills(database_url, tmp_path, undisturbed):
    phases = kill_workers(database_url, tmp_path, undisturbed, kills=300, studies=18, first_seed=1)
    print(f"\n{database_url.partition(':')[0]}: {phases.total()} kills, of workers at {dict(phases.most_common())}")
    assert phases.total() >= 300
    assert len(phases) >= 12, "the kills must hit every kind of work"


def test_a_program_of_its_own_is_killed(sqlite_url, tmp_path, undisturbed):
    order = Order(sqlite_url, "certified-linear 1", "certified-linear", 1, str(tmp_path))
    create(sqlite_url, order)
    journal, chance = tmp_path / "ann.journal", random.Random(1)
    for birth in range(budget(2, fewest=1)):
        noted = journal.stat().st_size if journal.exists() else 0
        process = start_alone(order, "ann", birth)
        until = time.monotonic() + 60.0
        while not (journal.exists() and journal.stat().st_size > noted) and time.monotonic() < until:
            assert process.poll() is None, (tmp_path / "ann.problem").read_text()
            time.sleep(0.002)
        time.sleep(chance.uniform(0.0, 0.05))  # the instant is what is tested
        process.kill()
        assert process.wait() == -signal.SIGKILL, "it ended before it could be killed"
    check(order, run_supervisor(order), undisturbed)


def check_creators(url: str, folder: Path, stride: int) -> int:
    """Kill those who create studies, between any two statements; how many were killed."""
    report = run_storm(Storm(url, "", "action-elimination", 1, str(folder), processes=stride), "killed creating")
    assert "problem" not in report, report
    for name, again in zip(report["deaths"], report["again"], strict=True):
        assert "statements" in again or "has a study" in again.get("refused", ""), again
        study = open_stored_study(url, name)
        assert study.ask().total > 0
        assert [planned.number for planned in study.log.plans()] == [1]
        assert [decision.plan for decision in study.log.decisions()] == [0]
    assert {listed.name for listed in list_stored_studies(url)} >= set(report["deaths"])
    return len(report["deaths"])


def test_those_who_create_studies_are_killed(database_url, tmp_path):
    assert check_creators(database_url, tmp_path, stride=5) >= 8


@pytest.mark.slow
def test_those_who_create_studies_are_killed_before_every_statement(database_url, tmp_path):
    print(f"\n{database_url.partition(':')[0]}: {check_creators(database_url, tmp_path, stride=1)} kills in creation")


@pytest.mark.parametrize(
    ("fault", "point", "seen"),
    [
        ("acknowledge first", "telling", "lost [0-9]+ results that were acknowledged"),
        ("outside transactions", "closing", "stuck"),
        ("forget the keys", "told", "stored twice|for the second time|OutOfTurn|did not ask for"),
    ],
)
def test_the_kills_would_notice_workers_that(fault, point, seen, sqlite_url, tmp_path, undisturbed):
    patience = 1.0 if seen == "stuck" else 20.0
    name = "linear-embedding"
    order = Order(sqlite_url, f"{name} 1", name, 1, str(tmp_path), 3, 1.0, fault, point, patience)
    create(sqlite_url, order)
    report = run_supervisor(order)
    assert report["kills"] > 0
    with pytest.raises(AssertionError, match=seen):
        check(order, report, undisturbed)
