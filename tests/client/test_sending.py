"""Requests that fail on their way are sent again, and no result counts twice."""

import contextlib
import signal
import socket
import threading
import time
from collections import Counter
from types import SimpleNamespace

import pytest
from servers import connected, served_apart, serving, token_for

import surepick as sp
from surepick.studies.database import open_stored_study
from surepick_server.client import Server, transport, transport as splitting

USUAL = {"epsilon": 0.3, "delta": 0.05, "noise": "subgaussian:0.5"}
PAGE = b"HTTP/1.1 %d x\r\ncontent-type: text/html\r\ncontent-length: 4\r\nretry-after: 0.05\r\n\r\naway"


class Between:
    """A proxy before a server, which loses answers, or says that the server is away.

    Args:
        address: (host, port) of the server.
        deed: what happens to a request, by its first line: "answer lost", "request lost", a status, or None.
    """

    def __init__(self, address, deed):
        self._address, self.deed, self.seen = address, deed, Counter()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self._serving = threading.Thread(target=self._serve, daemon=True)
        self._serving.start()

    def _serve(self):
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self._pass_on, args=(self._listening.accept()[0],), daemon=True).start()

    def _pass_on(self, client):
        with client, socket.create_connection(self._address) as server, contextlib.suppress(OSError):
            request = message(client)
            line = request.split(b"\r\n", 1)[0].decode()
            self.seen[line] += 1
            deed = self.deed(line, self.seen[line])
            if isinstance(deed, int):
                client.sendall(PAGE % deed)
            elif deed != "request lost":
                server.sendall(request)
                answer = message(server)
                if deed != "answer lost":
                    client.sendall(answer.replace(b"\r\n", b"\r\nconnection: close\r\n", 1))

    def close(self):
        self._listening.shutdown(socket.SHUT_RDWR)  # which wakes who waits for a connection
        self._serving.join(10.0)
        self._listening.close()


def message(connection) -> bytes:
    """One request or answer with a length."""
    read = b""
    while b"\r\n\r\n" not in read:
        read += connection.recv(65536) or stop()
    head, _, body = read.partition(b"\r\n\r\n")
    length = next((int(one[15:]) for one in head.lower().split(b"\r\n") if one.startswith(b"content-length:")), 0)
    while len(body) < length:
        body += connection.recv(65536) or stop()
    return head + b"\r\n\r\n" + body


def stop():
    raise ConnectionError


@pytest.fixture
def between(server):
    made = []

    def between(deed):
        made.append(Between((server.base_url.host, server.base_url.port), deed))
        return made[-1]

    yield between
    for one in made:
        one.close()


def created(url, **asked):
    """A study whose first round asks for a result of each of four candidates."""
    policy = sp.make_policy("certified-independent", sp.Arms(ids=[*"abcd"]), largest_batch=4, **{**USUAL, **asked})
    return sp.create_study(url, "paint", policy)


def first_of(what, deed, times=1):
    """That deed to the first requests of a kind."""
    return lambda line, number: deed if what in line and number <= times else None


@pytest.mark.cases(5)
@pytest.mark.parametrize("deed", ["answer lost", "request lost", 502, 503, 504])
@pytest.mark.parametrize("keyed", [True, False])
def test_results_count_once_whatever_is_lost(server, sqlite_url, between, deed, keyed):
    created(str(server.base_url))
    proxy = between(first_of("/results", deed, times=3))
    study = sp.open_study(proxy.url, "paint")
    if keyed:
        part = study.lease(3)
        receipt = study.tell(part, [0.1, 0.2, 0.3])
    else:
        receipt = study.tell(["a", "b", "c"], [0.1, 0.2, 0.3])
    counted = 0 if deed == "answer lost" else 3
    assert (receipt.counted, receipt.repeated) == (counted, 3 - counted)
    assert max(proxy.seen.values()) == 4
    assert study.progress().told == 3
    assert open_stored_study(sqlite_url, "paint").missing.tolist() == [0, 0, 0, 1]


