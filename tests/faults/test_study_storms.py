"""Eight processes tell one study at once, and say much of it twice: each result is there once, and no call fails."""

import signal
from collections import Counter
from dataclasses import replace

import pytest
import sqlalchemy as sa
from budgets import budget
from study_storms import Storm, num_own, row_of, run_storm, told_by
from study_workers import subject

import surepick as sp
from surepick.core.records import to_json
from surepick.studies.database import create_stored_study, open_stored_study, resume_stored_study
from surepick.studies.logs.sql import schema as tables
from surepick.studies.logs.sql.log import SqlLog


def storm_on(url: str, folder, **options) -> Storm:
    """A storm on a new study, whose first plan asks for every arm."""
    storm = Storm(url, "storm", "action-elimination", 1, str(folder), **options)
    study = create_stored_study(url, storm.study, *subject(storm.subject, storm.seed))
    assert study.ask().counts.all()
    return storm


def expected(storm: Storm) -> list[tuple[str, str, float]]:
    """All that was measured, once each."""
    return [row_of(storm, process, number) for process in range(storm.processes) for number in range(num_own(storm))]


def stored(storm: Storm) -> list[tuple[str, str, float]]:
    study = open_stored_study(storm.url, storm.study)
    columns = tables.observation.c
    with study.log._engine.connect() as connection:
        rows = connection.execute(sa.select(columns.arm, columns.key, columns.sum).order_by(columns.id)).all()
    return [(study.ids[arm], key, reward) for arm, key, reward in rows]


def check_storm(storm: Storm, report: dict) -> None:
    """Nothing lost, nothing counted twice, no error."""
    problems = [done["problem"] for done in report["processes"] if "problem" in done]
    assert problems == [], problems[0]
    assert Counter(stored(storm)) == Counter(expected(storm))
    own = num_own(storm)
    totals = {name: sum(done[name] for done in report["processes"]) for name in ("counted", "repeated", "late")}
    assert totals == {"counted": storm.processes * own, "repeated": storm.processes * (storm.results - own), "late": 0}


def check_judgement(storm: Storm) -> None:
    """Once the plan is closed, its judgement is that of a study in memory that was told everything once, in order."""
    durable, simple = open_stored_study(storm.url, storm.study), sp.Study(*subject(storm.subject, storm.seed))
    first = int(simple.ask().counts[0])
    assert durable.missing[0] == first
    arm = simple.ids[0]
    durable.tell([arm] * first, [0.25] * first)
    rows = expected(storm)
    simple.tell([row[0] for row in rows], [row[2] for row in rows])
    left = simple.missing
    ids = [name for name, count in zip(simple.ids, left.tolist(), strict=True) for _ in range(count)]
    assert ids == [arm] * first, "the storm was to tell all other arms as often as asked, or more"
    simple.tell(ids, [0.25] * first)
    assert len(durable.trace) == len(simple.trace) == 1
    assert to_json(durable.certificate()) == to_json(simple.certificate())


def test_eight_processes_tell_at_once(database_url, tmp_path):
    storm = storm_on(database_url, tmp_path, results=budget(150, fewest=50))
    check_storm(storm, run_storm(storm, "storm"))
    check_judgement(storm)


@pytest.mark.slow
def test_eight_processes_tell_two_thousand_each(database_url, tmp_path):
    storm = storm_on(database_url, tmp_path, results=2000)
    report = run_storm(storm, "storm")
    check_storm(storm, report)
    check_judgement(storm)
    seconds = max(done["seconds"] for done in report["processes"])
    calls = sum(done["calls"] for done in report["processes"])
    results = storm.processes * storm.results
    print(
        f"\n{database_url.partition(':')[0]}: {results} results in {calls} calls of tell by {storm.processes} "
        f"processes in {seconds:.1f} s: {calls / seconds:.0f} calls, {results / seconds:.0f} results a second"
    )


