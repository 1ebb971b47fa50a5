"""Who gets which page, and what is on all of them."""

from urllib.parse import urlsplit

import pytest
from page_forms import Parts
from servers import serving

from surepick_server.api.routing import routes_of

PAGES = {  # path -> the role that it takes
    "/": "viewer",
    "/verify": "viewer",
    "/new": "owner",
    "/new/measurement": "owner",
    "/new/question": "owner",
    "/tokens": "admin",
    "/studies/coffee": "viewer",
    "/studies/coffee/settings": "owner",
    "/studies/coffee/standing": "viewer",
    "/studies/coffee/answer": "viewer",
    "/studies/coffee/history": "viewer",
    "/studies/coffee/report": "viewer",
    "/studies/coffee/certificate.json": "viewer",
    "/studies/coffee/results.csv": "viewer",
    "/studies/coffee/tasks.csv": "measurer",
}
FORMS = {
    "/new": "owner",
    "/new/measurement": "owner",
    "/new/question": "owner",
    "/new/forecast": "owner",
    "/new/create": "owner",
    "/tokens": "admin",
    "/tokens/revoke": "admin",
    "/studies/coffee/rename": "owner",
    "/studies/coffee/note": "owner",
    "/studies/coffee/archive": "owner",
    "/studies/coffee/take": "measurer",
    "/studies/coffee/results": "measurer",
    "/studies/coffee/release": "measurer",
    "/studies/coffee/undo": "measurer",
    "/studies/coffee/correct": "measurer",
    "/studies/coffee/abandon": "owner",
    "/studies/coffee/withdraw": "owner",
    "/studies/coffee/add": "owner",
    "/studies/coffee/interim": "owner",
    "/studies/coffee/close": "owner",
}
ROLES = ["viewer", "measurer", "owner", "admin"]


def test_every_page_is_listed(server):
    pages = [route for route in routes_of(server.app) if not route.include_in_schema]
    open_to_all = {"/login", "/login/openid", "/login/openid/back", "/logout", "/static/{file}"}
    for method, listed in (("GET", PAGES), ("POST", FORMS)):
        paths = {route.path for route in pages if method in route.methods} - open_to_all
        assert paths == {
            path.replace("/coffee", "/{name}") for path in (listed if method == "GET" else {**FORMS, "/verify": ""})
        }


@pytest.mark.parametrize("role", ROLES)
def test_pages_and_forms_take_their_role(study, visit, role):
    ann = visit("ann", role)
    for path, least in PAGES.items():
        allowed = ROLES.index(role) >= ROLES.index(least)
        assert ann.get(path).status_code == (200 if allowed else 403), path
    for path, least in FORMS.items():
        if ROLES.index(role) < ROLES.index(least):
            refused = ann.send(path)
            assert (refused.status_code, f"takes the role {least}" in refused.text) == (403, True), path


def test_a_page_of_an_error_has_the_links_of_who_sees_it(server, study, visit):
    ann = visit("ann", "measurer")
    for path, status in (("/tokens", 403), ("/studies/tea", 404), ("/nowhere", 404)):
        page = ann.get(path)
        assert (page.status_code, "ann, measurer" in page.text) == (status, True), path
        assert 'href="/verify"' in page.text, path
    token = {"authorization": f"Bearer {ann.token}"}
    for page in (visit().get("/nowhere"), visit().get("/nowhere", headers=token)):  # it is no place to try tokens
        assert (page.status_code, "ann" in page.text) == (404, False)


def test_nobody_else_gets_a_page(server, study, visit):
    visit("ann").close()
    nobody = visit()
    for path in PAGES:
        assert nobody.get(path).status_code == 303, path
    for path in FORMS:
        assert nobody.http.post(path).status_code == 303, path


def test_a_token_of_one_study_shows_that_one_only(server, study, visit):
    new = {"name": "tea", "candidates": {"ids": list("ab")}, "epsilon": 0.5, "noise": "bernoulli"}
    server.post("/api/v1/studies", json=new)
    ann = visit("ann", "measurer", "tea")
    listed = ann.get("/").text
    assert "tea" in listed
    assert "coffee" not in listed
    missing, foreign = ann.get("/studies/absent"), ann.get("/studies/coffee")
    assert (missing.status_code, foreign.status_code) == (404, 404)
    assert missing.text.replace("absent", "coffee") == foreign.text