@pytest.mark.cases(2)
@pytest.mark.parametrize("deed", [None, "answer lost", "request lost"])
def test_many_results_are_sent_in_parts_that_count_once(server, sqlite_url, between, monkeypatch, deed):
    monkeypatch.setattr(splitting, "MOST_ROWS", 3)
    arms = [f"a{number}" for number in range(10)]
    policy = sp.make_policy("certified-independent", sp.Arms(ids=arms), batch_size=40, **USUAL)
    sp.create_study(str(server.base_url), "paint", policy)
    proxy = between(first_of("/results", deed))
    study = sp.open_study(proxy.url, "paint")
    part = study.lease(5)
    asked = study.ask().total
    leased = part.keys()
    keyed = [key for _, key in leased]
    rest = [name for name in study.ask().pulls() if name not in part.pulls()]
    ids, keys = [*rest, *part.pulls()], [*([None] * len(rest)), *keyed]
    receipt = study.tell(ids, [0.5] * len(ids), keys)
    lost = 3 if deed == "answer lost" else 0
    assert (receipt.counted, receipt.repeated, receipt.late) == (len(ids) - lost, lost, 0)
    assert sum(proxy.seen.values()) > -(-len(ids) // 3)
    assert receipt.closed == (len(ids) >= asked)
    assert study.recorded(part.pulls(), keyed) == [True] * 5
    again = study.tell(part.pulls(), [0.5] * 5, keyed)
    assert (again.counted, again.repeated) == (0, 5)
    stored = open_stored_study(sqlite_url, "paint")
    assert int(stored.progress().pulls if receipt.closed else stored.progress().told) == len(ids)


def test_what_comes_after_a_plan_is_complete_is_of_that_plan(server, monkeypatch):
    """Also in parts: surplus results without keys do not count for the next plan, which nobody had asked for then."""
    monkeypatch.setattr(splitting, "MOST_ROWS", 4)
    study = created(str(server.base_url))
    receipt = study.tell([*"abcdabcdab"], [0.5] * 10)
    assert (receipt.plan, receipt.counted, receipt.late, receipt.closed) == (1, 4, 6, True)
    assert study.progress().told == 0
    totals = study.tell_totals([*"abcd"] * 2, [1] * 8, [0.5] * 8, [0.25] * 8, [f"k{number}" for number in range(8)])
    assert (totals.counted, totals.late) == (4, 4) if totals.closed else (8, 0)
    prior = study.tell_prior([*"abcdab"], [0.5] * 6, [f"old-{number}" for number in range(6)])
    assert prior.prior == 6


def test_a_lease_whose_answer_is_lost_is_given_again(server, between):
    created(str(server.base_url))
    proxy = between(first_of("/leases", "answer lost"))
    study = sp.open_study(proxy.url, "paint")
    part = study.lease(2, worker="ann")
    assert (part.total, part.lease.number) == (2, 1)
    assert study.progress().free == 2


@pytest.mark.parametrize("deed", ["answer lost", 503])
def test_what_may_not_be_done_twice_is_not_sent_again(server, between, deed):
    created(str(server.base_url))
    proxy = between(first_of("POST /api/v1/studies/paint/close", deed, times=9))
    study = sp.open_study(proxy.url, "paint")
    words = "Nobody knows whether what was asked was done" if deed == "answer lost" else "answers 503"
    with pytest.raises(sp.StorageError, match=words):
        study.close("enough")
    assert proxy.seen["POST /api/v1/studies/paint/close HTTP/1.1"] == 1
    assert study.stopped == (deed == "answer lost")


def test_a_request_that_is_lost_too_often_says_so(server, between):
    created(str(server.base_url))
    proxy = between(lambda line, number: "answer lost" if "open" in line else None)
    study = sp.open_study(proxy.url, "paint")
    with pytest.raises(sp.StorageError, match=r"no server answers at http://127.0.0.1"):
        study.missing  # noqa: B018 (it is a request)
    assert max(proxy.seen.values()) == 1 + len(transport.PAUSES)


def test_the_library_s_own_storage_error_is_not_asked_for_again(server, between, monkeypatch):
    created(str(server.base_url))
    proxy = between(lambda line, number: None)
    study = sp.open_study(proxy.url, "paint")

    def busy(*_):
        raise sp.StorageError("another program kept the database busy.")

    monkeypatch.setattr("surepick.studies.study.Study.progress", busy)
    with pytest.raises(sp.StorageError, match="kept the database busy"):
        study.progress()
    assert proxy.seen["GET /api/v1/studies/paint HTTP/1.1"] == 1


def test_too_many_requests_are_waited_for(server, between):
    """Whatever it is: a request that was refused did nothing."""
    created(str(server.base_url))
    proxy = between(lambda line, number: 429 if number <= 2 else None)
    study = sp.open_study(proxy.url, "paint")
    assert study.lease(1).total == 1
    study.close()
    assert study.stopped
    assert proxy.seen["POST /api/v1/studies/paint/close HTTP/1.1"] == 3


def test_the_pace_of_a_server_is_kept(sqlite_url):
    with serving(sqlite_url, requests_a_minute=120) as client:
        study = created(str(client.base_url))
        for _ in range(125):
            study.progress()


def test_no_server(monkeypatch):
    paused: list[float] = []
    monkeypatch.setattr(transport, "time", SimpleNamespace(**{**vars(time), "sleep": paused.append}))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(sp.StorageError, match=f"no server answers at http://127.0.0.1:{port} .*Repeat the call"):
        sp.open_study(f"http://127.0.0.1:{port}", "paint", token="spk_secret")
    assert paused == list(transport.PAUSES)


def test_a_redirection_is_not_followed(server, between):
    """The token would go with it."""
    proxy = between(lambda line, number: 307)
    with pytest.raises(sp.InvalidInput, match="is answered from elsewhere"):
        sp.open_study(proxy.url, "paint", token="spk_secret")
    assert sum(proxy.seen.values()) == 1


def test_two_workers_never_have_the_same_measurement(server):
    address = str(server.base_url)
    created(address, epsilon=0.6)
    keys: list[str] = []
    tokens = [token_for(server, name, "measurer")["authorization"].split()[1] for name in ("ann", "bob")]
    failures = []

    def work(token):
        try:
            study = Server(address, token=token).study("paint")
            while (part := study.lease(3)) is not None and len(keys) < 400:
                measured = part.keys()
                keys.extend(key for _, key in measured)
                if part.total:
                    study.tell(part, [ord(name) / 100 for name in part.pulls()])
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(token,)) for token in tokens]
    for one in threads:
        one.start()
    for one in threads:
        one.join(120.0)
    assert not failures
    assert len(keys) == len(set(keys)) > 4
    study = Server(address, token=tokens[0]).study("paint")
    assert study.stopped
    assert study.progress().pulls == len(keys)


def started(url, port):
    process = served_apart(url, port)
    connected(f"http://127.0.0.1:{port}")
    return process


def killed(process):
    process.kill()
    process.join()
    assert process.exitcode == -signal.SIGKILL


def test_a_server_that_is_killed_and_started_again(sqlite_url, monkeypatch):
    """The loop goes on where it was; each measurement counts once."""
    monkeypatch.setattr(transport, "PAUSES", (0.2, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = started(sqlite_url, port)
    calls = []
    try:
        study = created(f"http://127.0.0.1:{port}")

        def measure(ids):
            nonlocal process
            calls.append(list(ids))
            if len(calls) in (2, 4):
                killed(process)
                process = started(sqlite_url, port)
            return [ord(name) / 100 for name in ids]

        result = study.run(measure, at_once=2)
    finally:
        killed(process)
    assert len(calls) > 4
    assert result.verdict == "certified"
    assert result.pulls == sum(map(len, calls))
