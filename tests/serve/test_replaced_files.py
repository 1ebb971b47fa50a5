"""A database file that is deleted or replaced under those who have it open: noticed before anything is acknowledged."""

import shutil
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest
from budgets import budget
from server_studies import copied, make_study
from servers import serving, token_for

import surepick as sp
from surepick.errors import StorageError

PAINT = "/api/v1/studies/paint"


def gone_with_all(file):
    for one in file.parent.glob(f"{file.name}*"):
        one.unlink()


def gone_alone(file):
    file.unlink()


def moved_away(file):
    file.rename(file.with_name("elsewhere.db"))


def beside_gone(file):
    for end in ("-wal", "-shm"):
        file.with_name(f"{file.name}{end}").unlink(missing_ok=True)


def replaced_alone(file):
    file.with_name("copy.db").replace(file)


def replaced_with_all(file):
    replaced_alone(file)
    beside_gone(file)


def replaced_in_the_other_order(file):
    beside_gone(file)
    replaced_alone(file)


def replaced_but_for_one(end):
    def change(file):
        replaced_with_all(file) if end is None else (replaced_alone(file), file.with_name(file.name + end).unlink())

    return change


def deleted_and_replaced(file):
    gone_with_all(file)
    shutil.copy(file.with_name("copy.db"), file)


def overwritten(file):
    """The same file, with other bytes, as `cp` writes them."""
    file.write_bytes(file.with_name("copy.db").read_bytes())
    beside_gone(file)


REFUSED = {
    "rm lab.db*": gone_with_all,
    "rm lab.db": gone_alone,
    "mv lab.db elsewhere": moved_away,
    "rm lab.db-wal lab.db-shm": beside_gone,
    "mv copy.db lab.db": replaced_alone,
    "mv copy.db lab.db, rm lab.db-wal": replaced_but_for_one("-wal"),
    "mv copy.db lab.db, rm lab.db-shm": replaced_but_for_one("-shm"),
    "cp copy.db lab.db, rm lab.db-wal lab.db-shm": overwritten,
}
TAKEN = {
    "mv copy.db lab.db, rm lab.db-wal lab.db-shm": replaced_with_all,
    "rm lab.db-wal lab.db-shm, mv copy.db lab.db": replaced_in_the_other_order,
    "rm lab.db*, cp copy.db lab.db": deleted_and_replaced,
}


@pytest.fixture
def file(tmp_path):
    """Of a database with a study, and `copy.db` beside it."""
    path = tmp_path / "lab.db"
    make_study(f"sqlite:///{path}", "paint")
    return path


@pytest.fixture
def measured(file):
    """A client of a server that has stored two results, one of them after `copy.db` was made; and how to tell more."""
    with serving(f"sqlite:///{file}") as client:
        header = token_for(client, "ann", "owner")

        def tell(key, *, header=header):
            rows = [{"id": "a", "reward": 1.0, "key": key}]
            return client.post(f"{PAINT}/results", json={"results": rows}, headers=header)

        assert tell("first").status_code == 200
        copied(file, file.with_name("copy.db"))
        assert tell("second").status_code == 200
        yield client, tell, header


def keys_in(file):
    with closing(sqlite3.connect(file)) as connection:
        return {row[0] for row in connection.execute("SELECT key FROM observation")}


@pytest.mark.parametrize("how", REFUSED)
def test_nothing_is_acknowledged_that_is_not_in_the_file(measured, file, how):
    client, tell, header = measured
    REFUSED[how](file)
    for number in range(3):
        answer = tell(f"after {number}")
        assert answer.status_code == 503
        assert len(answer.json()["detail"]) <= 500
        assert str(file) in answer.json()["detail"]
    assert client.get("/healthz").status_code == 200
    assert client.get("/healthz", headers=header).status_code == 200


@pytest.mark.parametrize("how", TAKEN)
def test_a_file_that_was_replaced_is_opened_anew_and_keeps_all_that_was_acknowledged_since(measured, file, how):
    client, tell, header = measured
    TAKEN[how](file)
    for number in range(3):
        assert tell(f"after {number}").status_code == 200
    assert client.get(PAINT, headers=header).json()["progress"]["told"] >= 1
    answer = client.get(f"{PAINT}/certificate", headers=header)
    assert answer.status_code == 200, answer.text
    assert keys_in(file) == {"first", "after 0", "after 1", "after 2"}


@pytest.mark.parametrize("how", ["mv copy.db lab.db", "mv copy.db lab.db, rm lab.db-wal"])
def test_once_what_is_of_the_file_before_is_gone_the_new_one_is_opened(measured, file, how):
    _, tell, _ = measured
    REFUSED[how](file)
    answer = tell("after")
    assert answer.status_code == 503
    assert "both together are no database" in answer.json()["detail"]
    beside_gone(file)
    assert tell("after").status_code == 200
    assert keys_in(file) == {"first", "after"}


