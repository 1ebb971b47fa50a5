"""The intervals and bars of a report are those of the certificate."""

import re

import numpy as np
import pytest
from report_pages import POLICIES, finished, made_up, page_of, rendered

from surepick.certificates.document import certificate_document
from surepick.reports.study import charts as study_intervals


def exact(value) -> str:
    return repr(value)


def expected_rows(document) -> list[dict[str, str]]:
    """The exact numbers of every candidate with an interval, the hardest to rule out first: an independent reading."""
    found, fates = document["intervals"], document["candidates"]["fates"]
    names = {"plan": "plans", "witness": "witnesses", "lead": "leads", "width": "widths", "margin": "margins"}
    rows = []
    for arm, fate in enumerate(fates):
        if fate != "recommended" and found["margins"][arm] is not None:
            numbers = {f"data-{one}": exact(found[many][arm]) for one, many in (names | {"allowed": "allowed"}).items()}
            rows.append((found["margins"][arm], arm, {"data-candidate": str(arm)} | numbers))
    return [row for _, _, row in sorted(rows, key=lambda row: row[:2])]


def rows_with(page, tag) -> list[dict[str, str]]:
    found = [attributes for attributes in page.all(tag) if "data-margin" in attributes]
    return [{name: value for name, value in one.items() if name.startswith("data-")} for one in found]


@pytest.mark.cases(4)
@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("minimize", [False, True], ids=["largest", "smallest"])
def test_the_intervals_are_exactly_those_of_the_certificate(tmp_path, name, minimize):
    study = finished(name, 6, minimize=minimize, **POLICIES[name])
    document = certificate_document(study)
    page = page_of(study, tmp_path)
    expected = expected_rows(document)
    assert len(expected) >= 4
    assert rows_with(page, "tr") == expected
    assert rows_with(page, "line") == expected


def test_an_interval_that_is_off_by_one_bit_would_be_noticed(certified, tmp_path):
    document, page = certificate_document(certified), page_of(certified, tmp_path)
    leads = document["intervals"]["leads"]
    known = next(arm for arm, lead in enumerate(leads) if lead is not None)
    leads[known] = float(np.nextafter(leads[known], np.inf))
    assert rows_with(page, "tr") != expected_rows(document)


def test_bars_end_where_the_certificate_says(large):
    document, page = large
    bars = [bar for bar in page.all("line") if "data-margin" in bar]
    assert len(bars) == study_intervals.COMPARISONS_SHOWN
    assert rows_with(page, "line") == expected_rows(document)[:30]
    ends = np.array([float(bar["x2"]) for bar in bars])
    starts = np.array([float(bar["x1"]) for bar in bars])
    upper = np.array([float(bar["data-width"]) - float(bar["data-lead"]) for bar in bars])
    lead = np.array([float(bar["data-lead"]) for bar in bars])
    slope, offset = np.polyfit(upper, ends, 1)
    assert slope > 0
    np.testing.assert_allclose(slope * upper + offset, ends, atol=0.02)
    np.testing.assert_allclose(slope * -lead + offset, starts, atol=0.02)
    limit = next(line for line in page.all("line") if line["class"] == "limit")
    assert float(limit["x1"]) == pytest.approx(slope * 0.2 + offset, abs=0.05)


def test_each_candidate_has_its_mean_and_measurements_and_its_bound(certified, tmp_path):
    found = {row.id: row for row in certified.candidates().rows}
    page = page_of(certified, tmp_path).source
    rows = re.findall(r'<tr class="(?:best|possible|out)">(.*?)</tr>', page, re.DOTALL)
    assert len(rows) == 5
    for row in rows:
        name = re.search(r"</span>(\d+)<span", row)[1]
        mean, times, bound = re.findall(r'<td class="right">([^<]*)', row)
        assert abs(float(mean.replace("−", "-")) - found[name].mean) <= 0.005
        assert int(times) == found[name].times
        known = found[name].better_at_most
        assert bound == "" if known is None else 0 <= float(bound.replace("−", "-")) - known <= 0.01


def test_a_bar_far_beyond_the_others_is_cut_and_its_number_stays():
    document = made_up(8)
    document["policy"]["noise"] = "subgaussian:0.5"
    document["intervals"]["widths"][3] = 500.0
    document["intervals"]["margins"][3] = -499.5
    page = rendered(document)
    assert "+499.7" in page.words
    inside = [float(bar["x2"]) for bar in page.all("line") if "data-margin" in bar]
    assert max(inside) == study_intervals.RIGHT
    assert min(inside) < study_intervals.RIGHT - 50


def test_what_nothing_is_known_of_is_counted_and_not_drawn():
    document = made_up(6)
    for name in ("leads", "widths", "margins"):
        document["intervals"][name][2:4] = [None, None]
    assert "We know nothing yet of 2 and 3" in rendered(document).words
    for name in ("leads", "widths", "margins"):
        document["intervals"][name][1:5] = [None] * 4
    assert "We know nothing yet of 4 candidates" in rendered(document).words


def test_limits_that_differ_are_both_drawn():
    document = made_up(6)
    document["intervals"]["allowed"][4:] = [0.0, 0.0]
    page = rendered(document)
    assert "There are two lines" in page.words
    assert "limits: 0 and 0.2" in page.words


@pytest.mark.parametrize(("name", "options"), [("sequential-halving", {"budget": 120})])
def test_a_policy_without_intervals_says_how_it_decides(tmp_path, name, options):
    words = page_of(finished(name, **options), tmp_path).words
    assert "decides without an interval for each candidate" in words
    assert "keeps the better half" in words


def test_more_candidates_than_a_certificate_lists_are_still_reported(monkeypatch, tmp_path):
    whole = page_of(finished(most_plans=2), tmp_path)
    monkeypatch.setattr("surepick.certificates.document.INLINE", 4)
    monkeypatch.setattr(study_intervals, "INLINE", 4)
    page = page_of(finished(most_plans=2), tmp_path)
    assert "There are no intervals: with more than 4 candidates" in page.words
    for name in ("data-pulls", "data-mean"):
        assert [row.get(name) for row in page.all("tr") if name in row] == [
            row.get(name) for row in whole.all("tr") if name in row
        ]
