"""One login by a provider. It belongs to the browser that has its cookie, lasts ten minutes, and works once."""

from __future__ import annotations

import hmac
import secrets

from itsdangerous import BadSignature, URLSafeTimedSerializer

from surepick.core.arrays import record
from surepick.serve.openid.errors import NotBelieved

SECONDS = 600
SALT = "openid"


@record
class Flow:
    """A login that was begun.

    Args:
        state: comes back with the browser.
        nonce: comes back in the ID token.
        verifier: of PKCE; shown when the code is redeemed.
        path: where to go afterwards.
    """

    state: str
    nonce: str
    verifier: str
    path: str


def begun(path: str) -> Flow:
    """A new login."""
    return Flow(secrets.token_urlsafe(32), secrets.token_urlsafe(32), secrets.token_urlsafe(32), path)


def sealed(flow: Flow, signer: URLSafeTimedSerializer) -> str:
    """A login as the cookie of its browser."""
    signed = signer.dumps([flow.state, flow.nonce, flow.verifier, flow.path], salt=SALT)
    return signed if isinstance(signed, str) else signed.decode()


def opened(cookie: str, state: str, signer: URLSafeTimedSerializer) -> Flow:
    """The login that a browser has begun.

    Args:
        cookie: of the browser.
        state: that it came back with.
        signer: of the server.

    Raises:
        NotBelieved: it began none, or another, or long ago.
    """
    try:
        own, nonce, verifier, path = signer.loads(cookie, max_age=SECONDS, salt=SALT)
    except (BadSignature, TypeError, ValueError) as error:
        raise NotBelieved("state") from error
    if not hmac.compare_digest(str(own).encode(), state.encode()):
        raise NotBelieved("state")
    return Flow(str(own), str(nonce), str(verifier), str(path))
