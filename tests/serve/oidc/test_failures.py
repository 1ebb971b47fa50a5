"""Providers that are away, slow, or not what they should be: a sentence, and nobody is logged in."""

import asyncio
import contextlib
import socket
import threading

import pytest
from fastapi import Response
from identity_providers import ANN, AWAY, PATIENT, came_back, refused, sent_back, stored
from page_forms import Visitor
from servers import serving

from surepick_server.access.tokens import Role
from surepick_server.openid import Fetching, ProviderAway


def broken(content=b"", status=200, **headers):
    return lambda: Response(content, status, headers)


FAILURES = {
    "an error": (broken(b"{}", 500), 503),
    "away": (broken(b"<html>", 503), 503),
    "no JSON": (broken(b"<html>"), 502),
    "a list": (broken(b"[]"), 502),
    "very deep": (broken(b"[" * 100_000), 502),
    "huge": (broken(b'{"x": "' + b"y" * 2**20 + b'"}'), 502),
    "another object": (broken(b'{"x": 1}'), 502),
    "packed": (broken(b"\x1f\x8b\x08", **{"content-encoding": "gzip"}), 502),
    "elsewhere": (broken(status=302, location="http://localhost:1/"), 502),
    "slow": (lambda: asyncio.sleep(2 * AWAY, Response(b"{}")), 503),
}


@pytest.mark.cases(10)
@pytest.mark.parametrize("path", ["/.well-known/openid-configuration", "/token", "/keys"])
@pytest.mark.parametrize("case", FAILURES)
def test_a_provider_that_does_not_do_its_part(server, provider, visit, path, case):
    other, status = FAILURES[case]
    server.app.state.server.provider.fetching = Fetching(AWAY if case == "slow" else PATIENT)
    ann, before = visit(), stored(server)
    if path.startswith("/.well"):
        provider.instead[path] = other
        answer = ann.get("/login/openid")
    else:
        back = sent_back(ann)
        provider.instead[path] = other
        answer = ann.http.get(back)
    why = {"huge": "its answer is larger than", "slow": "it did not answer within 1 s"}.get(case, "")
    refused(answer, ann, "Example House cannot be asked who you are", why, status=status)
    assert stored(server) == before


DOCUMENTS = [
    {"issuer": "https://evil.example"},
    {"authorization_endpoint": "javascript:alert(1)"},
    {"authorization_endpoint": None},
    {"authorization_endpoint": "http://evil.example/authorize"},
]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_a_document_that_leads_elsewhere(server, provider, visit, document):
    provider.document = document
    ann = visit()
    refused(ann.get("/login/openid"), ann, "cannot be asked who you are", status=502)


@pytest.mark.parametrize("name", ["token_endpoint", "jwks_uri"])
def test_secrets_go_to_no_address_that_is_not_encrypted(server, provider, visit, name):
    provider.document = {name: "http://evil.example/x"}
    ann = visit()
    refused(came_back(ann), ann, f"its document has no {name} of https", status=502)


def test_a_server_that_the_provider_does_not_know(tmp_path, provider):
    with serving(f"sqlite:///{tmp_path}/studies.db", openid=provider.openid("wrong"), logins_a_minute=99) as server:
        server.app.state.server.tokens.make("ann", Role.admin, identity=ANN["email"])
        ann = Visitor(server)
        refused(came_back(ann), ann, "it refuses this server (invalid_client)", status=502)
    provider.document = {"token_endpoint_auth_methods_supported": ["client_secret_post"]}
    with serving(f"sqlite:///{tmp_path}/studies.db", openid=provider.openid(), logins_a_minute=99) as server:
        ann = Visitor(server)
        assert came_back(ann).status_code == 200
        assert not provider.redeemed[-1]["basic"]


@contextlib.contextmanager
def dripping():
    """A server whose answer never ends to begin: a byte of a header now and then."""
    listening, over = socket.create_server(("127.0.0.1", 0)), threading.Event()

    def drip():
        with contextlib.suppress(OSError):
            one, _ = listening.accept()
            one.sendall(b"HTTP/1.1 200 OK\r\nx: ")
            while not over.wait(0.1):
                one.sendall(b"y")
            one.close()

    thread = threading.Thread(target=drip, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", thread
    finally:
        over.set()
        listening.close()
        thread.join(5.0)


def test_a_provider_that_drips_keeps_nobody_waiting():
    fetching = Fetching(AWAY)
    with dripping() as (address, at_work):
        with pytest.raises(ProviderAway, match="did not answer within"):
            fetching.ask(address)
        assert at_work.is_alive()  # it was not waited for
    fetching.close()
