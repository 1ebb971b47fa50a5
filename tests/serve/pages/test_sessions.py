"""Login, logout, the end of sessions; tokens of forms; addresses to go back to."""

import re
import time

import pytest
from page_forms import Visitor
from servers import serving

OWN = "/studies/coffee/history?said="


def test_the_person_at_the_machine_needs_no_login(server):
    assert server.get("/").status_code == 200
    assert server.get("/login").headers["location"] == "/"
    assert "Log out" not in server.get("/").text


def test_a_stale_cookie_locks_nobody_out_of_their_own_machine(server):
    assert server.get("/", headers={"cookie": "surepick-session=of-another-server"}).status_code == 200


def test_login_opens_a_session_that_no_script_and_no_other_site_gets(server, visit):
    ann = visit("ann", "measurer")
    answer = ann.send("/login", token=ann.token)
    cookie = answer.headers["set-cookie"].lower()
    assert cookie.startswith("surepick-session=")
    assert {"httponly", "samesite=strict", "path=/"} <= {part.strip() for part in cookie.split(";")}
    assert ann.token not in cookie
    assert "ann, measurer" in ann.get("/").text


def test_a_session_ends_by_logout_and_by_revoking_its_token(server, visit):
    ann, bob = visit("ann"), visit("bob")
    assert ann.send("/logout").status_code == 303
    assert ann.get("/").headers["location"] == "/login?next=%2F"
    assert bob.get("/").status_code == 200
    server.app.state.server.tokens.revoke("bob")
    assert bob.get("/").status_code == 303


def test_logging_out_ends_the_session_in_every_process_also_for_who_has_copied_its_cookie(database_url):
    with serving(database_url) as one, serving(database_url) as another:
        ann = Visitor(one).login("ann", "viewer")
        bob = Visitor(one).login("bob", "viewer")
        elsewhere = Visitor(one)  # ann's other browser
        assert elsewhere.send("/login", token=ann.token).status_code == 303
        kept = {"cookie": f"surepick-session={ann.http.cookies['surepick-session']}"}
        for server in (one, another):
            assert server.get("/", headers=kept).status_code == 200
        assert ann.send("/logout").status_code == 303
        for server in (one, another):
            assert server.get("/", headers=kept).status_code == 303
            assert server.get("/api/v1/studies", headers=kept).status_code == 401
        assert (bob.get("/").status_code, elsewhere.get("/").status_code) == (200, 200)
        assert one.app.state.server.trail.latest()[0].action == "log out"
        header = {"authorization": f"Bearer {ann.token}"}
        assert another.get("/api/v1/studies", headers=header).status_code == 200  # the token is another thing


def test_what_is_over_is_forgotten_when_it_would_be_over_anyway(tmp_path, monkeypatch):
    from surepick_server.access import tokens

    with serving(f"sqlite:///{tmp_path}/studies.db") as server:
        over = server.app.state.server.ended
        assert over.add("first")
        assert not over.add("first")
        monkeypatch.setattr(tokens, "system_clock", lambda: time.time() + 13 * 3600.0)
        assert over.add("second")
        with server.app.state.server.studies.database.engine.connect() as connection:
            assert connection.exec_driver_sql("SELECT id FROM serve_ended").all() == [("second",)]


@pytest.mark.cases(4)
@pytest.mark.parametrize("content", [1, [1], [1, "x", 2], "x", None, ["x", "y"], {}])
def test_a_session_of_another_version_is_nobodys(server, visit, content):
    visit("ann")
    cookie = server.app.state.server.sessions.dumps(content)
    assert server.get("/", headers={"cookie": f"surepick-session={cookie}"}).status_code == 303


def test_a_session_ends_with_its_time(tmp_path):
    with serving(f"sqlite:///{tmp_path}/studies.db", session_seconds=1.0) as server:
        ann = Visitor(server).login("ann", "viewer")
        assert ann.get("/").status_code == 200
        kept = ann.http.cookies["surepick-session"]
        until = time.monotonic() + 10.0
        while server.get("/", headers={"cookie": f"surepick-session={kept}"}).status_code == 200:
            assert time.monotonic() < until
            time.sleep(0.2)
        ann.close()


