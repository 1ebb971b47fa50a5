"""What people try, by mistake or not: each is refused with a sentence, and changes nothing."""

import contextlib
import json
import socket
import subprocess
import sys
import time
from http import HTTPStatus

import httpx
import pytest
from servers import connected, serving, token_for

from surepick.errors import StorageError

API = "/api/v1"
PAINT = f"{API}/studies/paint"
GOAL = {"candidates": {"ids": ["x", "y"]}, "epsilon": 1.0, "noise": "subgaussian:1"}
NEW = {"name": "new", **GOAL}
CSV = {"content-type": "text/csv"}
MATRIX = [  # method, path, body, the least role
    ("GET", f"{API}/studies", None, "viewer"),
    ("GET", PAINT, None, "viewer"),
    ("GET", f"{PAINT}/candidates", None, "viewer"),
    ("GET", f"{PAINT}/certificate", None, "viewer"),
    ("GET", f"{PAINT}/report?forecast_up_to=0", None, "viewer"),
    ("GET", f"{PAINT}/export.csv", None, "viewer"),
    ("GET", f"{PAINT}/history", None, "viewer"),
    ("GET", "/metrics", None, "viewer"),
    ("POST", f"{API}/verify", {}, "viewer"),
    ("GET", f"{PAINT}/leases", None, "measurer"),
    ("POST", f"{PAINT}/leases", {}, "measurer"),
    ("POST", f"{PAINT}/results", {"results": []}, "measurer"),
    ("POST", f"{PAINT}/release", {}, "measurer"),
    ("POST", f"{API}/studies", NEW, "owner"),
    ("POST", f"{API}/forecasts", GOAL, "owner"),
    ("POST", f"{PAINT}/abandon", {"reason": "broken", "ids": ["a"]}, "owner"),
    ("POST", f"{PAINT}/withdraw", {"reason": "sold out", "ids": ["a"]}, "owner"),
    ("POST", f"{PAINT}/add", {"ids": ["a"]}, "owner"),
    ("POST", f"{PAINT}/interim", None, "owner"),
    ("POST", f"{PAINT}/close", {}, "owner"),
    ("GET", f"{PAINT}/webhooks", None, "owner"),
    ("POST", f"{PAINT}/webhooks", {"url": "https://example.org/"}, "owner"),
    ("DELETE", f"{PAINT}/webhooks/1", None, "owner"),
    ("POST", f"{PAINT}/webhooks/1/allow", {}, "admin"),
    ("GET", f"{API}/tokens", None, "admin"),
    ("POST", f"{API}/tokens", {"name": "x", "role": "viewer"}, "admin"),
    ("DELETE", f"{API}/tokens/nobody", None, "admin"),
]
ROLES = ("viewer", "measurer", "owner", "admin")


def refusal(answer):
    """The sentence of a problem document."""
    assert answer.headers["content-type"] == "application/problem+json"
    found = answer.json()
    assert found["status"] == answer.status_code
    assert found["title"] == HTTPStatus(answer.status_code).phrase
    return found["detail"]


def state(client, header):
    """All that can be seen of the studies, but for the time."""
    found = [client.get(f"{API}/studies/{name}", headers=header).json() for name in ("paint", "other")]
    for one in found:
        one["progress"].pop("now")
    return found


@pytest.mark.parametrize(("method", "path", "body", "least"), MATRIX, ids=lambda one: str(one)[:40])
def test_a_role_may_do_what_it_may_and_no_more(client, people, method, path, body, least):
    before = state(client, people["viewer"])
    for role in ROLES[: ROLES.index(least)]:
        answer = client.request(method, path, json=body, headers=people[role])
        assert answer.status_code == HTTPStatus.FORBIDDEN, role
        assert least in refusal(answer)
    assert client.request(method, path, json=body).status_code == HTTPStatus.UNAUTHORIZED
    assert state(client, people["viewer"]) == before
    allowed = client.request(method, path, json=body, headers=people[least])
    assert allowed.status_code not in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)


