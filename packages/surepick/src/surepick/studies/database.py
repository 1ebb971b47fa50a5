"""Studies in a database: make one, open one, list them."""

import json
import weakref
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Engine, Row
from sqlalchemy.exc import IntegrityError

from surepick.core.arms import Arms, ColumnNames, KnownIds
from surepick.core.descriptions import NO_SCALE, Described, Scale
from surepick.core.records import encode, first_difference
from surepick.core.values import storable_text
from surepick.errors import InvalidInput, StorageError
from surepick.noise import parse_noise
from surepick.policies.base import Policy, name_of, spec_of, stopped
from surepick.policies.verdict import PolicySummary
from surepick.studies.audit import LATEST, audit
from surepick.studies.logs.base import CLOSED_ROUNDS, COUNT, Judge, Planned, Surplus, system_clock
from surepick.studies.logs.hash_chain import arms_hash, chained, hash_of_arms, reading
from surepick.studies.logs.sql import descriptions, schema as tables
from surepick.studies.logs.sql.engine import check_version, connect, in_words, migrate_database, reach, released, shown
from surepick.studies.logs.sql.log import SqlLog
from surepick.studies.logs.sql.one_file import file_of, stored as stored_in_file
from surepick.studies.logs.sql.schema import study_seal
from surepick.studies.progress import ListedSoFar
from surepick.studies.registration import check_promise, checked_subject, code_of, settled_id, subject_of
from surepick.studies.study import Study
from surepick.studies.validation import checked_surplus
from surepick.text import did_you_mean

# --- Studies as rows of a database: what is stored of one when it is made, and how it is read again.

VERSION = 1  # of the configuration's format


def study_row(
    name: str,
    arms: Arms,
    policy: Policy[Any],
    *,
    minimize: bool,
    judge: Judge,
    surplus: Surplus,
    columns: ColumnNames,
    scale: Scale,
    study_id: str,
) -> dict[str, Any]:
    """A study as a row: what never changes."""
    spec, rows = spec_of(policy) or {}, policy.traits.rows
    if rows is not None and rows.spec is None:
        raise InvalidInput(
            "a study in a database opens its long list again, so the rows must be in .npy or Parquet files; these are "
            "in memory. Use sp.Study, or write them to files."
        )
    configuration = json.dumps(
        {
            "version": VERSION,
            "study_id": study_id,
            "policy": spec,
            "algorithm": name_of(policy),
            "minimize": minimize,
            "judge": judge,
            "surplus": surplus,
            "columns": arms.columns,
            "preparation": arms.preparation,
            **PolicySummary.of(policy, arms).stored(),  # the costs, if there are some, among them
            **({} if arms.segments is None else {"segments": arms.segments}),
            **({} if rows is None else {"files": rows.spec}),  # where the long list lies that the policy goes through
            **columns.stored(),
            **scale.stored(),
        },
        allow_nan=False,
        ensure_ascii=False,
    )
    features = np.ascontiguousarray(arms.features, dtype="<f8").tobytes()
    ids = json.dumps(arms.ids, ensure_ascii=False)
    shape = arms.features.shape
    hashed = arms_hash(ids, shape, features, arms.costs, arms.segments)
    return {
        "name": name,
        "configuration": configuration,
        "ids": ids,
        "features": features,
        "num_arms": shape[0],
        "num_features": shape[1],
        "arms_hash": hashed,
        "hash": study_hash(name, configuration, ids, hashed),
        "created_at": system_clock(),
    }


def study_hash(name: str, configuration: str, ids: str, hashed: str) -> str:
    """Where the chain of plans and decisions begins. It holds the ids themselves, so that `tell` needs no features."""
    return chained("", name, configuration, ids, hashed)


def found(engine: Engine, name: str) -> Row[Any]:
    """The study's row, but for the features."""
    storable_text("the name of a study", name)
    columns = [column for column in tables.study.c if column.name != "features"]
    with in_words(engine.url), engine.connect() as connection:
        row = connection.execute(sa.select(*columns).where(tables.study.c.name == name.strip())).first()
        if row is None:
            names = connection.execute(sa.select(tables.study.c.name).order_by(tables.study.c.name)).scalars().all()
            known = f"it has {', '.join(map(repr, names[:10]))}" if names else "it has none yet"
            raise InvalidInput(f"{shown(engine.url)} has no study {name!r}; {known}.{did_you_mean(name, names)}")
    check_row(row)
    return row


