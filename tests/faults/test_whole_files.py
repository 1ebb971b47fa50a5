"""A file that we write is the old one or the new one, whatever happens to the process, the disk or other writers."""

import errno
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from apart import apart
from file_writers import WRITERS, run, sabotaged_run

import surepick as sp
from surepick.certificates.document import write_document
from surepick.core import files
from surepick.core.files import write_whole
from surepick.tables import write_table


def kill_writers(name: str, folder: Path, kills: int, *, sabotaged: bool = False, seed: int = 1) -> dict[str, int]:
    """What `file_writers` found; in a process of its own, since it forks."""
    folder.mkdir(exist_ok=True)
    return apart(sabotaged_run if sabotaged else run, name, folder, kills, seed)


def check_kills(name: str, folder: Path, kills: int) -> dict[str, int]:
    found = kill_writers(name, folder, kills)
    assert found["kills"] == found["a"] + found["b"] == kills, found
    assert found["torn"] == 0
    left = [path.name for path in folder.iterdir() if path.name != name]
    assert all(one.startswith(".surepick-") and one.endswith(".part") for one in left), left
    return found


@pytest.mark.parametrize("name", WRITERS)
def test_four_kills_of_each_writer(name, tmp_path):
    check_kills(name, tmp_path / "files", 4)


@pytest.mark.slow
def test_five_hundred_kills(tmp_path):
    """Both contents must be found, or no kill would have come between."""
    total = {"kills": 0, "a": 0, "b": 0, "torn": 0, "left": 0}
    for name in WRITERS:
        found = check_kills(name, tmp_path / name.replace(".", "-"), 100)
        assert min(found["a"], found["b"]) > 0
        total = {what: number + found[what] for what, number in total.items()}
    print(f"\n{total['kills']} kills while a file was overwritten: {total}")
    assert total["kills"] == 500


@pytest.mark.parametrize("name", ["certificate.json", "report.html"])
def test_the_kills_would_notice_a_writer_in_place(name, tmp_path):
    """With the first of 40 kills that it does not survive."""
    torn = (kill_writers(name, tmp_path / f"{seed}", 4, sabotaged=True, seed=seed)["torn"] for seed in range(10))
    assert any(torn)


def certificate(path: Path) -> None:
    write_document({"new": "x" * 2_000_000}, path)


def table(path: Path) -> None:
    write_table(path, {"id": ["x" * 100] * 20_000})


@pytest.mark.parametrize(("name", "write"), [("c.json", certificate), ("t.csv", table), ("t.jsonl", table)])
def test_a_full_disk_leaves_the_old_file_and_nothing_else(small_disk, name, write):
    old = small_disk / name
    old.write_text("old")
    with pytest.raises(sp.InvalidInput, match="No space left on device; the file that was there is unchanged") as no:
        write(old)
    assert old.name in str(no.value)
    assert old.read_text() == "old"
    assert [path.name for path in small_disk.iterdir()] == [name]


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_a_disk_that_fails_leaves_the_old_file_and_nothing_else(failing, tmp_path, monkeypatch):
    """As above where no disk can be mounted; `fsync` is where network disks say that they are full."""
    old = tmp_path / "c.json"
    old.write_text("old")

    def fail(*_):
        raise OSError(errno.EDQUOT, "Disk quota exceeded")

    monkeypatch.setattr(os, failing, fail)
    monkeypatch.setattr(Path, "replace", fail if failing == "replace" else Path.replace)
    with pytest.raises(sp.InvalidInput, match="Disk quota exceeded; the file that was there is unchanged"):
        write_whole(old, b"new")
    assert old.read_text() == "old"
    assert list(tmp_path.iterdir()) == [old]


def test_an_interrupted_write_leaves_nothing(tmp_path, monkeypatch):
    def interrupt(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_whole(tmp_path / "c.json", b"new")
    assert list(tmp_path.iterdir()) == []


def test_the_content_is_on_the_disk_before_the_name(tmp_path, monkeypatch):
    """After a power cut, a name that came first would stand for an empty file."""
    target, seen = tmp_path / "c.json", []
    target.write_text("old")
    synchronise, rename = os.fsync, Path.replace
    monkeypatch.setattr(
        os, "fsync", lambda handle: (seen.append(f"fsync {os.fstat(handle).st_size}"), synchronise(handle))
    )
    monkeypatch.setattr(Path, "replace", lambda one, to: (seen.append("rename"), rename(one, to))[1])
    write_whole(target, b"new content")
    assert seen[:2] == ["fsync 11", "rename"]
    assert seen[2].startswith("fsync")  # the folder


# permissions, links, names


@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_a_new_file_has_the_permissions_that_open_gives(mask, tmp_path):
    before = os.umask(mask)
    try:
        write_whole(tmp_path / "ours", b"")
        (tmp_path / "plain").write_bytes(b"")
    finally:
        os.umask(before)
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o755])
def test_a_file_that_is_replaced_keeps_its_permissions(mode, tmp_path):
    target = tmp_path / "c.json"
    target.write_text("old")
    target.chmod(mode)
    write_whole(target, b"new")
    assert target.read_bytes() == b"new"
    assert target.stat().st_mode & 0o777 == mode


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may give a file away")
def test_a_file_that_is_replaced_keeps_its_owner(tmp_path):
    target = tmp_path / "c.json"
    target.write_text("old")
    os.chown(target, 12345, 54321)
    target.chmod(0o640)
    write_whole(target, b"new")
    there = target.stat()
    assert (there.st_uid, there.st_gid, there.st_mode & 0o777) == (12345, 54321, 0o640)


