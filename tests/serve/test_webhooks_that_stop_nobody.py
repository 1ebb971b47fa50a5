"""Webhooks: none makes others wait, and no event is lost: every round is told."""

import itertools
import json
import socket
import threading
from contextlib import contextmanager

import pytest
from webhook_receivers import API, listening, looked, measure, set_up

from surepick.errors import StorageError
from surepick_server.access import webhooks
from surepick_server.web import webhook_worker
from surepick_server.web.webhook_worker import Deliverer

OTHER = "/api/v1/studies/other"
STARTS = {
    "a header that never ends": b"HTTP/1.1 200 OK\r\nx: ",
    "a status that never ends": b"HTTP/1.1 ",
    "silence": b"",
}


@contextmanager
def dripping(start):
    """The address of a server that answers a byte at a time, until the context ends."""
    over, threads = threading.Event(), []

    def drip(connection):
        with connection:
            try:
                connection.sendall(start)
                while not over.wait(0.02):
                    if start:
                        connection.sendall(b"y")
            except OSError:
                return

    def accept(listener):
        with listener:
            while not over.is_set():
                try:
                    connection, _ = listener.accept()
                except TimeoutError:
                    continue
                threads.append(threading.Thread(target=drip, args=(connection,)))
                threads[-1].start()

    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(0.1)
    accepting = threading.Thread(target=accept, args=(listener,))
    accepting.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
    finally:
        over.set()
        for one in (accepting, *threads):
            one.join()


def outcomes(client):
    with client.app.state.server.studies.database.engine.connect() as connection:
        return set(connection.exec_driver_sql("SELECT outcome FROM serve_delivery").scalars())


def told(came):
    return [(one["event"], one.get("plan")) for one in (json.loads(body) for _, body in came)]


def measure_other(client, people, path=OTHER):
    lease = client.post(f"{path}/leases", json={}, headers=people["owner"]).json()
    rows = [{"id": one["id"], "key": one["key"], "reward": 1.0} for one in lease["measurements"]]
    assert client.post(f"{path}/results", json={"results": rows}, headers=people["owner"]).status_code == 200


@pytest.fixture
def long(client, people):
    """The path of a study with many rounds."""
    asked = {"name": "long", "candidates": {"ids": ["x", "y"]}, "epsilon": 0.04, "noise": "subgaussian:1"}
    assert client.post("/api/v1/studies", json=asked, headers=people["owner"]).status_code == 201
    return "/api/v1/studies/long"


def hooked(client, people, path, url):
    made = client.post(f"{path}/webhooks", json={"url": url}, headers=people["owner"]).json()
    client.post(f"{path}/webhooks/{made['id']}/allow", json={"private": True}, headers=people["admin"])


def test_webhooks_that_nobody_allowed_stop_no_other(client, people, long):
    with listening() as (url, came):
        set_up(client, people, url)
        client.post(f"{long}/webhooks", json={"url": "https://example.org/"}, headers=people["owner"])
        for _ in range(10):
            measure_other(client, people, long)
        looked(client)
        with client.app.state.server.studies.database.engine.connect() as connection:
            assert connection.exec_driver_sql("SELECT count(*) FROM serve_delivery").scalar() == 0
        for _ in range(2):
            measure(client, people)
        looked(client)
    assert told(came) == [("round-complete", 1), ("round-opened", 2), ("round-complete", 2), ("round-opened", 3)]


def test_messages_of_another_version_that_wait_for_nobodys_permission_stop_nothing(client, people):
    with listening() as (url, came):
        set_up(client, people, url)
        client.post(f"{OTHER}/webhooks", json={"url": "https://example.org/"}, headers=people["owner"])
        (hook,) = client.app.state.server.webhooks.list("other")
        many = [webhooks.Message("round-opened", f"round-opened {number}", {}) for number in range(50)]
        assert client.app.state.server.webhooks.note(hook, many) == 50
        measure(client, people)
        looked(client)
    assert len(came) == 2