def check_row(row: Row[Any]) -> None:
    """Refuse a study's row that is not what was stored."""
    name = row.name
    if row.hash != study_hash(name, row.configuration, row.ids, row.arms_hash):
        raise StorageError(
            f"study {name!r}: its configuration, or the names of its arms, are not what was stored: the bytes do not "
            "match their hash. The database was altered or is damaged. Nothing was changed now; take the latest "
            "backup (docs/studies.md)."
        )
    if row.seal != study_seal(row._mapping):
        raise StorageError(
            f"study {name!r}: its number in the database, the number of its arms or their features, or the time of its "
            "creation, is not what was stored. The database was altered or is damaged. Nothing was changed now; take "
            "the latest backup (docs/studies.md)."
        )


def log_of(engine: Engine, row: Row[Any]) -> SqlLog:
    return SqlLog(engine, study=row.id, name=row.name, num_arms=row.num_arms, start=row.hash)


def opened_stored(engine: Engine, row: Row[Any], build: Callable[[], tuple[Arms, Policy[Any]]]) -> Study:
    with reading(row.name):
        configuration = json.loads(row.configuration)
        terms = PolicySummary.stored_in(configuration)
        return Study.over(
            log_of(engine, row),
            ids=tuple(json.loads(row.ids)),
            noise=parse_noise(configuration["policy"]["noise"]),
            minimize=configuration["minimize"],
            terms=lambda: terms,
            build=build,
            registration=lambda: registration_of(row, configuration),
            described=partial(described_of, engine, row),
            **{name: configuration[name] for name in ("study_id", "judge", "surplus")},
        )


def described_of(engine: Engine, row: Row[Any]) -> Described:
    """What the candidates of a study are, for people."""
    return descriptions.described_in(descriptions.said(engine, (descriptions.CANDIDATES,), {row.id: row.hash})[row.id])


def registration_of(row: Row[Any], configuration: dict[str, Any]) -> str | None:
    """The registration code, from what is stored: neither features nor a policy are needed."""
    arms = {name: configuration[name] for name in ("columns", "preparation")} | {"sha256": row.arms_hash}
    about: dict[str, Any] = {name: configuration[name] for name in ("study_id", "minimize", "judge")}
    return code_of(configuration["policy"], arms, **about)


def stored_arms(engine: Engine, row: Row[Any]) -> Arms:
    """The arms as they were stored."""
    with in_words(engine.url), engine.connect() as connection:
        features = connection.execute(
            sa.select(tables.study.c.features).where(tables.study.c.id == row.id)
        ).scalar_one()
    configuration, shape = json.loads(row.configuration), (row.num_arms, row.num_features)
    held = {name: configuration.get(name) for name in ("columns", "preparation", "costs", "segments")}
    apart = held["costs"], held["segments"]
    if not isinstance(features, bytes) or row.arms_hash != arms_hash(row.ids, shape, features, *apart):
        raise StorageError(
            f"study {row.name!r}: its arms are not what was stored: the bytes do not match their hash. Nothing was "
            "changed now; take the latest backup (docs/studies.md)."
        )
    return Arms(np.frombuffer(features, dtype="<f8").reshape(shape), KnownIds(json.loads(row.ids)), **held)


def rebuilt(engine: Engine, row: Row[Any]) -> tuple[Arms, Policy[Any]]:
    from surepick.policies.registry import built_policy  # noqa: PLC0415 (only where something is computed)

    arms, configuration = stored_arms(engine, row), json.loads(row.configuration)
    files = configuration.get("files")
    if files is None:
        return arms, built_policy(arms=arms, **configuration["policy"])
    from surepick.policies.long_lists import check_rows  # noqa: PLC0415 (only for lists in files)
    from surepick.tables.rows import read_again  # noqa: PLC0415 (as above)

    rows, written = read_again(files)
    policy = built_policy(arms=rows, **configuration["policy"])
    if hash_of_arms(policy.problem.arms or arms) != row.arms_hash:
        raise StorageError(
            f"study {row.name!r}: the candidates that it measures are no longer in the files that it goes through "
            f"({files['files'][0]['path']}{', ...' if len(files['files']) > 1 else ''}); these were changed. Nothing "
            "was changed in the study; put the files back."
        )
    if written:
        check_rows(policy)
    return arms, policy