@pytest.mark.parametrize(("method", "path", "body"), [row[:3] for row in MATRIX if "/paint" in row[1]])
def test_a_token_of_another_study_sees_no_such_study(client, people, method, path, body):
    answer = client.request(method, path, json=body, headers=people["foreign"])
    assert answer.status_code == HTTPStatus.NOT_FOUND
    nowhere = client.request(method, path.replace("paint", "nothing"), json=body, headers=people["foreign"])
    assert refusal(answer).replace("paint", "nothing") == refusal(nowhere)


def test_a_token_of_one_study_lists_that_study_only(client, people):
    found = client.get(f"{API}/studies", headers=people["foreign"]).json()["studies"]
    assert [one["name"] for one in found] == ["other"]


@pytest.mark.parametrize("header", ["", "Basic YTpi", "Bearer", "Bearer spk_wrong", "bearer x y", "Bearer \xff"])
def test_a_header_that_is_no_token(client, people, header):
    answer = client.get(PAINT, headers={"authorization": header.encode("latin-1")})
    assert answer.status_code == HTTPStatus.UNAUTHORIZED
    assert "Bearer" in refusal(answer)


def test_a_revoked_token_and_one_that_has_expired(client, people, monkeypatch):
    assert client.get(PAINT, headers=people["viewer"]).status_code == HTTPStatus.OK
    client.delete(f"{API}/tokens/a viewer", headers=people["admin"])
    assert client.get(PAINT, headers=people["viewer"]).status_code == HTTPStatus.UNAUTHORIZED
    from surepick_server.access import tokens

    monkeypatch.setattr(tokens, "system_clock", lambda: time.time() + 91 * 86_400.0)
    assert client.get(PAINT, headers=people["owner"]).status_code == HTTPStatus.UNAUTHORIZED


@pytest.mark.parametrize(
    "path", [f"{API}/tokens", f"{API}/users", f"{API}/signup", f"{API}/register", "/signup", "/users"]
)
def test_nobody_is_created_by_asking(client, people, path):
    """MLflow's #10250: whoever could reach the server made themselves a user."""
    before = len(client.app.state.server.tokens.list())
    for header in ({}, people["viewer"], people["measurer"], people["owner"]):
        for body in ({"name": "eve", "role": "admin"}, {"username": "eve", "password": "eve"}):
            answer = client.post(path, json=body, headers=header)
            assert answer.status_code in (401, 403, 404, 405)
    assert len(client.app.state.server.tokens.list()) == before


def test_an_admin_cannot_be_made_for_one_study_nor_a_name_used_twice(client, people):
    made = {"name": "sub", "role": "admin", "study": "paint"}
    assert "one of all studies" in refusal(client.post(f"{API}/tokens", json=made, headers=people["admin"]))
    for _ in range(2):
        answer = client.post(f"{API}/tokens", json={"name": "sub", "role": "viewer"}, headers=people["admin"])
    assert "used once" in refusal(answer)


@pytest.mark.parametrize("worker", ["a measurer2", "ann", "", "a measurer /1", "../a measurer", "a viewer/1"])
def test_nobody_works_under_anothers_name(client, people, worker):
    for path, body in ((f"{PAINT}/leases", {}), (f"{PAINT}/results", {"results": []}), (f"{PAINT}/release", {})):
        answer = client.post(path, json={**body, "worker": worker}, headers=people["measurer"])
        assert answer.status_code == HTTPStatus.FORBIDDEN
        assert "You are 'a measurer'" in refusal(answer)


def test_results_of_others_cannot_be_told_nor_failed(client, people):
    lease = client.post(f"{PAINT}/leases", json={"max_pulls": 2}, headers=people["owner"]).json()["measurements"]
    before = state(client, people["viewer"])
    for result in ({"reward": 1.0}, {"failed": True}):
        rows = [{**lease[0], **result}]
        answer = client.post(f"{PAINT}/results", json={"results": rows}, headers=people["measurer"])
        assert answer.status_code == HTTPStatus.FORBIDDEN
        assert "leased to somebody else" in refusal(answer)
    assert state(client, people["viewer"]) == before


