"""Login by an identity provider: who an admin has entered gets in, whatever else is tried."""

import asyncio
import contextlib
import re
import socket
import threading
import time

import httpx
import pytest
from fastapi import Response
from identity_providers import ANN, CLIENT, came_back, changed, providing, sent_back, sent_to, signed_by_all, unsigned
from joserfc import jwt
from joserfc.jwk import RSAKey
from page_forms import Visitor
from servers import serving

from surepick.serve.access import tokens
from surepick.serve.access.roles import Role
from surepick.serve.openid.fetching import Fetching

SESSION, LOGIN = "surepick-session", "surepick-login"
AWAY = 1.0  # seconds that tests wait for a provider


@pytest.fixture(scope="module")
def house():
    """A provider that runs; what tests change of it is forgotten (`provider`)."""
    with providing() as found:
        yield found


@pytest.fixture
def provider(house):
    kept = dict(house.__dict__)
    house.person, house.document, house.instead, house.asked = dict(ANN), {}, {}, []
    yield house
    house.__dict__.update(kept)


@pytest.fixture
def server(tmp_path, provider):
    """A server on which an admin has entered ann, by her address of e-mail."""
    url = f"sqlite:///{tmp_path}/studies.db"
    with serving(url, openid=provider.openid(), logins_a_minute=1000) as client:
        held = client.app.state.server
        held.tokens.make("boss", Role.admin)
        held.tokens.make("ann", Role.measurer, identity="Ann@Example.org")
        held.provider.fetching = Fetching(AWAY)
        yield client


@pytest.fixture
def visit(server):
    return lambda: Visitor(server)


def stored(server) -> list:
    """All that the server's tables have, but for the trail."""
    engine = server.app.state.server.studies.database.engine
    with engine.connect() as connection:
        names = ("serve_token", "serve_identity", "serve_ended", "serve_webhook")
        return [connection.exec_driver_sql(f"SELECT * FROM {name}").all() for name in names]


def refused(answer, visitor, *words, status=403):
    """Nobody was logged in, and a sentence says why."""
    assert answer.status_code == status, answer.text
    said = " ".join(re.sub("<[^>]*>", " ", answer.text.partition("<main")[2]).split())
    for word in words:
        assert word in said, said
    assert SESSION not in visitor.http.cookies
    assert visitor.get("/").status_code == 303
    return said


def trail(server) -> list:
    return [(one.who, one.action, one.words) for one in server.app.state.server.trail.latest()]


def test_the_login_page_has_a_button_that_needs_no_script(server, visit):
    page = visit().get("/login?next=/verify").text
    assert 'href="/login/openid?next=/verify">Log in with Example House</a>' in page
    assert 'name="token"' in page


def test_whom_an_admin_entered_gets_in_and_goes_where_they_wanted(server, provider, visit):
    ann, before = visit(), len(server.app.state.server.tokens.list())
    answer = came_back(ann, "/verify?x=1")
    assert answer.status_code == 200
    assert '<meta http-equiv="refresh" content="0;url=/verify?x=1">' in answer.text
    cookies = answer.headers.get_list("set-cookie")
    (session,) = (one.lower() for one in cookies if one.startswith(SESSION))
    assert {"httponly", "samesite=strict", "path=/"} <= {part.strip() for part in session.split(";")}
    assert "ann, measurer" in ann.get("/verify").text
    assert ann.get("/tokens").status_code == 403
    assert len(server.app.state.server.tokens.list()) == before
    assert trail(server)[0] == (
        "ann",
        "log in",
        f"by {provider.issuer}: {provider.issuer}#{ANN['sub']} or {ANN['email']}",
    )
    assert LOGIN not in ann.http.cookies


def test_the_way_to_the_provider_has_what_its_standard_wants(server, provider, visit):
    ann = visit()
    first, second = (httpx.URL(sent_to(ann)).params for _ in range(2))
    assert first["redirect_uri"] == f"{str(server.base_url).rstrip('/')}/login/openid/back"
    assert (first["response_type"], first["scope"], first["code_challenge_method"]) == ("code", "openid email", "S256")
    for name in ("state", "nonce", "code_challenge"):
        assert len(first[name]) >= 43
        assert first[name] != second[name]
    cookie = ann.get("/login/openid").headers["set-cookie"].lower()
    assert {"httponly", "samesite=lax", "path=/login/openid"} <= {part.strip() for part in cookie.split(";")}
    came_back(ann)
    assert provider.redeemed[-1]["basic"]
    assert "client_secret" not in provider.redeemed[-1]


def test_a_subject_is_an_identity_too_and_goes_before_the_address(server, provider, visit):
    held = server.app.state.server
    held.tokens.make("subject", Role.viewer, identity=f"{provider.issuer}#{ANN['sub']}")
    ann = visit()
    came_back(ann)
    assert "subject, viewer" in ann.get("/").text


