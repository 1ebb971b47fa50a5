"""Server-sent events: one whenever what may be seen of a study changes, and an end when the caller may see no more."""

import json
import threading

import pytest
from servers import serving, token_for

NEW = {"name": "coffee", "candidates": {"ids": list("abc")}, "epsilon": 0.5, "noise": "subgaussian:0.2"}
EVENTS = "/api/v1/studies/coffee/events"


@pytest.fixture
def server(tmp_path):
    with serving(f"sqlite:///{tmp_path}/studies.db", most_streams=1) as client:
        assert client.post("/api/v1/studies", json=NEW).status_code == 201
        yield client


def test_an_event_comes_at_once_and_after_every_change(server):
    ann, vic = token_for(server, "ann", "measurer"), token_for(server, "vic", "viewer")
    with server.stream("GET", EVENTS, headers=vic) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        assert stream.headers["cache-control"] == "no-store"
        lines = (line for line in stream.iter_lines() if line)
        assert next(lines) == "event: status"
        first = json.loads(next(lines).removeprefix("data: "))
        assert {**first["progress"], "now": 0} == {
            **server.get("/api/v1/studies/coffee", headers=vic).json()["progress"],
            "now": 0,
        }
        leased = server.post("/api/v1/studies/coffee/leases", json={"max_pulls": 1}, headers=ann).json()
        assert next(lines) == "event: status"
        assert json.loads(next(lines).removeprefix("data: "))["progress"]["out"][0]["worker"] == "ann"
        row = {**leased["measurements"][0], "reward": 4.25}
        server.post("/api/v1/studies/coffee/results", json={"results": [row]}, headers=ann)
        assert next(lines) == "event: status"
        told = next(lines)
        assert json.loads(told.removeprefix("data: "))["progress"]["told"] == 1
        assert "4.25" not in told


def test_a_stream_ends_with_its_token_and_makes_room(server):
    vic, own = token_for(server, "vic", "viewer"), token_for(server, "own", "owner")
    with server.stream("GET", EVENTS, headers=vic) as stream:
        lines = stream.iter_lines()
        assert next(lines) == "event: status"
        full = server.get(EVENTS, headers=own)
        assert (full.status_code, full.headers["retry-after"]) == (503, "60")
        timer = threading.Timer(0.1, server.app.state.server.tokens.revoke, ["vic"])
        timer.start()
        assert len(list(lines)) <= 4  # it ends
        timer.join()
    assert server.app.state.server.streams == 0
    with server.stream("GET", EVENTS, headers=own) as stream:
        assert next(stream.iter_lines()) == "event: status"


def test_events_are_for_those_who_may_see_the_study(server):
    token_for(server, "adm", "admin")
    assert server.get(EVENTS).status_code == 401
    assert server.get(EVENTS, headers=token_for(server, "tea", "viewer", "tea")).status_code == 404
    document = server.get("/api/v1/openapi.json").json()
    assert (
        "text/event-stream" in document["paths"]["/api/v1/studies/{name}/events"]["get"]["responses"]["200"]["content"]
    )
