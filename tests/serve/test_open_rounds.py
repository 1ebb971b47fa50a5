"""Nobody learns anything of another's results in an open round: two servers whose studies differ only in these answer
every request of every route alike."""

import sys
from contextlib import ExitStack, contextmanager

import pytest
from fastapi import APIRouter
from server_studies import copied
from servers import serving

import surepick as sp
from surepick.studies import database
from surepick.studies.database import Database
from surepick_server.access.schema import make_tables
from surepick_server.access.tokens import Role, Tokens
from surepick_server.api.routing import check_classified, routes_of
from surepick_server.app import make_app
from surepick_server.settings import Settings

NAME, NOW = "paint", 1_800_000_000.0
API, STUDY = "/api/v1", f"/api/v1/studies/{NAME}"
ROLES = ("viewer", "measurer", "owner", "admin")
LEASED, OWN = "p2.0@a", "mine-1"  # keys under which ann reported in the open round, of candidates a and b
DOCUMENT = {"format": "surepick certificate"}
GOAL = {"candidates": {"ids": ["x", "y"]}, "epsilon": 1.0, "noise": "subgaussian:1"}


@pytest.fixture(autouse=True)
def _one_moment(monkeypatch):
    """All clocks stand still, and ids are not drawn, so that answers do not differ by these."""
    monkeypatch.setattr(database, "settled_id", lambda given: given or "the same")
    for name, module in list(sys.modules.items()):
        if name.startswith("surepick") and hasattr(module, "system_clock"):
            monkeypatch.setattr(module, "system_clock", lambda: NOW)


def tell(candidate, key, **result):
    return {"json": {"results": [{"id": candidate, "key": key, **result}]}}


def probes(own: float, other: float):
    """Values under keys of others, right ones and wrong ones; single, in a table, and as failed."""
    for key, candidate in ((LEASED, "a"), (OWN, "b"), ("P2.0@a", "a"), (f" {OWN} ", "b"), (OWN, "a")):
        for value in (own, other, 0.5):
            yield "POST", f"{STUDY}/results", tell(candidate, key, reward=value)
        yield "POST", f"{STUDY}/results", tell(candidate, key, failed=True)
        table = f"id,key,reward\n{candidate},{key},{own}\n"
        yield "POST", f"{STUDY}/results", {"content": table, "headers": {"content-type": "text/csv"}}


def probes_beside(own: float, other: float):
    """The same by the other ways in which results are reported: as totals, as results that were not asked for, and as
    measurements that failed."""
    for key, candidate in ((LEASED, "a"), (OWN, "b"), (f" {OWN} ", "b"), (OWN, "a")):
        for value in (own, other):
            columns = {"ids": [candidate], "pulls": [1], "sums": [value], "squares": [value], "keys": [key]}
            yield "POST", f"{STUDY}/totals", {"json": columns}
            yield "POST", f"{STUDY}/prior", tell(candidate, key, reward=value)
        yield "POST", f"{STUDY}/failures", {"json": {"ids": [candidate], "keys": [key]}}


