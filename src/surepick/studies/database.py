"""Studies in a database: make one, open one, list them."""

from __future__ import annotations

import json
import weakref
from functools import cached_property
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Engine
from sqlalchemy.exc import IntegrityError

from surepick.core.arms import Arms
from surepick.core.column_names import ColumnNames
from surepick.errors import InvalidInput
from surepick.policies.base import Policy, spec_of, stopped
from surepick.studies import stored_studies as stored
from surepick.studies.logs.base import CLOSED_ROUNDS, COUNT, Judge, Planned, Surplus
from surepick.studies.logs.sql import schema as tables
from surepick.studies.logs.sql.engine import check_version, connect, in_words, reach, released, shown
from surepick.studies.logs.sql.one_file import file_of
from surepick.studies.logs.sql.one_file import stored as stored_in_file
from surepick.studies.logs.sql.seals import study_seal
from surepick.studies.progress import Listed
from surepick.studies.reading.audit import audit
from surepick.studies.registration import checked_subject, settled_id, subject_of
from surepick.studies.study import Study
from surepick.studies.validation import checked_surplus


class Database:
    """A database of studies, for those who work on many of them: its connections are shared, also between threads.

    Args:
        url: "sqlite:///FILE" or "postgresql+psycopg://USER@HOST/DATABASE".
        create: make it if it is absent.

    Raises:
        InvalidInput: the address has no meaning, or there is no such file.
        StorageError: the database cannot be reached, or is not ours.
    """

    def __init__(self, url: str, *, create: bool = False) -> None:
        self.url = url
        self.engine = connect(url, create=create)

    @cached_property
    def _prepared(self) -> bool:
        """Its tables are there."""
        _prepare(self.engine, self.url)
        return True

    def prepare(self) -> None:
        """Make the tables if they are not there."""
        assert self._prepared

    @property
    def moved(self) -> bool:
        """Whether its file was deleted, or another one put in its place, since it was opened."""
        file = file_of(self.engine)
        return file is not None and file.moved

    def reopen(self) -> None:
        """Open the file that is there now in place of the one that was opened, and make its tables if need be.

        Studies that were opened before refuse everything from now on: they know the file before.

        Raises:
            StorageError: there is no file, or it is not ours.
        """
        file = file_of(self.engine)
        if file is not None:
            file.renew(self.engine)
            _prepare(self.engine, self.url)

    def create(
        self,
        name: str,
        arms: Arms | Policy[Any],
        policy: Policy[Any] | None = None,
        *,
        minimize: bool = False,
        judge: Judge = CLOSED_ROUNDS,
        surplus: Surplus = COUNT,
        id_column: str | None = None,
        reward_column: str | None = None,
        study_id: str | None = None,
    ) -> Study:
        """A new study; as `create_study`."""
        columns = ColumnNames(id_column, reward_column)
        arms, policy = checked_subject(name, arms, policy, minimize=minimize, judge=judge)
        surplus = checked_surplus(surplus, judge)
        self.prepare()
        engine, state = self.engine, policy.init()
        opening = None if stopped(policy, state) else policy.ask(state)
        kept: dict[str, Any] = {"columns": columns, "study_id": settled_id(study_id), "surplus": surplus}
        row = stored.row_of(name.strip(), arms, policy, minimize=minimize, judge=judge, **kept)
        with in_words(engine.url), engine.connect() as plain:
            connection = plain.execution_options(writes=True)
            try:
                with connection.begin():
                    number = connection.execute(
                        sa.insert(tables.study).returning(tables.study.c.id), [{**row, "seal": ""}]
                    ).scalar_one()
                    seal = study_seal({**row, "id": number})
                    connection.execute(sa.update(tables.study).where(tables.study.c.id == number).values(seal=seal))
                stored_in_file(connection)
            except IntegrityError as error:
                raise InvalidInput(
                    f"{shown(engine.url)} has a study {name!r} already. Open that one, or choose another name "
                    "(`surepick list`)."
                ) from error
        study = stored.opened(engine, stored.found(engine, name), lambda: (arms, policy))
        done = study.stopped  # stores the start
        if opening is not None and not done:
            study.log.add_plan(Planned(1, opening, study.log.clock()))
        return study

    def resume(self, name: str, policy: Policy[Any] | None = None) -> Study:
        """One of its studies; as `resume_study`."""
        engine = self.engine
        row = stored.found(engine, name)
        if policy is None:
            return stored.opened(engine, row, lambda: stored.rebuilt(engine, row))
        arms = stored.arms_of(engine, row)
        subject_of(arms, policy)
        handmade = spec_of(policy) is None  # what is stored says all of its settings
        study = stored.opened(engine, row, lambda: stored.rebuilt(engine, row) if handmade else (arms, policy))
        stored.check_same(study, row, policy)
        return study

    def configuration(self, name: str) -> dict[str, Any]:
        """What is stored of one of its studies beside the candidates: the policy's spec, and how it is judged."""
        stated: dict[str, Any] = json.loads(stored.found(self.engine, name).configuration)
        return stated

    def arms(self, name: str) -> Arms:
        """The candidates of one of its studies."""
        return stored.arms_of(self.engine, stored.found(self.engine, name))

    def list(self) -> list[Listed]:
        """Its studies, by name."""
        columns = tables.study.c
        with in_words(self.engine.url), self.engine.connect() as connection:
            kept = [column for column in columns if column.name != "features"]
            rows = connection.execute(sa.select(*kept).order_by(columns.name)).all()
        for row in rows:
            stored.check_row(row)
        return [stored.listed(self.engine, row) for row in rows]