def test_the_new_content_is_never_more_open_than_the_old(tmp_path, monkeypatch):
    target, seen = tmp_path / "c.json", []
    target.write_text("old")
    target.chmod(0o600)
    opened = os.open

    def noted(path, flags, mode=0o777, **more):
        handle = opened(path, flags, mode, **more)
        if flags & os.O_CREAT:
            seen.append(os.fstat(handle).st_mode & 0o777)
        return handle

    monkeypatch.setattr(os, "open", noted)
    write_whole(target, b"new")
    assert seen == [0o600]


def test_a_file_that_may_not_be_written_stays(tmp_path, monkeypatch):
    """Renaming over it would need no right to write it."""
    target = tmp_path / "c.json"
    target.write_text("old")
    target.chmod(0o444)
    monkeypatch.setattr(files.os, "access", lambda path, mode: Path(path) != target)
    with pytest.raises(sp.InvalidInput, match="Permission denied; the file that was there is unchanged"):
        write_whole(target, b"new")
    assert target.read_text() == "old"


def test_a_link_stays_and_its_target_is_replaced(tmp_path):
    (tmp_path / "real").mkdir()
    real, middle, link = tmp_path / "real" / "c.json", tmp_path / "middle.json", tmp_path / "link.json"
    real.write_text("old")
    middle.symlink_to(Path("real") / "c.json")
    link.symlink_to(middle)
    write_whole(link, b"new")
    assert (link.readlink(), middle.readlink()) == (middle, Path("real") / "c.json")
    assert real.read_bytes() == b"new"
    assert not real.is_symlink()
    assert [path.name for path in (tmp_path / "real").iterdir()] == ["c.json"]


def test_a_link_to_nothing_makes_its_target(tmp_path):
    (tmp_path / "link").symlink_to("new")
    write_whole(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "new").read_bytes() == b"new"


def test_links_in_a_circle(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(sp.InvalidInput, match="cannot be written: Too many levels of symbolic links"):
        write_whole(tmp_path / "a", b"new")


def test_the_longest_name_that_the_disk_takes(tmp_path):
    target = tmp_path / ("n" * 250 + ".json")
    write_whole(target, b"old")
    write_whole(target, b"new")
    assert target.read_bytes() == b"new"


@pytest.mark.parametrize("name", ["n" * 300, "n" * 5_000, "a\nb" * 100, "a\0b"])
def test_a_name_that_no_disk_takes_is_one_short_line(name, tmp_path):
    with pytest.raises(sp.InvalidInput, match="cannot be written") as refused:
        write_whole(tmp_path / name, b"new")
    assert len(str(refused.value)) < 500
    assert "\n" not in str(refused.value)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_absent_and_a_folder_in_the_way(tmp_path):
    with pytest.raises(sp.InvalidInput, match=r"there is no folder .*nowhere; make the folder first\.$"):
        write_whole(tmp_path / "nowhere" / "c.json", b"new")
    with pytest.raises(sp.InvalidInput, match=r"the report cannot be written to .*: Is a directory\.$"):
        write_whole(tmp_path, b"new", what="the report")


# what cannot be replaced


def test_a_pipe_is_written_to(tmp_path):
    pipe, seen = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: seen.append(pipe.read_bytes()))
    reader.start()
    write_whole(pipe, b"new")
    reader.join(timeout=30)
    assert seen == [b"new"]
    assert pipe.is_fifo()


def test_a_device_is_written_to():
    write_whole("/dev/null", b"new")
    assert Path("/dev/null").is_char_device()
    with pytest.raises(sp.InvalidInput, match="/dev/full cannot be written: No space left on device"):
        write_whole("/dev/full", b"new")


PRINTING = """
import sys
from surepick.core.files import write_whole
for where in sys.argv[1:]:
    print("before")
    write_whole(where, b"content\\n")
    print("after")
"""


@pytest.mark.parametrize("piped", [True, False])
def test_standard_output_gets_it_in_its_place(piped, tmp_path):
    link = tmp_path / "link"
    link.symlink_to("/dev/stdout")
    command = [sys.executable, "-c", PRINTING, "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", str(link)]
    if piped:
        said = subprocess.run(command, capture_output=True, check=True).stdout
    else:
        with (tmp_path / "said").open("wb") as file:
            subprocess.run(command, stdout=file, check=True)
        said = (tmp_path / "said").read_bytes()
    assert said == b"before\ncontent\nafter\n" * 4


def test_of_several_writers_one_wins(tmp_path):
    target = tmp_path / "c.json"
    contents = [letter.encode() * 200_000 for letter in "abcd"]
    writers = [
        threading.Thread(target=lambda content=content: [write_whole(target, content) for _ in range(10)])
        for content in contents
    ]
    target.write_bytes(contents[0])
    for one in writers:
        one.start()
    while any(one.is_alive() for one in writers):
        assert target.read_bytes() in contents
    assert target.read_bytes() in contents
    assert list(tmp_path.iterdir()) == [target]
