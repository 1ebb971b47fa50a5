"""Waits for a server end, each with a sentence of its own; a lost connection is replaced once."""

import secrets
import socket
import threading
from contextlib import contextmanager, suppress

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import make_url
from waiting_studies import NOTHING, refused, start, with_query

import surepick as sp
from surepick.studies.database import list_stored_studies, resume_stored_study
from surepick.studies.logs.sql import engine as timeouts, impatient as postgres


def keys(url: str) -> list[str]:
    engine = sa.create_engine(make_url(url).set(query={}))
    with engine.connect() as connection:
        found = connection.execute(sa.text("SELECT key FROM observation ORDER BY id")).scalars().all()
    engine.dispose()
    return list(found)


@contextmanager
def server(url: str):
    """A connection of somebody else."""
    import psycopg

    plain = make_url(url).set(drivername="postgresql", query={}).render_as_string(hide_password=False)
    with psycopg.connect(plain, autocommit=True) as connection:
        yield connection


# how long


@pytest.mark.parametrize(
    ("query", "environment", "expected"),
    [
        ({}, {}, (10, 60, 60)),
        ({"connect_timeout": 5, "lock_timeout": 30, "statement_timeout": 120}, {}, (5, 30, 120)),
        ({}, {"SUREPICK_LOCK_TIMEOUT": "2.5", "SUREPICK_CONNECT_TIMEOUT": ""}, (10, 2.5, 60)),
        ({"lock_timeout": 3}, {"SUREPICK_LOCK_TIMEOUT": "2", "SUREPICK_STATEMENT_TIMEOUT": "7"}, (10, 3, 7)),
    ],
)
def test_the_address_says_how_long_we_wait_or_else_the_environment(query, environment, expected, monkeypatch):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    address = make_url(with_query("postgresql+psycopg://h/d?sslmode=disable", **query))
    found = timeouts.patience_of(address)
    assert (found.connect, found.lock, found.statement) == expected
    assert dict(timeouts.without_patience(address).query) == {"sslmode": "disable"}


@pytest.mark.parametrize("said", ["0", "-1", "nan", "inf", "soon", "86401"])
@pytest.mark.parametrize("where", ["address", "environment"])
def test_a_wait_without_an_end_is_refused(said, where, sqlite_url, monkeypatch):
    url = sqlite_url
    if where == "address":
        url = with_query(url, lock_timeout=said)
    else:
        monkeypatch.setenv("SUREPICK_LOCK_TIMEOUT", said)
    with pytest.raises(sp.InvalidInput, match=f"is '{said}'; give seconds above 0"):
        start(url)


# a server that does not answer


def test_a_server_that_accepts_and_says_nothing():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"postgresql+psycopg://me@127.0.0.1:{silent.getsockname()[1]}/d?connect_timeout=2"
        with refused("the server accepts and does not answer"):
            list_stored_studies(url)
        with refused("no connection within 2 s"):
            resume_stored_study(url, "x")


class Proxy:
    """Between us and the server. Once it has passed on some words of ours, it falls silent, without closing."""

    def __init__(self, url: str, words: bytes) -> None:
        address = make_url(url)
        self._target = (address.host, address.port or 5432)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.words = words
        self._opened: list[socket.socket] = [self._listener]
        self.silent = False
        self.url = address.set(port=self._listener.getsockname()[1]).render_as_string(hide_password=False)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        try:
            while True:
                ours, _ = self._listener.accept()
                theirs = socket.create_connection(self._target)
                self._opened += [ours, theirs]
                for source, sink, check in ((ours, theirs, True), (theirs, ours, False)):
                    threading.Thread(target=self._pass_on, args=(source, sink, check), daemon=True).start()
        except OSError:
            pass

    def _pass_on(self, source: socket.socket, sink: socket.socket, check: bool) -> None:
        try:
            while content := source.recv(65_536):
                if check and self.words in content:
                    self.silent = True
                if self.silent:
                    continue
                sink.sendall(content)
        except OSError:
            pass

    def close(self) -> None:
        for one in self._opened:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)  # wakes whoever waits on it; to close it would not
            one.close()


@pytest.fixture
def proxied(postgres_url, monkeypatch):
    monkeypatch.setattr(postgres, "GRACE_SECONDS", 0.5)
    proxies = []

    def through(words: bytes) -> Proxy:
        proxies.append(Proxy(postgres_url, words))
        return proxies[-1]

    yield through
    for one in proxies:
        one.close()


def test_a_server_that_falls_silent_in_the_middle(postgres_url, proxied):
    start(postgres_url)
    proxy = proxied(b"INSERT INTO observation")
    study = resume_stored_study(with_query(proxy.url, statement_timeout=1, connect_timeout=2), "x")
    with refused("the server accepts and does not answer"):
        study.tell(["b"], [0.5], ["second"])
    assert proxy.silent
    assert keys(postgres_url) == ["first"]


