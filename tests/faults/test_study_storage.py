"""Full disks, read-only and damaged files, foreign databases, absent servers, wrong clocks: in words, and harmless."""

import contextlib
import os
import shutil
import socket
import sqlite3
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa

import surepick as sp
from surepick.studies.database import list_studies, resume_study
from surepick.studies.logs.leases import format_time
from surepick.studies.logs.sql import engine as sql_engine
from surepick.studies.logs.sql import log as sql_log

ARMS = sp.Arms([[1.0, 0.0], [0.0, 1.0], [0.6, 0.6], [-0.4, 0.3]], ["a", "b", "c", "d"])
MEANS = np.array([0.9, 0.2, 0.66, -0.3])
SECRET = "secretword"


def policy():
    return sp.make_policy("certified-independent", ARMS, epsilon=0.5, delta=0.05, noise=sp.SubGaussian(0.5))


def tell_plan(study, *, pad: str = "") -> None:
    """All that is missing of the open plan, each result with a key."""
    plan = study.ask()
    arms = np.repeat(np.arange(4), study.missing)
    keys = [f"{plan.round}-{plan.ids[arm]}-{place}{pad}" for place, arm in enumerate(arms.tolist())]
    study.tell([plan.ids[arm] for arm in arms], MEANS[arms], keys)


def start(url: str, plans: int = 3):
    """A study with some judged plans, and an open one that is half told."""
    study = sp.create_study(url, "x", ARMS, policy())
    for _ in range(plans):
        tell_plan(study)
    study.tell([study.ask().ids[0]], [MEANS[0]], ["open"])
    return study


def finish(study) -> sp.Certificate:
    for _ in range(200):
        if study.ask() is None:
            break
        tell_plan(study)
    assert study.stopped
    return study.certificate()


def acknowledged(study) -> list[tuple]:
    """The stored results, as they are in the database."""
    with study.log._engine.connect() as connection:
        question = "SELECT key, plan, standing, arm, pulls, sum FROM observation ORDER BY id"
        return [tuple(row) for row in connection.execute(sa.text(question))]


def released(study):
    study.log._engine.dispose()
    return study


def unharmed(url: str, before: list[tuple]) -> None:
    """Opened and computed again, with all that was acknowledged, and able to go on to its end."""
    study = sp.open_study(url, "x")
    assert acknowledged(study)[: len(before)] == before
    assert finish(study).verdict == "certified"
    released(study)
    released(sp.open_study(url, "x"))


@pytest.fixture
def path(tmp_path, sqlite_url):
    """A file with a study that is under way, and no connection to it."""
    released(start(sqlite_url))
    (file,) = tmp_path.glob("*.db")
    return file