def test_a_replay_counts_nothing_twice(client, people):
    lease = client.post(f"{PAINT}/leases", json={}, headers=people["measurer"]).json()["measurements"]
    body = {"results": [{**one, "reward": 1.0} for one in lease]}
    first, second = (client.post(f"{PAINT}/results", json=body, headers=people["measurer"]) for _ in range(2))
    assert first.json() == second.json() == {"stored": 3, "counted": 3, "late": 0, "failed": 0}
    loose = {"results": [{"id": "a", "reward": 1.0}]}
    answer = client.post(f"{PAINT}/results", json=loose, headers=people["measurer"])
    assert "Idempotency-Key" in refusal(answer)
    once = {**people["measurer"], "idempotency-key": "monday"}
    assert client.post(f"{PAINT}/results", json=loose, headers=once).json()["counted"] == 1
    assert client.post(f"{PAINT}/results", json=loose, headers=once).json()["counted"] == 1
    assert client.get(PAINT, headers=people["viewer"]).json()["progress"]["told"] == 1


BODIES = [
    (b"", "no JSON"),
    (b"{", "no JSON"),
    (b"[]", "no object"),
    (b"null", "no object"),
    (b'{"results": 3}', "no list"),
    (b'{"results": [{"id": "a", "reward": NaN, "key": "k"}]}', "not finite"),
    (b'{"results": [{"id": "a", "reward": 1e999, "key": "k"}]}', "infinite"),
    (b'{"results": [{"id": "a", "reward": true, "key": "k", "role": "admin"}]}', "an unknown field"),
    (b'{"results": [{"id": "a", "key": "k"}]}', "no reward"),
    (b'{"results": [{"id": "zzz", "reward": 1, "key": "k"}]}', "no such candidate"),
    (b'{"results": [{"id": "a", "reward": 1, "key": "p9.0@a"}]}', "a key that was never given"),
    (b'{"results": [{"id": "a", "reward": 1, "key": "\\u0000"}]}', "a zero byte"),
    (b'{"results": [{"id": "a", "reward": 1, "key": "k", "quantities": {"t": 1}}]}', "an unknown quantity"),
    (b"[" * 100_000, "very deep"),
]


@pytest.mark.cases(7)
@pytest.mark.parametrize(("body", "what"), BODIES, ids=[what for _, what in BODIES])
def test_a_body_that_means_nothing(client, people, body, what):
    before = state(client, people["viewer"])
    header = {**people["measurer"], "content-type": "application/json"}
    answer = client.post(f"{PAINT}/results", content=body, headers=header)
    assert answer.status_code == HTTPStatus.UNPROCESSABLE_ENTITY, answer.text
    assert refusal(answer)
    assert state(client, people["viewer"]) == before


TABLES = [
    b"",
    b"id\na\n",
    b"id,reward\na,1,2\n",
    b"id,reward\na\n",
    b"id,reward\na,oops\n",
    b"\xff\xfe",
    b"id,reward\n,1\n",
]


@pytest.mark.parametrize("table", TABLES)
def test_a_table_that_means_nothing(client, people, table):
    header = {**people["measurer"], **CSV, "idempotency-key": "x"}
    answer = client.post(f"{PAINT}/results", content=table, headers=header)
    assert answer.status_code == HTTPStatus.UNPROCESSABLE_ENTITY
    assert refusal(answer)


@pytest.mark.parametrize("kind", ["text/html", "multipart/form-data", "", "application/x-www-form-urlencoded"])
def test_a_body_of_another_kind(client, people, kind):
    answer = client.post(f"{PAINT}/results", content=b"x", headers={**people["measurer"], "content-type": kind})
    assert answer.status_code == HTTPStatus.UNSUPPORTED_MEDIA_TYPE


ELSEWHERE = [
    "/../../etc/passwd",
    "/%2e%2e/%2e%2e/etc/passwd",
    f"{API}/studies/..%2f..%2fetc%2fpasswd",
    f"{PAINT}/export.csv/../../x",
    "/static/../app.py",
    "//etc/passwd",
]


