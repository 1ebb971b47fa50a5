"""A provider that runs, and a server that people may log in to by it."""

import pytest
from identity_providers import ANN, PATIENT, providing
from page_forms import Visitor
from servers import serving

from surepick_server.access.tokens import Role
from surepick_server.openid import Fetching


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
        held.provider.fetching = Fetching(PATIENT)
        yield client


@pytest.fixture
def visit(server):
    return lambda: Visitor(server)
