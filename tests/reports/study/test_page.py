"""The page of a report: one file, nothing from elsewhere, names as text, and nothing of the open plan."""

import base64
import hashlib
import re
import sys
from collections import Counter

import pytest
from report_pages import finished, made_up, page_of, rendered
from together import of_each

import surepick as sp
from surepick.certificates.document import certificate_document
from surepick.reports.study import page as study_report

# --- one file, nothing from elsewhere


FOREIGN = re.compile(r"""https?:|//[a-z0-9]|url\(|@import|\bsrc\s*=|srcset|<link|<iframe|<object|<embed|data:""", re.I)


def test_nothing_is_fetched_from_anywhere(certified, tmp_path, large):
    for page in (page_of(certified, tmp_path, forecast_up_to=10, name="s"), large[1]):
        source = page.source.replace(page.texts["script"][0], re.sub(r"//.*", "", page.texts["script"][0]))
        assert FOREIGN.findall(source) == []
        assert {name for name, _ in page.elements} & {
            "link",
            "img",
            "iframe",
            "object",
            "embed",
            "base",
            "form",
        } == set()
        assert all(attributes["href"].startswith("#") for attributes in page.all("a"))


@of_each("sneaked", ['<img src="x">', "url(a.png)", '<a href="//host/x">', "@import 'x'", "http://a"])
def test_something_fetched_would_be_noticed(sneaked):
    assert FOREIGN.search(sneaked)


def test_the_page_forbids_all_but_its_own_style_and_script(certified, tmp_path):
    page = page_of(certified, tmp_path)
    rule = next(one["content"] for one in page.all("meta") if one.get("http-equiv") == "Content-Security-Policy")
    assert rule.startswith("default-src 'none';")
    for tag in ("style", "script"):
        (text,) = page.texts[tag]
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in rule
    assert not [name for _, attributes in page.elements for name in attributes if name == "style" or name[:2] == "on"]


def test_ten_thousand_candidates_are_a_small_file(large):
    _, page = large
    assert len(page.source.encode()) < 3_000_000
    rows = [row for row in page.all("tr") if "data-margin" in row]
    assert len(rows) == 300
    assert "the first 300 rows of 9,999" in page.source
    assert f"{9_999 - 30:,} others have more room" in page.words
    assert page.source.count("<path") < 100  # marks of a kind are one path


# --- what users wrote is text


NASTY = (
    '<script>alert("x")</script>',
    "\"quotes' & <b>",
    "Ü 漢字 \U0001f9ea \u202egnp.exe",
    "long " * 200,
    "--><svg/onload=x>",
)


def test_names_are_text_wherever_they_stand(tmp_path):
    study = finished(ids=NASTY, most_plans=2, epsilon=0.2)
    study.tell_prior([NASTY[0]], [1.0], worker=NASTY[1])
    study.close(NASTY[4])
    page = page_of(study, tmp_path, name=NASTY[0])
    tags = Counter(name for name, _ in page.elements)
    assert tags["script"] == tags["style"] == tags["h1"] == 1
    assert tags["b"] == 0
    assert page.open == []
    assert NASTY[0] in page.texts["h1"][0]
    headers = set(page.texts["th"])
    assert set(NASTY) <= headers
    assert NASTY[1] in page.words
    assert NASTY[4] in page.words


def test_names_that_are_no_unicode_do_not_break_the_file(tmp_path):
    assert page_of(finished(most_plans=0), tmp_path, name="a\ud800b").texts["h1"] == ["a?b"]


# --- the answer in words


def test_parts_that_show_nothing_are_left_out_and_say_why_once():
    page = rendered(made_up())
    ids = {one["id"] for one in page.all("section")}
    assert ids == {"answer", "intervals", "grounds", "history"}
    assert [one["href"] for one in page.all("a")] == ["#main"]
    assert page.words.count("There is no forecast") == 1 == "".join(page.texts["ul"]).count("There is no map")


# --- nothing of the open plan


def test_results_of_an_open_plan_change_nothing(tmp_path):
    study = finished(most_plans=2, epsilon=0.2)
    before = page_of(study, tmp_path).source
    plan = study.ask()
    assert page_of(study, tmp_path).source == before
    first = next(name for name, pulls in plan.table() if pulls)
    study.tell([first], [1e6], worker="bob", accept_unusual=True)
    assert page_of(study, tmp_path).source == before
    missing = study.missing
    study.tell_totals(study.ids, missing, 0.0 * missing)
    assert page_of(study, tmp_path).source != before


def test_a_report_that_counts_the_open_plan_would_be_noticed(tmp_path, monkeypatch):
    """The saboteur."""

    def leaking(study, name, **how):
        came = sum(part.pulls.sum() for part in study.log.results(study.log.last_plan().number))
        return (found := certificate_document(study, name, **how)) | {"pulls": found["pulls"] + int(came)}

    monkeypatch.setattr(study_report, "certificate_document", leaking)
    study = finished(most_plans=2, epsilon=0.2)
    first = study.ask().table()[0][0]
    before = page_of(study, tmp_path).source
    study.tell([first], [0.0])
    assert page_of(study, tmp_path).source != before


def test_equal_studies_give_equal_files(certified, tmp_path):
    once = page_of(certified, tmp_path, forecast_up_to=10).source
    assert page_of(finished(), tmp_path, forecast_up_to=10).source == once


# --- what can go wrong


def test_without_jinja_one_sentence_says_what_to_install(certified, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(sp.InvalidInput, match=r'jinja2, which is absent: pip install "surepick\[reports\]"'):
        sp.write_report(certified, tmp_path / "r.html")


def test_a_file_that_cannot_be_written_is_named(certified, tmp_path):
    with pytest.raises(sp.InvalidInput, match=r"cannot be written to .*nowhere.*make the folder first\.$") as refused:
        sp.write_report(certified, tmp_path / "nowhere" / "report.html", forecast_up_to=0)
    assert "Errno" not in str(refused.value)
    with pytest.raises(sp.InvalidInput, match=r"cannot be written to .*: Is a directory\.$"):
        sp.write_report(certified, tmp_path, forecast_up_to=0)
