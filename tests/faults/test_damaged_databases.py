"""Files that are no database, not ours, cut short, or of another version: in words, and harmless."""

import contextlib
import sqlite3

import pytest
from stored_studies import acknowledged, execute, files_of, released, start, tell_plan, unharmed

import surepick as sp
from surepick.studies.database import resume_stored_study
from surepick.studies.logs.sql import engine as sql_engine

# not a database, not ours, not whole


def test_a_text_file(tmp_path):
    file = tmp_path / "notes.txt"
    file.write_text("nothing that a database would say\n" * 200)
    before = file.read_bytes()
    for call in files_of(f"sqlite:///{file}"):
        with pytest.raises(sp.StorageError, match="this is not a SQLite database"):
            call()
    assert file.read_bytes() == before


def test_a_database_of_something_else(tmp_path):
    file = tmp_path / "shop.db"
    with contextlib.closing(sqlite3.connect(file)) as database:
        database.executescript("CREATE TABLE customers (name TEXT); INSERT INTO customers VALUES ('Ada');")
    before = file.read_bytes()
    for call in files_of(f"sqlite:///{file}"):
        with pytest.raises(sp.StorageError, match="a database of something else: it has the tables customers"):
            call()
    assert file.read_bytes() == before


def test_an_empty_file(tmp_path, sqlite_url):
    file = tmp_path / "studies.db"
    file.touch()
    for call in files_of(sqlite_url)[:3]:
        with pytest.raises(sp.StorageError, match="holds no studies yet; start one with `surepick create`"):
            call()
    assert file.stat().st_size == 0
    released(start(sqlite_url))
    unharmed(sqlite_url, [])


CUTS = (0.0, 1e-5, 0.002, 0.03, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99)


def check_damage(said: str) -> None:
    known = ("damaged", "take the latest backup", "not a SQLite database", "holds no studies")
    assert any(words in said for words in known), said


def test_a_file_that_was_cut_short(path, sqlite_url):
    study = resume_stored_study(sqlite_url, "x")
    before = acknowledged(study)
    released(study)
    whole = path.read_bytes()
    refused = 0
    for cut in CUTS:
        path.write_bytes(whole[: int(cut * len(whole))])
        try:
            study = released(sp.open_study(sqlite_url, "x"))
        except sp.StorageError as error:
            refused += 1
            check_damage(str(error))
        else:
            assert acknowledged(study) == before, f"cut at {cut}: results are gone and nothing was said"
            released(study)
        for beside in path.parent.glob(f"{path.name}-*"):
            beside.unlink()
    assert refused >= len(CUTS) - 1
    path.write_bytes(whole)
    unharmed(sqlite_url, before)


def test_a_journal_that_was_cut_short(tmp_path, sqlite_url):
    """What was in the journal alone is gone; what is left is a true beginning of the study, or is refused."""
    study = start(sqlite_url)
    study.log._engine.dispose()
    study = resume_stored_study(sqlite_url, "x")
    with study.log._engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA wal_autocheckpoint = 0")
    for _ in range(3):
        tell_plan(study)
    before, trace = acknowledged(study), study.trace
    file = tmp_path / "studies.db"
    main, journal = file.read_bytes(), (tmp_path / "studies.db-wal").read_bytes()
    released(study)
    assert len(journal) > 3 * 4096
    copy = tmp_path / "copy.db"
    seen = set()
    for cut in (0.0, 0.001, 0.1, 0.2, 0.4, 0.6, 0.8, 0.95, 0.9999, 1.0):
        copy.write_bytes(main)
        (tmp_path / "copy.db-wal").write_bytes(journal[: int(cut * len(journal))])
        again = sp.open_study(f"sqlite:///{copy}", "x")
        assert again.trace == trace[: len(again.trace)]
        there = acknowledged(again)
        assert there == before[: len(there)]
        seen.add(len(there))
        released(again)
    assert max(seen) == len(before)
    assert len(seen) > 3
    unharmed(f"sqlite:///{copy}", before)


def test_a_main_file_that_was_cut_beside_its_journal(tmp_path, sqlite_url):
    study = start(sqlite_url)
    before = acknowledged(study)
    main, journal = (tmp_path / "studies.db").read_bytes(), (tmp_path / "studies.db-wal").read_bytes()
    released(study)
    copy = tmp_path / "copy.db"
    for cut in (0, 100, 4096, len(main) // 2, len(main)):
        copy.write_bytes(main[:cut])
        (tmp_path / "copy.db-wal").write_bytes(journal)
        try:
            again = sp.open_study(f"sqlite:///{copy}", "x")
        except sp.StorageError as error:
            check_damage(str(error))
        else:
            assert acknowledged(again) == before
            released(again)
        for beside in tmp_path.glob("copy.db-*"):
            beside.unlink()
    unharmed(sqlite_url, before)


# of another version


def test_a_database_of_a_newer_version(stored_at):
    study = start(stored_at)
    before = acknowledged(study)
    released(study)
    execute(stored_at, "UPDATE surepick_schema SET version_num = '9999'")
    for call in files_of(stored_at):
        with pytest.raises(sp.StorageError, match="has schema 9999, and this version of surepick knows") as no:
            call()
        assert "pip install -U surepick" in str(no.value)
    execute(stored_at, f"UPDATE surepick_schema SET version_num = '{sql_engine.SCHEMA}'")
    unharmed(stored_at, before)


def test_a_database_of_an_older_version(path, sqlite_url, monkeypatch):
    with monkeypatch.context() as later:
        later.setattr(sql_engine, "OLDER", (*sql_engine.OLDER, sql_engine.SCHEMA))
        later.setattr(sql_engine, "SCHEMA", "9998")
        for call in files_of(sqlite_url):
            with pytest.raises(sp.StorageError, match="run `surepick migrate URL`"):
                call()
    unharmed(sqlite_url, [])
