"""What strangers stumbled upon at their browsers, one test each: none of it comes back."""

import re

import pytest
from browsing import IDS
from playwright.sync_api import expect
from servers import serving

from surepick_server.access.tokens import Role

TABLE = "Reaction,Ligand,Base,Solvent\n" + "".join(
    f"rxn-{place:02},{('XPhos', 'SPhos')[place % 2]},{('K2CO3', 'K3PO4')[place // 2 % 2]},dioxane\n"
    for place in range(1, 46)
)
SCREEN = {
    "name": "screen",
    "candidates": {"table": TABLE, "id_column": "Reaction"},
    "epsilon": 5.0,
    "noise": "subgaussian:3",
    "reward_column": "Yield",
    "scale": {"unit": "%", "low": 0.0, "high": 100.0},
    "options": {"batch_size": 45},
}
SHIFTS = """done => {
    let all = 0;
    const add = list => list.getEntries().forEach(one => { all += one.value; });
    new PerformanceObserver(add).observe({type: 'layout-shift', buffered: true});
    setTimeout(() => done(all), 300);
}"""
PHONE = {"width": 390, "height": 844}


@pytest.fixture
def lab(tmp_path):
    """A server with a screen of 45 reactions."""
    with serving(f"sqlite:///{tmp_path}/studies.db") as server:
        assert server.post("/api/v1/studies", json=SCREEN).status_code == 201
        yield server


def somebody(browser, server, name, role="measurer", **context):
    """A page of the study, opened by somebody who logged in."""
    token, _ = server.app.state.server.tokens.make(name, Role[role])
    page = browser.new_context(**context).new_page()
    page.goto(f"{server.base_url}/studies/screen")
    page.fill("#token", token)
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("screen")
    return page


def taking(page, number) -> None:
    page.fill("#max_pulls", str(number))
    page.click("text=Take measurements")
    expect(page.locator("[name='reward.0']")).to_be_visible()


def by_program(server, header, value=70.0):
    """Take all that is free and tell it."""
    leased = server.post("/api/v1/studies/screen/leases", json={}, headers=header).json()
    rows = [{"id": one["id"], "key": one["key"], "reward": value} for one in leased["measurements"]]
    return server.post("/api/v1/studies/screen/results", json={"results": rows, "accept_unusual": True}, headers=header)


# 3: the candidate is only an id


def test_whoever_measures_sees_what_the_candidate_is(browser, lab):
    ann = somebody(browser, lab, "ann")
    taking(ann, 3)
    first = ann.locator(".tasks tbody tr").first
    for words in ("rxn-01", "SPhos", "K2CO3", "dioxane"):
        expect(first).to_contain_text(words)
    expect(ann.locator("[name='reward.0']")).to_have_attribute("aria-label", "Yield of rxn-01, SPhos, K2CO3, dioxane")
    with ann.expect_download() as came:
        ann.click("text=Enter results from a spreadsheet")
        ann.click("text=Download my measurements as a table")
    header, row, *_ = came.value.path().read_text().splitlines()
    assert header == "Reaction,Ligand,Base,Solvent,key,Yield"
    assert row.startswith("rxn-01,SPhos,K2CO3,dioxane,")
    ann.fill("[name='reward.0']", "61")
    ann.click("#store")
    expect(ann.locator("#stored")).to_contain_text("SPhos · K2CO3 · dioxane")
    ann.context.close()


# 4, 5, 25: a forecast of the worst case alone, that talks people out of it, without a sign of life


def test_the_forecast_says_the_usual_first_and_shows_that_it_is_coming(browser, lab):
    page = somebody(browser, lab, "olga", "owner")
    page.goto(f"{lab.base_url}/new?example=lab")
    page.click("text=Next: the measurement")
    page.click("text=Next: the question")
    waiting = []
    page.route(
        "**/new/forecast", lambda route: (waiting.append(page.locator("#outlook").inner_text()), route.continue_())
    )
    page.fill("#batch", "6")
    page.click("button:has-text('Update the forecast')")
    expect(page.locator("button:has-text('Update the forecast')")).to_be_disabled()
    expect(page.locator("#forecast .busy")).to_be_visible()
    expect(page.locator("#outlook .huge")).to_contain_text("rounds", timeout=60_000)
    assert waiting
    expect(page.locator("#outlook .say")).to_contain_text("of 6, if your candidates differ as candidates usually do")
    assert page.locator("#outlook .fc strong").all_inner_texts() == ["Clear differences", "Usual", "Nearly equal"]
    said = page.locator("#forecast").inner_text()
    assert not re.search(r"at worst|takes more measurements than|Measuring all equally often takes", said)
    drawn = page.locator("#outlook svg .g-limit")
    if drawn.count():  # all equally often is only drawn where it is dearer than nearly equal candidates
        at, middle = (
            float(one.first.get_attribute("x1")[:-1])
            for one in (drawn, page.locator(".fc > div:last-of-type .g-median"))
        )
        assert at > middle
    page.context.close()


# 6: averages are nowhere to be seen


