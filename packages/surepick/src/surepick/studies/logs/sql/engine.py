"""Connections to the database of durable studies: settings that make them safe, and errors in words."""

import os
import re
import sqlite3
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.engine import URL, Engine, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, OperationalError

from surepick.core.files import is_file, is_folder
from surepick.core.values import storable_text
from surepick.errors import InvalidInput, StorageError
from surepick.studies.logs.sql.one_file import OneFile
from surepick.studies.logs.sql.patience import UNANSWERED, patience_of, without_patience
from surepick.studies.logs.sql.schema import OLDER, SCHEMA, VERSION_TABLE, VERSIONS, metadata
from surepick.text import quoted

NETWORK_SYSTEMS = ("nfs", "cifs", "smb", "9p", "afs", "sshfs", "gluster", "ceph", "lustre", "beegfs", "davfs", "gpfs")
KNOWN = {"sqlite": "sqlite", "postgresql": "postgresql+psycopg", "postgres": "postgresql+psycopg"}
IN_MEMORY = (":memory:", "file::memory:")


def read_url(url: str) -> URL:
    """The address of a database."""
    hidden = re.sub(r":.*@|password=[^&]*", "***", url) if isinstance(url, str) else url  # what may be its password
    wrong = InvalidInput(
        f"{quoted(hidden)} is not the address of a database; write sqlite:///FILE (sqlite:////FILE for an "
        "absolute path) or postgresql+psycopg://USER:PASSWORD@HOST/DATABASE."
    )
    if not isinstance(url, str | URL):
        raise wrong
    storable_text("the address of the database", str(url))
    try:
        address = make_url(url)
    except (ArgumentError, ValueError) as error:
        raise wrong from error
    backend = address.get_backend_name()
    if backend not in KNOWN:
        raise InvalidInput(f"studies are kept in SQLite or PostgreSQL, not in {backend!r}.")
    database = address.database or ":memory:"
    if backend == "sqlite" and (database in IN_MEMORY or address.query.get("mode") == "memory"):
        raise InvalidInput(
            f"{url!r} names no file, so nothing would last; write sqlite:///FILE, or use sp.Study in memory."
        )
    return address.set(drivername=KNOWN[backend])


def connect(url: str, *, create: bool = False) -> Engine:
    """An engine for the database, checked to be ours."""
    engine, version = reach(url, create=create)
    if version is not None or not create:
        with released(engine):
            check_version(version, url)
    return engine


def reach(url: str, *, create: bool = False) -> tuple[Engine, str | None]:
    """(an engine for the database, the schema it says it has, None without tables); as `connect`, of any schema."""
    address = read_url(url)
    engine = _sqlite(address, create=create) if address.get_backend_name() == "sqlite" else _postgresql(address)
    with released(engine), in_words(address):
        return engine, _version(engine, address)


@contextmanager
def released(engine: Engine) -> Iterator[None]:
    """Close its connections if the database, or what is asked of it, is refused: nobody else could."""
    try:
        yield
    except BaseException:
        engine.dispose()
        raise


def check_version(version: str | None, url: str) -> None:
    """Refuse a database of another schema."""
    if version == SCHEMA:
        return
    if version is None:
        raise StorageError(f"{shown(url)} holds no studies yet; start one with `surepick create`.")
    if version in OLDER:
        raise StorageError(
            f"{shown(url)} has schema {version} and this version of surepick works with {SCHEMA}. Make a copy of it, "
            "then run `surepick migrate URL`."
        )
    raise StorageError(
        f"{shown(url)} has schema {version}, and this version of surepick knows {SCHEMA}: a newer version wrote it, or "
        "one from before the first release. Nothing was changed. Open it with the version that wrote it (pip install "
        "-U surepick, if that is newer), or give another database and begin anew."
    )


def shown(url: str | URL) -> str:
    """The address without its password."""
    address = make_url(url)
    if "password" in address.query:  # the other place where it may stand
        address = address.difference_update_query(["password"])
    return address.render_as_string(hide_password=True)


