"""Webhooks: what happens is told once, signed, again after failures, and only to where somebody allowed."""

import hashlib
import hmac
import ipaddress
import json
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from surepick.errors import InvalidInput
from surepick.serve.access import addresses, webhooks
from surepick.serve.access.addresses import is_public, target_of
from surepick.serve.web import delivering
from surepick.serve.web.delivering import Deliverer

API = "/api/v1/studies/paint"


@contextmanager
def listening(statuses=()):
    """(address, messages) of a server that answers with these statuses, then with 200."""
    came, answers = [], list(statuses)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"]))
            came.append((dict(self.headers), body.decode()))
            status = answers.pop(0) if answers else 200
            self.send_response(status)
            if status == 302:
                self.send_header("location", "http://127.0.0.1:1/")
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/hook", came
        finally:
            server.shutdown()
            thread.join()


def set_up(client, people, url, *, private=True, allow=True, **more):
    made = client.post(f"{API}/webhooks", json={"url": url, **more}, headers=people["owner"]).json()
    if allow:
        path = f"{API}/webhooks/{made['id']}/allow"
        assert client.post(path, json={"private": private}, headers=people["admin"]).json()["allowed"]
    return made


def measure(client, people, reward=1.0):
    lease = client.post(f"{API}/leases", json={}, headers=people["measurer"]).json()
    rows = [{"id": one["id"], "key": one["key"], "reward": reward} for one in lease["measurements"]]
    return client.post(f"{API}/results", json={"results": rows}, headers=people["measurer"]).json()


def looked(client, times=1):
    deliverer = Deliverer(client.app.state.server)
    for _ in range(times):
        deliverer.look()
    deliverer.close()


def test_rounds_and_the_end_are_told_once_and_signed(client, people):
    with listening() as (url, came):
        made = set_up(client, people, url)
        measure(client, people)
        looked(client, 2)
        looked(client)  # another process
        client.post(f"{API}/close", json={"reason": "enough"}, headers=people["owner"])
        looked(client, 2)
    told = [json.loads(body) for _, body in came]
    assert [(one["event"], one.get("plan")) for one in told] == [
        ("round-complete", 1),
        ("round-opened", 2),
        ("study-stopped", None),
    ]
    assert all(one["study"] == "paint" for one in told)
    for headers, body in came:
        stated = dict(part.split("=") for part in headers["x-surepick-signature"].split(","))
        right = hmac.new(made["secret"].encode(), f"{stated['t']}.{body}".encode(), hashlib.sha256).hexdigest()
        assert hmac.compare_digest(stated["v1"], right)
        assert abs(int(stated["t"]) - time.time()) < 60


def test_messages_have_no_reward(client, people):
    with listening() as (url, came):
        set_up(client, people, url)
        measure(client, people, reward=0.987654)
        looked(client)
    assert came
    assert all("0.98" not in body + str(headers) for headers, body in came)


def test_a_lease_that_has_run_out_is_told(client, people, monkeypatch):
    with listening() as (url, came):
        set_up(client, people, url, events=["lease-expired"])
        client.post(f"{API}/leases", json={"max_pulls": 1, "duration": "1h"}, headers=people["measurer"])
        looked(client)
        assert came == []
        monkeypatch.setattr(delivering, "system_clock", lambda: time.time() + 3_601.0)
        looked(client, 2)
    (message,) = [json.loads(body) for _, body in came]
    assert (message["event"], message["worker"], message["pulls"]) == ("lease-expired", "a measurer", 1)


@pytest.mark.parametrize("status", [500, 302, 404])
def test_a_failure_is_tried_again_later_and_later_and_then_given_up(client, people, monkeypatch, status):
    moments = [time.time()]
    monkeypatch.setattr(webhooks, "system_clock", lambda: moments[0])
    with listening([status] * 20) as (url, came):
        set_up(client, people, url)
        measure(client, people)
        looked(client, 2)
        first = len(came)
        assert first == 2
        for pause in webhooks.PAUSES:
            moments[0] += pause - 1.0
            looked(client)
            before = len(came)
            moments[0] += 2.0
            looked(client)
            assert len(came) == before + 2
        moments[0] += 1e7
        looked(client)
        assert len(came) == first * (1 + len(webhooks.PAUSES))
    assert len({headers["x-surepick-delivery"] for headers, _ in came}) == 2