def test_the_answer_begins_with_the_averages(browser, lab):
    by_program(lab, {})
    page = somebody(browser, lab, "vic", "viewer")
    page.click("text=Answer")
    headings = page.locator("main h2").all_inner_texts()
    assert headings[1] == "The candidates, best mean first"
    table = page.locator("table.rows").first
    expect(table.locator("tbody tr").first).to_contain_text("70")
    assert page.locator("section[aria-labelledby=means] table tbody tr").count() == 45
    expect(page.locator("section[aria-labelledby=means]")).to_contain_text("A description, not the promise.")
    expect(table).to_contain_text("SPhos · K2CO3 · dioxane")
    page.context.close()


# 9: no batch size


def test_a_plate_is_a_main_question_and_the_study_asks_for_it(browser, lab):
    page = somebody(browser, lab, "olga", "owner")
    page.goto(f"{lab.base_url}/new?example=lab")
    page.fill("#name", "plates")
    page.click("text=Next: the measurement")
    page.click("text=Next: the question")
    assert page.locator("form#wizard label").first.inner_text() == "How many can you measure at once?"
    page.fill("#batch", "12")
    page.click("text=Create the study")
    expect(page.locator("#standing")).to_contain_text("of 12 in")  # a plate
    assert (
        lab.get("/api/v1/studies/plates/terms", headers=_token(lab)).json()["configuration"]["policy"]["batch_size"]
        == 12
    )
    page.context.close()


def _token(server) -> dict[str, str]:
    token, _ = server.app.state.server.tokens.make("reader", Role.viewer)
    return {"authorization": f"Bearer {token}"}


# 12: a live page keeps its old actions


def test_actions_follow_what_others_do(browser, lab):
    ann, olga = somebody(browser, lab, "ann"), somebody(browser, lab, "olga", "owner")
    expect(ann.locator("text=Take measurements")).to_be_visible()
    taking(olga, 45)
    expect(ann.locator("text=Take measurements")).to_have_count(0, timeout=30_000)
    expect(ann.locator("#work")).to_contain_text("others have all that are missing")
    olga.goto(f"{lab.base_url}/studies/screen/settings")
    olga.click("text=Close the study early")
    olga.fill("#close-reason", "out of wells")
    olga.click("text=Close it for good")
    expect(ann.locator("text=See the answer")).to_be_visible(timeout=30_000)
    expect(ann.locator("#state")).to_contain_text("Closed early")
    expect(ann.locator("#work form")).to_have_count(0)
    expect(ann.locator("main button.primary")).to_have_count(0)
    for page in (ann, olga):
        page.context.close()


# 13: typed results are lost on navigation


def test_typed_results_outlive_a_visit_elsewhere(browser, lab):
    ann = somebody(browser, lab, "ann")
    taking(ann, 3)
    ann.fill("[name='reward.0']", "61,5")
    ann.keyboard.press("Enter")
    expect(ann.locator("[name='reward.1']")).to_be_focused()
    ann.keyboard.type("62")
    expect(ann.locator("[data-count]")).to_have_text("2 of 3 filled")
    ann.click("nav >> text=Studies")
    expect(ann.locator("h1")).to_have_text("Studies")
    ann.goto(f"{lab.base_url}/studies/screen")
    expect(ann.locator("[name='reward.0']")).to_have_value("61,5")
    expect(ann.locator("#store")).to_have_text("Store 2 results")
    ann.keyboard.press("Control+Home")
    ann.locator("[name='reward.1']").focus()
    ann.keyboard.press("Control+Enter")
    expect(ann.locator(".said")).to_contain_text("2 results stored")
    expect(ann.locator("[name='reward.0']")).to_have_value("")  # another measurement, and no draft of it
    ann.context.close()


# 18: errors one at a time, at the top, unmarked; and 1: a slip is asked about beside its field


def test_errors_stand_beside_their_fields_all_at_once(browser, lab):
    ann = somebody(browser, lab, "ann", viewport=PHONE)
    taking(ann, 5)
    for place, typed in enumerate(("61", "6l", "62", "much", "63")):
        ann.fill(f"[name='reward.{place}']", typed)
    ann.click("#store")
    alarm = ann.locator("#refused")
    expect(alarm).to_be_focused()
    links = alarm.locator("a")
    assert links.count() == 2
    assert ann.locator("[aria-invalid=true]").count() == 2
    for link in links.all():
        field = ann.locator(link.get_attribute("href"))
        assert ann.locator(f"[id='{field.get_attribute('aria-describedby')}']").is_visible()
    links.first.click()
    expect(ann.locator("[name='reward.1']")).to_be_focused()
    expect(ann.locator("[name='reward.1']")).to_be_in_viewport()
    assert [ann.input_value(f"[name='reward.{place}']") for place in range(5)] == ["61", "6l", "62", "much", "63"]
    ann.fill("[name='reward.1']", "6100")
    ann.fill("[name='reward.3']", "61")
    ann.click("#store")
    expect(ann.locator("tr.asks").first).to_contain_text("rxn-02")
    ann.click("text=Make it 61")
    expect(ann.locator("[name='reward.1']")).to_have_value("61")
    ann.click("#store")
    expect(ann.locator(".said")).to_contain_text("5 results stored")
    ann.context.close()