def check_same(study: Study, row: Row[Any], policy: Policy[Any]) -> None:
    """Refuse a policy that is not the study's: another algorithm or promise, or another first plan."""
    configuration = json.loads(row.configuration)
    check_promise(row.name, configuration, policy)
    first = next(study.log.plans(), None)
    state = policy.init()
    if first is None or stopped(policy, state):
        return
    difference = first_difference(encode(first.plan), encode(policy.ask(state)))
    if difference:
        raise InvalidInput(
            f"the policy that was given is not the one of study {row.name!r}: its first plan differs ({difference})."
        )


class Database:
    """A database of studies, for those who work on many of them: its connections are shared, also between threads."""

    def __init__(self, url: str, *, create: bool = False) -> None:
        self.url = url
        self.engine = connect(url, create=create)

    @cached_property
    def _prepared(self) -> bool:
        """Its tables are there; they are made if they are not."""
        if self.engine.dialect.name == "sqlite":
            with in_words(self.engine.url), self.engine.connect() as connection:
                raw = connection.connection.dbapi_connection
                if raw is not None:
                    raw.execute("PRAGMA journal_mode = WAL")  # readers do not wait for writers; remembered by the file
        migrate_database(self.engine, self.url)
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
        """Open the file that is there now, with its tables; studies opened before refuse everything from now on."""
        file = file_of(self.engine)
        if file is not None:
            file.renew(self.engine)
            vars(self).pop("_prepared", None)
            self.prepare()

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
        scale: Scale = NO_SCALE,
        owner: str = "",
    ) -> Study:
        """A new study; as `create_study`, with who makes it."""
        columns = ColumnNames(id_column, reward_column)
        arms, policy = checked_subject(name, arms, policy, minimize=minimize, judge=judge)
        surplus = checked_surplus(surplus, judge)
        self.prepare()
        engine, state = self.engine, policy.init()
        opening = None if stopped(policy, state) else policy.ask(state)
        kept: dict[str, Any] = {
            "columns": columns,
            "scale": scale,
            "study_id": settled_id(study_id),
            "surplus": surplus,
        }
        row = study_row(name.strip(), arms, policy, minimize=minimize, judge=judge, **kept)
        with in_words(engine.url), engine.connect() as plain:
            connection = plain.execution_options(writes=True)
            try:
                with connection.begin():
                    number = connection.execute(
                        sa.insert(tables.study).returning(tables.study.c.id), [{**row, "seal": ""}]
                    ).scalar_one()
                    seal = study_seal({**row, "id": number})
                    connection.execute(sa.update(tables.study).where(tables.study.c.id == number).values(seal=seal))
                    said = descriptions.says(arms.described, owner)
                    descriptions.add(connection, number, row["hash"], said, owner)
                stored_in_file(connection)
            except IntegrityError as error:
                raise InvalidInput(
                    f"{shown(engine.url)} has a study {name!r} already. Open that one, or choose another name "
                    "(`surepick list`)."
                ) from error
        study = opened_stored(engine, found(engine, name), lambda: (arms, policy))
        done = study.stopped  # stores the start
        if opening is not None and not done:
            study.log.add_plan(Planned(1, opening, study.log.clock()))
        return study

    def resume(self, name: str, policy: Policy[Any] | None = None) -> Study:
        """One of its studies; as `resume_study`."""
        engine = self.engine
        row = found(engine, name)
        if policy is None:
            return opened_stored(engine, row, lambda: rebuilt(engine, row))
        arms = stored_arms(engine, row)
        subject_of(arms, policy)
        handmade = spec_of(policy) is None  # what is stored says all of its settings
        study = opened_stored(engine, row, lambda: rebuilt(engine, row) if handmade else (arms, policy))
        check_same(study, row, policy)
        return study

    def configuration(self, name: str) -> dict[str, Any]:
        """What is stored of one of its studies beside the candidates: the policy's spec, and how it is judged."""
        stated: dict[str, Any] = json.loads(found(self.engine, name).configuration)
        return stated

    def arms(self, name: str) -> Arms:
        """The candidates of one of its studies."""
        return stored_arms(self.engine, found(self.engine, name))

    def said(self, name: str | None = None) -> dict[str, dict[str, str]]:
        """What is said of its studies, or of one: study -> kind -> text; kinds as in `descriptions.SHORT`."""
        columns = tables.study.c
        wanted = sa.select(columns.id, columns.name, columns.hash)
        wanted = wanted if name is None else wanted.where(columns.name == name)
        with in_words(self.engine.url), self.engine.connect() as connection:
            rows = connection.execute(wanted).all()
        found = descriptions.said(self.engine, descriptions.SHORT, {row.id: row.hash for row in rows}) if rows else {}
        return {row.name: found[row.id] for row in rows}

    def say(self, name: str, said: dict[str, str], source: str) -> None:
        """Say something of one of its studies, by kind; it takes the place of what was said before."""
        row = found(self.engine, name)
        with in_words(self.engine.url), self.engine.connect() as plain:
            connection = plain.execution_options(writes=True)
            with connection.begin():
                descriptions.add(connection, row.id, row.hash, said, source)
            stored_in_file(connection)

    def list(self) -> list[ListedSoFar]:
        """Its studies, by name."""
        columns = tables.study.c
        with in_words(self.engine.url), self.engine.connect() as connection:
            kept = [column for column in columns if column.name != "features"]
            rows = connection.execute(sa.select(*kept).order_by(columns.name)).all()
        for row in rows:
            check_row(row)
        return [self._listed(row) for row in rows]

    def _listed(self, row: Row[Any]) -> ListedSoFar:
        with reading(str(row.name)):
            configuration = json.loads(row.configuration)
            policy, log = configuration["policy"], log_of(self.engine, row)
            last, ended = log.last_decision(), log.ended()
            return ListedSoFar(
                name=str(row.name),
                candidates=int(row.num_arms),
                policy=str(policy["name"]),
                epsilon=0.0 if policy.get("any_gap") else float(policy["epsilon"]),
                delta=float(policy["delta"]),
                created_at=float(row.created_at),
                rounds=0 if last is None else last.plan,
                pulls=0 if last is None or last.row is None else last.row.total_pulls,
                verdict="not-yet" if last is None else str(last.verdict),
                ended=ended is not None,
                registration=registration_of(row, configuration),
                shortens=PolicySummary.stored_in(configuration).shortens,
                changed_at=max(row.created_at, *(0.0 if one is None else float(one.at) for one in (last, ended))),
            )


