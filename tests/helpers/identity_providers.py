"""An identity provider for tests: a real server on loopback, which says of people what a test wants."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import inspect
import json
import re
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator
from html import escape
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse
from joserfc import jwt
from joserfc.jwk import ECKey, RSAKey
from page_forms import Visitor

from surepick_server.settings import OpenId

SESSION, LOGIN = "surepick-session", "surepick-login"
AWAY, PATIENT = 1.0, 30.0  # seconds that tests wait for a provider: for one that is slow, for one that is well
CLIENT, SECRET = "surepick", "a secret/with:signs"
ANN = {"sub": "248289761001", "email": "ann@example.org", "email_verified": True}


class Provider:
    """What a provider is, says and does.

    Args:
        issuer: its address.
    """

    def __init__(self, issuer: str) -> None:
        self.issuer = issuer
        self.key = RSAKey.generate_key(2048, {"kid": "first", "use": "sig"})
        self.curve = ECKey.generate_key("P-256", {"kid": "second", "use": "sig"})
        self.person = dict(ANN)
        self.header = {"alg": "RS256", "kid": "first"}
        self.claims: Callable[[dict], dict] = lambda claims: claims
        self.signed: Callable[[dict, dict], str] = self.sign
        self.document: dict = {}
        self.instead: dict[str, Callable[[], Response]] = {}  # path -> another answer
        self.codes: dict[str, dict] = {}
        self.asks = False  # on a page of its own, which people leave by themselves
        self.asked: list[str] = []
        self.redeemed: list[dict] = []

    def openid(self, secret: str = SECRET) -> OpenId:
        """What an operator says of it."""
        return OpenId(self.issuer, CLIENT, secret, "Example House")

    def sign(self, header: dict, claims: dict) -> str:
        return jwt.encode(header, claims, self.curve if header["alg"] == "ES256" else self.key, [header["alg"]])

    def id_token(self, nonce: str, access: str) -> str:
        now = int(time.time())
        half = base64.urlsafe_b64encode(hashlib.sha256(access.encode()).digest()[:16]).rstrip(b"=").decode()
        usual = {"iss": self.issuer, "aud": CLIENT, "iat": now, "exp": now + 300, "nonce": nonce, "at_hash": half}
        return self.signed(self.header, self.claims({**usual, **self.person}))


def plain(part: dict | bytes) -> str:
    """A part of a token."""
    content = part if isinstance(part, bytes) else json.dumps(part).encode()
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def unsigned(header: dict, claims: dict) -> str:
    """A token that nobody signed."""
    return f"{plain({**header, 'alg': 'none'})}.{plain(claims)}."


def signed_by_all(provider: Provider) -> Callable[[dict, dict], str]:
    """Makes tokens that are signed by what everybody knows: HS256, with the public key in the place of a secret."""

    def made(header: dict, claims: dict) -> str:
        first = f"{plain({**header, 'alg': 'HS256'})}.{plain(claims)}"
        public = provider.key.as_pem(private=False)
        return f"{first}.{plain(hmac.new(public, first.encode(), hashlib.sha256).digest())}"

    return made


def make_app(provider: Provider) -> FastAPI:
    app = FastAPI()

    @app.middleware("http")
    async def instead(request: Request, call_next: Callable) -> Response:
        provider.asked.append(request.url.path)
        other = provider.instead.get(request.url.path)
        answer = call_next(request) if other is None else other()
        return await answer if inspect.isawaitable(answer) else answer

    @app.get("/.well-known/openid-configuration")
    def configuration() -> dict:
        return {
            "issuer": provider.issuer,
            "authorization_endpoint": f"{provider.issuer}/authorize",
            "token_endpoint": f"{provider.issuer}/token",
            "jwks_uri": f"{provider.issuer}/keys",
            "userinfo_endpoint": f"{provider.issuer}/person",
            **provider.document,
        }

    @app.get("/keys")
    def keys() -> dict:
        shared = {"kty": "oct", "kid": "shared", "k": plain(b"of both sides")}
        return {"keys": [shared, *(one.as_dict(private=False) for one in (provider.key, provider.curve))]}

    @app.get("/authorize")
    def authorize(request: Request) -> Response:
        asked = dict(request.query_params)
        assert (asked["response_type"], asked["client_id"]) == ("code", CLIENT)
        assert (asked["code_challenge_method"], "openid" in asked["scope"]) == ("S256", True)
        code = secrets.token_urlsafe(16)
        provider.codes[code] = asked
        back = f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}"
        page = f'<!DOCTYPE html><title>House</title><a href="{escape(back)}">Go on as yourself</a>'
        return HTMLResponse(page) if provider.asks else RedirectResponse(back, 303)

    @app.post("/token")
    async def token(request: Request) -> Response:
        sent = {name: values[0] for name, values in parse_qs((await request.body()).decode()).items()}
        basic = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        shown = request.headers.get("authorization") == f"Basic {basic}" or sent.get("client_secret") == SECRET
        if not shown and sent.get("client_id") != CLIENT:
            return JSONResponse({"error": "invalid_client"}, 401)
        began = provider.codes.pop(sent["code"], None)
        provider.redeemed.append({**sent, "basic": "authorization" in request.headers})
        challenge = plain(hashlib.sha256(sent.get("code_verifier", "").encode()).digest())
        if began is None or began["redirect_uri"] != sent["redirect_uri"] or began["code_challenge"] != challenge:
            return JSONResponse({"error": "invalid_grant", "error_description": "<b>no</b>"}, 400)
        access = secrets.token_urlsafe(16)
        answer = {"access_token": access, "token_type": "Bearer", "id_token": provider.id_token(began["nonce"], access)}
        return JSONResponse(answer)

    @app.get("/person")
    def person() -> dict:
        return provider.person

    return app


@contextlib.contextmanager
def providing() -> Iterator[Provider]:
    """A provider that runs."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.bind(("127.0.0.1", 0))
    provider = Provider(f"http://localhost:{listening.getsockname()[1]}")  # another site than 127.0.0.1
    server = uvicorn.Server(uvicorn.Config(make_app(provider), log_level="error", lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        server.should_exit = True
        thread.join(20.0)
        listening.close()


def sent_to(visitor: Visitor, path: str = "/") -> str:
    """The address at the provider that a browser is sent to."""
    answer = visitor.get("/login/openid", params={"next": path})
    assert answer.status_code == 303, answer.text
    return answer.headers["location"]


def sent_back(visitor: Visitor, path: str = "/") -> str:
    """The address at the server that the provider sends a browser back to."""
    answer = httpx.get(sent_to(visitor, path))
    assert answer.status_code == 303, answer.text
    return answer.headers["location"]


def came_back(visitor: Visitor, path: str = "/") -> httpx.Response:
    """The server's answer to who went to the provider and came back."""
    return visitor.http.get(sent_back(visitor, path))


def changed(address: str, **parts: str) -> str:
    """An address with other values in its query."""
    split = urlsplit(address)
    query = {name: values[0] for name, values in parse_qs(split.query).items()} | parts
    return split._replace(query=urlencode(query)).geturl()


def stored(server) -> list:
    """All that the server's tables have, but for the trail."""
    engine = server.app.state.server.studies.database.engine
    with engine.connect() as connection:
        names = ("serve_token", "serve_identity", "serve_ended", "serve_webhook")
        return [connection.exec_driver_sql(f"SELECT * FROM {name}").all() for name in names]


def refused(answer, visitor, *words, status=403):
    """Nobody was logged in, and a sentence says why."""
    assert answer.status_code == status, answer.text
    said = " ".join(re.sub("<[^>]*>", " ", answer.text.partition("<main")[2]).split())
    for word in words:
        assert word in said, said
    assert SESSION not in visitor.http.cookies
    assert visitor.get("/").status_code == 303
    return said


def trail(server) -> list:
    return [(one.who, one.action, one.words) for one in server.app.state.server.trail.latest()]
