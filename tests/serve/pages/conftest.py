"""A server with a study, and visitors."""

import pytest
from page_forms import Visitor
from servers import serving


@pytest.fixture
def server(tmp_path):
    with serving(f"sqlite:///{tmp_path}/studies.db", logins_a_minute=100) as client:
        yield client


@pytest.fixture
def visit(server):
    """Makes visitors; with a name and a role they are logged in."""
    made = []

    def visitor(name: str | None = None, role: str = "viewer", study: str | None = None) -> Visitor:
        made.append(Visitor(server))
        return made[-1] if name is None else made[-1].login(name, role, study)

    yield visitor
    for one in made:
        one.close()


@pytest.fixture
def study(server) -> str:
    """A study of three candidates, made by the person at the machine; its first round asks for a result of each."""
    asked = {"epsilon": 0.5, "noise": "subgaussian:0.2", "options": {"largest_batch": 3}}
    new = {"name": "coffee", "candidates": {"ids": list("abc")}, **asked}
    assert server.post("/api/v1/studies", json=new).status_code == 201
    return "coffee"
