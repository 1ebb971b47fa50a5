"""A database file that nobody here can write is read as it is, by every command that only reads."""

import os
from pathlib import Path

import pytest
from command_line import surepick
from named_policies import make

import surepick as sp
from surepick.studies.logs.sql import engine

ARMS = sp.Arms([[1.0, 0.0], [0.0, 1.0], [0.6, 0.6]], ["a", "b", "c"])
READS = {
    "list": ["list"],
    "status": ["status", "paint"],
    "recommend": ["recommend", "paint"],
    "certificate": ["certificate", "paint", "--out", "OUT/c.json"],
    "report": ["report", "paint", "--out", "OUT/r.html", "--forecast-up-to", "0"],
    "export": ["export", "paint", "--out", "OUT/results.csv"],
}


@pytest.fixture
def read_only(tmp_path, monkeypatch):
    """The address of a study after a round, in a file 444 in a folder 555 of another user."""
    folder = tmp_path / "theirs # 1"
    folder.mkdir()
    url = f"sqlite:///{folder / 'lab.db'}"
    study = sp.create_study(url, "paint", ARMS, make("certified-independent", ARMS, epsilon=0.5))
    batch = study.ask()
    study.tell(batch, [0.1 * place for place in range(batch.total)])
    study.ask()
    study.log._engine.dispose()
    assert not (folder / "lab.db-wal").exists()
    (folder / "lab.db").chmod(0o444)
    folder.chmod(0o555)
    access = os.access
    monkeypatch.setattr(  # who runs the tests may write everything
        engine.os,
        "access",
        lambda path, mode: (mode != os.W_OK or folder not in (Path(path), *Path(path).parents)) and access(path, mode),
    )
    yield url, folder
    folder.chmod(0o755)


@pytest.mark.cases(3)
@pytest.mark.parametrize("command", READS)
def test_it_is_read(read_only, tmp_path, command):
    url, folder = read_only
    before, names = (folder / "lab.db").read_bytes(), sorted(folder.iterdir())
    first, *rest = [word.replace("OUT", str(tmp_path)) for word in READS[command]]
    code, out, err = surepick(first, url, *rest)
    assert code in (0, 3), err
    assert out
    assert sorted(folder.iterdir()) == names  # nothing was put beside it
    assert (folder / "lab.db").read_bytes() == before


def test_what_would_write_names_the_way_to_read(read_only):
    url, _ = read_only
    study = sp.open_study(url, "paint")
    with pytest.raises(sp.StorageError, match=r"cannot be written.*immutable=1&uri=true") as refused:
        study.tell(["a"], [0.5])
    assert len(str(refused.value)) <= 500


@pytest.mark.parametrize("length", [240, 250, 252, 255, 256, 300])
def test_a_name_that_leaves_no_room_for_the_files_beside_it(tmp_path, length):
    """SQLite adds up to 8 characters to the name, and disks take 255."""
    url = f"sqlite:///{tmp_path / ('x' * length)}"
    if length == 240:
        assert sp.create_study(url, "paint", ARMS, make("certified-independent", ARMS, epsilon=0.5)).ask().total
        return
    with pytest.raises(sp.StorageError, match="cannot be opened"):
        sp.create_study(url, "paint", ARMS, make("certified-independent", ARMS, epsilon=0.5))


def test_what_a_writer_left_beside_it_is_not_passed_over(read_only):
    url, folder = read_only
    folder.chmod(0o755)
    (folder / "lab.db-wal").write_bytes(b"more")
    assert not engine._only_readable(folder / "lab.db")
    assert url.endswith("lab.db")
