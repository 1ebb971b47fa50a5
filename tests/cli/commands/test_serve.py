"""`surepick serve` and `surepick token`: what is refused at the start, and who is entered."""

import json
import socket

import httpx
import pytest
from command_line import surepick
from identity_providers import ANN, came_back, providing
from page_forms import Visitor
from servers import connected, served_apart, serving

ISSUER = "https://login.example.org/realms/lab"
PROVIDER = ("--oidc-issuer", ISSUER, "--oidc-client-id", "surepick")
REFUSED = [
    (("--oidc-client-id", "x"), "--oidc-issuer https://HOST"),
    (("--oidc-name", "x"), "--oidc-issuer https://HOST"),
    (("--oidc-issuer", ISSUER), "needs --oidc-client-id"),
    (("--oidc-issuer", "http://login.example.org", "--oidc-client-id", "x"), "https://HOST"),
    (("--oidc-issuer", "https://ann:secret@login.example.org", "--oidc-client-id", "x"), "https://HOST"),
    (("--oidc-issuer", "https://", "--oidc-client-id", "x"), "https://HOST"),
    (("--oidc-issuer", "file:///etc/passwd", "--oidc-client-id", "x"), "https://HOST"),
    (("--oidc-issuer", f"{ISSUER}?x=1", "--oidc-client-id", "x"), "https://HOST"),
    (("--oidc-issuer", f"{ISSUER}#x", "--oidc-client-id", "x"), "https://HOST"),
    (("--trusted-header", "X-Forwarded-User"), "without --trusted-proxy"),
    (("--trusted-proxy", "127.0.0.1", "--trusted-header", "Cookie"), "--trusted-header is 'Cookie'"),
    (("--trusted-proxy", "0.0.0.0/0"), "which is everybody"),
    (("--trusted-proxy", "proxy.example.org"), "an address of a machine"),
    (PROVIDER, "--oidc-issuer lets others in, and there is no token yet"),
    (("--trusted-proxy", "127.0.0.1"), "--trusted-proxy lets others in, and there is no token yet"),
    (("--host", "0.0.0.0"), "--host 0.0.0.0 lets others in, and there is no token yet"),
]


@pytest.mark.parametrize(("words", "said"), REFUSED)
def test_a_server_that_cannot_start_so(run_main, sqlite_url, words, said):
    code, _, error = run_main("serve", sqlite_url, "--port", "0", *words)
    assert code == 2
    assert said in error
    assert "secret" not in error


def test_the_secret_is_no_option(run_main, sqlite_url):
    code, _, _ = run_main("serve", sqlite_url, *PROVIDER, "--oidc-secret", "x")
    assert code == 2
    assert "SUREPICK_OIDC_SECRET" in surepick("serve", "--help", columns=200)[1]


def test_login_by_a_provider_needs_an_extra(run_main, sqlite_url, monkeypatch):
    import importlib.util

    there = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "authlib" else there(name))
    code, _, error = run_main("serve", sqlite_url, *PROVIDER)
    assert code == 2
    assert 'pip install "surepick[oidc]"' in error


def test_people_are_entered_and_listed(run_main, sqlite_url):
    code, out, _ = surepick("token", "create", sqlite_url, "ann", "--identity", "Ann@example.org", columns=200)
    assert code == 0
    assert "ann logs in to the pages as ann@example.org, without it" in out
    assert surepick("token", "create", sqlite_url, "bob", "--role", "viewer")[0] == 0
    code, out, _ = surepick("token", "bind", sqlite_url, "bob", f"{ISSUER}#42", columns=200)
    assert code == 0
    assert f"bob logs in as {ISSUER}#42 until" in out
    listed = json.loads(surepick("token", "list", sqlite_url, "--format", "json")[1])["tokens"]
    assert {one["name"]: one["identities"] for one in listed} == {"ann": ["ann@example.org"], "bob": [f"{ISSUER}#42"]}
    assert "ann@example.org" in surepick("token", "list", sqlite_url, columns=200)[1]
    made = json.loads(surepick("token", "create", sqlite_url, "eve", "--identity", "eve", "--format", "json")[1])
    assert made["identities"] == ["eve"]
    for words, said in (
        (("create", sqlite_url, "bill", "--identity", "ann@EXAMPLE.org"), "logs in as 'ann' already"),
        (("bind", sqlite_url, "bob", "ann@example.org"), "logs in as 'ann' already"),
        (("bind", sqlite_url, "nobody", "x"), "no token of the name 'nobody'"),
        (("create", sqlite_url, "bill", "--identity", " "), "an identity is ' '"),
    ):
        code, _, error = run_main("token", *words)
        assert (code, said in error) == (2, True), error


def test_the_options_reach_the_server(sqlite_url):
    """A process of its own, which believes a header of 127.0.0.1, and knows a provider."""
    with providing() as provider:
        assert surepick("token", "create", sqlite_url, "ann", "--identity", ANN["email"])[0] == 0
        options = ["--trusted-proxy", "127.0.0.1", "--trusted-header", "X-User", "--oidc-name", "The House"]
        options += ["--oidc-issuer", provider.issuer, "--oidc-client-id", "surepick"]
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        environment = {"SUREPICK_OIDC_SECRET": "a secret/with:signs", "FORWARDED_ALLOW_IPS": "*"}
        process = served_apart(sqlite_url, port, *options, **environment)
        address = f"http://127.0.0.1:{port}"
        try:
            connected(address)
            with httpx.Client(base_url=address, timeout=60.0) as server:
                assert server.get("/api/v1/me", headers={"x-user": ANN["email"]}).json()["name"] == "ann"
                ann = Visitor(server)
                assert "Log in with The House" in ann.get("/login").text
                assert came_back(ann).status_code == 200
                assert "ann, measurer" in ann.get("/").text
                ann.close()
        finally:
            process.terminate()
            process.join(30.0)


def test_a_server_without_these_options_is_as_it_was(sqlite_url):
    with serving(sqlite_url) as server:
        assert server.get("/api/v1/me").json()["local"]
