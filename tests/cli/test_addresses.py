"""The address of a database without its password on the command line: SUREPICK_URL, PGPASSFILE and a warning."""

import socket
import struct
import sys
import threading

import pytest
from typer.testing import CliRunner

import surepick as sp
from surepick.cli.app import app, command_names, main
from surepick.cli.open_study import PASSWORD, given_url
from surepick.studies.database import list_stored_studies

SECRET = "secretword"
WARNED = "there is a password in the command"
NOWHERE = "postgresql+psycopg://me:{}@127.0.0.1:9/d"


@pytest.fixture
def coins(tmp_path):
    path = tmp_path / "coins.csv"
    path.write_text("id\na\nb\n")
    return str(path)


def surepick(*words: str, code: int = 0):
    result = CliRunner(env={"COLUMNS": "80", "TERM": "dumb"}).invoke(app, list(words), catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result


def test_a_dash_stands_for_the_address_in_the_environment(sqlite_url, coins, monkeypatch):
    monkeypatch.setenv("SUREPICK_URL", sqlite_url)
    said = surepick(
        "create", "-", "coins", "--arms", coins, "--id", "id", "--noise", "bernoulli", "--epsilon", "0.1"
    ).stdout
    assert "Next: surepick ask - coins\n" in said
    assert "surepick tell - coins RESULTS" in surepick("ask", "-", "coins").stdout
    assert "coins: round 1" in surepick("status", "-", "coins").stdout
    assert "coins" in surepick("list", "-").stdout
    assert [one.name for one in list_stored_studies(sqlite_url)] == ["coins"]


def test_the_next_command_has_the_address_that_was_typed(sqlite_url, coins, monkeypatch):
    monkeypatch.setenv("SUREPICK_URL", "sqlite:///another.db")
    said = surepick(
        "create", sqlite_url, "coins", "--arms", coins, "--id", "id", "--noise", "bernoulli", "--epsilon", "0.1"
    ).stdout
    assert f"Next: surepick ask {sqlite_url} coins\n" in said


@pytest.mark.parametrize("kept", [None, ""])
def test_a_dash_without_an_address_says_what_to_set(kept, monkeypatch):
    monkeypatch.delenv("SUREPICK_URL", raising=False)
    if kept is not None:
        monkeypatch.setenv("SUREPICK_URL", kept)
    with pytest.raises(sp.InvalidInput, match="SUREPICK_URL, which is not set: export SUREPICK_URL="):
        surepick("status", "-", "coins")


def test_every_command_with_an_address_takes_the_dash():
    """One mechanism for all: each command's first parameter is the same argument."""
    found = []
    for command in command_names():
        words = surepick(command, "--help").stdout
        if " URL" in words:
            assert "SUREPICK_URL" in " ".join(words.split()), command
            found.append(command)
    assert len(found) >= 12


def test_a_password_in_a_command_is_warned_of(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["surepick", "status", NOWHERE.format(SECRET), "coins"])
    with pytest.raises(SystemExit):
        main()
    said = capsys.readouterr().err
    assert WARNED in said
    assert "SUREPICK_URL" in said
    assert ".pgpass" in said
    assert SECRET not in said


def test_a_password_in_the_environment_is_not_warned_of(monkeypatch, capsys):
    monkeypatch.setenv("SUREPICK_URL", NOWHERE.format(SECRET))
    monkeypatch.setattr(sys, "argv", ["surepick", "status", "-", "coins"])
    with pytest.raises(SystemExit):
        main()
    said = capsys.readouterr().err
    assert WARNED not in said
    assert SECRET not in said


@pytest.mark.parametrize(
    ("url", "warned"),
    [
        ("postgresql://me:word@h/d", True),
        ("postgresql+psycopg://me:w%2Ford@h:5432/d?sslmode=require", True),
        ("postgresql://me@h/d?sslmode=require&password=word", True),
        ("postgresql://:word@h/d", True),
        ("postgresql://me@h:5432/d", False),
        ("postgresql://h:5432/d", False),
        ("postgresql://me@[::1]:5432/d", False),
        ("sqlite:///C:/a@b.db", False),
        ("sqlite:////home/me:you@work/x.db", False),
    ],
)
def test_what_a_password_looks_like(url, warned, capsys):
    assert bool(PASSWORD.search(url)) == warned
    assert given_url(url) == url
    assert (WARNED in capsys.readouterr().err) == warned


class Asking:
    """As much of a PostgreSQL server as asks for a password in plain words, and keeps it."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.heard: list[str] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with self._listener:
            client, _ = self._listener.accept()
        with client, client.makefile("rb") as said:
            while True:
                length, kind = struct.unpack("!ii", said.read(8))
                said.read(length - 8)
                if kind == 196608:  # a startup message of protocol 3.0; before it, questions about encryption
                    break
                client.sendall(b"N")
            client.sendall(b"R" + struct.pack("!ii", 8, 3))
            if said.read(1) == b"p":
                (length,) = struct.unpack("!i", said.read(4))
                self.heard.append(said.read(length - 4).rstrip(b"\0").decode())
            words = b"SFATAL\0C28P01\0Mpassword authentication failed\0\0"
            client.sendall(b"E" + struct.pack("!i", 4 + len(words)) + words)


def test_the_password_comes_from_the_file_that_libpq_knows(tmp_path, monkeypatch):
    pytest.importorskip("psycopg")
    server = Asking()
    file = tmp_path / "pgpass"
    file.write_text(f"127.0.0.1:{server.port}:d:me:{SECRET}\n")
    file.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(file))
    with pytest.raises(sp.StorageError, match="does not accept this user and password") as refused:
        list_stored_studies(f"postgresql+psycopg://me@127.0.0.1:{server.port}/d")
    assert server.heard == [SECRET]
    assert SECRET not in str(refused.value)