def test_the_storm_repeats_what_it_says_it_repeats():
    storm = Storm("", "", "action-elimination", 1, "", processes=3, results=100)
    told = [row for process in range(3) for part in told_by(storm, process) for row in part]
    assert len(told) == 300
    assert set(told) == set(expected(storm))
    assert len(set(told)) == 210
    assert any(
        len({process for process in range(3) for part in told_by(storm, process) if row in part}) > 1
        for row in set(told)
    )


@pytest.mark.parametrize(
    ("fault", "seen"), [("forgets", "UNIQUE constraint"), ("loses", "Counter"), ("counts twice", "Counter")]
)
def test_the_storm_would_notice_a_log_that(fault, seen, sqlite_url, tmp_path):
    storm = storm_on(sqlite_url, tmp_path, processes=2, results=30)
    report = run_storm(replace(storm, doctored=fault), "storm")
    with pytest.raises(AssertionError, match=seen):
        check_storm(storm, report)


def test_two_processes_judge_and_design_at_once_and_the_first_wins(database_url, tmp_path):
    storm = Storm(database_url, "race", "certified-linear", 1, str(tmp_path))
    create_stored_study(storm.url, storm.study, *subject(storm.subject, storm.seed))
    assert run_storm(storm, "killed judging")["exits"] == [-signal.SIGKILL]
    study = open_stored_study(storm.url, storm.study)
    assert [decision.plan for decision in study.log.decisions()] == [0], "closed, and not judged yet"
    assert study.progress().complete

    one, other = run_storm(storm, "race")["processes"]
    assert "problem" not in one, one["problem"]
    assert "problem" not in other, other["problem"]
    for name in ("leader", "asked", "certificate"):
        assert one[name] == other[name]
    decisions, plans = list(study.log.decisions()), list(study.log.plans())
    for name, number, rows in (
        ("decision", 1, [(decision.plan, decision.at) for decision in decisions]),
        ("plan", 2, [(planned.number, planned.opened_at) for planned in plans]),
    ):
        assert [one[name][0], other[name][0]] == [number, number]
        offered, returned = {one[name][1], other[name][1]}, {one[name][2], other[name][2]}
        (kept,) = [at for row, at in rows if row == number]
        assert len(offered) == 2, "each computed its own"
        assert returned == {kept}
        assert kept in offered
    assert (len(decisions), len(plans)) == (2, 2)
    open_stored_study(storm.url, storm.study)


def go_on(study, plans: int) -> None:
    """Measure so many plans more."""
    for _ in range(plans):
        plan = study.ask()
        ids = [name for name, count in plan.table() for _ in range(count)]
        study.tell(ids, [0.01 * (len(name) + row % 3) for row, name in enumerate(ids)])


def read_while_others_go_on(read, study):
    """Reads of other logs than the study's: its owner judges two plans before, and two after."""

    def reading(log, *args):
        if log is study.log:
            return read(log, *args)
        go_on(study, 2)
        rows = list(read(log, *args))
        go_on(study, 2)
        return iter(rows)

    return reading


@pytest.fixture
def moved_on(database_url, monkeypatch):
    """(address, name) of a study in which plans are judged whenever another reads plans or decisions."""
    study = create_stored_study(database_url, "busy", *subject("action-elimination", 1))
    go_on(study, 2)
    for name in ("plans", "decisions"):
        monkeypatch.setattr(SqlLog, name, read_while_others_go_on(getattr(SqlLog, name), study))
    yield database_url, "busy"
    assert not study.stopped
    assert study.log.last_decision().plan >= 4, "nothing went on meanwhile"


def test_a_study_that_others_move_on_is_opened(moved_on):
    assert not open_stored_study(*moved_on).stopped


def test_a_certificate_is_of_one_moment_while_others_move_on(moved_on):
    study = resume_stored_study(*moved_on)
    settled = study.log.last_decision().plan
    study.progress()
    answer = study.certificate()
    assert answer.pulls == answer.rounds[-1].total_pulls
    assert len(study.trace) >= settled
    again = study.certificate()
    assert again.pulls == again.rounds[-1].total_pulls > answer.pulls
