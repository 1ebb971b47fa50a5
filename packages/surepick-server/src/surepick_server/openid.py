"""An identity provider: where it is (discovery), how to go there, and what it says of who comes back."""

import hmac
import json
import re
import secrets
import ssl
import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor, TimeoutError as NotInTime
from typing import Any

import httpx
from authlib.oauth2.auth import ClientAuth
from authlib.oauth2.rfc6749.parameters import prepare_grant_uri, prepare_token_request
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from authlib.oidc.core import CodeIDToken
from itsdangerous import BadSignature, URLSafeTimedSerializer
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet
from joserfc.jws import JWSRegistry

from surepick.core.records import record
from surepick.studies.logs.base import system_clock
from surepick_server.settings import OpenId, is_encrypted

# --- Why a login by an identity provider failed.

CODE = re.compile(r"[a-z_]{1,40}")


class ProviderAway(Exception):
    """The provider does not answer, or not in time. The same may work later."""


class ProviderWrong(Exception):
    """The provider answers something else than its standard says. Its operator, or ours, has to mend that."""


class NotBelieved(Exception):
    """What came in place of a login is not believed. The message says why, in a word or two."""


def said_error(error: object) -> str:
    """The name of an error, as the standard has them; nothing else that somebody else wrote is shown."""
    return error if isinstance(error, str) and CODE.fullmatch(error) else "it does not say why"


# --- One login by a provider. It belongs to the browser that has its cookie, lasts ten minutes, and works once.

FLOW_SECONDS = 600
SALT = "openid"


@record
class LoginFlow:
    """A login that was begun."""

    state: str  # comes back with the browser
    nonce: str  # comes back in the ID token
    verifier: str  # of PKCE; shown when the code is redeemed
    path: str  # where to go afterwards


def begun_login(path: str) -> LoginFlow:
    """A new login."""
    return LoginFlow(secrets.token_urlsafe(32), secrets.token_urlsafe(32), secrets.token_urlsafe(32), path)


def sealed_login(flow: LoginFlow, signer: URLSafeTimedSerializer) -> str:
    """A login as the cookie of its browser."""
    signed = signer.dumps([flow.state, flow.nonce, flow.verifier, flow.path], salt=SALT)
    return signed if isinstance(signed, str) else signed.decode()


def opened_login(cookie: str, state: str, signer: URLSafeTimedSerializer) -> LoginFlow:
    """The login that a browser has begun."""
    try:
        own, nonce, verifier, path = signer.loads(cookie, max_age=FLOW_SECONDS, salt=SALT)
    except (BadSignature, TypeError, ValueError) as error:
        raise NotBelieved("state") from error
    if not hmac.compare_digest(str(own).encode(), state.encode()):
        raise NotBelieved("state")
    return LoginFlow(str(own), str(nonce), str(verifier), str(path))


# --- What an identity provider answers: JSON, within a time and a size, from the address that was asked alone.

ANSWER_SECONDS = 10.0  # for an answer, whatever it is that takes long
MOST_AT_ONCE = 8  # so that a provider that hangs does not hold all threads of the server
LARGEST = 256 * 1024  # bytes of an answer


@record
class Reply:
    """What came."""

    status: int  # of the answer
    content: dict[str, Any]  # its object


class Fetching:
    """Asks a provider; an answer may take some seconds."""

    def __init__(self, seconds: float = ANSWER_SECONDS) -> None:
        self._seconds = seconds
        self._workers = ThreadPoolExecutor(MOST_AT_ONCE, thread_name_prefix="identity provider")
        self._certificates = ssl.create_default_context()  # those of this machine: providers of a house have their own

    def ask(self, url: str, *, headers: Mapping[str, str] | None = None, body: str | None = None) -> Reply:
        """What is answered to GET, or to POST of a body."""
        waiting: Future[Reply] = self._workers.submit(self._ask, url, dict(headers or {}), body)
        try:
            return waiting.result(self._seconds)
        except NotInTime:
            waiting.cancel()
            raise ProviderAway(f"it did not answer within {self._seconds:g} s") from None
        except httpx.TimeoutException as error:
            raise ProviderAway(f"it did not answer within {self._seconds:g} s") from error
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            raise ProviderAway(f"no connection ({type(error).__name__})") from error

    def close(self) -> None:
        """Ask nothing any more."""
        self._workers.shutdown(wait=False, cancel_futures=True)

    def _ask(self, url: str, headers: dict[str, str], body: str | None) -> Reply:
        until = time.monotonic() + self._seconds
        headers |= {"accept": "application/json", "accept-encoding": "identity", "user-agent": "surepick"}
        seconds = self._seconds / 2.0
        with (
            httpx.Client(timeout=seconds, follow_redirects=False, trust_env=False, verify=self._certificates) as client,
            client.stream("GET" if body is None else "POST", url, headers=headers, content=body) as answer,
        ):
            came = bytearray()
            for part in answer.iter_raw():
                came += part
                if len(came) > LARGEST:
                    raise ProviderWrong(f"its answer is larger than {LARGEST:,} bytes")
                if time.monotonic() > until:
                    raise ProviderAway(f"it did not answer within {self._seconds:g} s")
        if answer.status_code >= 500:
            raise ProviderAway(f"it answers {answer.status_code}")
        try:
            content = json.loads(bytes(came))
        except (ValueError, RecursionError):
            content = None
        if not isinstance(content, dict):
            raise ProviderWrong(f"it answers {answer.status_code}, and no JSON object")
        return Reply(answer.status_code, content)