def create_study(
    url: str,
    name: str,
    arms: Arms | Policy[Any],
    policy: Policy[Any] | None = None,
    *,
    minimize: bool = False,
    judge: Judge = CLOSED_ROUNDS,
    surplus: Surplus = COUNT,
    id_column: str | None = None,
    reward_column: str | None = None,
    study_id: str | None = None,
) -> Study:
    """A new study in a database, which is made if it is absent.

    Args:
        url: "sqlite:///FILE" or "postgresql+psycopg://USER@HOST/DATABASE".
        name: what the study is called there; no other study may be.
        arms, policy: what is chosen among, and the algorithm; or the algorithm alone, if it knows its arms. It was
            made by `make_policy`, or is equal to one that was: only such a one can be built again elsewhere.
        minimize: small rewards are good.
        judge, study_id: as in `Study`.
        id_column, reward_column: what your tables call the columns of ids and of results; beside "id" and "reward",
            `surepick tell` and a server then find these. No part of the registration.
        surplus: what becomes of results beyond what was asked, as in `Study`.

    Raises:
        InvalidInput: the address or the name has no meaning, the name is taken, the policy has no spec, or does not
            judge parts.
        StorageError: the database cannot be reached or written, or is not ours.
    """
    arms, policy = checked_subject(name, arms, policy, minimize=minimize, judge=judge)
    checked_surplus(surplus, judge)
    database = Database(url, create=True)
    with released(database.engine):
        more: dict[str, Any] = {"id_column": id_column, "reward_column": reward_column}
        more |= {"study_id": study_id, "surplus": surplus}
        return _alone(database, database.create(name, arms, policy, minimize=minimize, judge=judge, **more))


def open_study(url: str, name: str, policy: Policy[Any] | None = None) -> Study:
    """A study in a database; all that was decided in it is computed again and compared.

    Args:
        url, name: as in `create_study`.
        policy: None: built from what is stored. One that is given must do the same as the stored one.

    Raises:
        InvalidInput: there is no such study, or the policy that was given is another one.
        StorageError: the database cannot be reached, is not ours, or holds something that does not follow from the
            reported results; the row is named.
    """
    database = Database(url)
    with released(database.engine):
        study = database.resume(name, policy)
        audit(study, name)
    return study


def resume_study(url: str, name: str, policy: Policy[Any] | None = None) -> Study:
    """As `open_study`, without computing anything again: only the last decision's bytes are checked.

    `tell` and `ask` need no policy while a plan is open.

    Raises:
        As `open_study`, but for what only a computation could find.
    """
    database = Database(url)
    with released(database.engine):
        return _alone(database, database.resume(name, policy))


def _alone(database: Database, study: Study) -> Study:
    """A study for which the database was opened: its connections end with it."""
    weakref.finalize(study.log, database.engine.dispose)
    return study


def list_studies(url: str) -> list[Listed]:
    """The studies of a database, by name.

    Raises:
        InvalidInput, StorageError: as in `open_study`.
    """
    database = Database(url)
    try:
        return database.list()
    finally:
        database.engine.dispose()


def migrate_studies(url: str) -> tuple[str | None, str]:
    """Bring the tables of a database to the newest schema: all steps are taken, or none.

    Returns:
        (schema before, schema now); equal if nothing had to be done.

    Raises:
        InvalidInput, StorageError: as in `open_study`.
    """
    from surepick.studies.logs.sql.migrate import migrate  # noqa: PLC0415 (Alembic: heavy, and needed only here)

    engine, version = reach(url)
    if version is None:
        check_version(version, url)
    return migrate(engine, url)


def _prepare(engine: Engine, url: str) -> None:
    """The tables, if they are not there."""
    if engine.dialect.name == "sqlite":
        with in_words(engine.url), engine.connect() as connection:
            raw = connection.connection.dbapi_connection
            if raw is not None:
                raw.execute("PRAGMA journal_mode = WAL")  # readers do not wait for writers; remembered by the file
    from surepick.studies.logs.sql.migrate import migrate  # noqa: PLC0415 (Alembic: heavy, and needed only here)

    migrate(engine, url)
