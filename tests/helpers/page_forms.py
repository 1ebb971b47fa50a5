"""Somebody at a page, without a browser: cookies, forms with their tokens, and what a page may contain."""

from __future__ import annotations

import re
from html import unescape
from html.parser import HTMLParser

import httpx

from surepick_server.access.tokens import Role

TOKEN = re.compile(r'name="form_token" value="([^"]+)"')
TASK = re.compile(r'name="id\.\d+" value="([^"]+)"><input type="hidden" name="key\.\d+" value="([^"]+)"')
RAN = re.compile(r'<time [^>]*>[^<]*</time>|name="form_token" value="[^"]*"')


class Visitor:
    """A browser with cookies of its own.

    Args:
        server: a client of the server, as `serving` gives it.
        root: where the pages are.
    """

    def __init__(self, server: httpx.Client, root: str = "") -> None:
        self.server = server
        self.root = root
        self.http = httpx.Client(base_url=server.base_url, timeout=60.0)
        server.__dict__.setdefault("opened", []).append(self.http)  # closed with the server

    def login(self, name: str, role: str, study: str | None = None) -> Visitor:
        """The same, with a session of a new token."""
        self.token, _ = self.server.app.state.server.tokens.make(name, Role[role], study=study)
        assert self.send("/login", token=self.token).status_code == 303
        return self

    def get(self, path: str, **more) -> httpx.Response:
        return self.http.get(self.root + path, **more)

    def form_token(self, page: str = "/login") -> str:
        """The token of a page's first form."""
        return TOKEN.search(self.get(page).text)[1]

    def send(self, path: str, page: str | None = None, files=None, **fields) -> httpx.Response:
        """Send a form of a page, with the page's token; the answer is not followed."""
        token = self.form_token("/login" if path == "/login" else page or "/verify")
        return self.http.post(self.root + path, data={"form_token": token, **fields}, files=files)

    def tasks(self, study: str) -> list[tuple[str, str]]:
        """(id, key) of the fields on the page of a study."""
        found = TASK.findall(self.get(f"/studies/{study}").text)
        return [(unescape(name), unescape(key)) for name, key in found]

    def close(self) -> None:
        self.http.close()


class Parts(HTMLParser):
    """What a page loads, links to, and has inline."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.inline: list[str] = []
        self._open = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if name in ("href", "src", "action", "hx-get", "hx-post", "sse-connect"):
                self.addresses.append(value or "")
            if name == "style" or name.startswith(("on", "hx-on")):
                self.inline.append(f"{tag} {name}")
        if tag == "style":
            self.inline.append(tag)
        self._open = tag

    def handle_endtag(self, tag: str) -> None:
        self._open = ""

    def handle_data(self, data: str) -> None:
        if self._open == "script" and data.strip():
            self.inline.append("script")


def shown(text: str) -> str:
    """A page without what differs from run to run: times, and the tokens of forms."""
    return RAN.sub("", text)
