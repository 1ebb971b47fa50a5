"""Webhooks: what happens is told once, signed, again after failures, and only to where somebody allowed."""

import hashlib
import hmac
import ipaddress
import json
import time

import pytest
from hypothesis import given, settings, strategies as st
from together import of_each
from webhook_receivers import API, listening, looked, measure, set_up

from surepick.errors import InvalidInput
from surepick_server.access import tokens, webhooks
from surepick_server.access.tokens import is_public, target_of
from surepick_server.access.webhooks import Message
from surepick_server.web import webhook_worker


def test_rounds_and_the_end_are_told_once_and_signed(client, people):
    begun = time.time()
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
        assert begun - 1.0 <= int(stated["t"]) <= time.time()


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
        monkeypatch.setattr(webhook_worker, "system_clock", lambda: time.time() + 3_601.0)
        looked(client, 2)
    (message,) = [json.loads(body) for _, body in came]
    assert (message["event"], message["worker"], message["pulls"]) == ("lease-expired", "a measurer", 1)


@pytest.mark.parametrize("status", [500, 302, pytest.param(404, marks=pytest.mark.slow)])
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
        assert client.app.state.server.webhooks.note(hook, [Message("study-stopped", "noted", {})]) == 1
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
        with webhook_worker.delivering(client.app.state.server, seconds=0.05):
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
    *("192.88.99.1", "192.0.0.8", "192.0.2.1", "198.51.100.7", "203.0.113.7", "198.18.0.1", "240.0.0.1"),
    "255.255.255.255",
    *("::1", "fe80::1", "fc00::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "2002:7f00:1::", "::"),
    *("64:ff9b::a9fe:a9fe", "64:ff9b::7f00:1", "64:ff9b:1::1", "64:ff9b:1:808:8:800::", "::127.0.0.1", "::8.8.8.8"),
    *("::ffff:0:7f00:1", "::ffff:0:808:808", "fec0::1", "3fff::1", "3fff:fff::1", "5f00::1", "100::1", "100:0:0:1::1"),
    *("2001:db8::1", "2001::1", "2001:2::1", "2001:10::1", "2001:20::1", "2620:4f:8000::1", "ff02::1", "4000::1"),
    *("2606:2800::5efe:10.0.0.1", "2606:2800::200:5efe:127.0.0.1", "2002:c058:6301::1"),
]
OUTSIDE = [
    *("93.184.216.34", "8.8.8.8", "100.128.0.1", "172.32.0.1", "192.0.1.1", "198.20.0.1", "223.255.255.255"),
    *("2606:2800:220:1:248:1893:25c8:1946", "2a00:1450::1", "2001:4860::8888", "64:ff9b::808:808"),
    *("::ffff:8.8.8.8", "2606:2800::5efe:8.8.8.8", "3ffe:ffff::1"),
]


@of_each("number", INSIDE)
def test_addresses_of_this_machine_and_of_its_network(number):
    assert not is_public(ipaddress.ip_address(number))


@pytest.mark.parametrize("number", OUTSIDE)
def test_addresses_of_the_internet(number):
    assert is_public(ipaddress.ip_address(number))


FORMS = {  # of an address of IPv4 inside one of IPv6
    "mapped": lambda inner: (0xFFFF << 32) | inner,
    "NAT64": lambda inner: (0x0064_FF9B << 96) | inner,
    "6to4": lambda inner: (0x2002 << 112) | (inner << 80),
    "ISATAP": lambda inner: (0x2606_2800 << 96) | (0x5EFE << 32) | inner,
}
NOWHERE = {  # forms in which nothing is public, whatever is inside
    "compatible": lambda inner: inner,
    "translated": lambda inner: (0xFFFF << 48) | inner,
    "local NAT64": lambda inner: (0x0064_FF9B_0001 << 80) | inner,
}


@settings(deadline=None)
@given(inner=st.integers(0, 2**32 - 1))
def test_an_address_inside_another_is_judged_as_itself(inner):
    public = is_public(ipaddress.IPv4Address(inner))
    assert public <= ipaddress.IPv4Address(inner).is_global
    for form in FORMS.values():
        assert is_public(ipaddress.IPv6Address(form(inner))) == public
    assert not any(is_public(ipaddress.IPv6Address(form(inner))) for form in NOWHERE.values())


def test_a_name_that_leads_inside_is_refused_whatever_it_led_to_before(monkeypatch):
    """A name is resolved when a message is sent, and the number that was checked is the one that is connected to."""
    answers = iter(["93.184.216.34", "127.0.0.1"])
    monkeypatch.setattr(tokens.socket, "getaddrinfo", lambda *_, **__: [(0, 0, 0, "", (next(answers), 443))])
    target = target_of("https://example.org/x?y=1", private=False)
    assert (target.url, target.host) == ("https://93.184.216.34:443/x?y=1", "example.org")
    with pytest.raises(InvalidInput, match="this machine or of its network"):
        target_of("https://example.org/x", private=False)