def test_a_file_that_is_put_back_is_gone_on_with(measured, file):
    _, tell, _ = measured
    moved_away(file)
    assert tell("after").status_code == 503
    file.with_name("elsewhere.db").rename(file)
    assert tell("after").status_code == 200
    assert keys_in(file) == {"first", "second", "after"}


def test_a_new_database_in_its_place_is_served_and_knows_no_token_of_the_one_before(measured, file):
    client, tell, _ = measured
    gone_with_all(file)
    make_study(f"sqlite:///{file}", "paint")
    assert tell("after").status_code == 401
    assert tell("after", header=token_for(client, "ann", "owner")).status_code == 200
    assert keys_in(file) == {"after"}


def test_what_is_no_database_is_refused_until_it_is_one(measured, file):
    _, tell, _ = measured
    kept = file.with_name("copy.db").read_bytes()
    gone_with_all(file)
    file.write_bytes(b"no database at all" * 1_000)
    for _ in range(2):
        assert tell("after").status_code == 503
    file.unlink()
    file.write_bytes(kept)
    assert tell("after").status_code == 200
    assert keys_in(file) == {"first", "after"}


def test_sqlites_own_restore_is_no_replacement(measured, file):
    _, tell, _ = measured
    copied(file.with_name("copy.db"), file)
    assert tell("after").status_code == 200
    assert keys_in(file) == {"first", "after"}


def test_replaced_again_and_again_while_four_measure_nothing_is_lost(file):
    """Each copy is made of the file at rest; what was acknowledged after it came into its place is in the next."""
    patience = "lock_timeout=1"  # seconds for a lock of a file that is gone
    with serving(f"sqlite:///{file}?{patience}", requests_a_minute=1_000_000) as client:
        header = token_for(client, "ann", "owner")
        acknowledged, rounds, answers = {}, [0], []
        over = threading.Event()

        def work(number):
            told = 0
            while not over.is_set() and told < 400:
                told, now = told + 1, rounds[0]
                key = f"{number}-{told}"
                body = {"results": [{"id": "a", "reward": 1.0, "key": key}]}
                answer = client.post(f"{PAINT}/results", json=body, headers=header)
                answers.append(answer.status_code)
                if answer.status_code == 200:
                    acknowledged[key] = now  # began after that round's file was in its place

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for one in threads:
            one.start()
        for _ in range(budget(6, fewest=3)):
            copy = file.with_name("copy.db")
            copied(file, copy)
            replaced_with_all(file)
            rounds[0] += 1
            seen = len(acknowledged)
            while len(acknowledged) < seen + 8 and any(one.is_alive() for one in threads):
                threading.Event().wait(0.002)
        over.set()
        for one in threads:
            one.join()
    lost = {key for key, began in acknowledged.items() if began == rounds[0]} - keys_in(file)
    assert lost == set()
    assert set(answers) <= {200, 503}
    assert sum(began == rounds[0] for began in acknowledged.values()) >= 8


@pytest.mark.cases(6)
@pytest.mark.parametrize("how", [*REFUSED, *TAKEN])
def test_a_study_that_is_open_in_a_program_notices_too(file, how):
    study = sp.open_study(f"sqlite:///{file}", "paint")
    study.tell(["a"], [1.0])
    copied(file, file.with_name("copy.db"))
    {**REFUSED, **TAKEN}[how](file)
    for _ in range(2):
        with pytest.raises(StorageError, match=r"deleted|moved|replaced|removed"):
            study.tell(["a"], [2.0])


def test_a_file_that_goes_between_commit_and_acknowledgement(file, monkeypatch):
    from surepick.studies.logs.sql import writing

    study, stored = sp.open_study(f"sqlite:///{file}", "paint"), writing.stored

    def gone(connection):
        moved_away(file)
        stored(connection)

    monkeypatch.setattr(writing, "stored", gone)
    with pytest.raises(StorageError, match="Nobody knows whether"):
        study.tell(["a"], [2.0])


def test_a_folder_of_another_name_and_a_link(tmp_path):
    """The file is the one that the name leads to, whatever it is called."""
    real, link = tmp_path / "real.db", tmp_path / "link.db"
    make_study(f"sqlite:///{real}", "paint")
    link.symlink_to(real)
    study = sp.open_study(f"sqlite:///{link}", "paint")
    study.tell(["a"], [1.0])
    study.tell(["b"], [1.0])
    other = Path(shutil.copy(real, tmp_path / "other.db"))
    link.unlink()
    link.symlink_to(other)
    with pytest.raises(StorageError, match="replaced"):
        study.tell(["c"], [1.0])
