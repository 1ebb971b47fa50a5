"""The tables of studies, from schema to schema: the steps give what the code expects, all of them are taken or none.

Every schema that was released has a dump of real studies in tests/fixtures, which every later version must open and go
on with. After a new step is written, `python tests/studies/logs/sql/test_migrate.py` writes the dump of its schema;
those of older schemas are never written again.
"""

import contextlib
import itertools
import shutil
import sqlite3
import tempfile
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

import surepick as sp
from surepick.studies import database as durable
from surepick.studies.database import list_studies, migrate_studies
from surepick.studies.logs.sql import chain, migrate
from surepick.studies.logs.sql import engine as sql_engine
from surepick.studies.logs.sql import schema as sql_schema
from surepick.studies.logs.sql.schema import SCHEMA, VERSION_TABLE, metadata

FIXTURES = Path(__file__).parents[3] / "fixtures"
ARMS = sp.Arms([[1.0, 0.0], [0.0, 1.0], [0.6, 0.6], [-0.4, 0.3]], ["a", "b", "c", "d"], columns=["x", "y"])
MEANS = np.array([0.9, 0.2, 0.66, -0.3])


def make_policy(name: str, **options):
    return sp.make_policy(name, ARMS, epsilon=0.3, delta=0.05, noise=sp.SubGaussian(0.5), **options)


def tell_plan(study) -> None:
    """All that is missing of the open plan."""
    plan = study.ask()
    arms = np.repeat(np.arange(4), study.missing)
    study.tell([ARMS.ids[arm] for arm in arms], MEANS[arms] + 0.3 * np.cos(np.arange(len(arms)) + plan.round))


def finish(study) -> sp.Certificate:
    for _ in range(200):
        if study.ask() is None:
            break
        tell_plan(study)
    assert study.stopped
    return study.certificate()


# studies with every kind of row, and their dump


def finished(url: str):
    study = sp.create_study(url, "finished", ARMS, make_policy("certified-linear", norm_bound=2.0))
    finish(study)
    return study


def unfinished(url: str):
    """Leases, a failure, late and prior results, repeated keys, abandoned pulls, and an open plan that is half told."""
    study = sp.create_study(url, "unfinished", ARMS, make_policy("certified-independent"), minimize=True)
    keys = study.lease(worker="w", duration="1h").keys()
    study.fail([keys[0][0]], [keys[0][1]], worker="w")
    again = study.lease(worker="v", max_pulls=1, duration="1h").keys()
    rows = [*keys[1:], *again]
    study.tell([name for name, _ in rows], [0.1 * place for place in range(len(rows))], [key for _, key in rows])
    study.tell([keys[0][0]], [7.0], [keys[0][1]], worker="w")
    study.tell_prior(["d"], [0.5], ["before"])
    study.ask()
    study.abandon("independent-of-value", ["d"])
    tell_plan(study)
    plan = study.ask()
    most = int(np.argmax(plan.counts))
    study.tell_totals([ARMS.ids[most]], [plan.counts[most] - 1], [0.4 * (plan.counts[most] - 1)])
    tell_plan(study)
    study.lease(worker="w", max_pulls=2, duration="2d")
    study.tell([study.ask().ids[0]], [0.0], ["half"])
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


# what the steps make


def described(connection, schema=None) -> dict:
    """All that the database knows of our tables."""
    inspector = sa.inspect(connection)

    def rows(found, *names):
        return sorted(tuple(str(row.get(name)) for name in names) for row in found)

    def columns(table):  # the default of a number that the server counts up names its schema
        return rows(inspector.get_columns(table, schema), "name", "type", "nullable", "autoincrement")

    return {
        table: [
            columns(table),
            inspector.get_pk_constraint(table, schema)["constrained_columns"],
            rows(inspector.get_unique_constraints(table, schema), "column_names"),
            rows(inspector.get_check_constraints(table, schema), "name", "sqltext"),
            rows(
                inspector.get_foreign_keys(table, schema), "constrained_columns", "referred_table", "referred_columns"
            ),
            rows(inspector.get_indexes(table, schema), "name", "column_names", "unique"),
        ]
        for table in metadata.tables
    }


def differences(connection, expected=metadata) -> list:
    options = {"version_table": VERSION_TABLE, "compare_type": True, "compare_server_default": True}
    return compare_metadata(MigrationContext.configure(connection, opts=options), expected)


def new_database(url: str):
    engine = sql_engine.connect(url, create=True)
    assert migrate.migrate(engine, url) == (None, SCHEMA)
    return engine


def test_the_steps_make_the_tables_that_the_code_expects(database_url):
    with new_database(database_url).connect() as connection:
        assert differences(connection) == []
        assert set(sa.inspect(connection).get_table_names()) == {*metadata.tables, VERSION_TABLE}


def test_a_difference_would_be_noticed(database_url):
    other = sa.MetaData()
    for table in metadata.sorted_tables:
        table.to_metadata(other)
    other.tables["lease"].append_column(sa.Column("note", sa.Text))
    other.tables["event"].c.reason.nullable = True
    with new_database(database_url).connect() as connection:
        assert len(differences(connection, other)) == 2


def test_the_steps_make_the_constraints_too(tmp_path, sqlite_url):
    other = sa.create_engine(f"sqlite:///{tmp_path / 'other.db'}")
    metadata.create_all(other)
    with new_database(sqlite_url).connect() as steps, other.connect() as direct:
        assert described(steps) == described(direct)
        assert any("a_known_standing" in str(row) for row in described(steps)["observation"])


