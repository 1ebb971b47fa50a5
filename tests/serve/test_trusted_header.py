"""Who is asking, as a proxy says it: believed from named proxies, and not from whoever says to be one."""

import contextlib

import httpx
import pytest
from page_forms import Visitor
from servers import serving
from together import of_each

from surepick.errors import InvalidInput
from surepick_server.access import tokens
from surepick_server.access.tokens import Role
from surepick_server.settings import networks, read_header
from surepick_server.web.connections import number_of_connection

HEADER, ANN = "x-forwarded-user", {"x-forwarded-user": "ann@example.org"}
NEW = {"name": "coffee", "candidates": {"ids": list("abc")}, "epsilon": 0.5, "noise": "subgaussian:0.2"}
STUDIES = "/api/v1/studies"


@contextlib.contextmanager
def behind(tmp_path, *proxies, **settings):
    """A server behind these proxies, on which an admin has entered ann (owner)."""
    url, known = f"sqlite:///{tmp_path}/studies.db", {"trusted_proxies": proxies, "trusted_header": "X-Forwarded-User"}
    with serving(url, **{**known, "logins_a_minute": 1000, **settings}) as client:
        held = client.app.state.server
        if not held.tokens.any():
            held.tokens.make("boss", Role.admin)
            held.tokens.make("ann", Role.owner, identity="ann@example.org")
        yield client


@pytest.fixture
def server(tmp_path):
    with behind(tmp_path, "127.0.0.1") as client:
        yield client


@contextlib.contextmanager
def from_address(client, address):
    """The same server, asked from another address of this machine."""
    with httpx.Client(
        base_url=client.base_url, timeout=60.0, transport=httpx.HTTPTransport(local_address=address)
    ) as other:
        yield other


def stored(server) -> list:
    with server.app.state.server.studies.database.engine.connect() as connection:
        names = ("serve_token", "serve_identity", "serve_ended")
        return [connection.exec_driver_sql(f"SELECT * FROM {name}").all() for name in names]


def test_whom_the_proxy_names_is_known_on_pages_and_to_the_api(server):
    assert server.get("/", headers=ANN).status_code == 200
    assert "ann, owner" in server.get("/", headers=ANN).text
    assert server.get("/api/v1/me", headers={HEADER: "Ann@Example.ORG"}).json()["name"] == "ann"
    assert server.get("/tokens", headers=ANN).status_code == 403
    assert server.get("/login?next=/verify", headers=ANN).headers["location"] == "/verify"
    assert "Log out" not in server.get("/", headers=ANN).text  # that is the proxy's
    entries = [(one.who, one.action, one.words) for one in server.app.state.server.trail.latest()]
    assert entries == [("ann", "log in", "by header X-Forwarded-User: ann@example.org")]


def test_whom_it_does_not_name_is_asked_to_log_in_and_a_token_works(server):
    for nobody in ({}, {HEADER: ""}):
        assert server.get("/", headers=nobody).status_code == 303
        assert server.get(STUDIES, headers=nobody).status_code == 401
    bob = Visitor(server).login("bob", "viewer")
    assert "bob, viewer" in bob.get("/").text
    assert "ann, owner" in bob.get("/", headers=ANN).text  # what the proxy says goes before a session


def test_a_token_goes_before_what_the_proxy_says(server):
    text, _ = server.app.state.server.tokens.make("lab", Role.viewer)
    header = {**ANN, "authorization": f"Bearer {text}"}
    assert server.get("/api/v1/me", headers=header).json()["name"] == "lab"
    assert server.get("/api/v1/me", headers={**header, "authorization": "Bearer spk_wrong"}).status_code == 401
    assert server.get("/api/v1/me", headers={**ANN, "authorization": "Basic YTpi"}).json()["name"] == "ann"


@pytest.mark.parametrize(
    "name", ["mallory", "ann", "ann@example.org.evil.example", "boss", "local", "ann@example.org, x"]
)
def test_nobody_is_made_by_being_named(server, name):
    before = stored(server)
    for path in ("/", "/login", "/api/v1/me", "/tokens"):
        answer = server.get(path, headers={HEADER: name})
        assert answer.status_code == 403
        assert f"The proxy knows you as {name}, and nobody of that name may use this server" in answer.text
    assert stored(server) == before
    entry = server.app.state.server.trail.latest()[0]
    assert (entry.who, entry.action, entry.words) == ("", "log in refused", f"by header X-Forwarded-User: {name}")