def test_what_happened_before_it_was_allowed_is_told_then(client, people):
    with listening() as (url, came):
        made = set_up(client, people, url, allow=False)
        measure(client, people)
        looked(client)
        assert came == []
        path = f"{API}/webhooks/{made['id']}/allow"
        assert client.post(path, json={"private": True}, headers=people["admin"]).json()["allowed"]
        looked(client)
    assert told(came) == [("round-complete", 1), ("round-opened", 2)]


@pytest.mark.cases(2)
@pytest.mark.parametrize("start", STARTS.values(), ids=STARTS)
def test_a_receiver_that_never_ends_its_answer_stops_no_other(client, people, monkeypatch, start):
    monkeypatch.setattr(webhook_worker, "WAITS", 1.0)
    with dripping(start) as slow, listening() as (url, came):
        hooked(client, people, OTHER, slow)
        set_up(client, people, url)
        measure_other(client, people)
        measure(client, people)
        looked(client)  # ends, though the slow one has not answered
        assert told(came) == [("round-complete", 1), ("round-opened", 2)]
    assert outcomes(client) == {"200", "no answer within 1 s"}


def test_many_slow_receivers_and_one_that_is_not(client, people, monkeypatch):
    """The messages of the quick one come while those of the others are still being sent."""
    monkeypatch.setattr(webhook_worker, "WAITS", 60.0)
    with dripping(b"") as slow, listening() as (url, came):
        for number in range(8):
            hooked(client, people, OTHER, f"{slow}{number}")
        set_up(client, people, url)
        measure_other(client, people)
        deliverer, over = Deliverer(client.app.state.server), threading.Event()
        deliverer.note()
        work = threading.Thread(target=deliverer.deliver_until, args=(over, 0.05))
        work.start()
        for _ in range(3):
            measure(client, people)
            deliverer.note()
        wait_for(lambda: len(came) == 6)
        assert outcomes(client) == {None, "200"}
        over.set()
    work.join()
    deliverer.close()


def wait_for(happened, looks=3_000):
    for _ in range(looks):
        if happened():
            return
        threading.Event().wait(0.02)
    raise AssertionError("it never happened")


def test_a_database_that_is_locked_loses_no_event(client, people, monkeypatch):
    """What could not be noted is noted at the next look."""
    with listening() as (url, came):
        set_up(client, people, url)
        measure(client, people)
        deliverer, writing = Deliverer(client.app.state.server), webhooks.writing

        def locked(_):
            raise StorageError("another process kept the database busy for 60 s.")

        monkeypatch.setattr(webhooks, "writing", locked)
        deliverer.note()
        monkeypatch.setattr(webhooks, "writing", writing)
        deliverer.look()
        deliverer.close()
    assert told(came) == [("round-complete", 1), ("round-opened", 2)]


@pytest.mark.parametrize(("before", "number", "chunk"), [pytest.param(0, 12, 100, marks=pytest.mark.slow), (1, 6, 2)])
def test_every_round_is_told_however_many_were_judged_between_two_looks(
    client, people, long, monkeypatch, before, number, chunk
):
    monkeypatch.setattr(webhook_worker, "MOST_ROUNDS", chunk)
    for _ in range(before):
        measure_other(client, people, long)
    with listening() as (url, came):
        hooked(client, people, long, url)
        for _ in range(number):
            measure_other(client, people, long)
        looked(client, 2)
        looked(client)
    rounds = range(before + 1, before + 1 + number)
    assert told(came) == [pair for one in rounds for pair in (("round-complete", one), ("round-opened", one + 1))]


def test_a_look_that_ends_in_the_middle_goes_on_there(client, people, monkeypatch):
    monkeypatch.setattr(webhook_worker, "MOST_ROUNDS", 2)
    with listening() as (url, came):
        set_up(client, people, url)
        for _ in range(7):
            measure(client, people)
        hooks, fails = client.app.state.server.webhooks, itertools.cycle([False, True])
        note = hooks.note

        def sometimes(*given, **more):
            if next(fails):
                raise StorageError("the disk is full or failing.")
            return note(*given, **more)

        monkeypatch.setattr(hooks, "note", sometimes)
        looked(client, 8)
    assert told(came) == [pair for one in range(1, 8) for pair in (("round-complete", one), ("round-opened", one + 1))]