def create_stored_study(
    url: str,
    name: str,
    arms: Arms | Policy[Any],
    policy: Policy[Any] | None = None,
    *,
    minimize: bool = False,
    judge: Judge = CLOSED_ROUNDS,
    surplus: Surplus = COUNT,
    **more: Any,
) -> Study:
    """A new study in a database, which is made if it is absent; `more` as in `Database.create`."""
    arms, policy = checked_subject(name, arms, policy, minimize=minimize, judge=judge)
    checked_surplus(surplus, judge)
    database = Database(url, create=True)
    with released(database.engine):
        made = database.create(name, arms, policy, minimize=minimize, judge=judge, surplus=surplus, **more)
        return _alone(database, made)


def open_stored_study(url: str, name: str, policy: Policy[Any] | None = None) -> Study:
    """A study in a database; its chain of hashes is checked, and the latest decisions are computed again. The others
    are computed again before an answer is given."""
    database = Database(url)
    with released(database.engine):
        study = database.resume(name, policy)
        audit(study, name, latest=LATEST)
        study.unchecked = partial(audit, name=name)
    return study


def resume_stored_study(url: str, name: str, policy: Policy[Any] | None = None) -> Study:
    """As `open_study`, without computing anything again before an answer is given: only the last decision's bytes are
    checked."""
    database = Database(url)
    with released(database.engine):
        study = database.resume(name, policy)
        study.unchecked = partial(audit, name=name)
        return _alone(database, study)


def _alone(database: Database, study: Study) -> Study:
    """A study for which the database was opened: its connections end with it."""
    weakref.finalize(study.log, database.engine.dispose)
    return study


def list_stored_studies(url: str) -> list[ListedSoFar]:
    """The studies of a database, by name."""
    database = Database(url)
    try:
        return database.list()
    finally:
        database.engine.dispose()


def study_ids(url: str) -> dict[str, str]:
    """The name and the id of each study of a database, by name."""
    database = Database(url)
    with released(database.engine), in_words(database.engine.url), database.engine.connect() as connection:
        rows = connection.execute(
            sa.select(tables.study.c.name, tables.study.c.configuration).order_by(tables.study.c.name)
        ).all()
        found = {str(row.name): str(json.loads(row.configuration)["study_id"]) for row in rows}
    database.engine.dispose()
    return found


def migrate_studies(url: str) -> tuple[str | None, str]:
    """Bring the tables of a database to the newest schema: all steps are taken, or none."""
    engine, version = reach(url)
    if version is None:
        check_version(version, url)
    return migrate_database(engine, url)