def _sqlite(address: URL, *, create: bool) -> Engine:
    path = _path(address)
    if not create and path is not None and not is_file(path):
        raise InvalidInput(f"there is no file {path} ({shown(address)}); start a study with `surepick create`.")
    if path is not None and not is_folder(path.parent):
        raise InvalidInput(f"there is no folder {path.parent} for {shown(address)}; make it first.")
    if path is not None:
        kind = file_system(path)
        if any(name in kind for name in NETWORK_SYSTEMS):  # SQLite's locks do not work on most of these
            warnings.warn(
                f"{path} lies on a network file system ({kind}), where SQLite cannot keep several writers apart: "
                "results could be lost. Use a local disk, or PostgreSQL.",
                stacklevel=4,
            )
    waits, opened = {"timeout": patience_of(address).lock}, without_patience(address)
    if path is not None and _only_readable(path):
        opened = opened.set(database=f"file:{quote(str(path.absolute()))}")
        opened = opened.update_query_dict({"immutable": "1", "uri": "true"})
    engine = sa.create_engine(opened, connect_args=waits, poolclass=sa.pool.QueuePool)
    engine.url = address  # for messages that say how long we waited
    file = None if path is None else OneFile(path)

    @sa.event.listens_for(engine, "connect")
    def prepare(connection: Any, _: Any) -> None:
        connection.isolation_level = None  # transactions begin where we say so, see `begin`
        cursor = connection.cursor()
        cursor.execute("PRAGMA foreign_keys = ON")
        cursor.execute("PRAGMA synchronous = FULL")
        cursor.close()

    @sa.event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE" if connection.get_execution_options().get("writes") else "BEGIN")
        if file is not None:
            file.begun(connection)

    if file is not None:
        file.watch(engine)
    return engine


def _only_readable(path: Path) -> bool:
    """Whether the file can be read, and neither it nor its folder written: SQLite then needs no files to read it."""
    log = path.with_name(f"{path.name}-wal")
    waiting = is_file(log) and log.stat().st_size > 0
    return is_file(path) and not waiting and not any(os.access(one, os.W_OK) for one in (path, path.parent))


def _path(address: URL) -> Path | None:
    """The file of a SQLite database; None for one that is named by a URI of its own."""
    database = address.database or ""
    return None if database.startswith("file:") else Path(database)


def sqlite_file(address: URL) -> Path | None:
    """The file of a SQLite database; None of another one."""
    return _path(address) if address.get_backend_name() == "sqlite" else None


def _postgresql(address: URL) -> Engine:
    patience = patience_of(address)
    try:
        plain = without_patience(address)
        engine = sa.create_engine(plain, pool_pre_ping=True, isolation_level="READ COMMITTED")
    except (ImportError, NoSuchModuleError) as error:
        raise InvalidInput('PostgreSQL needs psycopg, which is absent: pip install "surepick[postgres]".') from error
    engine.url = address  # for messages that say how long we waited

    @sa.event.listens_for(engine, "do_connect")
    def open_patiently(_: Any, __: Any, words: Any, options: Any) -> Any:
        from surepick.studies.logs.sql.impatient import open_connection  # noqa: PLC0415 (psycopg: an extra)

        return open_connection(patience, *words, **options)

    return engine


def _version(engine: Engine, address: URL) -> str | None:
    """The schema that the database says it has; None for a database without tables."""
    with engine.connect() as connection:
        names = set(sa.inspect(connection).get_table_names())
        if VERSION_TABLE in names:
            return str(connection.execute(sa.select(VERSIONS)).scalar_one())
    ours = set(metadata.tables)
    if address.get_backend_name() == "sqlite" and names:
        raise StorageError(
            f"{shown(address)} is a database of something else: it has the tables {', '.join(sorted(names)[:5])} and "
            "not those of surepick. Nothing was changed. Give another file."
        )
    if names & ours:
        raise StorageError(
            f"{shown(address)} has tables of something else under names that surepick uses "
            f"({', '.join(sorted(names & ours))}). Nothing was changed. Give a database of its own."
        )
    return None


def file_system(path: Path, mounts: Path = Path("/proc/mounts")) -> str:
    """The kind of file system that the path lies on, "" where the machine does not say."""
    try:
        lines = mounts.read_text().splitlines()
    except OSError:
        return ""
    where, best, kind = os.path.realpath(path), "", ""
    for line in lines:
        parts = line.split()
        if len(parts) < 3:
            continue
        point = parts[1].replace("\\040", " ")
        inside = where == point or where.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, kind = point, parts[2]
    return kind.lower()


@contextmanager
def in_words(address: URL | str) -> Iterator[None]:
    """Errors of the database become `StorageError`s that say what happened and what to do."""
    try:
        yield
    except DBAPIError as error:
        raise StorageError(_words(str(error.orig), make_url(address))) from error
    except sqlite3.Error as error:  # of a statement that did not go through SQLAlchemy
        raise StorageError(_words(str(error), make_url(address))) from error
    except UnicodeDecodeError as error:  # of what SQLite says about a damaged name, which is no text either
        raise StorageError(_words("malformed: bytes that are not UTF-8", make_url(address))) from error


@contextmanager
def commit_in_words(address: URL) -> Iterator[None]:
    """As `in_words`, for the moment in which a server may have stored what it could not acknowledge any more."""
    try:
        yield
    except DBAPIError as error:
        lost = error.connection_invalidated or isinstance(error, OperationalError)
        if address.get_backend_name() != "postgresql" or not lost:
            raise
        raise StorageError(
            f"{shown(address)}: the connection was lost while results were being stored, so nobody knows whether they "
            "were. Repeat the call if every result has a key: it counts once. Otherwise see with status what is in. "
            f"({str(error.orig).strip()})"
        ) from error