def test_the_steps_make_the_constraints_too_on_a_server(postgres_url):
    with new_database(postgres_url).connect() as connection:
        connection.execute(sa.schema.CreateSchema("direct"))
        metadata.create_all(connection.execution_options(schema_translate_map={None: "direct"}))
        assert described(connection, "public") == described(connection, "direct")
        connection.rollback()


def test_an_up_to_date_database_is_left_alone(database_url):
    engine = new_database(database_url)
    study = sp.create_study(database_url, "x", ARMS, make_policy("certified-independent"))
    tell_plan(study)
    assert migrate.migrate(engine, database_url) == (SCHEMA, SCHEMA)
    assert migrate_studies(database_url) == (SCHEMA, SCHEMA)
    assert len(sp.open_study(database_url, "x").trace) == 1


def test_a_database_without_studies_is_not_made_one(tmp_path, sqlite_url):
    with pytest.raises(sp.InvalidInput, match="there is no file"):
        migrate_studies(sqlite_url)
    file = tmp_path / "studies.db"
    file.touch()
    with pytest.raises(sp.StorageError, match="holds no studies yet"):
        migrate_studies(sqlite_url)
    assert file.stat().st_size == 0


def test_a_newer_database_is_refused(database_url):
    engine = new_database(database_url)
    with engine.execution_options(writes=True).begin() as connection:
        connection.execute(sa.text(f"UPDATE {VERSION_TABLE} SET version_num = '9999'"))
    with pytest.raises(sp.StorageError, match="written by a newer version"):
        migrate_studies(database_url)
    with engine.connect() as connection:
        assert connection.execute(sa.text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar() == "9999"


# from an older schema


STEP = """
import sqlalchemy as sa
from alembic import op

revision = {revision!r}
down_revision = {before!r}


def upgrade():
    {body}
"""
ADD_COLUMN = "op.add_column('lease', sa.Column('note', sa.Text))"
ALTER_A_COLUMN = """with op.batch_alter_table('event') as event:  # SQLite: into a new table
        event.alter_column('reason', existing_type=sa.Text, nullable=True)"""
BREAK = "op.execute('UPDATE plan SET opened_at = 0'); op.execute('INSERT INTO nowhere VALUES (1)')"


@pytest.fixture
def next_version(tmp_path, monkeypatch):
    """Turns this version into a later one, whose steps go on from those of today."""

    def become(*bodies: str) -> str:
        steps = tmp_path / "steps"
        shutil.copytree(migrate.STEPS, steps, ignore=shutil.ignore_patterns("__pycache__"))
        names = [SCHEMA, *(f"{int(SCHEMA) + place:04}" for place in range(1, len(bodies) + 1))]
        for before, revision, body in zip(names[:-1], names[1:], bodies, strict=True):
            step = STEP.format(revision=revision, before=before, body=body)
            (steps / "versions" / f"step_{revision}.py").write_text(step)
        monkeypatch.setattr(migrate, "STEPS", steps)
        for module in (migrate, sql_engine, sql_schema):
            monkeypatch.setattr(module, "SCHEMA", names[-1])
            monkeypatch.setattr(module, "OLDER", (*sql_schema.OLDER, *names[:-1]))
        return names[-1]

    return become


def rows_of(url: str) -> dict[str, list]:
    """All rows of all tables, and the columns."""
    engine = sa.create_engine(url)
    with engine.connect() as connection:
        names = [*metadata.tables, VERSION_TABLE]
        found = {
            name: [
                [column["name"] for column in sa.inspect(connection).get_columns(name)],
                sorted(map(repr, connection.execute(sa.text(f"SELECT * FROM {name}")))),
            ]
            for name in names
        }
    engine.dispose()
    return found


def test_an_older_database_is_refused_then_migrated_then_opened(database_url, next_version):
    unfinished(database_url)
    before = sp.open_study(database_url, "unfinished").trace
    newest = next_version(ADD_COLUMN, ALTER_A_COLUMN)
    for call in (
        lambda: sp.open_study(database_url, "unfinished"),
        lambda: list_studies(database_url),
        lambda: sp.create_study(database_url, "y", ARMS, make_policy("certified-independent")),
    ):
        with pytest.raises(
            sp.StorageError, match=f"schema {SCHEMA} and this .* works with {newest}.*`surepick migrate"
        ):
            call()
    assert migrate_studies(database_url) == (SCHEMA, newest)
    assert "note" in rows_of(database_url)["lease"][0]
    study = sp.open_study(database_url, "unfinished")
    assert study.trace == before
    assert study.lease(worker="u", max_pulls=1).lease is not None
    assert finish(study).verdict == "certified"
    assert len(sp.open_study(database_url, "unfinished").trace) > len(before)
    assert migrate_studies(database_url) == (newest, newest)


def test_a_step_that_fails_leaves_the_database_as_it_was(database_url, next_version, monkeypatch):
    unfinished(database_url)
    before = rows_of(database_url)
    with monkeypatch.context():
        next_version(ADD_COLUMN, BREAK)
        with pytest.raises(sp.StorageError, match="nowhere"):
            migrate_studies(database_url)
        assert rows_of(database_url) == before
    monkeypatch.undo()
    study = sp.open_study(database_url, "unfinished")
    finish(study)
    sp.open_study(database_url, "unfinished")


# released schemas


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