# route -> requests; what they change comes last
CASES = {
    "/healthz": [("GET", "/healthz", {})],
    "/metrics": [],  # has durations; test_metrics.py reads it
    f"{API}/studies": [("GET", f"{API}/studies", {}), ("POST", f"{API}/studies", {"json": {"name": "new", **GOAL}})],
    f"{API}/forecasts": [("POST", f"{API}/forecasts", {"json": GOAL})],
    f"{API}/studies/{{name}}": [("GET", STUDY, {})],
    f"{API}/studies/{{name}}/candidates": [("GET", f"{STUDY}/candidates", {})],
    f"{API}/studies/{{name}}/certificate": [("GET", f"{STUDY}/certificate", {})],
    f"{API}/studies/{{name}}/report": [("GET", f"{STUDY}/report?forecast_up_to=0", {})],
    f"{API}/studies/{{name}}/export.{{kind}}": [
        ("GET", f"{STUDY}/export.csv", {}),
        ("GET", f"{STUDY}/export.jsonl", {}),
    ],
    f"{API}/studies/{{name}}/history": [("GET", f"{STUDY}/history", {})],
    f"{API}/verify": [("POST", f"{API}/verify", {"json": DOCUMENT})],
    f"{API}/tokens": [("GET", f"{API}/tokens", {})],
    f"{API}/tokens/{{token_name}}": [("DELETE", f"{API}/tokens/spare", {})],
    f"{API}/studies/{{name}}/leases": [("GET", f"{STUDY}/leases", {}), ("POST", f"{STUDY}/leases", {"json": {}})],
    f"{API}/studies/{{name}}/results": [
        *probes(1.0, 0.0),
        ("POST", f"{STUDY}/results", tell("a", "fresh", reward=0.0)),
    ],
    f"{API}/me": [("GET", f"{API}/me", {})],
    f"{API}/studies/{{name}}/terms": [("GET", f"{STUDY}/terms", {}), ("GET", f"{STUDY}/terms?check=1", {})],
    f"{API}/studies/{{name}}/features": [("GET", f"{STUDY}/features", {})],
    f"{API}/studies/{{name}}/plan": [("POST", f"{STUDY}/plan", {"json": {"free": free}}) for free in (False, True)],
    f"{API}/studies/{{name}}/open": [("GET", f"{STUDY}/open", {})],
    f"{API}/studies/{{name}}/recorded": [
        ("POST", f"{STUDY}/recorded", {"json": {"ids": ["a", "b"], "keys": [LEASED, OWN]}})
    ],
    f"{API}/studies/{{name}}/answer": [("GET", f"{STUDY}/answer", {})],
    f"{API}/studies/{{name}}/totals": [*probes_beside(1.0, 0.0)],
    f"{API}/studies/{{name}}/prior": [("POST", f"{STUDY}/prior", tell("a", "fresher", reward=0.0))],
    f"{API}/studies/{{name}}/failures": [("POST", f"{STUDY}/failures", {"json": {"ids": ["a"], "keys": ["no"]}})],
    f"{API}/studies/{{name}}/undo": [
        *(("POST", f"{STUDY}/undo", {"json": {"keys": [key]}}) for key in (LEASED, OWN, "no")),
        ("POST", f"{STUDY}/undo", {"json": {}}),
    ],
    f"{API}/studies/{{name}}/correct": [
        *(
            ("POST", f"{STUDY}/correct", {"json": {"key": key, "value": 0.0, **typed}})
            for key in (LEASED, OWN, "a", "no")
            for typed in ({}, {"typed": 1.0}, {"typed": 0.0})
        )
    ],
    f"{API}/studies/{{name}}/release": [("POST", f"{STUDY}/release", {"json": {"worker": "ann"}})],
    f"{API}/studies/{{name}}/webhooks": [("GET", f"{STUDY}/webhooks", {})],  # a new one has a random secret
    f"{API}/studies/{{name}}/webhooks/{{number}}": [("DELETE", f"{STUDY}/webhooks/1", {})],
    f"{API}/studies/{{name}}/webhooks/{{number}}/allow": [("POST", f"{STUDY}/webhooks/1/allow", {"json": {}})],
    f"{API}/studies/{{name}}/interim": [("POST", f"{STUDY}/interim", {})],
    f"{API}/studies/{{name}}/add": [("POST", f"{STUDY}/add", {"json": {"ids": ["c"]}})],
    f"{API}/studies/{{name}}/withdraw": [("POST", f"{STUDY}/withdraw", {"json": {"ids": ["b"], "reason": "sold out"}})],
    f"{API}/studies/{{name}}/abandon": [
        ("POST", f"{STUDY}/abandon", {"json": {"ids": ["c"], "reason": "independent-of-value"}})
    ],
    f"{API}/studies/{{name}}/close": [("POST", f"{STUDY}/close", {"json": {"reason": "enough"}})],
}
CHANGING = ("abandon", "withdraw", "add", "interim", "close", "release")
AFTERWARDS = [("GET", STUDY, {}), ("GET", f"{STUDY}/certificate", {}), ("GET", f"{STUDY}/history", {})]


