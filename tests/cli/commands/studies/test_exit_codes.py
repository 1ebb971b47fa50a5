"""The exit codes of the commands about studies."""

import contextlib
import importlib.util
import sqlite3
from pathlib import Path

import pytest
from study_commands import NOISE


@pytest.mark.parametrize(
    "words",
    [("ask",), ("status",), ("certificate",), ("export", "--out", "x.csv"), ("run-study", "--measure", "x {id}")],
)
def test_without_the_extra_the_pip_command_is_named(paint, refused, monkeypatch, words):
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "sqlalchemy" else found(name, *rest)
    )
    said = 'sqlalchemy, which is absent: pip install "surepick[studies]".'
    assert said in refused(words[0], paint.url, "paint", *words[1:])
    for command in ("list", "migrate"):
        assert said in refused(command, paint.url)
    arms = paint.folder / "arms.csv"
    assert said in refused("create", paint.url, "new", "--arms", arms, "--noise", "bernoulli")


def test_a_database_of_another_schema_is_refused_in_a_sentence(paint, refused):
    path = paint.url.removeprefix("sqlite:///")
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE surepick_schema SET version_num = '0003'")
    for words in (("list", paint.url), ("migrate", paint.url), ("status", paint.url, "paint"), ("serve", paint.url)):
        assert "has schema 0003, and this version of surepick knows" in refused(*words, code=1)


def test_bad_addresses_and_names(paint, refused):
    absent = f"sqlite:///{paint.folder / 'absent.db'}"
    assert "start a study with `surepick create`" in refused("status", absent, "paint")
    assert not (paint.folder / "absent.db").exists()
    assert "has no study 'pant'; it has 'paint'." in refused("status", paint.url, "pant")
    assert "is not the address of a database; write sqlite:///FILE" in refused("list", "lab.db")
    assert "SQLite or PostgreSQL, not in 'mysql'" in refused("list", "mysql://x/y")
    arms = paint.folder / "arms.csv"
    taken = refused("create", paint.url, "paint", "--arms", arms, "--id", "sku", "--noise", NOISE, "--epsilon", 0.1)
    assert "has a study 'paint' already" in taken


def test_a_damaged_database_is_a_storage_failure(paint, refused):
    paint.done("tell", paint.filled())
    file = paint.url.removeprefix("sqlite:///")
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE observation SET sum = 0.25 WHERE arm = 0")
    connection.close()
    for command in ("certificate", "recommend"):
        assert "one of the results of plan 1 is not what was stored" in refused(command, paint.url, "paint", code=1)
    damaged = paint.folder / "damaged"
    damaged.write_bytes(b"not a database " * 100)
    damaged.replace(
        file
    )  # another file: a connection of this process that closes late writes its pages into the old one
    for beside in ("-wal", "-shm"):
        Path(file + beside).unlink(missing_ok=True)
    assert "this is not a SQLite database" in refused("status", paint.url, "paint", code=1)


def test_a_password_is_not_printed(lab):
    from surepick.cli.open_study import command_line

    line = command_line("ask", "postgresql+psycopg://ann:secretword@host/lab?password=secretword", "my study")
    assert "secretword" not in line
    assert line.endswith("'my study'")
