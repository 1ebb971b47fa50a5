"""An identity provider: where it is (discovery), how to go there, and what it says of who comes back."""

from __future__ import annotations

import threading
import time
from typing import Any

from authlib.oauth2.auth import ClientAuth
from authlib.oauth2.rfc6749.parameters import prepare_grant_uri, prepare_token_request
from authlib.oauth2.rfc7636 import create_s256_code_challenge

from surepick.core.arrays import record
from surepick.serve.openid.errors import NotBelieved, ProviderWrong, said
from surepick.serve.openid.fetching import Answer, Fetching
from surepick.serve.openid.flow import Flow
from surepick.serve.openid.id_token import Expected, claims_of, email_in
from surepick.serve.settings import OpenId, is_encrypted

KNOWN_SECONDS = 600.0  # for which its document is not fetched again
SCOPE = "openid email"
METHODS = ("client_secret_basic", "client_secret_post")  # ways to show the secret, the better one first
FORM = "application/x-www-form-urlencoded"


@record
class Person:
    """Whom a provider knows.

    Args:
        subject: ISSUER#SUBJECT, which nobody else ever is.
        email: that the provider has verified; None: there is none.
    """

    subject: str
    email: str | None

    @property
    def identities(self) -> tuple[str, ...]:
        """What an admin may have entered, as `read_identity` gives it."""
        return (self.subject,) if self.email is None else (self.subject, self.email.lower())


class Provider:
    """An identity provider.

    Args:
        about: what the operator said of it.
        fetching: how it is asked.
    """

    def __init__(self, about: OpenId, fetching: Fetching | None = None) -> None:
        self.about = about
        self.fetching = fetching or Fetching()
        self._document: dict[str, Any] = {}
        self._until = 0.0
        self._lock = threading.Lock()

    def close(self) -> None:
        """Ask it nothing any more."""
        self.fetching.close()

    def address(self, flow: Flow, back: str) -> str:
        """Where a browser goes to log in.

        Args:
            flow: the login.
            back: the address of this server that it comes back to.

        Raises:
            ProviderAway, ProviderWrong: nobody knows where it is.
        """
        challenge = {"code_challenge": create_s256_code_challenge(flow.verifier), "code_challenge_method": "S256"}
        found: str = prepare_grant_uri(
            self._place("authorization_endpoint"),
            self.about.client,
            "code",
            redirect_uri=back,
            scope=SCOPE,
            state=flow.state,
            nonce=flow.nonce,
            **challenge,
        )
        return found

    def person(self, flow: Flow, code: str, back: str) -> Person:
        """Who came back.

        Args:
            flow: the login.
            code: that the browser brought.
            back: as in `address`.

        Raises:
            ProviderAway, ProviderWrong: the provider does not say.
            NotBelieved: what it says does not hold.
        """
        came = self._redeemed(flow, code, back)
        access = came.get("access_token")
        keys = self._content(self.fetching.ask(self._place("jwks_uri")), "keys")
        expected = Expected(
            self.about.issuer, self.about.client, flow.nonce, access if isinstance(access, str) else None
        )
        claims = claims_of(came.get("id_token"), keys, expected)
        if "email" not in claims and expected.access_token is not None and "userinfo_endpoint" in self._known():
            claims |= self._more(expected.access_token, claims["sub"])
        return Person(f"{self.about.issuer}#{claims['sub']}", email_in(claims))

    def _redeemed(self, flow: Flow, code: str, back: str) -> dict[str, Any]:
        """What the code is worth."""
        if not code:
            raise NotBelieved("code")
        body = prepare_token_request("authorization_code", code=code, redirect_uri=back, code_verifier=flow.verifier)
        offered = self._known().get("token_endpoint_auth_methods_supported", METHODS[:1])
        method = next((one for one in METHODS if one in offered), METHODS[0]) if self.about.secret else "none"
        shown = ClientAuth(self.about.client, self.about.secret, method)
        place, headers, body = shown.prepare("POST", self._place("token_endpoint"), {"content-type": FORM}, body)
        answer = self.fetching.ask(place, headers=headers, body=body)
        error = answer.content.get("error")
        if error == "invalid_grant":  # used before, begun by another, or made up
            raise NotBelieved("code")
        if error is not None or answer.status != 200:
            raise ProviderWrong(f"it refuses this server ({said(error)})")
        return self._content(answer, "id_token")

    def _more(self, access: str, subject: str) -> dict[str, Any]:
        """The address of e-mail, of a provider that does not put it into the ID token."""
        headers = {"authorization": f"Bearer {access}"}
        try:
            found = self._content(self.fetching.ask(self._place("userinfo_endpoint"), headers=headers), "sub")
        except ProviderWrong:  # it may answer in another format; the subject is known without it
            return {}
        if found["sub"] != subject:
            raise NotBelieved("sub")
        return {name: found[name] for name in ("email", "email_verified") if name in found}

    def _place(self, name: str) -> str:
        """An address in the provider's document."""
        found = self._known().get(name)
        if not isinstance(found, str) or not is_encrypted(found):
            raise ProviderWrong(f"its document has no {name} of https")
        if found.startswith("http:") and self.about.issuer.startswith("https:"):
            raise ProviderWrong(f"its {name} is not encrypted")
        return found

    def _known(self) -> dict[str, Any]:
        """The provider's document, which it has below its address."""
        with self._lock:
            if time.monotonic() < self._until:
                return self._document
        place = f"{self.about.issuer.rstrip('/')}/.well-known/openid-configuration"
        found = self._content(self.fetching.ask(place), "issuer")
        if found["issuer"] != self.about.issuer:
            raise ProviderWrong(f"it calls itself {str(found['issuer'])[:200]!r}, not {self.about.issuer!r}")
        with self._lock:
            self._document, self._until = found, time.monotonic() + KNOWN_SECONDS
        return found

    @staticmethod
    def _content(answer: Answer, needed: str) -> dict[str, Any]:
        if answer.status != 200 or needed not in answer.content:
            raise ProviderWrong(f"it answers {answer.status}, without {needed!r}")
        return answer.content