# --- What a provider says of a person: the ID token, once its signature and its claims are known to be right.

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512")  # of a private key
KINDS = ("RSA", "EC")  # of keys: a key that both sides have would be one that everybody has
LEEWAY = 60  # seconds that clocks may differ by
SUBJECT = re.compile(r"[!-~](?:[ -~]{0,253}[!-~])?")
ADDRESS = re.compile(r"[!-?A-~]+@[!-?A-~]+")


@record
class ExpectedToken:
    """What has to be in an ID token."""

    issuer: str  # who says it
    client: str  # for whom
    nonce: str  # in which login
    access_token: str | None  # beside which access token; None: there was none


def claims_of(id_token: object, keys: object, expected: ExpectedToken) -> dict[str, Any]:
    """The claims of an ID token."""
    try:
        known = keys["keys"] if isinstance(keys, dict) else []
        usable = KeySet.import_key_set({"keys": [one for one in known if one.get("kty") in KINDS]})
        registry = JWSRegistry(algorithms=ALGORITHMS, strict_check_header=False)
        token = jwt.decode(str(id_token), usable, registry=registry)
        wanted = {
            "iss": {"essential": True, "value": expected.issuer},
            "aud": {"essential": True, "value": expected.client},
        }
        params = {"nonce": expected.nonce, "client_id": expected.client, "access_token": expected.access_token}
        claims = CodeIDToken(token.claims, token.header, wanted, params)
        claims.validate(now=int(system_clock()), leeway=LEEWAY)
    except JoseError as error:
        raise NotBelieved(str(getattr(error, "claim", None) or error.error)) from error
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise NotBelieved("its signature cannot be checked") from error
    if not SUBJECT.fullmatch(claims["sub"]):
        raise NotBelieved("sub")
    return dict(claims)


def email_in(claims: dict[str, Any]) -> str | None:
    """The address of e-mail that the provider has verified; None: there is none."""
    found = claims.get("email")
    verified = claims.get("email_verified") is True
    return found if verified and isinstance(found, str) and ADDRESS.fullmatch(found) and "://" not in found else None


KNOWN_SECONDS = 600.0  # for which its document is not fetched again
SCOPE = "openid email"
METHODS = ("client_secret_basic", "client_secret_post")  # ways to show the secret, the better one first
FORM = "application/x-www-form-urlencoded"


@record
class Person:
    """Whom a provider knows."""

    subject: str  # ISSUER#SUBJECT, which nobody else ever is
    email: str | None  # that the provider has verified; None: there is none

    @property
    def identities(self) -> tuple[str, ...]:
        """What an admin may have entered, as `read_identity` gives it."""
        return (self.subject,) if self.email is None else (self.subject, self.email.lower())


class Provider:
    """An identity provider: what the operator said of it, and how it is asked."""

    def __init__(self, about: OpenId, fetching: Fetching | None = None) -> None:
        self.about = about
        self.fetching = fetching or Fetching()
        self._document: dict[str, Any] = {}
        self._until = 0.0
        self._lock = threading.Lock()

    def close(self) -> None:
        """Ask it nothing any more."""
        self.fetching.close()

    def address(self, flow: LoginFlow, back: str) -> str:
        """Where a browser goes to log in."""
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

    def person(self, flow: LoginFlow, code: str, back: str) -> Person:
        """Who came back."""
        came = self._redeemed(flow, code, back)
        access = came.get("access_token")
        keys = self._content(self.fetching.ask(self._place("jwks_uri")), "keys")
        expected = ExpectedToken(
            self.about.issuer, self.about.client, flow.nonce, access if isinstance(access, str) else None
        )
        claims = claims_of(came.get("id_token"), keys, expected)
        if "email" not in claims and expected.access_token is not None and "userinfo_endpoint" in self._known():
            claims |= self._more(expected.access_token, claims["sub"])
        return Person(f"{self.about.issuer}#{claims['sub']}", email_in(claims))

    def _redeemed(self, flow: LoginFlow, code: str, back: str) -> dict[str, Any]:
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
            raise ProviderWrong(f"it refuses this server ({said_error(error)})")
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
    def _content(answer: Reply, needed: str) -> dict[str, Any]:
        if answer.status != 200 or needed not in answer.content:
            raise ProviderWrong(f"it answers {answer.status}, without {needed!r}")
        return answer.content
