"""Servers for tests: a real uvicorn in a thread, on a port of its own."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import threading
import time
from collections.abc import Iterator
from multiprocessing.process import BaseProcess

import httpx
import uvicorn
from apart import forks
from made_once import remember_routes

from surepick.cli.app import main
from surepick_server.access.tokens import Role
from surepick_server.app import make_app
from surepick_server.settings import Settings
from surepick_server.web.connections import configuration


@contextlib.contextmanager
def serving(url: str, **settings) -> Iterator[httpx.Client]:
    """A client of a server on these studies; `client.app` is the application.

    Connections are kept as long as the test takes: one that the server ends because it was not used meets now and then
    a request that was just sent on it, where the machine has other work.
    """
    remember_routes()
    app = make_app(Settings(url, **{"slowest_headers": 3_600.0, **settings}))
    server = uvicorn.Server(configuration(app, app.state.server.settings))
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.bind(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    while not server.started and thread.is_alive():
        time.sleep(0.01)
    port = listening.getsockname()[1]
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=600.0) as client:
        client.app = app
        try:
            yield client
        finally:
            for one in getattr(client, "opened", []):
                one.close()
            server.should_exit = True
            thread.join(20.0)
            listening.close()
            app.state.server.close()


def served_apart(url: str, port: int, *options: str, **environment: str) -> BaseProcess:
    """A process of its own in which `surepick serve` runs, and which may be killed; begun in a tenth of a second."""
    process = forks().Process(target=_serve, args=(url, port, options, environment), daemon=True)
    process.start()
    return process


def _serve(url: str, port: int, options: tuple[str, ...], environment: dict[str, str]) -> None:
    os.environ.update(environment)
    sys.argv = ["surepick", "serve", url, "--port", str(port), *options]
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):  # noqa: PTH123
        main()


def token_for(client: httpx.Client, name: str, role: str, study: str | None = None) -> dict[str, str]:
    """The header of a new token."""
    text, _ = client.app.state.server.tokens.make(name, Role[role], study=study)
    return {"authorization": f"Bearer {text}"}


def connected(address: str, seconds: float = 60.0) -> None:
    """Wait until a server answers."""
    until = time.monotonic() + seconds
    while True:
        try:
            if httpx.get(f"{address}/healthz", timeout=5.0).status_code == 200:
                return
        except httpx.TransportError:
            pass
        assert time.monotonic() < until, "the server does not answer"
        time.sleep(0.05)
