"""Every schema that was released has a dump of real studies, which every later version must open and go on with.

The dumps are in tests/fixtures. After a new step is written, the dump of its schema is written by

    PYTHONPATH=tests/helpers python tests/studies/logs/sql/test_released_schemas.py

and those of older schemas are never written again.
"""

import contextlib
import itertools
import sqlite3
import tempfile
from pathlib import Path

import pytest
import sqlalchemy as sa
from migrated_studies import ARMS, differences, finish, make_policy, tell_plan, unfinished

import surepick as sp
from surepick.studies import stored_studies as durable
from surepick.studies.database import migrate_studies
from surepick.studies.logs.sql import chain
from surepick.studies.logs.sql import schema as sql_schema
from surepick.studies.logs.sql.schema import SCHEMA

FIXTURES = Path(__file__).parents[3] / "fixtures"


def finished(url: str):
    study = sp.create_study(url, "finished", ARMS, make_policy("certified-linear", norm_bound=2.0))
    finish(study)
    return study


def ended(url: str):
    study = sp.create_study(url, "ended", ARMS, make_policy("certified-independent"))
    tell_plan(study)
    study.close("the instrument is needed elsewhere")
    return study


def write_dump(file: Path) -> None:
    """A text dump of three studies, made by this version; the same whenever it is made."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "studies.db"
        seconds = itertools.count(1_767_225_600)  # 2026-01-01, then one second a look
        clock = chain.system_clock
        chain.system_clock = durable.system_clock = lambda: float(next(seconds))
        try:
            for make in (finished, unfinished, ended):
                make(f"sqlite:///{path}").log._engine.dispose()
        finally:
            chain.system_clock = durable.system_clock = clock
        with contextlib.closing(sqlite3.connect(path)) as database:
            file.write_text("\n".join(database.iterdump()) + "\n", encoding="utf-8")


def load_dump(file: Path, url: str) -> str:
    path = sa.engine.make_url(url).database
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.executescript(file.read_text(encoding="utf-8"))
    return url


def test_the_present_schema_has_its_dump():
    names = sorted(file.name for file in FIXTURES.glob("schema_*.sql"))
    assert names == [f"schema_{schema}.sql" for schema in (*sql_schema.OLDER, SCHEMA)]
    assert all(file.stat().st_size < 100_000 for file in FIXTURES.glob("schema_*.sql"))


@pytest.fixture(params=[f"schema_{schema}.sql" for schema in (*sql_schema.OLDER, SCHEMA)])
def released(request, sqlite_url) -> str:
    """The address of a database as a version of that schema left it, brought to the present one."""
    load_dump(FIXTURES / request.param, sqlite_url)
    migrate_studies(sqlite_url)
    return sqlite_url


def test_a_released_dump_has_every_kind_of_row(released):
    rows = sa.create_engine(released)
    with rows.connect() as connection:
        kinds = connection.execute(sa.text("SELECT DISTINCT kind FROM event")).scalars().all()
        standings = connection.execute(sa.text("SELECT DISTINCT standing FROM observation")).scalars().all()
        leases = connection.execute(sa.text("SELECT count(*) FROM lease")).scalar()
        assert differences(connection) == []
    rows.dispose()
    assert set(kinds) == {"failed", "abandoned", "closed", "ended"}
    assert set(standings) == {"counted", "late", "prior"}
    assert leases > 0


def test_a_finished_study_of_a_released_schema(released):
    answer = sp.open_study(released, "finished").certificate()
    assert (answer.best_arm, answer.verdict, answer.epsilon, answer.delta) == ("a", "certified", 0.3, 0.05)
    assert answer.pulls == 14
    assert answer.certified_gap <= 0.3


def test_an_ended_study_of_a_released_schema(released):
    study = sp.open_study(released, "ended")
    assert study.stopped
    assert study.ask() is None
    answer = study.certificate()
    assert answer.verdict == "not-yet"
    assert "the instrument is needed elsewhere" in answer.reason


def test_an_unfinished_study_of_a_released_schema_goes_on(released):
    study = sp.open_study(released, "unfinished")
    trace = study.trace
    assert len(trace) == 3
    assert study.missing.sum() > 0
    assert study.tell(["a"], [0.0], ["half"]).repeated == 1
    assert study.tell_prior(["d"], [0.5], ["before"]).repeated == 1
    answer = finish(study)
    assert study.trace[:3] == trace
    assert answer.minimize
    assert any("asked again" in sentence for sentence in answer.assumptions)
    assert any("results missing" in sentence for sentence in answer.assumptions)
    assert sp.open_study(released, "unfinished").certificate() == answer


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        ("UPDATE decision SET leader = leader + 1 WHERE plan = 2", "decision 2"),
        ("UPDATE decision SET previous = hash WHERE plan = 1", "what comes before decision 1"),
        ("UPDATE plan SET plan = plan || ' ' WHERE number = 2", "plan 2"),
        ("UPDATE study SET configuration = configuration || ' '", "its configuration, or the names of its arms"),
        ("DELETE FROM decision WHERE plan = 1", "the numbering of its plans and decisions"),
    ],
)
def test_an_older_database_that_was_altered_is_not_given_a_chain_that_fits(sqlite_url, statement, named):
    load_dump(FIXTURES / "schema_0001.sql", sqlite_url)
    with contextlib.closing(sqlite3.connect(sa.engine.make_url(sqlite_url).database)) as database, database:
        database.execute(statement)
    before = dumped(sqlite_url)
    with pytest.raises(sp.StorageError, match=f"study '[a-z]+': {named} is not what was stored.*Nothing was migrated"):
        migrate_studies(sqlite_url)
    assert dumped(sqlite_url) == before


def dumped(url: str) -> list[str]:
    with contextlib.closing(sqlite3.connect(sa.engine.make_url(url).database)) as database:
        return list(database.iterdump())


def test_keys_of_an_older_database_are_compared_as_new_ones(sqlite_url):
    """One that was told in two spellings stays twice; one that only looks like that of a leased pull is refused."""
    load_dump(FIXTURES / "schema_0001.sql", sqlite_url)
    insert = (
        "INSERT INTO observation (study, plan, standing, key, arm, pulls, sum, squares, lease, source, told_at) "
        "SELECT study, plan, standing, ?, arm, pulls, sum, squares, lease, source, told_at FROM observation "
        "WHERE key = 'half'"
    )
    with contextlib.closing(sqlite3.connect(sa.engine.make_url(sqlite_url).database)) as database, database:
        for key in (" e\u0301 ", "half ", "P1.0@a"):
            database.execute(insert, (key,))
    migrate_studies(sqlite_url)
    study = sp.open_study(sqlite_url, "unfinished")
    told = study.log.recorded(["\u00e9", "half", "half ", "P1.0@a"])
    assert set(told) == {"\u00e9", "half", "half ", "P1.0@a"}
    for key in ("e\u0301", "\u00e9 ", "half", "half "):
        assert study.tell(["a"], [0.0], [key]).repeated == 1
    with pytest.raises(sp.InvalidInput, match="is not written as one"):
        study.tell(["a"], [0.0], ["P1.0@a"])


def test_the_dump_of_the_present_schema_can_be_written_again(tmp_path):
    write_dump(tmp_path / "again.sql")
    again = (tmp_path / "again.sql").read_text(encoding="utf-8")
    assert skeleton(again) == skeleton((FIXTURES / f"schema_{SCHEMA}.sql").read_text(encoding="utf-8"))


def skeleton(dump: str) -> list[str]:
    """Table and column names, and how many rows each table has."""
    lines = dump.splitlines()
    kinds = [line.split(" VALUES", 1)[0] for line in lines if line.startswith("INSERT INTO")]
    return sorted(line for line in lines if not line.startswith("INSERT INTO")) + sorted(kinds)


if __name__ == "__main__":
    write_dump(FIXTURES / f"schema_{SCHEMA}.sql")