def test_strangers_are_limited(tmp_path):
    with behind(tmp_path, "127.0.0.1", logins_a_minute=3) as server:
        found = [server.get("/", headers={HEADER: "mallory"}).status_code for _ in range(5)]
        assert found == [403] * 3 + [429] * 2
        assert len(server.app.state.server.trail.latest()) == 3
        assert server.get("/", headers=ANN).status_code == 200


@pytest.mark.parametrize("path", ["/", "/login", "/healthz", "/api/v1/studies", "/static/pages.css", "/nowhere"])
def test_who_is_no_proxy_may_not_name_anybody(tmp_path, path):
    """It is not ignored silently either."""
    with behind(tmp_path, "10.9.9.9") as server:
        for more in ({}, {"x-forwarded-for": "10.9.9.9"}, {"forwarded": "for=10.9.9.9"}, {"x-real-ip": "10.9.9.9"}):
            answer = server.get(path, headers={**ANN, **more})
            assert answer.status_code == 403
            assert "believed from the proxies of this server alone" in answer.text
        assert server.get("/healthz").status_code == 200


def test_the_connection_counts_and_not_what_is_said_of_it(server):
    with from_address(server, "127.0.0.2") as other:
        for more in ({}, {"x-forwarded-for": "127.0.0.1"}, {"X-FORWARDED-USER": "ann@example.org"}):
            assert other.get("/", headers={**ANN, **more}).status_code in (400, 403)
        assert other.get("/", headers={"x-forwarded-for": "127.0.0.1"}).status_code == 303
    spoken_for = {**ANN, "x-forwarded-for": "203.0.113.9"}  # the proxy says for whom it speaks, and is one all the same
    assert server.get("/api/v1/me", headers=spoken_for).json()["name"] == "ann"


def test_a_network_of_proxies(tmp_path):
    with behind(tmp_path, "10.9.9.9", "127.0.0.4/31") as server:
        for address, status in (("127.0.0.4", 200), ("127.0.0.5", 200), ("127.0.0.6", 403), ("127.0.0.1", 403)):
            with from_address(server, address) as other:
                assert other.get("/", headers=ANN).status_code == status, address


@pytest.mark.parametrize(
    "values",
    [
        ["ann@example.org", "ann@example.org"],
        ["mallory", "ann@example.org"],
        ["ann@example.org", ""],
        ["", "ann@example.org"],
    ],
)
def test_a_header_that_is_there_twice_is_refused(server, values):
    headers = [(name, value) for name, value in zip(("X-Forwarded-User", "x-forwarded-user"), values, strict=True)]
    answer = server.get("/", headers=headers)
    assert answer.status_code == 400
    assert "is here 2 times" in answer.text


@pytest.mark.parametrize("value", [b"ann\xc3\xa9", b"x" * 601, b"a\tb", b"https://login.example.org#248289761001"])
def test_a_value_that_is_no_name(server, value):
    server.app.state.server.tokens.make("subject", Role.admin, identity="https://login.example.org#248289761001")
    answer = server.get("/", headers=[(HEADER.encode(), value)])
    assert answer.status_code == 400
    assert "header x-forwarded-user" in answer.text