def remount(folder: Path, how: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{how}", str(folder)], check=True)


# no room


def pages(study, most: int | None = None) -> int:
    """Size of the study's database; with `most`, it may not grow beyond that."""
    with study.log._engine.connect() as connection:
        if most is not None:
            assert connection.exec_driver_sql(f"PRAGMA max_page_count = {most}").scalar() == most
        return connection.exec_driver_sql("PRAGMA page_count").scalar()


def tell_until_full(study) -> list[tuple]:
    """Go on until a write is refused; what was acknowledged before that plan."""
    for _ in range(200):
        before = acknowledged(study)
        try:
            tell_plan(study, pad="-" + "long" * 300)
        except sp.StorageError as error:
            said = str(error)
            break
    assert "the disk is full or failing" in said
    assert "what was acknowledged before is safe" in said
    assert "Make room, then repeat the call" in said
    return before


@pytest.mark.parametrize("room", range(3))
def test_a_database_that_may_not_grow(sqlite_url, room):
    """Whichever write fails, it is as if it had not been tried, and trying again later succeeds."""
    study = start(sqlite_url)
    pages(study, pages(study) + room)
    before = tell_until_full(study)
    released(sp.open_study(sqlite_url, "x"))
    stored = acknowledged(study)
    assert stored[: len(before)] == before
    pages(study, 10_000)
    tell_plan(study, pad="-" + "long" * 300)
    keys = [row[0] for row in acknowledged(study)]
    assert len(keys) == len(set(keys))
    released(study)
    unharmed(sqlite_url, stored)


def fill(folder: Path) -> Path:
    """Take all room that is left."""
    file = folder / "filling"
    with file.open("wb", buffering=0) as target, contextlib.suppress(OSError):
        while target.write(b"0" * 4096) == 4096:
            pass
    return file


def test_a_full_disk(small_disk):
    url = f"sqlite:///{small_disk / 'x.db'}"
    study = start(url)
    filling = fill(small_disk)
    before = tell_until_full(study)
    with pytest.raises(sp.StorageError, match="the disk is full or failing"):
        sp.create_study(f"sqlite:///{small_disk / 'y.db'}", "y", ARMS, policy())
    assert resume_study(url, "x").missing.sum() >= 0
    filling.unlink()
    assert acknowledged(study)[: len(before)] == before
    assert finish(study).verdict == "certified"
    released(study)
    unharmed(url, before)


# no right to write


def check_only_read(url: str) -> None:
    """Looking works, and no call that would write does."""
    study = resume_study(url, "x")
    (listed,) = list_studies(url)
    assert (listed.rounds, listed.verdict) == (3, "not-yet")
    assert study.missing.sum() > 0
    assert len(study.trace) == 3
    assert study.recommend() in ARMS.ids
    assert len(sp.open_study(url, "x").trace) == 3
    for write in (
        lambda: study.tell(["a"], [1.0]),
        lambda: study.lease(worker="w"),
        lambda: study.tell_prior(["a"], [1.0]),
        lambda: study.abandon("lost"),
        study.close,
        lambda: sp.create_study(url, "y", ARMS, policy()),
    ):
        with pytest.raises(sp.StorageError, match=r"cannot be (written|opened)"):
            write()
    released(study)


def test_a_file_that_is_opened_for_reading(path, sqlite_url):
    study = resume_study(sqlite_url, "x")
    before = acknowledged(study)
    released(study)
    check_only_read(f"sqlite:///file:{path}?mode=ro&uri=true")
    unharmed(sqlite_url, before)


def test_a_server_that_only_reads(postgres_url):
    study = start(postgres_url)
    before = acknowledged(study)
    only_reads = sa.engine.make_url(postgres_url).update_query_dict({"options": "-c default_transaction_read_only=on"})
    check_only_read(only_reads.render_as_string(hide_password=False))
    unharmed(postgres_url, before)


def test_a_read_only_disk(small_disk, path):
    shutil.copy(path, small_disk / "x.db")
    url = f"sqlite:///{small_disk / 'x.db'}"
    remount(small_disk, "ro")
    for call in (lambda: sp.open_study(url, "x"), lambda: sp.create_study(url, "y", ARMS, policy())):
        with pytest.raises(sp.StorageError, match="its folder exists and may be written") as caught:
            call()
        assert "immutable=1" in str(caught.value)
    check_only_read(f"sqlite:///file:{small_disk / 'x.db'}?immutable=1&uri=true")
    remount(small_disk, "rw")
    study = resume_study(url, "x")
    before = acknowledged(study)
    released(study)
    unharmed(url, before)


@contextlib.contextmanager
def without_privileges():
    """The rights of nobody, so that the modes of files count; as they are for those who have no more."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def open_folder():
    """A folder that everybody may enter (those of pytest are private)."""
    folder = Path(tempfile.mkdtemp(prefix="surepick-test-"))
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


def test_a_folder_that_may_not_be_written(open_folder, path, sqlite_url):
    copy = open_folder / "x.db"
    shutil.copy(path, copy)
    url = f"sqlite:///{copy}"
    study = resume_study(url, "x")
    before = acknowledged(study)
    copy.chmod(0o444)
    open_folder.chmod(0o555)
    with without_privileges():
        with pytest.raises(sp.StorageError, match=r"cannot be (written|opened)"):
            resume_study(url, "x").tell(["a"], [1.0])
        with pytest.raises(sp.StorageError, match=r"may be written|cannot be written"):
            sp.create_study(f"sqlite:///{open_folder / 'y.db'}", "y", ARMS, policy())
    open_folder.chmod(0o755)
    copy.chmod(0o644)
    assert sorted(file.name for file in open_folder.glob("y*")) == []
    released(study)
    unharmed(url, before)


# not a database, not ours, not whole


def files_of(url: str) -> list:
    """Calls that must refuse what is no database of ours."""
    return [
        lambda: sp.open_study(url, "x"),
        lambda: resume_study(url, "x"),
        lambda: list_studies(url),
        lambda: sp.create_study(url, "x", ARMS, policy()),
    ]


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
    study = resume_study(sqlite_url, "x")
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
    study = resume_study(sqlite_url, "x")
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


def execute(url: str, *statements: str) -> None:
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        for statement in statements:
            connection.execute(sa.text(statement))
    engine.dispose()


def test_a_database_of_a_newer_version(database_url):
    study = start(database_url)
    before = acknowledged(study)
    released(study)
    execute(database_url, "UPDATE surepick_schema SET version_num = '9999'")
    for call in files_of(database_url):
        with pytest.raises(
            sp.StorageError, match="has schema 9999, which this version of surepick does not know"
        ) as no:
            call()
        assert "pip install -U surepick" in str(no.value)
    execute(database_url, f"UPDATE surepick_schema SET version_num = '{sql_engine.SCHEMA}'")
    unharmed(database_url, before)


def test_a_database_of_an_older_version(path, sqlite_url, monkeypatch):
    with monkeypatch.context() as later:
        later.setattr(sql_engine, "OLDER", (*sql_engine.OLDER, sql_engine.SCHEMA))
        later.setattr(sql_engine, "SCHEMA", "9998")
        for call in files_of(sqlite_url):
            with pytest.raises(sp.StorageError, match="run `surepick migrate URL`"):
                call()
    unharmed(sqlite_url, [])


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


def test_no_such_study_names_those_that_exist(database_url):
    released(start(database_url, plans=0))
    released(sp.create_study(database_url, "spring", ARMS, policy()))
    for call in (sp.open_study, resume_study):
        with pytest.raises(sp.InvalidInput, match=r"has no study 'autumn'; it has 'spring', 'x'\."):
            call(database_url, "autumn")


def test_a_name_that_is_taken(database_url):
    study = start(database_url)
    before = acknowledged(study)
    released(study)
    with pytest.raises(sp.InvalidInput, match="has a study 'x' already"):
        sp.create_study(database_url, "x", ARMS, policy())
    (listed,) = list_studies(database_url)
    assert listed.rounds == 3
    unharmed(database_url, before)


@pytest.mark.parametrize("name", ["", "  ", None, 5])
def test_a_name_that_is_none(sqlite_url, name):
    with pytest.raises(sp.InvalidInput, match="the name of a study is"):
        sp.create_study(sqlite_url, name, ARMS, policy())


# addresses


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
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


# clocks


def test_a_clock_that_was_moved_back(sqlite_url, monkeypatch):
    study = start(sqlite_url)
    study.lease(worker="w", max_pulls=1, duration="2h")
    before = acknowledged(study)
    now = sql_log.system_clock()
    with monkeypatch.context() as wrong:
        wrong.setattr(sql_log, "system_clock", lambda: now - 90_000)
        with pytest.raises(sp.OutOfTurn, match="Set the clock right; results can be told meanwhile") as caught:
            study.lease(worker="v")
        assert format_time(now - 90_000) in str(caught.value)
        assert format_time(study.log.latest_time()) in str(caught.value)
        tell_plan(study)
        tell_plan(study)
        with pytest.raises(sp.OutOfTurn, match="Set the clock right"):
            study.lease(max_pulls=1)
    assert len(study.trace) == 5
    plan = study.lease(worker="v")
    assert plan.total == study.missing.sum()
    released(study)
    unharmed(sqlite_url, before)


def test_entries_from_the_future(database_url):
    """Another machine's clock was ahead; a server's clock cannot be moved by a test, so the entries are."""
    study = start(database_url)
    before = acknowledged(study)
    day = "SET opened_at = opened_at {} 86400 WHERE number = 4"
    execute(database_url, f"UPDATE plan {day.format('+')}")
    with pytest.raises(sp.OutOfTurn, match="or another machine's is ahead"):
        study.lease(worker="w")
    study.tell(["b"], [MEANS[1]], ["meanwhile"])
    before = acknowledged(study)
    execute(database_url, f"UPDATE plan {day.format('-')}")
    assert study.lease(worker="w").total > 0
    released(study)
    unharmed(database_url, before)


def test_a_clock_that_is_a_little_behind_is_no_reason_to_refuse(sqlite_url, monkeypatch):
    study = start(sqlite_url)
    now = sql_log.system_clock()
    monkeypatch.setattr(sql_log, "system_clock", lambda: now - 60)
    assert study.lease(worker="w").total > 0
    released(study)


# file systems


def mounts(tmp_path: Path, *lines: str) -> Path:
    file = tmp_path / "mounts"
    file.write_text("\n".join(lines) + "\n")
    return file


def test_the_file_system_is_the_innermost_mount(tmp_path):
    table = mounts(
        tmp_path,
        "/dev/sda1 / ext4 rw 0 0",
        "server:/home /home nfs4 rw 0 0",
        "/dev/sdb1 /home/me/local xfs rw 0 0",
        "//server/lab /srv/lab\\040results cifs rw 0 0",
        "garbage",
    )
    kinds = {
        "/data/x.db": "ext4",
        "/home/me/x.db": "nfs4",
        "/homely/x.db": "ext4",
        "/home/me/local/x.db": "xfs",
        "/srv/lab results/x.db": "cifs",
    }
    for path, kind in kinds.items():
        assert sql_engine.file_system(Path(path), mounts=table) == kind
    assert sql_engine.file_system(Path("/x.db"), mounts=tmp_path / "absent") == ""


@pytest.mark.parametrize("kind", ["nfs4", "fuse.sshfs"])
def test_a_network_file_system_is_warned_of(tmp_path, sqlite_url, monkeypatch, kind):
    table = mounts(tmp_path, f"server:/data {os.path.realpath(tmp_path)} {kind} rw 0 0")
    here = sql_engine.file_system
    monkeypatch.setattr(sql_engine, "file_system", lambda path: here(path, mounts=table))
    with pytest.warns(UserWarning, match=rf"lies on a network file system \({kind}\).*or PostgreSQL"):
        released(sp.create_study(sqlite_url, "x", ARMS, policy()))


def test_a_local_file_system_is_not_warned_of(tmp_path, sqlite_url, monkeypatch):
    table = mounts(tmp_path, "/dev/sda1 / ext4 rw 0 0")
    here = sql_engine.file_system
    monkeypatch.setattr(sql_engine, "file_system", lambda path: here(path, mounts=table))
    released(sp.create_study(sqlite_url, "x", ARMS, policy()))  # a warning would be an error here
