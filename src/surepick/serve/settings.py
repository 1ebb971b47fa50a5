"""What an operator decides about a server."""

from __future__ import annotations

from surepick.core.arrays import record

MIB = 2**20


@record
class Settings:
    """How a server behaves.

    Args:
        url: of the database of the studies.
        root_path: where a proxy serves it, e.g. "/surepick"; "" at the root.
        largest_body: bytes of a request.
        slowest_body: seconds within which a request has to be here.
        requests_a_minute: of one token, or of one address without a token.
        logins_a_minute: attempts of one address.
        session_seconds: after which one has to log in anew.
        most_streams: pages and programs that listen to studies at once.
        local: it listens to this machine alone, so that without any token whoever reaches it is its admin.
    """

    url: str
    root_path: str = ""
    largest_body: int = 32 * MIB
    slowest_body: float = 30.0
    requests_a_minute: int = 1_200
    logins_a_minute: int = 10
    session_seconds: float = 12 * 3600.0
    most_streams: int = 100
    local: bool = True