# 24: the list and the form on a phone


def test_forty_five_rows_on_a_phone_are_all_there_and_can_be_stored_from_anywhere(browser, lab):
    ann = somebody(browser, lab, "ann", viewport=PHONE, has_touch=True)
    taking(ann, 45)
    assert ann.locator("[name^='reward.']").count() == 45
    assert ann.evaluate("document.documentElement.scrollWidth") <= 390
    for place in (0, 22, 44):
        field = ann.locator(f"[name='reward.{place}']")
        field.scroll_into_view_if_needed()
        field.fill("70")
        expect(ann.locator("#store")).to_be_in_viewport(ratio=1)
        box = field.bounding_box()
        assert box["height"] >= 44
        bar = ann.locator(".store").bounding_box()
        assert place == 44 or box["y"] + box["height"] <= bar["y"] + 1, "the bar covers the field"
    for place in range(45):
        ann.fill(f"[name='reward.{place}']", "70")
    expect(ann.locator("#store")).to_have_text("Store 45 results and close round 1")
    ann.click("#store")
    expect(ann.locator(".said")).to_contain_text("45 results stored")
    ann.context.close()


def test_the_list_is_searched_and_filtered_and_tokens_are_cards(browser, lab):
    header = {"authorization": f"Bearer {lab.app.state.server.tokens.make('root', Role.admin)[0]}"}
    for place in range(3):
        new = {"name": f"coffee {place}", "candidates": {"ids": IDS}, "epsilon": 0.5, "noise": "subgaussian:0.2"}
        assert lab.post("/api/v1/studies", json=new, headers=header).status_code == 201
    lab.post("/api/v1/studies/coffee 2/close", json={"reason": ""}, headers=header)
    page = somebody(browser, lab, "boss", "admin", viewport=PHONE)
    page.click("nav >> text=Studies")
    expect(page.locator(".studies > li")).to_have_count(4)
    assert page.locator(".studies .chip").count() == 4
    page.fill("#q", "coffee")
    page.keyboard.press("Enter")
    expect(page.locator(".studies > li")).to_have_count(3)
    page.click(".filters >> text=Closed")
    expect(page.locator(".studies h2")).to_have_text("coffee 2")
    expect(page.locator(".studies")).to_contain_text("root")  # its owner
    page.goto(f"{lab.base_url}/tokens")
    revoke = page.locator("text=Revoke").first
    box = revoke.bounding_box()
    assert box["x"] + box["width"] <= 390
    assert page.locator("#study option").all_inner_texts()[1:] == [f"coffee {one} only" for one in range(3)] + [
        "screen only"
    ]
    page.context.close()


def test_the_first_page_is_light_and_does_not_jump(browser, lab):
    page = somebody(browser, lab, "vic", "viewer")
    sizes = []
    page.on("response", lambda response: sizes.append(len(response.body())))
    page.goto(f"{lab.base_url}/")
    page.wait_for_load_state("networkidle")
    assert sum(sizes) < 60_000
    assert page.evaluate(f"new Promise({SHIFTS})") < 0.02
    page.context.close()


def test_the_report_is_whole_on_paper(browser, lab):
    by_program(lab, {})
    page = somebody(browser, lab, "vic", "viewer")
    page.goto(f"{lab.base_url}/studies/screen/report")
    page.emulate_media(media="print")
    expect(page.locator(".answer").first).to_be_visible()
    expect(page.locator("table.rows tbody tr").first).to_be_visible()
    expect(page.locator("table.rows").first).to_contain_text("SPhos · K2CO3 · dioxane")
    page.context.close()


def test_a_study_is_made_and_measured_without_scripts(browser, lab):
    page = somebody(browser, lab, "olga", "owner", java_script_enabled=False)
    page.goto(f"{lab.base_url}/new?example=lab")
    page.fill("#name", "by hand")
    page.click("text=Next: the measurement")
    page.click("text=Next: the question")
    expect(page.locator("text=Press “Update the forecast” to see it.")).to_be_visible()
    page.click("button:has-text('Update the forecast')")
    expect(page.locator("#outlook .huge")).to_contain_text("rounds")
    page.locator("#epsilon").press("Enter")  # the first button of a form goes on, and not back
    expect(page.locator("h1")).to_have_text("by hand")
    page.fill("#max_pulls", "2")
    page.click("text=Take measurements")
    page.fill("[name='reward.0']", "6100")
    page.fill("[name='reward.1']", "62")
    page.click("#store")
    page.click("text=Make it 61")
    expect(page.locator("[name='reward.0']")).to_have_value("61")
    page.click("#store")
    expect(page.locator(".said")).to_contain_text("2 results stored")
    page.locator("#stored button").first.click()
    expect(page.locator(".said")).to_contain_text("was taken back")
    page.context.close()