def test_a_server_that_falls_silent_at_the_end_may_have_stored_it(postgres_url, proxied):
    start(postgres_url)
    proxy = proxied(b"nothing that we say")
    study = resume_stored_study(with_query(proxy.url, statement_timeout=1, connect_timeout=2), "x")
    proxy.words = b"COMMIT\0"
    with refused("nobody knows whether they were"):
        study.tell(["b"], [0.5], ["second"])
    assert proxy.silent


def test_a_statement_that_takes_too_long(postgres_url):
    start(postgres_url)
    with server(postgres_url) as other:
        other.execute(
            "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN PERFORM pg_sleep(30); RETURN NEW; END $$"
        )
        other.execute("CREATE TRIGGER slow BEFORE INSERT ON observation FOR EACH ROW EXECUTE FUNCTION slow()")
    study = resume_stored_study(with_query(postgres_url, statement_timeout=1), "x")
    with refused("the server accepts and does not answer: a statement took more than 1 s. " + NOTHING):
        study.tell(["b"], [0.5], ["second"])
    assert keys(postgres_url) == ["first"]


@pytest.mark.parametrize("limits", [{"lock_timeout": 1}, {"lock_timeout": 1, "statement_timeout": 1}])
def test_another_program_that_holds_the_study(limits, postgres_url):
    start(postgres_url)
    study = resume_stored_study(with_query(postgres_url, **limits), "x")
    with server(postgres_url) as other, other.transaction():
        other.execute("SELECT id FROM study FOR UPDATE")
        words = "another program holds this study and did not let go of it within 1 s. " + NOTHING
        with refused(words):
            study.tell(["b"], [0.5], ["second"])
    assert study.tell(["b"], [0.5], ["second"]).counted == 1


@pytest.fixture
def narrow_url(postgres_url):
    """The address of a user who may connect once at a time."""
    name = f"surepick_test_{secrets.token_hex(6)}"
    with server(postgres_url) as owner:
        owner.execute(f"CREATE ROLE {name} LOGIN CONNECTION LIMIT 1")
        try:
            yield make_url(postgres_url).set(username=name, password=None).render_as_string()
        finally:
            owner.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s", [name])
            owner.execute(f"DROP OWNED BY {name}")
            owner.execute(f"DROP ROLE {name}")


def test_too_many_connections(postgres_url, narrow_url):
    start(postgres_url)
    with server(narrow_url), refused("too many connections: the server takes no more now. " + NOTHING):
        list_stored_studies(narrow_url)


@pytest.mark.parametrize(
    "said",
    [
        "FATAL:  sorry, too many clients already",
        'FATAL:  too many connections for database "d"',
        "FATAL:  remaining connection slots are reserved for roles with the SUPERUSER attribute",
        "FATAL:  no more connections allowed (max_client_conn)",
    ],
)
def test_all_ways_to_say_too_many(said):
    from surepick.studies.logs.sql.engine import in_words

    error = sa.exc.OperationalError("SELECT 1", {}, Exception(f"connection failed: {said}"))
    with (
        pytest.raises(sp.StorageError, match="too many connections: the server") as caught,
        in_words("postgresql://h/d"),
    ):
        raise error
    assert "no server answers" not in str(caught.value)


# a connection that was lost


def end_backends(url: str) -> None:
    with server(url) as other:
        other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def test_connections_that_were_closed_between_two_calls(postgres_url):
    study = start(postgres_url)
    for arm, key in (("b", "second"), ("c", "third")):
        end_backends(postgres_url)
        assert study.tell([arm], [0.5], [key]).counted == 1
    assert keys(postgres_url) == ["first", "second", "third"]


def losing(study, url: str, statement: str, times: int) -> list[str]:
    """Close the connection as soon as it sends this statement, so many times; the statements that were tried."""
    tried: list[str] = []

    @sa.event.listens_for(study.log._engine, "before_cursor_execute")
    def lose(connection, cursor, text, *_):
        if statement in text:
            tried.append(text)
            if len(tried) <= times:
                end_backends(url)

    return tried


def test_a_connection_that_is_lost_before_anything_was_sent_is_replaced_once(postgres_url):
    study = start(postgres_url)
    tried = losing(study, postgres_url, "FOR NO KEY UPDATE", 1)
    assert study.tell(["b"], [0.5], ["second"]).counted == 1
    assert len(tried) >= 2
    assert keys(postgres_url) == ["first", "second"]


def test_a_connection_that_is_lost_again_is_not_replaced_again(postgres_url):
    study = start(postgres_url)
    tried = losing(study, postgres_url, "FOR NO KEY UPDATE", 99)
    with pytest.raises(sp.StorageError):
        study.tell(["b"], [0.5], ["second"])
    assert len(tried) == 2
    assert keys(postgres_url) == ["first"]


def test_nothing_is_sent_twice_that_may_have_been_stored(postgres_url):
    study = start(postgres_url)
    tried = losing(study, postgres_url, "INSERT INTO observation", 1)
    with pytest.raises(sp.StorageError):
        study.tell(["b"], [0.5], ["second"])
    assert len(tried) == 1
    assert keys(postgres_url) == ["first"]