@pytest.mark.parametrize("path", ELSEWHERE)
def test_paths_lead_nowhere_else(client, people, path):
    with socket.create_connection((client.base_url.host, client.base_url.port), 5.0) as plain:
        token = people["admin"]["authorization"]
        lines = [f"GET {path} HTTP/1.1", "Host: localhost", f"Authorization: {token}", "Connection: close"]
        plain.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        answer = b"".join(iter(lambda: plain.recv(65536), b""))
    assert int(answer.split(b" ")[1]) in (400, 404, 422)
    assert b"root:" not in answer


@pytest.mark.parametrize("name", ["x\r\nSet-Cookie: a=b", "x\ny", "a/b", "", " ", "\x00", "x" * 201])
def test_names_that_could_stand_in_a_header_or_a_path(client, people, name):
    answer = client.post(f"{API}/studies", json={**NEW, "name": name}, headers=people["owner"])
    assert answer.status_code == HTTPStatus.UNPROCESSABLE_ENTITY
    assert "set-cookie" not in answer.headers
    answer = client.post(f"{API}/tokens", json={"name": name, "role": "viewer"}, headers=people["admin"])
    assert answer.status_code == HTTPStatus.UNPROCESSABLE_ENTITY


def test_a_study_cannot_be_made_twice_and_options_are_checked(client, people):
    assert client.post(f"{API}/studies", json=NEW, headers=people["owner"]).status_code == HTTPStatus.CREATED
    assert client.post(f"{API}/studies", json=NEW, headers=people["owner"]).status_code == HTTPStatus.CONFLICT
    for more in ({"options": {"epsilon": 3}}, {"options": {"nonsense": 1}}, {"policy": "os.system"}, {"noise": "loud"},
                 {"delta": 2.0}, {"candidates": {}}, {"candidates": {"table": "a,b\n"}}):  # fmt: skip
        answer = client.post(f"{API}/studies", json={**NEW, "name": "another", **more}, headers=people["owner"])
        assert answer.status_code == HTTPStatus.UNPROCESSABLE_ENTITY, more
        assert refusal(answer)


def test_a_body_that_is_too_large_is_refused_before_it_came(sqlite_url):
    with serving(sqlite_url, largest_body=1_000) as client:
        for how in ({"content": b"x" * 1_001}, {"content": iter([b"x" * 600, b"x" * 600])}):
            answer = client.post(f"{API}/verify", headers={"content-type": "application/json"}, **how)
            assert answer.status_code == HTTPStatus.REQUEST_ENTITY_TOO_LARGE
            assert "1,000 bytes" in refusal(answer)


def half_sent(client, number, sent=b"POST /api/v1/verify HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nx"):
    """Connections on which that much of a request was sent."""
    slow = [socket.create_connection((client.base_url.host, client.base_url.port), 60.0) for _ in range(number)]
    for one in slow:
        one.sendall(sent)
    return slow


