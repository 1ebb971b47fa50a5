"""Login by an identity provider: who an admin has entered gets in, whatever else is tried."""

import re

import httpx
import pytest
from fastapi import Response
from identity_providers import ANN, LOGIN, SESSION, came_back, changed, refused, sent_back, sent_to, stored, trail
from page_forms import Visitor
from servers import serving

from surepick_server.access import tokens
from surepick_server.access.tokens import Role


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


@pytest.mark.cases(5)
@pytest.mark.parametrize(("person", "called"), STRANGERS, ids=[called for _, called in STRANGERS])
def test_nobody_is_made_by_asking(server, provider, visit, person, called):
    before, eve = stored(server), visit()
    provider.person |= person
    said = refused(came_back(eve), eve, "Example House knows you as", called, "nobody of that name may use this server")
    assert said.count(".") <= 8
    assert stored(server) == before
    assert trail(server)[0][:2] == ("", "log in refused")
    assert called in trail(server)[0][2]


def test_an_address_that_looks_like_a_subject_is_none(server, provider, visit):
    """Who may choose an address of e-mail does not become somebody else by it."""
    server.app.state.server.tokens.make("other", Role.admin, identity=f"{provider.issuer}#42")
    for address in (f"{provider.issuer}#42", f"{provider.issuer}#42@example.org"):
        provider.person |= {"email": address, "sub": "9"}
        eve = visit()
        refused(came_back(eve), eve, f"knows you as {provider.issuer}#9, and nobody")


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
    from surepick_server import openid

    ann = visit()
    back = sent_back(ann)
    monkeypatch.setattr(openid, "FLOW_SECONDS", -1)
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


@pytest.mark.cases(6)
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
