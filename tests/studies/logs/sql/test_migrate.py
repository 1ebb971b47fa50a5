"""The tables of studies, from schema to schema: the steps lead to those of today, all of them are taken or none."""

import shutil

import numpy as np
import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from study_commands import surepick

import surepick as sp
from surepick.studies.database import list_stored_studies, migrate_studies
from surepick.studies.logs.sql import engine as migrate, engine as sql_engine, schema as sql_schema
from surepick.studies.logs.sql.schema import SCHEMA, VERSION_TABLE, metadata
from surepick_server.app import make_app
from surepick_server.settings import Settings

ARMS = sp.Arms([[1.0, 0.0], [0.0, 1.0], [0.6, 0.6], [-0.4, 0.3]], ["a", "b", "c", "d"], columns=["x", "y"])
MEANS = np.array([0.9, 0.2, 0.66, -0.3])


def create(url: str, name: str):
    policy = sp.make_policy("certified-independent", ARMS, epsilon=0.3, delta=0.05, noise=sp.SubGaussian(0.5))
    return sp.create_study(url, name, policy)


def tell_plan(study) -> None:
    """All that is missing of the open plan."""
    plan = study.ask()
    arms = np.repeat(np.arange(4), study.missing)
    study.tell([ARMS.ids[arm] for arm in arms], MEANS[arms] + 0.3 * np.cos(np.arange(len(arms)) + plan.round))


def finish(study) -> sp.Certificate:
    while study.ask() is not None:
        tell_plan(study)
    return study.certificate()


def unfinished(url: str) -> None:
    """A judged plan, and an open one with a lease."""
    study = create(url, "unfinished")
    tell_plan(study)
    study.lease(worker="w", max_pulls=1, duration="2d")


# what the steps make


def differences(connection, expected=metadata) -> list:
    options = {"version_table": VERSION_TABLE, "compare_type": True, "compare_server_default": True}
    return compare_metadata(MigrationContext.configure(connection, opts=options), expected)


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


def new_database(url: str):
    engine = sql_engine.connect(url, create=True)
    assert migrate.migrate_database(engine, url) == (None, SCHEMA)
    return engine


def in_the_first_schema(url: str):
    """A database of schema 1, which had neither corrections nor descriptions."""
    engine = new_database(url)
    with engine.execution_options(writes=True).begin() as connection:
        for table in (sql_schema.correction, sql_schema.description):
            connection.execute(sa.schema.DropTable(table))
        connection.execute(sa.text(f"UPDATE {VERSION_TABLE} SET version_num = '1'"))
    return engine


def migrated(url: str):
    engine = in_the_first_schema(url)
    assert migrate.migrate_database(engine, url) == ("1", SCHEMA)
    return engine


@pytest.mark.parametrize("made", [new_database, migrated])
def test_a_new_database_and_the_steps_have_the_tables_that_the_code_expects(database_url, made):
    with made(database_url).connect() as connection:
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


def test_a_table_that_the_steps_do_not_make_would_be_noticed(database_url):
    with in_the_first_schema(database_url).connect() as connection:
        assert {first for first, *_ in differences(connection)} == {"add_table", "add_index"}


def test_the_steps_make_the_constraints_too(tmp_path, sqlite_url):
    other = sa.create_engine(f"sqlite:///{tmp_path / 'other.db'}")
    metadata.create_all(other)
    with migrated(sqlite_url).connect() as steps, other.connect() as direct:
        assert described(steps) == described(direct)
        assert any("a_known_status" in str(row) for row in described(steps)["observation"])


def test_the_steps_make_the_constraints_too_on_a_server(postgres_url):
    with migrated(postgres_url).connect() as connection:
        connection.execute(sa.schema.CreateSchema("direct"))
        metadata.create_all(connection.execution_options(schema_translate_map={None: "direct"}))
        assert described(connection, "public") == described(connection, "direct")
        connection.rollback()


def test_an_up_to_date_database_is_left_alone(database_url):
    engine = new_database(database_url)
    tell_plan(create(database_url, "x"))
    assert migrate.migrate_database(engine, database_url) == (SCHEMA, SCHEMA)
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


@pytest.mark.parametrize("version", ["0003", "9999"])
def test_a_database_of_a_schema_that_nobody_knows_is_refused(database_url, version):
    """By the library, the commands and a server; it is left as it is."""
    create(database_url, "x")
    engine = sql_engine.connect(database_url)
    with engine.execution_options(writes=True).begin() as connection:
        connection.execute(sa.text(f"UPDATE {VERSION_TABLE} SET version_num = '{version}'"))
    said = f"has schema {version}, and this version of surepick knows {SCHEMA}.* Open it with the version that wrote it"
    for call in (
        lambda: migrate_studies(database_url),
        lambda: sp.open_study(database_url, "x"),
        lambda: create(database_url, "y"),
        lambda: make_app(Settings(database_url)),
        lambda: surepick("list", database_url),
        lambda: surepick("migrate", database_url),
    ):
        with pytest.raises(sp.StorageError, match=said):
            call()
    with engine.connect() as connection:
        assert connection.execute(sa.text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar() == version
    engine.dispose()


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
        names = [SCHEMA, *(str(int(SCHEMA) + place) for place in range(1, len(bodies) + 1))]
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
        lambda: list_stored_studies(database_url),
        lambda: create(database_url, "y"),
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
