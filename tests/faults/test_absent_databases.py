"""Studies, files, addresses and servers that are not there, and names that are none: in words."""

import socket

import pytest
import sqlalchemy as sa
from stored_studies import ARMS, SECRET, acknowledged, execute, files_of, policy, released, start, unharmed
from together import of_each

import surepick as sp
from surepick.studies.database import list_stored_studies, resume_stored_study
from surepick.studies.logs.sql import engine as sql_engine

# not there


def test_no_such_file(tmp_path):
    for call in files_of(f"sqlite:///{tmp_path / 'no.db'}")[:3]:
        with pytest.raises(sp.InvalidInput, match=r"there is no file .*no\.db"):
            call()
    assert not (tmp_path / "no.db").exists()


def test_no_such_folder(tmp_path):
    with pytest.raises(sp.InvalidInput, match=r"there is no folder .*nowhere"):
        sp.create_study(f"sqlite:///{tmp_path / 'nowhere' / 'x.db'}", "x", ARMS, policy())
    with pytest.raises(sp.InvalidInput, match="there is no file"):
        sp.open_study(f"sqlite:///{tmp_path / 'nowhere' / 'x.db'}", "x")


def test_a_folder_in_place_of_a_file(tmp_path):
    with pytest.raises(sp.StorageError, match="cannot be opened"):
        sp.create_study(f"sqlite:///{tmp_path}", "x", ARMS, policy())
    with pytest.raises(sp.InvalidInput, match="there is no file"):
        sp.open_study(f"sqlite:///{tmp_path}", "x")


def test_no_such_study_names_those_that_exist(stored_at):
    released(start(stored_at, plans=0))
    released(sp.create_study(stored_at, "spring", ARMS, policy()))
    for call in (sp.open_study, resume_stored_study):
        with pytest.raises(sp.InvalidInput, match=r"has no study 'autumn'; it has 'spring', 'x'\."):
            call(stored_at, "autumn")


def test_a_name_that_is_taken(stored_at):
    study = start(stored_at)
    before = acknowledged(study)
    released(study)
    with pytest.raises(sp.InvalidInput, match="has a study 'x' already"):
        sp.create_study(stored_at, "x", ARMS, policy())
    (listed,) = list_stored_studies(stored_at)
    assert listed.rounds == 3
    unharmed(stored_at, before)


@pytest.mark.parametrize("name", ["", "  ", None, 5])
def test_a_name_that_is_none(sqlite_url, name):
    with pytest.raises(sp.InvalidInput, match="the name of a study is"):
        sp.create_study(sqlite_url, name, ARMS, policy())


# addresses


@of_each(
    ("url", "what"),
    [
        ("nonsense", "is not the address of a database"),
        ("", "is not the address of a database"),
        (None, "is not the address of a database"),
        (5, "is not the address of a database"),
        ("postgresql://h:port/d", "is not the address of a database"),
        ("sqlite://", "names no file"),
        ("sqlite:///:memory:", "names no file"),
        ("sqlite:///file::memory:?uri=true", "names no file"),
        ("sqlite:///file:x?mode=memory&uri=true", "names no file"),
        ("mysql://h/d", "in SQLite or PostgreSQL, not in 'mysql'"),
        ("oracle://h/d", "in SQLite or PostgreSQL, not in 'oracle'"),
    ],
)
def test_an_address_without_meaning(url, what):
    for call in files_of(url):
        with pytest.raises(sp.InvalidInput, match=what):
            call()


def closed_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def test_no_server_answers():
    for call in files_of(f"postgresql+psycopg://me:{SECRET}@127.0.0.1:{closed_port()}/d"):
        with pytest.raises(sp.StorageError, match="no server answers") as caught:
            call()
        assert SECRET not in str(caught.value)
        assert "127.0.0.1" in str(caught.value)


@of_each(
    "url",
    [
        "postgresql+psycopg://me:{}@127.0.0.1:{port}/d",
        "postgresql://me@127.0.0.1:{port}/d?password={}",
        "postgresql+psycopg//me:{}@host/d",
        "postgresql//host/d?password={}",
        "postgresql://me:{}@host:port/d",
        "postgresql://me:pass@{}@host:port/d",
        "mysql://me:{}@host/d",
        "me:{}@host",
    ],
)
def test_a_password_is_never_shown(url):
    for call in files_of(url.format(SECRET, port=closed_port())):
        with pytest.raises(sp.SurepickError) as caught:
            call()
        error: BaseException | None = caught.value
        while error is not None:
            assert SECRET not in str(error)
            error = error.__cause__


@of_each(
    ("said", "words"),
    [
        ('connection failed: FATAL:  password authentication failed for user "me"', "does not accept this user"),
        ("connection failed: fe_sendauth: no password supplied", "does not accept this user"),
        ('connection failed: FATAL:  database "d" does not exist', "no such database, user or table"),
        ("failed to resolve host 'nowhere': [Errno -2] Name or service not known", "no server answers"),
        ("server closed the connection unexpectedly", "no server answers"),
        ("could not extend file: No space left on device", "the disk is full"),
        ("permission denied for table study", "cannot be written"),
        ("database is locked", "another process kept the database busy"),
        ("something never heard of", "the database refused: something never heard of"),
    ],
)
def test_what_a_server_says_becomes_words(said, words):
    with pytest.raises(sp.StorageError, match=words) as caught, sql_engine.in_words("postgresql://me@host/d"):
        raise sa.exc.OperationalError("SELECT 1", {}, Exception(said))
    assert "SELECT" not in str(caught.value)


def test_no_such_database_on_the_server(postgres_url):
    absent = sa.engine.make_url(postgres_url).set(database="surepick_test_absent", password=SECRET)
    for call in files_of(absent.render_as_string(hide_password=False)):
        with pytest.raises(sp.StorageError, match="there is no such database") as caught:
            call()
        assert SECRET not in str(caught.value)


def test_tables_of_something_else_under_our_names(postgres_url):
    execute(postgres_url, "CREATE TABLE study (patient text)", "INSERT INTO study VALUES ('Ada')")
    for call in files_of(postgres_url):
        with pytest.raises(sp.StorageError, match=r"tables of something else under names that surepick uses \(study\)"):
            call()
    execute(postgres_url, "DROP TABLE study", "CREATE TABLE customers (name text)")
    released(start(postgres_url))  # other tables beside ours are nobody's business
    unharmed(postgres_url, [])
