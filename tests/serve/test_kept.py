"""What is computed of a state of a study is computed once, and its bytes are limited."""

import threading

import pytest

from surepick.errors import InvalidInput
from surepick_server.api import documents
from surepick_server.web import open_studies
from surepick_server.web.open_studies import MOST_AT_ONCE, MOST_OBJECTS, HTTPError, Kept

PAINT = "/api/v1/studies/paint"


def test_who_asks_while_it_is_made_waits_for_it():
    kept, begun, go, made, found = Kept(), threading.Event(), threading.Event(), [], []

    def make():
        made.append(1)
        begun.set()
        go.wait()
        return b"x"

    threads = [threading.Thread(target=lambda: found.append(kept.get("key", make))) for _ in range(16)]
    for one in threads:
        one.start()
    begun.wait()
    go.set()
    for one in threads:
        one.join()
    assert (found, made) == ([b"x"] * 16, [1])


def test_what_fails_is_made_again():
    kept = Kept()

    def fail():
        raise InvalidInput("no")

    with pytest.raises(InvalidInput):
        kept.get("key", fail)
    assert kept.get("key", lambda: b"x") == b"x"


def test_bytes_are_limited():
    kept = Kept(100)
    for number in range(50):
        kept.get(number, lambda: b"x" * 30)
    assert sum(map(len, kept._kept.values())) <= 100
    assert kept.get("large", lambda: b"x" * 1_000) == b"x" * 1_000
    assert "large" not in kept._kept
    assert kept._kept  # it drives out no other


def test_certificates_and_reports_of_a_state_are_computed_once(client, people, monkeypatch):
    made = []
    for name in ("certificate_document", "write_report", "export_results", "history_of"):
        real = getattr(documents, name)
        monkeypatch.setattr(
            documents, name, lambda *given, real=real, **more: (made.append(real), real(*given, **more))[1]
        )
    readers = [
        threading.Thread(target=client.get, args=(f"{PAINT}/{kind}",), kwargs={"headers": people["viewer"]})
        for kind in ("certificate", "report?forecast_up_to=0", "export.csv", "history")
        for _ in range(6)
    ]
    for one in readers:
        one.start()
    for one in readers:
        one.join()
    assert len(made) == 4
    before = client.get(f"{PAINT}/certificate", headers=people["viewer"]).json()
    lease = client.post(f"{PAINT}/leases", json={}, headers=people["measurer"]).json()["measurements"]
    rows = [{**one, "reward": 1.0} for one in lease]
    client.post(f"{PAINT}/results", json={"results": rows}, headers=people["measurer"])
    assert client.get(f"{PAINT}/certificate", headers=people["viewer"]).json() != before
    assert len(made) == 5


def test_requests_that_wait_do_not_make_ever_more_objects(client, monkeypatch):
    monkeypatch.setattr(open_studies, "PATIENCE", 0.001)
    monkeypatch.setattr(open_studies, "LONGEST", 0.001)
    studies = client.app.state.server.studies
    opened = [studies.open("paint") for _ in range(MOST_OBJECTS)]
    for one in opened:
        one.__enter__()
    with pytest.raises(HTTPError, match="take long"), studies.open("paint"):
        pass
    for one in opened:
        one.__exit__(None, None, None)
    assert len(studies._idle) == MOST_AT_ONCE
    with studies.open("paint"):
        pass


def test_uploads_are_unpacked_one_after_the_other(monkeypatch):
    from surepick_server.pages import uploads

    monkeypatch.setattr(uploads, "MOST_WAITING", 0.01)
    with uploads.TURN, pytest.raises(HTTPError, match="Others' tables"):
        uploads.as_csv(b"PK", ".xlsx", "x.xlsx")
    assert uploads.TURN.acquire(blocking=False)
    uploads.TURN.release()