def test_nothing_is_sent_before_an_admin_allowed_it_nor_to_this_machine_unless_said(client, people):
    with listening() as (url, came):
        made = set_up(client, people, url, allow=False)
        measure(client, people)
        looked(client)
        assert came == []
        path = f"{API}/webhooks/{made['id']}/allow"
        assert client.post(path, json={}, headers=people["owner"]).status_code == 403
        client.post(path, json={}, headers=people["admin"])
        looked(client)
        assert came == []
        with client.app.state.server.studies.database.engine.connect() as connection:
            outcome = connection.exec_driver_sql("SELECT outcome FROM serve_delivery").scalars().first()
        assert "an admin has to allow" in outcome


def test_what_was_removed_is_told_nothing(client, people):
    with listening() as (url, came):
        made = set_up(client, people, url)
        measure(client, people)
        client.delete(f"{API}/webhooks/{made['id']}", headers=people["owner"])
        looked(client)
    assert came == []


def test_another_study_cannot_take_it_away(client, people):
    with listening() as (url, came):
        made = set_up(client, people, url)
        looked(client)
        measure(client, people)
        hook, *_ = client.app.state.server.webhooks.list("paint")
        assert client.app.state.server.webhooks.note(hook, "study-stopped", "noted", {})
        other = f"/api/v1/studies/other/webhooks/{made['id']}"
        assert client.delete(other, headers=people["owner"]).status_code == 422
        assert client.post(f"{other}/allow", json={}, headers=people["admin"]).status_code == 422
        looked(client)
    assert len(came) == 3


def test_the_secret_is_shown_once(client, people):
    made = set_up(client, people, "https://example.org/", allow=False)
    assert made["secret"] not in client.get(f"{API}/webhooks", headers=people["owner"]).text


def test_a_thread_delivers_by_itself(client, people):
    with listening() as (url, came):
        set_up(client, people, url)
        with delivering.delivering(client.app.state.server, seconds=0.05):
            measure(client, people)
            until = time.monotonic() + 10.0
            while len(came) < 2 and time.monotonic() < until:
                time.sleep(0.02)
    assert len(came) == 2


ADDRESSES = [
    "ftp://example.org/",
    "https://user:word@example.org/",
    "https://example.org/#x",
    "https:///x",
    "https://exa mple.org/",
    "https://example.org:99999/",
    "javascript:alert(1)",
    "http://example.org/\r\nx: y",
]


@pytest.mark.parametrize("url", ADDRESSES)
def test_an_address_that_is_none(client, people, url):
    answer = client.post(f"{API}/webhooks", json={"url": url}, headers=people["owner"])
    assert answer.status_code == 422


INSIDE = [
    *("127.0.0.1", "10.1.2.3", "192.168.0.9", "169.254.169.254", "172.16.0.1", "0.0.0.0", "100.64.0.1", "224.0.0.1"),
    *("::1", "fe80::1", "fc00::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "2002:7f00:1::", "::"),
]


@pytest.mark.parametrize("number", INSIDE)
def test_addresses_of_this_machine_and_of_its_network(number):
    assert not is_public(ipaddress.ip_address(number))


@pytest.mark.parametrize("number", ["93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946"])
def test_addresses_of_the_internet(number):
    assert is_public(ipaddress.ip_address(number))


def test_a_name_that_leads_inside_is_refused_whatever_it_led_to_before(monkeypatch):
    """A name is resolved when a message is sent, and the number that was checked is the one that is connected to."""
    answers = iter(["93.184.216.34", "127.0.0.1"])
    monkeypatch.setattr(addresses.socket, "getaddrinfo", lambda *_, **__: [(0, 0, 0, "", (next(answers), 443))])
    target = target_of("https://example.org/x?y=1", private=False)
    assert (target.url, target.host) == ("https://93.184.216.34:443/x?y=1", "example.org")
    with pytest.raises(InvalidInput, match="this machine or of its network"):
        target_of("https://example.org/x", private=False)