@pytest.mark.parametrize("identity", [ANN["sub"], f"https://another.example#{ANN['sub']}", "ann", "Example House"])
def test_only_the_whole_identity_counts(server, provider, visit, identity):
    server.app.state.server.tokens.make("other", Role.admin, identity=identity)
    provider.person["email_verified"] = False
    ann = visit()
    refused(came_back(ann), ann)


STRANGERS = [
    ({"sub": "1", "email": "mallory@example.org"}, "mallory@example.org"),
    ({"email_verified": False, "sub": "2"}, "#2"),
    ({"email_verified": "true", "sub": "3"}, "#3"),
    ({"email_verified": 1, "sub": "4"}, "#4"),
    ({"email": ["ann@example.org"], "sub": "5"}, "#5"),
    ({"email": "ann@example.org, x@example.org", "sub": "6"}, "#6"),
    ({"email": "ann@example.org\u200b", "sub": "7"}, "#7"),
    ({"email": "ann@ex\u0430mple.org", "sub": "8"}, "#8"),
    ({"sub": "ann@example.org", "email": None}, "#ann@example.org"),
]


@pytest.mark.parametrize(("person", "called"), STRANGERS, ids=[called for _, called in STRANGERS])
def test_nobody_is_made_by_asking(server, provider, visit, person, called):
    before, eve = stored(server), visit()
    provider.person |= person
    said = refused(came_back(eve), eve, "Example House knows you as", called, "nobody of that name may use this server")
    assert said.count(".") <= 8
    assert stored(server) == before
    assert trail(server)[0][:2] == ("", "log in refused")
    assert called in trail(server)[0][2]


def test_an_address_that_the_provider_keeps_apart_is_asked_for(server, provider, visit):
    apart = {name: provider.person[name] for name in ("email", "email_verified")}
    provider.claims = lambda claims: {name: value for name, value in claims.items() if name not in apart}
    ann = visit()
    assert came_back(ann).status_code == 200
    assert "/person" in provider.asked
    eve = visit()
    provider.instead["/person"] = lambda: Response(
        b'{"sub": "another", "email": "ann@example.org", "email_verified": true}'
    )
    refused(came_back(eve), eve, "does not hold (sub)")


def later(seconds):
    return lambda claims: {**claims, "exp": int(time.time()) + seconds}


CLAIMS = {
    "nonce of another login": (lambda claims: {**claims, "nonce": "x" * 43}, "nonce"),
    "no nonce": (lambda claims: {name: one for name, one in claims.items() if name != "nonce"}, "nonce"),
    "another issuer": (lambda claims: {**claims, "iss": "https://evil.example"}, "iss"),
    "issuer with a slash": (lambda claims: {**claims, "iss": claims["iss"] + "/"}, "iss"),
    "another audience": (lambda claims: {**claims, "aud": "another"}, "aud"),
    "no audience": (lambda claims: {**claims, "aud": []}, "aud"),
    "for another party": (lambda claims: {**claims, "aud": [CLIENT, "another"], "azp": "another"}, "azp"),
    "for several, and nobody says whom": (lambda claims: {**claims, "aud": [CLIENT, "another"]}, "azp"),
    "expired": (later(-3600), "(exp)"),
    "expires never": (lambda claims: {name: one for name, one in claims.items() if name != "exp"}, "exp"),
    "expires at a word": (lambda claims: {**claims, "exp": "never"}, "exp"),
    "from tomorrow": (lambda claims: {**claims, "iat": int(time.time()) + 86_400}, "iat"),
    "not yet": (lambda claims: {**claims, "nbf": int(time.time()) + 86_400}, "nbf"),
    "of another access token": (lambda claims: {**claims, "at_hash": "x" * 22}, "at_hash"),
    "no subject": (lambda claims: {name: one for name, one in claims.items() if name != "sub"}, "sub"),
    "an empty subject": (lambda claims: {**claims, "sub": ""}, "sub"),
    "a subject that is none": (lambda claims: {**claims, "sub": 5}, "sub"),
    "a subject of two lines": (lambda claims: {**claims, "sub": "a\nb"}, "sub"),
}


@pytest.mark.parametrize("case", CLAIMS)
def test_claims_that_do_not_hold(server, provider, visit, case):
    provider.claims, why = CLAIMS[case]
    before, eve = stored(server), visit()
    refused(came_back(eve), eve, "does not hold", why)
    assert stored(server) == before
    assert trail(server)[0][:2] == ("", "log in refused")