def test_nothing_is_inline_and_nothing_comes_from_elsewhere(server, study, visit):
    ann = visit("ann", "admin")
    ann.send("/studies/coffee/take", max_pulls="2")
    pages = [path for path in PAGES if not path.endswith((".json", ".csv", "/report"))]
    for path in (*pages, "/login", "/nowhere"):
        page = ann.get(path)
        parts = Parts(page.text)
        assert parts.inline == [], path
        for address in parts.addresses:
            assert address.startswith(("/", "#", "data:,")), (path, address)
            assert not urlsplit(address).netloc, (path, address)
        policy = page.headers["content-security-policy"]
        assert "unsafe" not in policy
        assert "script-src 'self'" in policy
        assert page.headers["cache-control"] == "no-store"


def test_what_is_inline_is_found():
    found = Parts('<p style="x" onclick="y" hx-on:click="z"><style></style><script>1</script><a href="//x">')
    assert (len(found.inline), found.addresses) == (5, ["//x"])


def test_every_static_file_that_pages_name_is_there(server, study):
    for path in ("/", "/studies/coffee"):
        for address in Parts(server.get(path).text).addresses:
            if "/static/" in address:
                assert server.get(address).status_code == 200, address
    assert server.get("/static/../app.py").status_code == 404
    assert server.get("/static/%2e%2e%2fapp.py").status_code == 404


def test_errors_are_pages_for_people_and_documents_for_programs(server):
    missing = server.get("/studies/none")
    assert missing.headers["content-type"].startswith("text/html")
    assert "There is no study" in missing.text
    assert server.get("/api/v1/studies/none").headers["content-type"] == "application/problem+json"
    assert server.get("/nowhere").text.count("what was here is gone") == 1


def test_what_is_too_large_is_refused_on_a_page_too(tmp_path):
    with serving(f"sqlite:///{tmp_path}/studies.db", largest_body=1_000) as server:
        large = server.post("/verify", content=b"x" * 2_000)
        assert (large.status_code, "The body is larger than 1,000 bytes" in large.text) == (413, True)
        assert large.headers["content-type"].startswith("text/html")
        assert server.post("/api/v1/verify", content=b"x" * 2_000).headers["content-type"] == "application/problem+json"


NAMES = ["<script>alert(1)<img src=x>\"'&", "50% of x?y#z", "über & ünter", "a\u2028b"]


@pytest.mark.cases(2)
@pytest.mark.parametrize("name", NAMES)
def test_names_of_people_are_text_on_every_page(server, visit, name):
    from html import escape
    from urllib.parse import quote

    asked = {"epsilon": 0.5, "noise": "bernoulli", "options": {"largest_batch": 2}}  # a result of each at first
    new = {"name": name, "candidates": {"ids": [name, "b"]}, "scale": {"unit": name}, "reward_column": name, **asked}
    assert server.post("/api/v1/studies", json=new).status_code == 201
    ann = visit("ann", "owner")
    place = f"/studies/{quote(name, safe='')}"
    assert place in ann.get("/").text
    assert ann.send(f"{place}/take", max_pulls="2").headers["location"].startswith(place)
    for part in ("", "/answer", "/history", "/standing", "/tasks.csv", "/certificate.json"):
        page = ann.get(place + part)
        assert page.status_code == 200, part
        if page.headers["content-type"].startswith("text/html"):
            assert "<script>alert" not in page.text
            assert Parts(page.text).inline == []
    assert escape(name, quote=False).split("\u2028")[0] in ann.get(place).text.replace("&#34;", '"').replace(
        "&#39;", "'"
    )
    keys = ann.tasks(place.removeprefix("/studies/"))
    assert [one for one, _ in keys] == [name, "b"]
    rows = [{"id": one, "key": key, "reward": 1.0} for one, key in keys]
    sent = server.post(
        f"/api/v1{place}/results", json={"results": rows}, headers={"authorization": f"Bearer {ann.token}"}
    )
    assert sent.status_code == 200
    for part in ("", "/answer", "/history", "/report"):  # with the pictures of a round that is closed
        page = ann.get(place + part).text
        assert "<script>alert" not in page
        assert name.isprintable() is False or escape(name, quote=False)[:9] in page.replace("&#34;", '"')
