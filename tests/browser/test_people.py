"""People at their browsers: two on one study until it is certified, live updates, and the keyboard alone."""

from browsing import IDS, MEANS
from playwright.sync_api import expect
from servers import serving

from surepick_server.access.tokens import Role

ASKED = {"epsilon": 0.5, "noise": "subgaussian:0.6", "options": {"largest_batch": 3}}  # at first a result of each
NEW = {"name": "coffee", "candidates": {"ids": IDS}, **ASKED}


def logged_in(browser, server, name, role):
    token, _ = server.app.state.server.tokens.make(name, Role[role])
    page = browser.new_context().new_page()
    page.goto(f"{server.base_url}/studies/coffee")
    page.fill("#token", token)
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("coffee")
    return page


def keys_of(page) -> list[str]:
    return [one.input_value() for one in page.locator("input[name^='key.']").all()]


def test_two_browsers_measure_one_study_until_it_is_certified(browser, tmp_path):
    with serving(f"sqlite:///{tmp_path}/studies.db") as server:
        server.post("/api/v1/studies", json=NEW)
        pages = [logged_in(browser, server, name, "measurer") for name in ("ann", "bob")]
        seen: list[str] = []
        for _ in range(60):
            if all("See the answer" in page.content() for page in pages):
                break
            for page in pages:  # both take before either tells
                page.reload()
                if page.locator("text=Take measurements").count():
                    page.fill("#max_pulls", "1")
                    page.click("text=Take measurements")
            for page in pages:
                keys = keys_of(page)
                assert not set(keys) & set(seen)
                seen += keys
                for place in range(len(keys)):
                    name = page.locator(f"input[name='id.{place}']").input_value()
                    page.fill(f"[name='reward.{place}']", str(MEANS[name]))
                if keys:
                    page.click("#store")
        assert len(seen) > len(IDS)
        pages[0].click("text=See the answer")
        expect(pages[0].locator(".verdict").first).to_contain_text("Certified")
        expect(pages[0].locator("main .answer .name")).to_have_text(IDS[2])
        for page in pages:
            page.context.close()


def test_what_others_do_is_seen_without_loading_the_page_again(browser, tmp_path):
    with serving(f"sqlite:///{tmp_path}/studies.db") as server:
        server.post("/api/v1/studies", json=NEW)
        vic = logged_in(browser, server, "vic", "viewer")
        expect(vic.locator("#standing")).to_contain_text("3 free")
        ann, _ = server.app.state.server.tokens.make("ann", Role.measurer)
        header = {"authorization": f"Bearer {ann}"}
        server.post("/api/v1/studies/coffee/leases", json={"max_pulls": 2}, headers=header)
        expect(vic.locator("#standing")).to_contain_text("2 in hand", timeout=30_000)
        expect(vic.locator("#rail .people")).to_contain_text("ann2 until")
        server.app.state.server.tokens.revoke("vic")
        vic.context.close()


def test_the_keyboard_alone_takes_and_stores(browser, tmp_path):
    with serving(f"sqlite:///{tmp_path}/studies.db") as server:
        server.post("/api/v1/studies", json=NEW)
        page = browser.new_context(java_script_enabled=False).new_page()
        page.goto(f"{server.base_url}/studies/coffee")
        page.keyboard.press("Tab")
        expect(page.locator(".skip")).to_be_focused()
        page.keyboard.press("Enter")
        for _ in range(30):
            page.keyboard.press("Tab")
            if page.locator("#max_pulls:focus").count():
                break
        page.keyboard.press("Control+a")
        page.keyboard.type("1")
        page.keyboard.press("Enter")
        expect(page.locator(".said")).to_contain_text("You hold 1 measurement")
        page.locator("[name='reward.0']").focus()
        page.keyboard.type("0.5")
        page.keyboard.press("Enter")
        expect(page.locator(".said")).to_contain_text("1 result stored")
        page.context.close()
