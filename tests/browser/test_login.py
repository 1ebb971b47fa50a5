"""Login in a browser by a provider of another site: cookies come along where they should, with and without scripts."""

import os
from pathlib import Path

import pytest
from browsing import AXE
from identity_providers import ANN, providing
from playwright.sync_api import expect
from servers import serving

from surepick_server.access.tokens import Role

SHOTS = os.environ.get("SUREPICK_SCREENSHOTS")


@pytest.fixture
def provider():
    with providing() as found:
        yield found


@pytest.fixture
def guarded(tmp_path, provider):
    with serving(f"sqlite:///{tmp_path}/studies.db", openid=provider.openid(), logins_a_minute=100) as server:
        held = server.app.state.server
        held.tokens.make("boss", Role.admin, identity="boss@example.org")
        held.tokens.make("ann", Role.measurer, identity=ANN["email"])
        yield server


def looked_at(page, name, scheme):
    for width in (1280, 390, 360):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        if SHOTS and width != 360:
            page.screenshot(path=Path(SHOTS) / f"{name}-{width}-{scheme}.png", full_page=True)
        found = page.evaluate(f"() => {{ {AXE}; return axe.run() }}")
        assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in found["violations"]] == []


@pytest.mark.parametrize("scripts", [True, False])
@pytest.mark.parametrize("asks", [True, False])
def test_people_come_back_logged_in_and_log_out(browser, guarded, provider, scripts, asks):
    """From a page of the other site, and by redirections alone."""
    provider.asks = asks
    context = browser.new_context(java_script_enabled=scripts)
    page = context.new_page()
    page.goto(f"{guarded.base_url}/verify")
    page.click("text=Log in with Example House")
    if asks:
        page.click("text=Go on as yourself")
    expect(page.locator(".who")).to_contain_text("ann, measurer")
    assert page.url == f"{str(guarded.base_url).rstrip('/')}/verify"
    (session,) = (one for one in context.cookies() if one["name"] == "surepick-session")
    assert (session["sameSite"], session["httpOnly"]) == ("Strict", True)
    page.click("text=Log out")
    expect(page.locator("h1")).to_have_text("Log in")
    page.goto(f"{guarded.base_url}/verify")
    expect(page.locator("h1")).to_have_text("Log in")
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_pages_of_a_login_are_for_everybody(browser, guarded, provider, scheme):
    context = browser.new_context(color_scheme=scheme)
    page = context.new_page()
    page.goto(f"{guarded.base_url}/login")
    looked_at(page, "login", scheme)
    provider.person = {"sub": "9", "email": "mallory@example.org", "email_verified": True}
    page.click("text=Log in with Example House")
    expect(page.locator(".refused")).to_contain_text("nobody of that name may use this server")
    looked_at(page, "login-unknown", scheme)
    provider.person = {"sub": "1", "email": "boss@example.org", "email_verified": True}
    page.goto(f"{guarded.base_url}/login")
    page.click("text=Log in with Example House")
    expect(page.locator(".who")).to_contain_text("boss, admin")
    page.goto(f"{guarded.base_url}/tokens")
    looked_at(page, "tokens-identities", scheme)
    context.close()
