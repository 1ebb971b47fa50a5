"""A server with studies in every state, and a browser. `make browser` runs these tests; `make test` does not."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from browsing import IDS, MEANS
from servers import serving

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome") or ""


@pytest.fixture(scope="session")
def browser():
    """Chromium; without one the tests are passed over, but for continuous integration."""
    if not CHROMIUM or not Path(CHROMIUM).exists():
        if os.environ.get("SUREPICK_REQUIRE_BROWSER"):
            pytest.fail("there is no chromium, and SUREPICK_REQUIRE_BROWSER is set")
        pytest.skip("there is no chromium")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as running:
        opened = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def server(tmp_path_factory) -> Iterator:
    """A server whose person at the machine is its admin, with a study that is done and one that goes on."""
    path = tmp_path_factory.mktemp("pages") / "studies.db"
    with serving(f"sqlite:///{path}") as client:
        said = {"columns": ["roast", "beans"], "cells": [["light", "medium", "dark"], ["Arabica", "Arabica", ""]]}
        scale = {"unit": "points", "low": 0.0, "high": 10.0}
        for name in ("done", "open", "free"):
            new = {"name": name, "candidates": {"ids": IDS, "described": said}, "epsilon": 0.5, "scale": scale}
            new |= {"noise": "subgaussian:0.2", "reward_column": "Taste"}
            assert client.post("/api/v1/studies", json=new).status_code == 201
        while True:
            leased = client.post("/api/v1/studies/done/leases", json={}).json()
            if leased["stopped"]:
                break
            rows = [{"id": one["id"], "key": one["key"], "reward": MEANS[one["id"]]} for one in leased["measurements"]]
            assert client.post("/api/v1/studies/done/results", json={"results": rows}).status_code == 200
        client.post("/api/v1/studies/open/leases", json={"max_pulls": 2})
        yield client
