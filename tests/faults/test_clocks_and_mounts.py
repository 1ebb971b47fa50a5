"""Clocks that are wrong, and file systems that are reached through a network: said, and harmless."""

import os
from pathlib import Path

import pytest
from stored_studies import ARMS, MEANS, acknowledged, execute, policy, released, start, tell_plan, unharmed

import surepick as sp
from surepick.studies.logs.base import format_time
from surepick.studies.logs.sql import chain, engine as sql_engine


def test_a_clock_that_was_moved_back(sqlite_url, monkeypatch):
    study = start(sqlite_url)
    study.lease(worker="w", max_pulls=1, duration="2h")
    before = acknowledged(study)
    now = chain.system_clock()
    with monkeypatch.context() as wrong:
        wrong.setattr(chain, "system_clock", lambda: now - 90_000)
        with pytest.raises(sp.OutOfTurn, match="results can still be reported") as caught:
            study.lease(worker="v")
        assert format_time(now - 90_000) in str(caught.value)
        assert format_time(study.log.latest_time()) in str(caught.value)
        tell_plan(study)
        tell_plan(study)
        with pytest.raises(sp.OutOfTurn, match="Fix the clock"):
            study.lease(max_pulls=1)
    assert len(study.trace) == 5
    plan = study.lease(worker="v")
    assert plan.total == study.missing.sum()
    released(study)
    unharmed(sqlite_url, before)


def test_entries_from_the_future(stored_at):
    """Another machine's clock was ahead; a server's clock cannot be moved by a test, so the entries are."""
    study = start(stored_at)
    asked, before = study.ask().table()[-1][0], acknowledged(study)
    day = "SET opened_at = opened_at {} 86400 WHERE number = 4"
    execute(stored_at, f"UPDATE plan {day.format('+')}")
    with pytest.raises(sp.OutOfTurn, match="Clock skew"):
        study.lease(worker="w")
    study.tell([asked], [MEANS[ARMS.ids.index(asked)]], ["meanwhile"])
    before = acknowledged(study)
    execute(stored_at, f"UPDATE plan {day.format('-')}")
    assert study.lease(worker="w").total > 0
    released(study)
    unharmed(stored_at, before)


def test_a_clock_that_is_a_little_behind_is_no_reason_to_refuse(sqlite_url, monkeypatch):
    study = start(sqlite_url)
    now = chain.system_clock()
    monkeypatch.setattr(chain, "system_clock", lambda: now - 60)
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


def test_a_clock_that_is_years_ahead_takes_nobodys_lease(sqlite_url, monkeypatch):
    study = start(sqlite_url)
    held = study.lease(max_pulls=1, worker="ann")
    now = chain.system_clock()
    monkeypatch.setattr(chain, "system_clock", lambda: now + 10 * 366 * 86_400)
    with pytest.raises(sp.OutOfTurn, match=r"Clock skew.* more than a year after the latest entry.*--trust-clock"):
        study.lease(worker="bob")
    monkeypatch.setattr(chain, "system_clock", lambda: now + 60)
    assert study.lease(worker="ann").keys() == held.keys()
    monkeypatch.setattr(chain, "system_clock", lambda: now + 10 * 366 * 86_400)
    assert study.lease(worker="bob", trust_clock=True).total == study.missing.sum()  # it rested for ten years
    released(study)