STRANGE = RSAKey.generate_key(2048, {"kid": "first"})
SIGNED = {
    "by nobody": lambda provider: unsigned,
    "by what everybody knows": signed_by_all,
    "by a shared key": lambda provider: lambda header, claims: shared_key(claims),
    "by another key of that name": lambda provider: (
        lambda header, claims: jwt.encode(header, claims, STRANGE, ["RS256"])
    ),
    "by a key that is not there": lambda provider: (
        lambda header, claims: jwt.encode({"alg": "RS256", "kid": "none"}, claims, STRANGE, ["RS256"])
    ),
    "by a key in its own header": lambda provider: (
        lambda header, claims: jwt.encode(
            {"alg": "RS256", "kid": "mine", "jwk": STRANGE.as_dict(private=False)}, claims, STRANGE, ["RS256"]
        )
    ),
    "and changed afterwards": lambda provider: (
        lambda header, claims: (
            (provider.sign(header, claims).split(".")[0] + "." + ".".join(provider.sign(header, {}).split(".")[1:]))[
                :-4
            ]
            + "AAAA"
        )
    ),
    "not at all": lambda provider: lambda header, claims: "no.token",
    "as nothing": lambda provider: lambda header, claims: None,
    "as a list": lambda provider: lambda header, claims: [1],
}


def shared_key(claims) -> str:
    from joserfc.jwk import OctKey

    key = OctKey.import_key({"kty": "oct", "kid": "shared", "k": "b2YgYm90aCBzaWRlcw"})
    return jwt.encode({"alg": "HS256", "kid": "shared"}, claims, key, ["HS256"])


@pytest.mark.filterwarnings("ignore::joserfc.errors.SecurityWarning")
@pytest.mark.parametrize("case", SIGNED)
def test_signatures_that_do_not_hold(server, provider, visit, case):
    provider.signed = SIGNED[case](provider)
    before, eve = stored(server), visit()
    refused(came_back(eve), eve, "does not hold")
    assert stored(server) == before


def test_other_keys_of_the_provider_are_fine_and_new_ones_need_no_restart(server, provider, visit):
    provider.header = {"alg": "ES256", "kid": "second"}
    assert came_back(visit()).status_code == 200
    provider.header, provider.key = {"alg": "PS256", "kid": "third"}, RSAKey.generate_key(2048, {"kid": "third"})
    assert came_back(visit()).status_code == 200


def test_a_login_belongs_to_the_browser_that_began_it(server, provider, visit):
    """Login CSRF: eve sends ann to where eve's own login ends, so that ann would work as eve."""
    server.app.state.server.tokens.make("eve", Role.measurer, identity="eve@example.org")
    eve, ann = visit(), visit()
    provider.person |= {"email": "eve@example.org", "sub": "9"}
    back = sent_back(eve)
    refused(ann.http.get(back), ann, "was not begun in this browser")
    sent_to(ann)  # she has begun one too
    refused(ann.http.get(back), ann, "was not begun in this browser")
    assert provider.redeemed == [] or provider.redeemed[-1]["code"] not in back
    assert eve.http.get(back).status_code == 200


@pytest.mark.parametrize("state", ["", "x", "ü", "0"])
def test_a_state_that_is_wrong(server, provider, visit, state):
    eve = visit()
    refused(eve.http.get(changed(sent_back(eve), state=state)), eve, "was not begun in this browser")


def test_a_login_works_once(server, provider, visit):
    ann = visit()
    back, cookie = sent_back(ann), ann.http.cookies[LOGIN]
    code = httpx.URL(back).params["code"]
    asked = provider.codes[code]
    assert ann.http.get(back).status_code == 200
    eve = visit()
    eve.http.cookies.set(LOGIN, cookie)
    refused(eve.http.get(back), eve, "does not hold (code)")
    provider.codes[code] = asked  # a provider that redeems a code twice
    refused(eve.http.get(back), eve, "it was used already")


def test_a_code_of_another_login_is_not_redeemed(server, provider, visit):
    """A code that eve has stolen from ann is worth nothing in eve's own login."""
    ann, eve = visit(), visit()
    code = httpx.URL(sent_back(ann)).params["code"]
    refused(eve.http.get(changed(sent_back(eve), code=code)), eve, "does not hold (code)")
    refused(eve.http.get(changed(sent_back(eve), code="")), eve, "does not hold (code)")


def test_a_login_that_took_too_long(server, provider, visit, monkeypatch):
    from surepick.serve.openid import flow

    ann = visit()
    back = sent_back(ann)
    monkeypatch.setattr(flow, "SECONDS", -1)
    refused(ann.http.get(back), ann, "10 minutes")


def test_an_answer_of_another_provider(server, provider, visit):
    eve = visit()
    refused(eve.http.get(sent_back(eve) + "&iss=https://evil.example"), eve, "does not hold (iss)")
    assert eve.http.get(changed(sent_back(eve), iss=provider.issuer)).status_code == 200


