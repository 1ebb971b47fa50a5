"""Full disks, and files, folders and servers that only read: in words, and harmless."""

import contextlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
import sqlalchemy as sa
from stored_studies import ARMS, acknowledged, finish, policy, released, start, tell_plan, unharmed

import surepick as sp
from surepick.studies.database import list_stored_studies, resume_stored_study


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


@pytest.mark.cases(2)
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
    assert resume_stored_study(url, "x").missing.sum() >= 0
    filling.unlink()
    assert acknowledged(study)[: len(before)] == before
    assert finish(study).verdict == "certified"
    released(study)
    unharmed(url, before)


# no right to write


def check_only_read(url: str) -> None:
    """Looking works, and no call that would write does."""
    study = resume_stored_study(url, "x")
    (listed,) = list_stored_studies(url)
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
    study = resume_stored_study(sqlite_url, "x")
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
    check_only_read(url)
    with pytest.raises(sp.StorageError, match="immutable=1"):
        sp.create_study(url, "y", ARMS, policy())
    check_only_read(f"sqlite:///file:{small_disk / 'x.db'}?immutable=1&uri=true")
    remount(small_disk, "rw")
    study = resume_stored_study(url, "x")
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
    study = resume_stored_study(url, "x")
    before = acknowledged(study)
    copy.chmod(0o444)
    open_folder.chmod(0o555)
    with without_privileges():
        with pytest.raises(sp.StorageError, match=r"cannot be (written|opened)"):
            resume_stored_study(url, "x").tell(["a"], [1.0])
        with pytest.raises(sp.StorageError, match=r"may be written|cannot be written"):
            sp.create_study(f"sqlite:///{open_folder / 'y.db'}", "y", ARMS, policy())
    open_folder.chmod(0o755)
    copy.chmod(0o644)
    assert sorted(file.name for file in open_folder.glob("y*")) == []
    released(study)
    unharmed(url, before)