def test_a_wrong_token_is_refused_on_the_page_and_attempts_are_limited(tmp_path):
    with serving(f"sqlite:///{tmp_path}/studies.db", logins_a_minute=2) as server:
        Visitor(server).login("ann", "viewer").close()
        nobody = Visitor(server)
        refused = nobody.send("/login", token="spk_wrong")
        assert refused.status_code == 401
        assert "is not known here" in refused.text
        assert "surepick-session" not in refused.headers.get("set-cookie", "")
        assert nobody.send("/login", token="spk_wrong").status_code == 429
        nobody.close()


def test_who_is_not_known_is_asked_to_log_in_and_comes_back(server, study, visit):
    ann, nobody = visit("ann"), visit()
    answer = nobody.get("/studies/coffee/history")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/login?next=%2Fstudies%2Fcoffee%2Fhistory"
    form = nobody.get(answer.headers["location"]).text
    assert 'name="next" value="/studies/coffee/history"' in form
    back = nobody.send("/login", token=ann.token, next="/studies/coffee/history")
    assert back.headers["location"] == "/studies/coffee/history"
    part = visit().get("/studies/coffee/standing", headers={"hx-request": "true"})
    assert (part.status_code, part.headers["hx-redirect"]) == (401, "/login?next=%2Fstudies%2Fcoffee")


@pytest.mark.cases(4)
@pytest.mark.parametrize(
    "elsewhere",
    [
        "https://evil.example/",
        "//evil.example",
        "/\\evil.example",
        "/\t/evil.example",
        "evil",
        "/a\r\nx: y",
        "",
        "/login",
    ],
)
def test_a_login_leads_to_this_server_only(visit, elsewhere):
    ann = visit("ann")
    assert ann.send("/login", token=ann.token, next=elsewhere).headers["location"] == "/"
    assert ann.get("/login", params={"next": elsewhere}).text.count('name="next" value="/"') == 1


def forged(token: str) -> dict[str, str]:
    return {"form_token": token, "max_pulls": "1"}


def test_a_form_without_the_token_of_this_browser_does_nothing(server, study, visit):
    ann, bob = visit("ann", "measurer"), visit("bob", "measurer")
    for token in ("", "x", "ü", bob.form_token("/verify")):
        refused = ann.http.post("/studies/coffee/take", data=forged(token))
        assert refused.status_code == 403
        assert "was not made for this browser" in refused.text
    before = ann.form_token("/verify")
    ann.send("/login", token=ann.token)  # another session, in the same browser
    time.sleep(1.1)  # a session is known by its second
    ann.send("/login", token=ann.token)
    assert ann.http.post("/studies/coffee/take", data=forged(before)).status_code == 403
    assert ann.tasks("coffee") == []
    assert ann.http.post("/studies/coffee/take", data=forged(ann.form_token("/verify"))).status_code == 303
    assert len(ann.tasks("coffee")) == 1


def test_the_person_at_the_machine_has_tokens_in_forms_too(server, study):
    assert server.post("/studies/coffee/close", data={"reason": "x"}).status_code == 403
    local = Visitor(server)
    assert local.http.post("/studies/coffee/close", data={"form_token": local.form_token("/new")}).status_code == 303
    local.close()


@pytest.mark.parametrize("headers", [{"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}])
def test_a_form_of_another_site_does_nothing(study, visit, headers):
    ann = visit("ann", "measurer")
    data = forged(ann.form_token("/verify"))
    assert ann.http.post("/studies/coffee/take", data=data, headers=headers).status_code == 403
    assert ann.tasks("coffee") == []


def test_a_sentence_in_the_address_is_shown_only_if_the_server_wrote_it(study, visit):
    ann = visit("ann", "measurer")
    assert "pwned" not in ann.get(f"{OWN}pwned").text
    location = ann.send("/studies/coffee/take", max_pulls="1").headers["location"]
    assert "You hold 1 measurement." in ann.get(location).text
    assert re.search("said=[A-Za-z0-9_.-]+$", location)


def test_behind_a_proxy_all_links_and_cookies_have_its_path(tmp_path):
    with serving(f"sqlite:///{tmp_path}/studies.db", root_path="/pick") as server:
        ann = Visitor(server, "/pick").login("ann", "owner")
        page = ann.get("/")
        assert page.status_code == 200
        links = re.findall(r'(?:href|action|src)="(/[^"]*)"', page.text)
        assert links
        assert all(link.startswith("/pick/") for link in links)
        assert "Path=/pick;" in ann.send("/login", token=ann.token).headers["set-cookie"]
        nobody = Visitor(server, "/pick")
        assert nobody.get("/verify").headers["location"] == "/pick/login?next=%2Fverify"
        nobody.close()
        ann.close()