def test_who_said_no_at_the_provider_is_told_so_in_our_words(server, provider, visit):
    eve = visit()
    back = changed(sent_back(eve), error="access_denied", error_description="<b>pwned</b>", code="")
    assert "pwned" not in refused(eve.http.get(back), eve, "did not log you in (access_denied)")
    back = changed(sent_back(eve), error="<b>pwned</b>")
    assert "pwned" not in refused(eve.http.get(back), eve, "did not log you in")


ELSEWHERE = ["https://evil.example", "//evil.example", "/\\evil.example", "/\t/evil.example", "evil", "/a\r\nx: y",
             "/login", "/logout", '/"><script>', "javascript:alert(1)", "/;url=//evil.example\u2028"]  # fmt: skip


@pytest.mark.parametrize("path", ELSEWHERE)
def test_a_login_leads_to_this_server_only(server, provider, visit, path):
    answer = came_back(visit(), path)
    (target,) = re.findall('content="0;url=([^"]*)"', answer.text)
    assert target == "/" or (target.startswith("/") and "evil" not in target and "<" not in target)
    assert "<script" not in answer.text


def test_another_sites_page_does_not_begin_a_login(server, provider, visit):
    answer = visit().get("/login/openid?next=/verify", headers={"sec-fetch-site": "cross-site"})
    assert answer.headers["location"] == "/login?next=%2Fverify"
    assert "set-cookie" not in answer.headers


def test_who_was_revoked_or_has_expired_gets_in_no_more(server, provider, visit, monkeypatch):
    ann = visit()
    came_back(ann)
    assert ann.get("/").status_code == 200
    held = server.app.state.server
    held.tokens.revoke("ann")
    assert ann.get("/").status_code == 303
    again = visit()
    refused(came_back(again), again, "nobody of that name may use this server")
    held.tokens.make("ann 2", Role.viewer, identity=ANN["email"])  # the person comes back under another name
    assert came_back(again).status_code == 200
    assert "ann 2, viewer" in again.get("/").text
    clock = tokens.system_clock
    monkeypatch.setattr(tokens, "system_clock", lambda: clock() + 91 * 86_400.0)
    assert again.get("/").status_code == 303
    third = visit()
    refused(came_back(third), third, "nobody of that name may use this server")


def test_logging_out_ends_the_session_that_was_opened(server, provider, visit):
    ann = visit()
    came_back(ann)
    kept = ann.http.cookies[SESSION]
    assert ann.send("/logout").status_code == 303
    assert server.get("/", headers={"cookie": f"{SESSION}={kept}"}).status_code == 303


def test_logins_are_limited(tmp_path, provider):
    with serving(f"sqlite:///{tmp_path}/studies.db", openid=provider.openid(), logins_a_minute=2) as server:
        server.app.state.server.tokens.make("boss", Role.admin)
        eve = Visitor(server)
        provider.person |= {"email": "eve@example.org", "sub": "9"}
        back = sent_back(eve)
        assert [eve.http.get(back).status_code for _ in range(3)] == [403, 403, 429]
        assert [eve.get("/login/openid").status_code for _ in range(2)] == [303, 429]


def test_without_a_token_a_server_with_a_provider_is_nobodys(tmp_path, provider):
    with serving(f"sqlite:///{tmp_path}/studies.db", openid=provider.openid()) as server:
        assert server.get("/").status_code == 303
        assert server.get("/api/v1/studies").status_code == 401


def test_without_a_provider_there_is_no_such_login(tmp_path):
    with serving(f"sqlite:///{tmp_path}/studies.db") as server:
        for path in ("/login/openid", "/login/openid/back"):
            assert server.get(path).status_code == 404
        assert "Log in with " not in server.get("/login").text


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


@pytest.mark.parametrize("path", ["/.well-known/openid-configuration", "/token", "/keys"])
@pytest.mark.parametrize("case", FAILURES)
def test_a_provider_that_does_not_do_its_part(server, provider, visit, path, case):
    other, status = FAILURES[case]
    ann, before = visit(), stored(server)
    begun = time.monotonic()
    if path.startswith("/.well"):
        provider.instead[path] = other
        answer = ann.get("/login/openid")
    else:
        back = sent_back(ann)
        provider.instead[path] = other
        answer = ann.http.get(back)
    refused(answer, ann, "Example House cannot be asked who you are", status=status)
    assert time.monotonic() - begun < 10 * AWAY
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
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        over.set()
        listening.close()
        thread.join(5.0)


def test_a_provider_that_drips_keeps_nobody_waiting():
    from surepick.serve.openid.errors import ProviderAway

    fetching = Fetching(AWAY)
    with dripping() as address:
        begun = time.monotonic()
        with pytest.raises(ProviderAway, match="did not answer within"):
            fetching.ask(address)
        assert time.monotonic() - begun < 5 * AWAY
    fetching.close()