ELSEWHERE = [{"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}, {"origin": "null"}]


@pytest.mark.parametrize("foreign", ELSEWHERE)
def test_another_site_does_nothing_in_the_name_of_who_is_logged_in_at_the_proxy(server, foreign):
    for more in ({}, {"authorization": "Basic YTpi"}):  # which browsers send by themselves
        answer = server.post(STUDIES, json=NEW, headers={**ANN, **foreign, **more})
        assert answer.status_code == 403
        assert "another site" in answer.text
    assert server.get(STUDIES, headers=ANN).json()["studies"] == []
    assert server.post(STUDIES, json=NEW, headers=ANN).status_code == 201
    assert server.get(STUDIES, headers={**ANN, **foreign}).status_code == 200


def test_forms_have_tokens_which_belong_to_whom_the_proxy_named(server):
    server.app.state.server.tokens.make("bob", Role.owner, identity="bob")
    assert server.post(STUDIES, json=NEW, headers=ANN).status_code == 201
    browser = Visitor(server)
    browser.http.headers.update(ANN)
    assert browser.http.post("/studies/coffee/take", data={"max_pulls": "1"}).status_code == 403
    token = browser.form_token("/verify")
    form = {"form_token": token, "max_pulls": "1"}
    browser.http.headers.update({HEADER: "bob"})
    assert browser.http.post("/studies/coffee/take", data=form).status_code == 403
    browser.http.headers.update(ANN)
    assert browser.http.post("/studies/coffee/take", data=form).status_code == 303
    browser.close()


def test_whom_an_admin_revoked_or_whose_time_is_over_gets_in_no_more(server, monkeypatch):
    assert server.get("/", headers=ANN).status_code == 200
    clock = tokens.system_clock
    with monkeypatch.context() as patch:
        patch.setattr(tokens, "system_clock", lambda: clock() + 91 * 86_400.0)
        assert server.get("/", headers=ANN).status_code == 403
    assert server.get("/", headers=ANN).status_code == 200
    server.app.state.server.tokens.revoke("ann")
    assert server.get("/", headers=ANN).status_code == 403
    server.app.state.server.tokens.make("ann 2", Role.viewer, identity="ann@example.org")
    assert "ann 2, viewer" in server.get("/", headers=ANN).text


def test_a_server_behind_a_proxy_is_nobodys_without_a_token(tmp_path):
    url = f"sqlite:///{tmp_path}/studies.db"
    for more in ({"trusted_header": "X-Forwarded-User"}, {}):
        with serving(url, trusted_proxies=("127.0.0.1",), **more) as server:
            assert server.get(STUDIES).status_code == 401
            assert server.get("/").status_code == 303
            assert (
                server.get("/", headers={"host": "lab.example.org", "x-forwarded-for": "203.0.113.9"}).status_code
                == 303
            )


def test_without_the_option_the_header_means_nothing(tmp_path):
    with serving(f"sqlite:///{tmp_path}/studies.db") as server:
        server.app.state.server.tokens.make("ann", Role.admin, identity="ann@example.org")
        assert server.get(STUDIES, headers=ANN).status_code == 401


def test_what_a_named_proxy_forwards_is_in_the_trail_and_on_cookies(server):
    text, _ = server.app.state.server.tokens.make("bob", Role.viewer)
    browser = Visitor(server)
    browser.http.headers.update(
        {"x-forwarded-for": "203.0.113.9", "x-forwarded-proto": "https", "host": "lab.example.org"}
    )
    form = {"token": text, "form_token": browser.form_token()}
    visitor = browser.http.cookies["surepick-visitor"]  # it is for https, and this client speaks http
    answer = browser.http.post("/login", data=form, headers={"cookie": f"surepick-visitor={visitor}"})
    assert answer.status_code == 303, answer.text
    assert "Secure" in answer.headers["set-cookie"]
    assert server.app.state.server.trail.latest()[0].address == "203.0.113.9"
    browser.close()


@of_each("given", ["x", "", "10.0.0.5/8", "0.0.0.0/0", "::/0", "example.org", "10.0.0.256", "*"])
def test_proxies_that_are_none(given):
    with pytest.raises(InvalidInput, match="--trusted-proxy"):
        networks((given,))


@of_each("name", ["x y", "Cookie", "Host", "authorization", "X-Forwarded-For", "x:", "é", "x" * 200])
def test_headers_that_cannot_say_who_is_asking(name):
    with pytest.raises(InvalidInput, match="--trusted-header"):
        read_header(name, proxies=True)
    with pytest.raises(InvalidInput, match="name the proxy"):
        read_header("X-Forwarded-User", proxies=False)


@of_each(
    ("client", "number"),
    [
        (("::ffff:10.0.0.5", 1), "10.0.0.5"),
        (("::1", 1), "::1"),
        (("10.0.0.5", 1), "10.0.0.5"),
        (None, None),
        (("", 0), None),
    ],
)
def test_an_address_is_known_however_it_is_written(client, number):
    found = number_of_connection({"client": client})
    assert (None if found is None else str(found)) == number
