"""Objects of a study: few at once, used again, and never two threads with one."""

import contextlib
import threading
import time

import pytest
from server_studies import make_study

from surepick.studies.database import Database
from surepick_server.web import open_studies
from surepick_server.web.open_studies import MOST_AT_ONCE, HTTPError, Studies


@pytest.fixture
def studies(sqlite_url):
    make_study(sqlite_url, "paint")
    return Studies(Database(sqlite_url))


def test_an_object_is_used_again_unless_something_failed(studies):
    with studies.open("paint") as first:
        pass
    with studies.open("paint") as again:
        assert again is first
    with pytest.raises(ZeroDivisionError), studies.open("paint"):
        _ = 1 / 0
    with studies.open("paint") as other:
        assert other is not first
    with pytest.raises(HTTPError, match="There is no study 'none'"), studies.open("none"):
        pass
    assert not studies._used


def test_one_more_waits_until_another_is_free_and_no_longer_than_a_moment(studies, monkeypatch):
    with contextlib.ExitStack() as held:
        mine = [held.enter_context(studies.open("paint")) for _ in range(MOST_AT_ONCE)]
        assert len({id(one) for one in mine}) == MOST_AT_ONCE
        begun = time.monotonic()
        with studies.open("paint") as own:
            assert own not in mine
        assert time.monotonic() - begun >= open_studies.PATIENCE
    monkeypatch.setattr(open_studies, "PATIENCE", 30.0)
    found = []

    def work():
        with studies.open("paint") as study:
            found.append(study)

    with contextlib.ExitStack() as held:
        mine = [held.enter_context(studies.open("paint")) for _ in range(MOST_AT_ONCE)]
        threads = [threading.Thread(target=work) for _ in range(5)]
        for thread in threads:
            thread.start()
        time.sleep(0.1)
        assert not found
    for thread in threads:
        thread.join(20.0)
    assert len(found) == 5


def test_what_is_kept_is_limited_by_bytes(sqlite_url, monkeypatch):
    """Leases of a plan weigh as many candidates as it has, so a study of few results may be large."""
    names = ("paint", "glue", "ink")
    for name in names:
        make_study(sqlite_url, name, [f"c{number}" for number in range(1_000)])
    studies = Studies(Database(sqlite_url))

    def size(name, leases=0):
        with studies.open(name) as study:
            before = study.replay.kept_bytes
            for number in range(leases):
                study.lease(1, worker=f"w{number}")
            study.progress()  # which looks at the last of them too
            return study.replay.kept_bytes - before

    assert size("paint", leases=20) >= 20 * 32 * 1_000
    monkeypatch.setattr(open_studies, "MOST_IDLE_BYTES", 2_000_000)
    for name in ("glue", "ink"):
        size(name)
    assert [name for name, *_ in studies._idle.values()] == ["paint", "glue", "ink"]
    size("glue", leases=20)
    assert [name for name, *_ in studies._idle.values()] == ["ink", "glue"]
    monkeypatch.setattr(open_studies, "MOST_IDLE_BYTES", 1)
    size("ink")
    assert [name for name, *_ in studies._idle.values()] == ["ink"]
