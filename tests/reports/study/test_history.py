"""What a report tells of the log: what came, from whom, and which alarms rang."""

import re

from report_pages import finished, made_up, page_of, rendered

from surepick.reports.study.facts import History, KeptPulls, history_of


def test_the_log_says_what_came_and_from_whom(tmp_path):
    study = finished(most_plans=1, batch_size=18)
    study.tell_prior(["0"], [1.0], worker="zoe")
    plan = study.lease(worker="bob", duration="1h")
    keys = plan.keys()
    study.fail([keys[0][0]], [keys[0][1]], worker="bob")
    study.tell([name for name, _ in keys[1:]], [0.5] * (len(keys) - 1), [key for _, key in keys[1:]], worker="bob")
    study.tell([keys[1][0]], [0.5], worker="cy")
    study.abandon("the oven broke")
    study.tell([keys[0][0]], [0.5], [keys[0][1]], worker="bob")  # late
    page = page_of(study, tmp_path)
    kept = history_of(study.log, 2).kept[1]
    assert (kept.failed, kept.given_up) == (1, (("the oven broke", 1),))
    assert dict(kept.tellers) == {"bob": len(keys) - 1, "cy": 1}
    assert "1 failed; 1 given up: the oven broke" in page.words
    assert f"bob ({len(keys) - 1}) and cy (1)" in page.words
    assert re.search(
        r"1 result came after its batch was complete: kept, and not used. Reported by bob \(1\)", page.words
    )
    assert re.search(r"1 result was not asked for by this study: kept, and not used. Reported by zoe \(1\)", page.words)
    assert "Some measurements were given up (the oven broke)" in page.words
    assert "2025-06-15 15:06 UTC" in page.words.replace("\xa0", " ")


def test_results_without_a_name_are_a_dash():
    log = History(
        (KeptPulls(1, 0.0, 0.0, 0, (), (("without a name", 8),)),), (("without a name", 1),), (), durable=True
    )
    page = rendered(made_up(), history=log)
    assert "without a name" not in page.words
    assert "-" in page.texts["td"]
    assert "1 result came after its batch was complete: kept, and not used." in page.words


def test_a_study_without_incidents_says_so(certified, tmp_path):
    words = page_of(certified, tmp_path).words
    assert "none failed or was given up" in words
    assert "No result came late" in words


def test_alarms_are_told_and_the_absence_of_alarms_too():
    document = made_up()
    assert "Nothing spoke against it" in rendered(document).words
    document["rounds"][0]["alarms"] = ["two arms with equal features differ"]
    words = rendered(document).words
    assert "two candidates with equal features differ" in words
    assert "Nothing spoke against it" not in words
