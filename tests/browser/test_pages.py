"""Every page in a browser: no violation that axe-core knows, nothing from elsewhere, nothing wider than the window."""

import os
from pathlib import Path

import pytest
from browsing import AXE

PAGES = {
    "studies": "/",
    "new": "/new",
    "columns": "/new",
    "measurement": "/new",
    "measurement-refused": "/new",
    "question": "/new",
    "example": "/new?example=lab",
    "like": "/new?like=done",
    "open": "/studies/open",
    "take": "/studies/free",
    "refused": "/studies/open",
    "asked": "/studies/open",
    "settings": "/studies/open/settings",
    "open-answer": "/studies/open/answer",
    "done": "/studies/done",
    "answer": "/studies/done/answer",
    "history": "/studies/done/history",
    "verify": "/verify",
    "verified": "/verify",
    "tokens": "/tokens",
    "error": "/studies/none",
    "report": "/studies/done/report",
}
SHOTS = os.environ.get("SUREPICK_SCREENSHOTS")  # a folder, for people who look at the pages


def step(page, name, server) -> None:
    """Bring a page into its state."""
    if name in ("columns", "measurement", "measurement-refused", "question"):
        page.click("text=Paste a table instead")
        page.fill("#pasted", "recipe,grams,price\nlight,14,1.0\nmedium,16,1.5\ndark,18,2.0\n")
        page.click("text=See the columns")
        page.wait_for_selector("#name")
    if name in ("measurement", "measurement-refused", "question"):
        page.fill("#name", "breads")
        page.click("text=Next: the measurement")
        page.fill("#what", "Taste")
        page.check("#noise-subgaussian")
    if name == "measurement-refused":
        page.fill("#most", "1OO")
        page.click("text=Next: the question")
        page.wait_for_selector("#refused")
    if name == "question":
        page.fill("#sigma", "0.2")
        page.click("text=Next: the question")
        page.fill("#epsilon", "0.5")
        page.click("button:has-text('Update the forecast')")
        page.wait_for_selector("#outlook .huge")
    if name in ("refused", "asked"):
        for place, typed in enumerate(("much", "") if name == "refused" else ("2000", "2.1")):
            page.fill(f"[name='reward.{place}']", typed)
        page.click("#store")
        page.wait_for_selector("#refused")
    if name == "verified":
        page.click("text=Paste its text instead")
        page.fill("#pasted", server.get("/studies/done/certificate.json").text)
        page.click("text=Check it")
        page.wait_for_selector("#result")
    for summary in page.query_selector_all("main details:not([open]) > summary"):
        if summary.is_visible() and name in ("open", "columns", "settings", "verified", "answer", "question"):
            summary.click()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_for_everybody(browser, server, name, scheme):
    context = browser.new_context(color_scheme=scheme, viewport={"width": 1280, "height": 900}, bypass_csp=False)
    page = context.new_page()
    said, asked = [], []
    page.on("console", lambda message: said.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(str(server.base_url.join(PAGES[name])))
    step(page, name, server)
    for width in (1280, 390, 360, 1600):
        page.set_viewport_size({"width": width, "height": 900})
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width, f"{name} is {wide} px wide in {width} px"
        if SHOTS and width in (390, 1280):
            page.screenshot(path=Path(SHOTS) / f"{name}-{width}-{scheme}.png", full_page=True)
        if width in (390, 1280):
            found = page.evaluate(f"() => {{ {AXE}; return axe.run() }}")
            assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in found["violations"]] == []
    context.close()
    elsewhere = [url for url in asked if not url.startswith((str(server.base_url).rstrip("/"), "data:"))]
    assert elsewhere == []
    expected = (
        "the server responded with a status of"
        if name in ("refused", "asked", "measurement-refused", "error")
        else None
    )
    assert [text for text in said if expected is None or expected not in text] == []
