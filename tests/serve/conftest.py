"""A server with a study and somebody of each role."""

import pytest
from server_studies import furnished
from servers import serving


@pytest.fixture
def client(request, sqlite_url):
    """Of a server with the studies "paint" and "other"; nobody has a token unless the test asks for people."""
    furnished(people="people" in request.fixturenames).copy(sqlite_url)
    with serving(sqlite_url) as found:
        yield found


@pytest.fixture
def people(client):
    """Role -> header of somebody with it; "foreign" measures in the other study only."""
    return dict(furnished(people=True).headers)