def is_over(connection):
    """Whether the other side ends it without a word."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def test_a_client_that_is_slow_keeps_nobody_waiting(sqlite_url):
    with serving(sqlite_url, slowest_body=3_600.0) as client:
        slow = half_sent(client, 20)
        assert client.get("/healthz").status_code == HTTPStatus.OK
        for one in slow:  # answered before any of them
            one.setblocking(False)
            with pytest.raises(BlockingIOError):
                one.recv(1)
            one.close()


def test_a_client_that_is_slow_is_let_go(sqlite_url):
    with serving(sqlite_url, slowest_body=0.5) as client:
        for one in half_sent(client, 20):
            assert b" 408 " in one.recv(1_000).split(b"\r\n")[0]
            one.close()


@pytest.mark.parametrize("sent", [b"", b"G", b"GET / HTTP/1.1\r\nHost: localhost\r\nX: "], ids=["none", "one", "half"])
def test_headers_that_do_not_come_are_not_waited_for(sqlite_url, sent):
    with serving(sqlite_url, slowest_headers=0.5) as client:
        for one in half_sent(client, 5, sent):
            assert one.recv(1_000) == b""
            one.close()


def test_a_second_request_that_does_not_come_is_not_waited_for_either(sqlite_url):
    whole = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with serving(sqlite_url, slowest_headers=0.5) as client:
        (one,) = half_sent(client, 1, whole + b"GET /heal")
        found = b"".join(iter(lambda: one.recv(1_000), b""))
        assert found.count(b" 200 OK") == 1
        one.close()


def test_who_takes_all_connections_is_let_go_first(sqlite_url):
    """Of one peer a quarter of all is open at once, and the one that waits longest goes."""
    with serving(sqlite_url, most_connections=40, slowest_headers=3_600.0) as client:
        slow = half_sent(client, 60, b"GET / HTTP/1.1\r\nX: ")
        for _ in range(5):
            assert client.get("/healthz").status_code == HTTPStatus.OK
        gone = [is_over(one) for one in slow[:50]]
        for one in slow:
            one.close()
    assert all(gone)


SMALL_SERVER = """
import functools, resource
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
import surepick_server.app
from surepick.cli.app import main
from surepick_server import settings
settings.Settings = functools.partial(settings.Settings, slowest_headers=5.0)
main()
"""


def test_more_connections_than_files(sqlite_url, tmp_path):
    """400 connections that send half a request, and 256 files: the server answers, and lets all of them go."""
    command = [sys.executable, "-c", SMALL_SERVER, "serve", sqlite_url, "--port", "0"]
    with (tmp_path / "log").open("w") as log, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log) as served:
        try:
            port = int(served.stdout.readline().split(b"127.0.0.1:")[1].split(b"/")[0])
            connected(f"http://127.0.0.1:{port}")
            slow = []
            for number in range(400):
                slow.append(socket.create_connection(("127.0.0.1", port), 120.0))
                if number % 12 == 0:  # the kernel holds back 16: of one more it asks again a second later
                    time.sleep(0.05)
            for one in slow:
                with contextlib.suppress(OSError):  # closed already
                    one.sendall(b"POST /api/v1/verify HTTP/1.1\r\nHost: localhost\r\n")
            for _ in range(5):
                answer = httpx.get(f"http://127.0.0.1:{port}/healthz", timeout=60.0)
                assert answer.status_code == HTTPStatus.OK
            for one in slow:
                assert is_over(one)
                one.close()
        finally:
            served.terminate()
            served.wait(60.0)
    assert "Traceback" not in (tmp_path / "log").read_text()


def test_too_many_requests_of_one_token_slow_down_that_token_alone(sqlite_url):
    with serving(sqlite_url, requests_a_minute=5) as client:
        eager, calm = (token_for(client, name, "viewer") for name in ("eager", "calm"))
        found = [client.get(f"{API}/studies", headers=eager) for _ in range(7)]
        assert [one.status_code for one in found] == [200] * 5 + [429] * 2
        assert int(found[-1].headers["retry-after"]) >= 1
        assert client.get(f"{API}/studies", headers=calm).status_code == HTTPStatus.OK


def test_guessing_tokens_is_slowed_down(sqlite_url):
    with serving(sqlite_url, logins_a_minute=5) as client:
        known = token_for(client, "known", "viewer")
        guesses = [client.get(f"{API}/studies", headers={"authorization": f"Bearer spk_{n}"}) for n in range(8)]
        assert [one.status_code for one in guesses] == [401] * 5 + [429] * 3
        assert client.get(f"{API}/studies", headers=known).status_code == HTTPStatus.OK


@pytest.mark.parametrize("name", ["x-forwarded-for", "forwarded", "x-real-ip"])
def test_guesses_are_counted_by_where_they_come_from_whatever_they_say(sqlite_url, name):
    with serving(sqlite_url, logins_a_minute=5) as client:
        token_for(client, "known", "viewer")
        guesses = [
            client.get(f"{API}/studies", headers={"authorization": f"Bearer spk_{n}", name: f"203.0.113.{n}"})
            for n in range(8)
        ]
        assert [one.status_code for one in guesses] == [401] * 5 + [429] * 3


def test_a_named_proxy_says_where_guesses_come_from(sqlite_url):
    with serving(sqlite_url, logins_a_minute=2, trusted_proxies=("127.0.0.1",)) as client:
        token_for(client, "known", "viewer")

        def guess(address):
            header = {"authorization": "Bearer spk_x", "x-forwarded-for": f"198.51.100.1, {address}"}
            return client.get(f"{API}/studies", headers=header).status_code

        assert [guess("203.0.113.1") for _ in range(3)] == [401, 401, 429]
        assert guess("203.0.113.2") == 401
        assert [guess(f"2606:2800::{n}") for n in range(3)] == [401, 401, 429]  # one network, one machine


def test_without_tokens_only_this_machine_is_answered(sqlite_url):
    with serving(sqlite_url) as client:
        assert client.get(f"{API}/studies").status_code == HTTPStatus.OK
        for host in ("evil.example", "localhost.evil.example", "127.0.0.1.evil.example"):
            answer = client.get(f"{API}/studies", headers={"host": host})
            assert answer.status_code == HTTPStatus.MISDIRECTED_REQUEST
        for passed_on in ("x-forwarded-for", "forwarded", "via"):  # by a proxy that calls the server 127.0.0.1
            answer = client.get(f"{API}/studies", headers={passed_on: "203.0.113.9"})
            assert answer.status_code == HTTPStatus.MISDIRECTED_REQUEST
        for header in ({"origin": "http://evil.example"}, {"sec-fetch-site": "cross-site"}, {"origin": "null"}):
            answer = client.post(f"{API}/studies", json=NEW, headers=header)
            assert answer.status_code == HTTPStatus.FORBIDDEN
        assert client.post(f"{API}/studies", json=NEW).status_code == HTTPStatus.CREATED
        token_for(client, "first", "admin")
        assert client.get(f"{API}/studies").status_code == HTTPStatus.UNAUTHORIZED
    with serving(sqlite_url, local=False) as client:
        assert client.get(f"{API}/studies").status_code == HTTPStatus.UNAUTHORIZED


def test_errors_say_nothing_of_the_inside(client, people, monkeypatch):
    server = client.app.state.server

    def broken(*_):
        raise RuntimeError("the reward 0.123456 at /root/secret")

    monkeypatch.setattr(server.studies.database, "list", broken)
    answer = client.get(f"{API}/studies", headers=people["viewer"])
    assert answer.status_code == HTTPStatus.INTERNAL_SERVER_ERROR
    assert "secret" not in answer.text
    assert "0.123456" not in answer.text


def test_tokens_are_kept_as_hashes_and_shown_once(client, people):
    text = client.post(f"{API}/tokens", json={"name": "new", "role": "viewer"}, headers=people["admin"]).json()["token"]
    assert len(text) > 43  # 32 bytes
    listed = client.get(f"{API}/tokens", headers=people["admin"]).text
    assert text not in listed
    server = client.app.state.server
    with server.studies.database.engine.connect() as connection:
        rows = connection.exec_driver_sql("SELECT * FROM serve_token").all()
        trail = connection.exec_driver_sql("SELECT * FROM serve_audit").all()
    assert text not in json.dumps([list(map(str, row)) for row in (*rows, *trail)])


def test_a_trail_that_cannot_be_stored_waits(client, people, monkeypatch):
    from surepick_server.access import schema

    trail, writing = client.app.state.server.trail, schema.writing

    def away(_):
        raise StorageError("no server answers")

    monkeypatch.setattr(schema, "writing", away)
    with pytest.raises(StorageError):
        trail.add("ann", "127.0.0.1", "lease", "paint")
    monkeypatch.setattr(schema, "writing", writing)
    assert [entry.who for entry in trail.latest("paint")] == ["ann"]


def test_a_forged_session_is_nobody(client, people):
    from itsdangerous import URLSafeTimedSerializer

    from surepick_server.web.auth import COOKIE

    for cookie in ("1", "", "MQ.x.y", URLSafeTimedSerializer("another", salt="session").dumps(4)):
        answer = client.get(f"{API}/studies", headers={"cookie": f"{COOKIE}={cookie}"})
        assert answer.status_code == HTTPStatus.UNAUTHORIZED