@pytest.fixture
def tokens(tmp_path):
    """A database with a study in its second round, and a token of each role."""
    url = f"sqlite:///{tmp_path}/first.db"
    asked = {"epsilon": 0.1, "delta": 0.1, "noise": "bernoulli", "largest_batch": 4}  # a result of each in a round
    policy = sp.make_policy("certified-independent", sp.Arms(ids=[*"abcd"]), **asked)
    study = sp.create_study(url, NAME, policy)
    study.tell(study.lease(worker="ann"), [1.0, 0.0, 1.0, 0.0])
    database = Database(url)
    make_tables(database.engine, "secret")
    made = Tokens(database.engine)
    found = {role: made.make(f"a {role}", Role[role])[0] for role in ROLES}
    made.make("spare", Role.viewer)
    part = study.lease(4, worker="ann")
    assert (part.number, part.keys()[0]) == (2, ("a", LEASED))
    database.engine.dispose()
    return found


@contextmanager
def twins(folder):
    """Two servers; in the open round of the one ann reported 1, in that of the other 0."""
    with ExitStack() as stack:
        clients = []
        for place, reward in enumerate((1.0, 0.0)):
            path = folder / f"copy-{place}-{len(list(folder.iterdir()))}.db"
            copied(folder / "first.db", path)
            study = sp.open_study(f"sqlite:///{path}", NAME)
            study.tell(["a", "b"], [reward, reward], [LEASED, OWN], worker="ann")
            assert study.progress().told == 2
            clients.append(stack.enter_context(serving(f"sqlite:///{path}", local=False)))
        yield clients


def answers(client, request, token):
    method, path, more = request
    headers = {"authorization": f"Bearer {token}", **more.get("headers", {})}
    found = client.request(method, path, **{**more, "headers": headers})
    return found.status_code, {**found.headers, "date": ""}, found.content.replace(str(client.base_url).encode(), b"")


def differences(folder, role, token, requests):
    with twins(folder) as (one, other):
        return [request for request in requests if answers(one, request, token) != answers(other, request, token)]


ALL_CHANGES = {route for route in CASES if route.rpartition("/")[2] in CHANGING}


@pytest.mark.parametrize(
    "role",
    [
        "viewer",
        pytest.param("measurer", marks=pytest.mark.slow),
        pytest.param("owner", marks=pytest.mark.slow),
        "admin",
    ],
)
def test_answers_do_not_depend_on_the_open_round(tmp_path, tokens, role):
    changing = ALL_CHANGES if role in ("owner", "admin") else set()
    together = [request for route, requests in CASES.items() if route not in changing for request in requests]
    assert differences(tmp_path, role, tokens[role], [*together, *AFTERWARDS]) == []


@pytest.mark.parametrize("role", ["owner", pytest.param("admin", marks=pytest.mark.slow)])
def test_answers_to_what_changes_a_study_do_not_either(tmp_path, tokens, role):
    """Requests that change something for the next ones have servers of their own."""
    for requests in (CASES[route] for route in sorted(ALL_CHANGES)):
        assert differences(tmp_path, role, tokens[role], [*requests, *AFTERWARDS]) == []


def test_every_route_is_tried(tmp_path, tokens):
    with serving(f"sqlite:///{tmp_path}/first.db") as client:
        routes = {route.path for route in routes_of(client.app) if route.include_in_schema}
    assert routes == set(CASES) | {f"{API}/studies/{{name}}/events"}  # this and the pages: in pages/


def test_a_route_that_is_not_classified_is_refused(tmp_path, tokens):
    app = make_app(Settings(f"sqlite:///{tmp_path}/first.db"))
    check_classified(app)
    more = APIRouter()
    more.add_api_route("/peek", lambda: {})
    app.include_router(more)
    with pytest.raises(AssertionError, match="peek"):
        check_classified(app)
    app.state.server.close()


def test_an_answer_that_compares_values_is_caught(tmp_path, tokens, monkeypatch):
    """The saboteur: what others reported may be tried out."""
    from surepick_server.api import results

    monkeypatch.setattr(results, "check_own", lambda *_: None)
    assert differences(tmp_path, "owner", tokens["owner"], [*probes(1.0, 0.0)])
    assert differences(tmp_path, "owner", tokens["owner"], [*probes_beside(1.0, 0.0)])