def _words(said: str, address: URL) -> str:
    lower, where = said.strip().lower(), shown(address)
    for fragments, words in WORDS.items():
        if any(fragment in lower for fragment in fragments):
            waited = asdict(patience_of(address))
            return f"{where}: {words.format(**waited)} ({said.strip().splitlines()[0]})"
    return f"{where}: the database refused: {(said.strip().splitlines() or ['it does not say why'])[0]}"


NOTHING = "Nothing of this call was stored; what was acknowledged before is safe."
WORDS = {
    ("disk is full", "no space left", "disk i/o error", "disk full", "could not extend"): (
        f"the disk is full or failing. {NOTHING} Make room, then repeat the call."
    ),
    ("readonly", "read-only", "permission denied"): (
        f"the database cannot be written. {NOTHING} Give this user the right to write the file and its folder. "
        "To read it as it is: sqlite:///file:PATH?immutable=1&uri=true."
    ),
    ("not a database", "file is encrypted"): (
        "this is not a SQLite database. Nothing was changed. Give the file of a study, or a new name."
    ),
    ("malformed", "corrupt", "decode to utf-8"): (
        "the file is damaged or cut short. Nothing was changed. Take the latest backup (docs/studies.md)."
    ),
    ("locked", "busy"): (
        f"another process kept the database busy for {{lock:g}} s. {NOTHING} Repeat the call, or wait longer: "
        "?lock_timeout=SECONDS after the address."
    ),
    ("too many connections", "too many clients", "remaining connection slots", "no more connections allowed"): (
        f"too many connections: the server takes no more now. {NOTHING} Wait until other programs have closed theirs, "
        "or raise max_connections there (or the limit of this user)."
    ),
    ("due to lock timeout",): (
        f"another program holds this study and did not let go of it within {{lock:g}} s. {NOTHING} Repeat the call, or "
        "wait longer: ?lock_timeout=SECONDS after the address."
    ),
    ("due to statement timeout", UNANSWERED): (
        f"the server accepts and does not answer: a statement took more than {{statement:g}} s. {NOTHING} See how busy "
        "it is, then repeat the call, or wait longer: ?statement_timeout=SECONDS after the address."
    ),
    ("connection timeout expired", "timeout expired"): (
        f"the server accepts and does not answer, or a firewall lets nothing through: no connection within "
        f"{{connect:g}} s. {NOTHING} See how busy it is, then repeat the call, or wait longer: "
        "?connect_timeout=SECONDS after the address."
    ),
    ("constraint",): (
        f"a row to be added contradicts what is stored. {NOTHING} The database was altered or is damaged: take the "
        "latest backup (docs/studies.md)."
    ),
    ("unable to open",): (
        "the file cannot be opened. See that its folder exists and may be written: SQLite keeps files beside it even "
        "to read. To read a file on a read-only disk: sqlite:///file:PATH?immutable=1&uri=true."
    ),
    ("does not exist",): ("there is no such database, user or table on this server."),
    ("authentication", "no password"): ("the server does not accept this user and password."),
    (
        "refused",
        "could not connect",
        "connection failed",
        "closed the connection",
        "connection is lost",
        "resolve host",
    ): (f"no server answers. {NOTHING} See that it runs and that the address is right."),
}


# --- Making and renewing the tables of durable studies. The only importer of Alembic.

STEPS = Path(__file__).parent / "migrations"


def migrate_database(engine: Engine, url: str) -> tuple[str | None, str]:
    """Make the tables, or bring them to the newest schema: all steps are taken, or none."""
    with in_words(engine.url), engine.connect().execution_options(writes=True) as connection, connection.begin():
        if engine.dialect.name == "postgresql":
            connection.execute(sa.text("SELECT pg_advisory_xact_lock(hashtext('surepick migrate'))"))
        there = VERSION_TABLE in sa.inspect(connection).get_table_names()
        before = str(connection.execute(sa.select(VERSIONS)).scalar_one()) if there else None
        if before is None:
            for tables in (metadata, VERSIONS.metadata):
                tables.create_all(connection, checkfirst=False)
            connection.execute(sa.insert(VERSIONS), {"version_num": SCHEMA})
        elif before in OLDER:
            _take_steps(connection)
        else:
            check_version(before, url)
    return before, SCHEMA


def _take_steps(connection: sa.Connection) -> None:
    from alembic import command  # noqa: PLC0415 (heavy, and seldom needed)
    from alembic.config import Config  # noqa: PLC0415

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(STEPS))
    command.upgrade(config, SCHEMA)
