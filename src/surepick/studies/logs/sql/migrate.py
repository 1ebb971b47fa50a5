"""Making and renewing the tables of durable studies. The only importer of Alembic."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from sqlalchemy.engine import Engine

from surepick.studies.logs.sql.engine import check_version, in_words
from surepick.studies.logs.sql.schema import OLDER, SCHEMA, VERSION_TABLE

STEPS = Path(__file__).parent / "migrations"


def migrate(engine: Engine, url: str) -> tuple[str | None, str]:
    """Bring the tables to the newest schema: all steps are taken, or none.

    Returns:
        (schema before, None for a database without tables; schema now).

    Raises:
        StorageError: the database is newer than this version of surepick.
    """
    config = Config()
    config.set_main_option("script_location", str(STEPS))
    with in_words(engine.url), engine.connect().execution_options(writes=True) as connection, connection.begin():
        if engine.dialect.name == "postgresql":
            connection.execute(sa.text("SELECT pg_advisory_xact_lock(hashtext('surepick migrate'))"))
        before = _version(connection)
        if before is not None and before not in OLDER:
            check_version(before, url)
        if before != SCHEMA:
            config.attributes["connection"] = connection
            command.upgrade(config, SCHEMA)
    return before, SCHEMA


def _version(connection: sa.Connection) -> str | None:
    if VERSION_TABLE not in sa.inspect(connection).get_table_names():
        return None
    return str(connection.execute(sa.text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar_one())
