"""The report of a study: what it says is what the certificate says, anybody can read it, and it needs nothing else."""

import base64
import hashlib
import re
import sys
from collections import Counter
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pytest

import surepick as sp
from surepick.certificates.document import certificate_document
from surepick.core.random_streams import stream
from surepick.errors import ContractError
from surepick.reports.study import comparisons_chart as study_intervals
from surepick.reports.study import forecast_chart as study_spending
from surepick.reports.study import page as study_report
from surepick.reports.study import pca_chart as study_map
from surepick.reports.study.facts import facts_of
from surepick.reports.study.forecast_chart import Foreseen
from surepick.reports.study.format import column, distinct, labels, number, percent, plain, shortened, signed_column
from surepick.reports.study.history import History, Kept, history_of
from surepick.reports.study.pulls_chart import effort
from surepick.reports.study.scales import Frame, Scale, histogram, nice_step, staircase
from surepick.studies.logs.memory import MemoryLog

VOID = {"meta", "link", "br", "path", "rect", "line", "circle"}
NO_LOG = History((Kept(1, 0.0, 0.0, 0, (), ()),), (), (), durable=True)
NO_FORECAST = Foreseen(None, "never-stops")


class Page(HTMLParser):
    """A page as elements: (tag, attributes), the text, and what stands in each kind of element."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.source = source
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: dict[str, list[str]] = {}
        self.open: list[str] = []
        self.feed(source)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)
            self.texts.setdefault(tag, []).append("")

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        for tag in set(self.open):
            self.texts[tag][-1] += data

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def words(self) -> str:
        """What people read."""
        everything = " ".join(" ".join(self.texts.get(tag, [])) for tag in ("header", "main", "footer"))
        return re.sub(r" (?=[.,;:)])", "", re.sub(r"[ \n]+", " ", everything))  # as a browser breaks lines


def finished(name="certified-independent", num_arms=5, *, minimize=False, most_plans=10**6, ids=None, **options):
    """(a study in memory, its clock still, told normal rewards until it stops or so many plans are closed)."""
    rng = stream(3, "report", name, num_arms)
    features = rng.normal(size=(num_arms, 2))
    arms = sp.Arms(features, ids)
    given = {"epsilon": 0.5, "delta": 0.05, "noise": sp.SubGaussian(0.5)} | options
    log = MemoryLog(clock=lambda: 1_750_000_000.0)
    study = sp.Study(arms, sp.make_policy(name, arms, **given), minimize=minimize, log=log)
    means = features @ [1.0, -0.5]
    while most_plans > 0 and (plan := study.ask()) is not None:
        ids_told = [one for one, pulls in plan.table() for _ in range(pulls)]
        order = [study.ids.index(one) for one in ids_told]
        study.tell(ids_told, means[order] + rng.normal(0.0, 0.5, len(order)), worker="ann")
        most_plans -= 1
    return study


def page_of(study, tmp_path, **options) -> Page:
    path = study_report.write_report(study, tmp_path / "report.html", **({"forecast_up_to": 0} | options))
    return Page(path.read_text(encoding="utf-8"))


def made_up(num_arms=4, *, verdict="certified", ids=None, **changes) -> dict:
    """A certificate of a study that never was: arm 0 is recommended, arm i is worse by i / 10, one batch."""
    everybody = list(range(num_arms))
    widths = [0.3 + 0.001 * (arm % 7) for arm in everybody]
    leads = [arm / 10 for arm in everybody]
    margins = [0.2 + lead - width for lead, width in zip(leads, widths, strict=True)]
    open_ones = [margin < 0 for margin in margins]
    told = {"arms": everybody, "pulls": [2] * num_arms, "sums": [1.0] * num_arms, "squares": None}
    look = {
        "plan": 1,
        "look": 1,
        "looks": 1,
        "asked": {"arms": everybody, "pulls": [2] * num_arms},
        "told": told,
        "surplus": False,
        "repeated": 0,
        "abandoned": [],
        "leader": "0",
        "candidate": "0",
        "active": 1 + sum(open_ones[1:]),
        "certified_gap": None,
        "left": {"number": sum(not one for one in open_ones[1:])},
        "joined": [],
    }
    entry = {"round": 1, "total_pulls": 2 * num_arms, "active": look["active"], "alarms": [], "looks": [look]}
    return {
        "study": "made up",
        "made_by": "surepick test",
        "best_arm": "0" if ids is None else ids[0],
        "epsilon": 0.2,
        "delta": 0.05,
        "pulls": 2 * num_arms,
        "verdict": verdict,
        "promise": "A promise.",
        "reason": "A reason.",
        "certified_gap": 0.2 if verdict == "certified" else None,
        "minimize": False,
        "assumptions": ["Given what was measured before, each measurement is an independent draw."],
        "checks": ["The results are no farther from the embedding than its noise allows."],
        "policy": {"name": "certified-linear", "noise": "bounded:0:1"},
        "algorithm": "certified-elimination",
        "traits": {"uses_features": True, "certifies": "candidate"},
        "arms": {"number": num_arms, "ids": ids, "features": [], "columns": ["x"], "sha256": "b" * 64},
        "registration": "sp1-aaaa-bbbb-cccc-dddd-eeee-ffff-gggg",
        "ended": None,
        "rounds": [entry],
        "intervals": {
            "plans": [1] * num_arms,
            "witnesses": [-1] + [0] * (num_arms - 1),
            "leads": [None, *leads[1:]],
            "widths": [None, *widths[1:]],
            "margins": [None, *margins[1:]],
            "allowed": [None] + [0.2] * (num_arms - 1),
        },
        "candidates": {
            "pulls": [2] * num_arms,
            "means": [0.5] * num_arms,
            "fates": ["recommended", *("possible" if one else "left" for one in open_ones[1:])],
        },
        "sha256": "a" * 64,
    } | changes


def rendered(document, features=None, history=NO_LOG, expected=NO_FORECAST) -> Page:
    given = np.zeros((document["arms"]["number"], 0)) if features is None else features
    return Page(study_report.report_page(document, history=history, features=given, expected=expected))


@pytest.fixture(scope="module")
def certified() -> sp.Study:
    study = finished()
    assert study.certificate().verdict == "certified"
    return study


@pytest.fixture(scope="module")
def large() -> tuple[dict, Page]:
    document = made_up(10_000, ids=[f"candidate-{arm:05d}" for arm in range(10_000)])
    return document, rendered(document, stream(0, "map").normal(size=(10_000, 20)))


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


@pytest.mark.parametrize("sneaked", ['<img src="x">', "url(a.png)", '<a href="//host/x">', "@import 'x'", "http://a"])
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
    study = finished(ids=NASTY, most_plans=2)
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


# --- the numbers are those of the certificate


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


POLICIES = {
    "certified-independent": {},
    "certified-linear": {"norm_bound": 1.5},
    "linear-embedding": {"norm_bound": 1.5},
    "action-elimination": {},
    "rage": {},
    "lucb": {},
}


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
    assert len(bars) == study_intervals.SHOWN
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


def test_each_candidate_has_its_measurements_mean_and_fate(certified, tmp_path):
    found = certificate_document(certified)["candidates"]
    rows = {int(row["data-candidate"]): row for row in page_of(certified, tmp_path).all("tr") if "data-pulls" in row}
    assert len(rows) == 5
    for arm, (pulls, mean) in enumerate(zip(found["pulls"], found["means"], strict=True)):
        assert (rows[arm]["data-pulls"], rows[arm]["data-mean"]) == (str(pulls), repr(mean))


def test_the_line_of_those_still_possible_is_the_trace(certified, tmp_path):
    page = page_of(certified, tmp_path)
    rows = [(int(row["data-spent"]), int(row["data-active"])) for row in page.all("tr") if "data-spent" in row]
    assert rows == [(one.total_pulls, len(one.active)) for one in certified.trace]


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


# --- the answer in words


@pytest.mark.parametrize(
    ("delta", "words"),
    [
        (0.05, "5"),
        (0.01, "1"),
        (0.3, "30"),
        (0.125, "12.5"),
        (1e-6, "0.0001"),
        (0.1234567891, "12.34567891"),
    ],
)
def test_a_probability_in_words(delta, words):
    assert percent(delta) == words
    said = rendered(made_up(delta=delta)).words
    assert f"Of many such studies at most {words}\xa0% name a wrong answer, in the long run" in said


def test_numbers_as_people_write_them():
    given = [0.0, 1204.0, 0.15342, -2.5, 3.1e-7, 123456.7, None]
    assert [number(one) for one in given] == ["0", "1,204", "0.1534", "−2.5", "3.100e-07", "123,457", "unknown"]
    assert shortened("abcdefghij", 5) == "ab…ij"


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["ab", "abcdef"], ["ab", "abcdef"]),
        (["recipe-1", "recipe-2"], ["…ipe-1", "…ipe-2"]),
        (["xxxxxaxxxxx1", "yxxxxbxxxxx2"], ["xx…xx1", "yx…xx2"]),
        (["aXaaaaaaaaaa", "bXaaaYaaaaaa", "bXaaaZaaaaaa"], ["aX…aaa", "bX…aaa", "bX…aaa"]),
        (["x" * 9 + "abcdef", "y" * 9 + "Abcdef"], ["xx…def", "yy…def"]),
        (["a1bcdefghij", "a1bXdefghij"], ["…c…hij", "…X…hij"]),
    ],
)
def test_short_names_differ_where_the_long_ones_do(names, found):
    short = labels(names, 6)
    assert all(len(one) <= 6 for one in short)
    assert short == found


def test_numbers_of_a_column_have_the_same_decimals():
    assert column([0.12345, 12.5, None, 0.0, 0.2]) == ["0.1235", "12.5000", "unknown", "0.0000", "0.2000"]
    assert signed_column([123.456, -0.5, 0.0]) == ["+123.5", "−0.5", "0.0"]
    assert column([1.0, 1e-9]) == ["1.000", "1.000e-09"]  # lest it look like nothing
    assert column([31234.5, 2.0, 1500.0]) == ["31,234", "2", "1,500"]
    assert column([]) == []


def test_names_are_made_longer_until_they_differ():
    names = ["aXaaaaaaaaaa", "bXaaaYaaaaaa", "bXaaaZaaaaaa"]
    assert len(set(labels(names, 6))) == 2
    assert len(set(distinct(names, 6, 12))) == 3
    assert distinct(names, 6, 7) == labels(names, 7)


def test_a_short_name_comes_with_the_whole_one():
    ids = [f"a very long name that nobody can read at once {arm}" for arm in range(4)]
    titles = rendered(made_up(ids=ids)).texts["title"]
    assert set(ids) <= {title.split(":")[0] for title in titles}


def test_the_words_of_the_field_are_replaced_but_not_those_of_users():
    said = "All arms but one pull left ('the robot arm broke')."
    assert (
        plain(said, ["the robot arm broke", "a"]) == "All candidates but one measurement left ('the robot arm broke')."
    )


def test_a_certified_answer_says_what_is_promised(certified, tmp_path):
    page = page_of(certified, tmp_path, name="paint")
    answer = certified.certificate()
    assert page.texts["h1"] == ["paint"]
    assert f"Recommended: {answer.best_arm}" in page.words
    assert "Its true mean is within 0.5 of the largest mean of all" in page.words
    assert "Of many such studies at most 5\xa0% name a wrong answer, in the long run (delta = 0.05)" in page.words
    assert f"{answer.pulls:,} measurements of 5 candidates" in page.words
    assert "What is missing" not in page.words


def test_small_rewards_are_said_to_be_good(tmp_path):
    assert "the smallest mean of all" in page_of(finished(minimize=True), tmp_path).words


def test_an_answer_that_is_no_theorem_says_why():
    document = made_up(verdict="heuristic", reason="The pull counts rest on a guess.")
    words = rendered(document).words
    assert "a good guess, not proved" in words
    assert "This is a good guess and not a promise" in words
    assert "A proof. The measurement counts rest on a guess." in words
    assert "What is promised" not in words


ALARM = "two arms with equal features differ"


def contradicted(verdict="heuristic", **changes) -> dict:
    reason = f"The data speak against the embedding: {ALARM}. No other candidate can be better by more than 0.2."
    document = made_up(verdict=verdict, reason=reason, **changes)
    document["rounds"][0]["alarms"] = [ALARM]
    return document


FLAT = re.compile(r"(?<!rule, )ruled out|a good guess|recommended|for the same promise|shows that this", re.I)


@pytest.mark.parametrize("verdict", ["heuristic", "not-yet"])
def test_an_answer_that_the_results_contradict_is_not_to_be_relied_on(verdict):
    words = rendered(contradicted(verdict), expected=NO_FORECAST).words
    assert "the results contradict an assumption; do not rely on this" in words
    assert "By the rule of the algorithm, which the results contradict, no other candidate can be better" in words
    assert FLAT.findall(words) == []
    assert words.count("two candidates with equal features differ") == 1


def test_a_proof_may_say_it_flatly():
    """So that the test above can fail."""
    assert FLAT.findall(rendered(made_up()).words)


def test_a_guess_is_said_to_be_one_everywhere():
    reason = "A rule of thumb. No other candidate can be better by more than 0.2."
    document = made_up(verdict="heuristic", reason=reason)
    document["rounds"][0]["looks"][0]["certified_gap"] = 0.2
    words = rendered(document).words
    assert (
        "By the rule of the algorithm, which is not proved, no other candidate can be better by more than 0.2" in words
    )
    assert "it is worse than the best by at most (by the rule; not proved)" in words
    assert "ruled out" not in words.replace("hardest to rule out", "")
    assert "A proof. A rule of thumb." in words


def test_a_network_is_said_to_have_been_used():
    words = rendered(made_up(verdict="heuristic", algorithm="certified-neural")).words
    assert "we used a network's predictions, and nobody can prove how wrong they are." in words


def test_a_candidate_that_was_never_measured_is_said_so_and_shown():
    document = made_up(400)
    found = document["candidates"]
    found["pulls"][0], found["means"][0] = 0, None
    page = rendered(document)
    assert "0 itself was never measured; what we say of it comes from similar candidates" in page.words
    assert "and 0" in next(one for one in page.texts["figcaption"] if "most measured" in one)
    rows = [row for row in page.all("tr") if "data-pulls" in row]
    assert len(rows) == 300
    assert [row["data-pulls"] for row in rows if row["data-candidate"] == "0"] == ["0"]
    document["traits"] = {"uses_features": False, "certifies": "candidate"}
    assert "similar candidates" not in rendered(document).words


@pytest.mark.parametrize(
    ("policy", "gap", "proved"),
    [
        ({"noise": "bernoulli"}, 0.99, True),
        ({"noise": "bernoulli"}, 1.0, False),
        ({"noise": "bounded:-1.0:4.0"}, 4.9, True),
        ({"noise": "bounded:-1.0:4.0"}, 5.0, False),
        ({"noise": "subgaussian:1.0"}, 99.0, True),
        ({"noise": "subgaussian:1.0", "gap_bound": 2.0}, 2.0, False),
    ],
)
def test_a_bound_that_held_anyway_proves_nothing(policy, gap, proved):
    promise = f"Not certified to within 0.2: so far its mean is proved to be within {gap:.4g} of the largest of all."
    document = made_up(
        verdict="not-yet", certified_gap=gap, promise=promise, policy={"name": "certified-linear"} | policy
    )
    document["rounds"][0]["looks"][0]["certified_gap"] = gap
    document["intervals"]["widths"][1] = gap + 0.1  # less its lead
    words = rendered(document).words
    assert ("Nothing is proved yet." in words) != proved
    assert ("nothing proved" in words) != proved
    assert (f"to be within {gap:.4g} of" in words) == proved
    assert ("We have proved nothing yet of 1 candidate" in words) != proved


def test_the_average_is_no_promise_and_the_end_has_a_date():
    page = rendered(made_up())
    assert "0.5 in 2 measurements; not part of the promise." in page.words
    assert "When it ended" in page.words
    assert "1970-01-01\xa000:00\xa0UTC" in page.words
    assert "How recent it is" in rendered(made_up(verdict="not-yet")).words


def test_bars_that_compare_with_another_than_the_star_say_why():
    document = made_up(5, verdict="not-yet")
    document["candidates"]["fates"][:2] = ["possible", "recommended"]
    document["best_arm"] = "1"
    words = rendered(document).words
    assert "The star, 1, has the best estimate by now, but 0 was the one under test" in words
    assert "can be better than 0 by (unit of the rewards)" in words
    assert "The star has no bar of its own; nor has 0" in words
    for name, value in (("leads", 0.1), ("widths", 0.2), ("margins", 0.1), ("allowed", 0.2), ("witnesses", 3)):
        document["intervals"][name][0] = value
    assert "that of 0 compares it with 3, which was under test before." in rendered(document).words
    assert "The star" not in rendered(made_up(5)).words


def test_where_the_line_rises_the_new_candidate_is_named():
    document = made_up(6)
    first = document["rounds"][0]
    for number_of, active, tested in ((2, 2, "0"), (3, 5, "4")):
        look = first["looks"][0] | {"plan": number_of, "active": active, "candidate": tested, "joined": [1]}
        document["rounds"].append(first | {"round": number_of, "looks": [look]})
    words = rendered(document).words
    assert "now testing 4" in words
    assert "now testing 0" not in words
    document["rounds"][2]["looks"][0]["candidate"] = "0"
    assert "now testing" not in rendered(document).words


def test_one_word_for_steps_that_are_one_batch_each():
    document = made_up()
    assert not re.search(r"\brounds?\b", rendered(document).words)
    look = document["rounds"][0]["looks"][0]
    document["rounds"][0]["looks"] = [look | {"look": 1, "looks": 2}, look | {"plan": 2, "look": 2, "looks": 2}]
    assert "1, part 2 of 2" in rendered(document).words
    assert "in 1 round (2 batches" in rendered(document).words


def test_only_a_database_is_said_to_have_written_plans_down(certified):
    assert not history_of(certified.log, 1).durable
    kept = History(NO_LOG.kept, (), (), durable=False)
    assert "What to measure was decided before it was measured" in rendered(made_up(), history=kept).words
    assert "written down" not in rendered(made_up(), history=kept).words
    assert "What to measure was written down before it was measured" in rendered(made_up()).words


def test_parts_that_show_nothing_are_left_out_and_say_why_once():
    page = rendered(made_up())
    ids = {one["id"] for one in page.all("section")}
    assert ids == {"answer", "narrowing", "intervals", "effort", "grounds", "history"}
    assert [one["href"] for one in page.all("a")] == [
        "#main",
        *(f"#{key}" for key in ("narrowing", "intervals", "effort", "grounds", "history")),
    ]
    assert page.words.count("There is no forecast") == 1 == "".join(page.texts["ul"]).count("There is no map")


def test_an_unfinished_study_says_what_is_missing(tmp_path):
    study = finished(most_plans=1)
    words = page_of(study, tmp_path).words
    assert "not certified yet" in words
    assert "5 candidates of 5 are still possible; more measurements are needed" in words
    study.close("no money left")
    words = page_of(study, tmp_path).words
    assert "closed early, not certified" in words
    assert "The study was closed early, on 2025-06-15\xa015:06\xa0UTC (no money left)." in words
    assert re.search(r"Its next batch would have taken [\d,]+ more measurements; about [\d,]+ were predicted", words)
    assert "We do not use results of a batch that was not complete" in words


def test_what_is_proved_so_far_is_said():
    words = rendered(made_up(verdict="not-yet", certified_gap=0.7)).words
    assert "It is at most 0.7 worse than the best candidate." in words


def test_a_spent_budget_is_said():
    assert "A larger budget" in rendered(made_up(verdict="budget-exhausted")).words


def test_before_the_first_round_nothing_is_named(tmp_path):
    study = finished(most_plans=0)
    study.ask()
    words = page_of(study, tmp_path).words
    assert "No candidate can be named yet" in words
    assert "Recommended" not in words
    assert "No batch is complete yet" in words
    assert "★" not in "".join(page_of(study, tmp_path).texts["td"])


def test_a_leader_of_whom_nothing_is_proved_is_not_called_recommended(tmp_path):
    page = page_of(finished(most_plans=1), tmp_path)
    assert "★\xa0best\xa0so\xa0far" in page.texts["td"]
    assert "recommended" not in page.words


@pytest.mark.parametrize("name", ["certified-linear", "linear-embedding", "sequential-halving"])
def test_the_words_are_plain(tmp_path, name):
    options = POLICIES.get(name, {"budget": 200})
    words = page_of(finished(name, 8, **options), tmp_path, forecast_up_to=10).words
    assert re.findall(r"\b(arms?|pulls?|bandits?)\b", words, re.I) == []


# --- nothing of the open plan


def test_results_of_an_open_plan_change_nothing(tmp_path):
    study = finished(most_plans=2)
    before = page_of(study, tmp_path).source
    plan = study.ask()
    assert page_of(study, tmp_path).source == before
    first = next(name for name, pulls in plan.table() if pulls)
    study.tell([first], [1e6], worker="bob")
    assert page_of(study, tmp_path).source == before
    missing = study.missing
    study.tell_totals(study.ids, missing, 0.0 * missing)
    assert page_of(study, tmp_path).source != before


def test_a_report_that_counts_the_open_plan_would_be_noticed(tmp_path, monkeypatch):
    """The saboteur."""

    def leaking(study, name):
        came = sum(part.pulls.sum() for part in study.log.results(study.log.last_plan().number))
        return (found := certificate_document(study, name)) | {"pulls": found["pulls"] + int(came)}

    monkeypatch.setattr(study_report, "certificate_document", leaking)
    study = finished(most_plans=2)
    first = study.ask().table()[0][0]
    before = page_of(study, tmp_path).source
    study.tell([first], [0.0])
    assert page_of(study, tmp_path).source != before


def test_equal_studies_give_equal_files(certified, tmp_path):
    once = page_of(certified, tmp_path, forecast_up_to=10).source
    assert page_of(finished(), tmp_path, forecast_up_to=10).source == once


# --- the log


def test_the_log_says_what_came_and_from_whom(tmp_path):
    study = finished(most_plans=1)
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
    log = History((Kept(1, 0.0, 0.0, 0, (), (("without a name", 8),)),), (("without a name", 1),), (), durable=True)
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


# --- the forecast


def test_spending_is_compared_with_the_forecast(certified, tmp_path):
    foreseen = sp.forecast(certified.policy)
    words = page_of(certified, tmp_path, forecast_up_to=5).words
    assert f"up to about {foreseen.total:,} measurements" in words
    assert f"It took {certified.certificate().pulls:,}" in words
    assert "That is a worst case" in words
    share = certified.certificate().pulls / foreseen.uniform
    assert (f"This study took {share:.0%} of it." in words) == (share < 1)


def test_a_forecast_that_takes_long_is_left_out(certified, tmp_path):
    assert "surepick forecast makes it" in page_of(certified, tmp_path, forecast_up_to=4).words


@pytest.mark.parametrize("error", [ContractError("no room"), ValueError("a shape"), FloatingPointError("over")])
def test_a_forecast_that_fails_does_not_fail_the_report(certified, tmp_path, monkeypatch, error):
    def refuse(policy):
        raise error

    monkeypatch.setattr(study_spending, "forecast", refuse)
    assert f"No forecast could be made: {error}" in page_of(certified, tmp_path, forecast_up_to=5).words


# --- the map


@pytest.mark.parametrize("shape", [(30, 4), (6, 20), (25, 25)])
def test_the_map_is_of_the_first_two_principal_components(shape):
    features = stream(1, "plane", *shape).normal(size=shape) * np.geomspace(1, 100, shape[1])
    unit = (features - features.mean(axis=0)) / features.std(axis=0)
    u, s, _ = np.linalg.svd(unit, full_matrices=False)
    plane = study_map.principal_plane(features)
    for axis in range(2):
        wanted = u[:, axis] * s[axis]
        np.testing.assert_allclose(plane.places[:, axis] * np.sign(plane.places[:, axis] @ wanted), wanted, atol=1e-8)
    assert plane.shares == pytest.approx(tuple(s[:2] ** 2 / (s**2).sum()))


def test_with_very_many_features_a_part_of_the_candidates_gives_the_directions(monkeypatch):
    hidden = stream(2, "plane").normal(size=(60, 2)) * [3.0, 1.0]
    features = hidden @ stream(3, "plane").normal(size=(2, 50))
    whole = study_map.principal_plane(features)
    monkeypatch.setattr(study_map, "MOST_COLUMNS", 20)
    part = study_map.principal_plane(features)
    assert sum(part.shares) == pytest.approx(1.0)
    apart = [np.linalg.norm(places[:, None] - places[None], axis=2) for places in (whole.places, part.places)]
    np.testing.assert_allclose(*apart, atol=1e-6)


@pytest.mark.parametrize(
    ("features", "words"),
    [
        (np.zeros((4, 0)), "the candidates have no features"),
        (np.ones((4, 3)), "all candidates have the same features"),
        (np.arange(4.0)[:, None] * [1.0, 2.0], "differ along one direction only"),
    ],
    ids=["none", "equal", "one direction"],
)
def test_features_that_span_no_plane_are_said_so(features, words):
    assert words in rendered(made_up(), features).words


def test_fates_differ_in_shape(large):
    _, page = large
    svg = page.source[page.source.index("chart-map-title") :]
    kinds = {
        kind: max(re.findall(rf'<path class="{kind}[^"]*" d="([^"]*)"', svg), key=len)
        for kind in ("points left", "rings possible")
    }
    assert kinds["points left"].count("h0") > 1000  # dots
    assert kinds["rings possible"].count("z") >= 1  # diamonds
    assert {"★", "◇", "•"} <= set(page.words)


# --- for everybody


@pytest.fixture(scope="module")
def readable(certified, tmp_path_factory) -> Page:
    return page_of(certified, tmp_path_factory.mktemp("page"), name="paint", forecast_up_to=5)


def test_headings_are_in_order_and_landmarks_are_there(readable):
    levels = [int(tag[1]) for tag, _ in readable.elements if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert [tag for tag, _ in readable.elements if tag in {"header", "nav", "main", "footer"}] == [
        "header",
        "main",
        "nav",
        "footer",
    ]
    assert readable.all("html") == [{"lang": "en"}]
    first = next(attributes for tag, attributes in readable.elements if tag == "a")
    assert first == {"class": "skip", "href": "#main"}


def test_every_reference_inside_the_page_holds(readable):
    ids = [attributes["id"] for _, attributes in readable.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    named = [word for _, attributes in readable.elements for word in attributes.get("aria-labelledby", "").split()]
    linked = [attributes["href"].removeprefix("#") for attributes in readable.all("a")]
    assert {*named, *linked} <= set(ids)
    assert all("aria-label" in nav for nav in readable.all("nav"))


def test_every_picture_says_what_it_shows(readable):
    pictures = readable.all("svg")
    assert len(pictures) >= 5
    said = dict(re.findall(r'<span[^>]* id="([a-z-]+)">(.*?)</span>', readable.source, re.S))
    for one in pictures:
        assert said[one["aria-labelledby"]].strip()
        assert said[one["aria-describedby"]].strip()
    assert any("None crosses its limit" in text for text in said.values())


def test_every_mark_of_a_candidate_has_its_name(readable):
    """A picture is an image as a whole, or a group of marks that are images with names; axes are not read aloud."""
    for role, drawing in re.findall(r'<svg role="([a-z]+)"[^>]*>(.*?)</svg>', readable.source, re.S):
        assert role in {"img", "group"}
        named = re.findall(r'<g role="img"><title>[^<]+</title>', drawing)
        assert len(named) == drawing.count('role="img"')
        assert (len(named) > 0) == (role == "group")
        rest = re.sub(r'<g aria-hidden="true">.*?</g>|<g role="img">.*?</g>', "", drawing, flags=re.S)
        assert role == "img" or not re.search(r"<text(?![^>]*aria-hidden)", rest)


def test_the_numbers_behind_each_picture_can_be_opened(readable):
    assert len(readable.all("table")) >= 5
    assert len(readable.texts["caption"]) == len(readable.all("table"))
    assert all(header["scope"] in {"col", "row"} for header in readable.all("th"))
    regions = [one for one in readable.all("div") if one.get("class") == "scroll"]
    assert all(one["tabindex"] == "0" and one["role"] == "region" and one["aria-label"] for one in regions)


STYLE = (study_report.TEMPLATES / "report.css").read_text(encoding="utf-8")
LINEAR = {  # Machado, Oliveira and Fernandes (2009), severity 1
    "none": np.eye(3),
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def themes() -> dict[str, dict[str, np.ndarray]]:
    """Theme -> variable -> linear red, green and blue."""
    found = {}
    for theme, block in zip(("light", "dark"), re.findall(r":root \{(.*?)\}", STYLE, re.S), strict=True):
        pairs = re.findall(r"--([a-z]+): #([0-9a-f]{6});", block)
        coded = {name: np.array([int(text[at : at + 2], 16) / 255 for at in (0, 2, 4)]) for name, text in pairs}
        found[theme] = {
            name: np.where(one <= 0.04045, one / 12.92, ((one + 0.055) / 1.055) ** 2.4) for name, one in coded.items()
        }
    assert found["light"].keys() == found["dark"].keys()
    return found


def contrast(one, other) -> float:
    """Of WCAG 2."""
    light = sorted(float(TO_XYZ[1] @ colour) + 0.05 for colour in (one, other))
    return light[1] / light[0]


def lab(colour) -> np.ndarray:
    x, y, z = TO_XYZ @ np.clip(colour, 0, 1) / TO_XYZ.sum(axis=1)
    f = [one ** (1 / 3) if one > 0.008856 else 7.787 * one + 16 / 116 for one in (x, y, z)]
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_can_be_read(theme):
    colours = themes()[theme]
    for ink in ("ink", "quiet", "link", "good", "warn"):
        for ground in ("paper", "panel"):
            assert contrast(colours[ink], colours[ground]) >= 4.5, (ink, ground)
    for ink in ("recommended", "possible", "left", "main"):
        assert contrast(colours[ink], colours["paper"]) >= 3.0, ink
    used = set(re.findall(r"(?:^|[ {])color: var\(--([a-z]+)\)", STYLE)) | set(
        re.findall(r"text \{[^}]*fill: var\(--([a-z]+)\)", STYLE)
    )
    assert used <= {"ink", "quiet", "link", "good", "warn"}


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("eye", LINEAR)
def test_fates_can_be_told_apart_by_every_eye(theme, eye):
    colours = themes()[theme]
    seen = {fate: lab(np.asarray(LINEAR[eye]) @ colours[fate]) for fate in ("recommended", "possible", "left", "paper")}
    names = sorted(seen)
    for place, one in enumerate(names):
        for other in names[place + 1 :]:
            assert np.linalg.norm(seen[one] - seen[other]) >= 25.0, (one, other)


def test_red_and_green_would_be_noticed():
    """The saboteur."""
    red, green = np.array([0.6, 0.05, 0.02]), np.array([0.11, 0.2, 0.02])
    away = [
        np.linalg.norm(np.subtract(*(lab(np.asarray(LINEAR[eye]) @ one) for one in (red, green)))) for eye in LINEAR
    ]
    assert away[0] > 50 > 25 > min(away)


def test_paper_is_white_and_charts_are_whole():
    assert "@media screen and (prefers-color-scheme: dark)" in STYLE  # so that print keeps the light colours
    paper = STYLE[STYLE.index("@media print") :]
    assert re.search(r"\.drawing \{[^}]*break-inside: avoid", paper)
    assert "figure)" in paper  # what stands before a picture stays with it
    assert "details.long { display: none; }" in paper


# --- the parts


def test_scales_and_their_ticks():
    plain_scale = Scale(0.0, 10.0, 100.0, 200.0)
    assert (plain_scale.at(5.0), plain_scale.at(-1.0), plain_scale.at(99.0)) == (150.0, 100.0, 200.0)
    assert plain_scale.ticks(5) == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    assert Scale(0.0, 3.0, 0.0, 1.0, whole=True).ticks(6) == [0.0, 1.0, 2.0, 3.0]
    factors = Scale(1.0, 1000.0, 0.0, 3.0, logarithmic=True)
    assert factors.at(10.0) == pytest.approx(1.0)
    assert factors.ticks(5) == [1.0, 10.0, 100.0, 1000.0]
    assert [nice_step(least) for least in (0.3, 1.0, 2.1, 7.0)] == [0.5, 1.0, 5.0, 10.0]


def test_histograms_lose_nothing():
    values = stream(4, "bins").normal(size=500).tolist()
    frame = Frame(0.0, 1.0, 0.0, 1.0)
    columns = histogram(values, frame, frame.across(-1.0, 1.0), 7).columns
    assert sum(part.count for part in columns) == 500
    inner = columns[3]
    assert inner.count == sum(inner.low <= value < inner.high for value in values)
    assert [part.x for part in columns] == pytest.approx([place / 7 for place in range(7)])


def test_a_staircase_steps_where_the_level_changes():
    assert staircase([(0, 5), (10, 5), (20, 3), (30, 3)]) == "M0 5H20V3H30"


def test_the_most_measured_are_shown_and_the_others_counted():
    page = rendered(made_up(50))
    captions = [re.sub(r"\s+", " ", text) for text in page.texts["figcaption"]]
    assert sum("20 most measured" in caption for caption in captions) == 1
    assert sum("How often candidates were measured, all of them" in caption for caption in captions) == 1
    nothing = made_up(3, candidates={"pulls": [0] * 3, "means": [None] * 3, "fates": ["recommended", "left", "left"]})
    assert effort(facts_of(nothing)) is None


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("certified-independent", {}, "Candidates that stay in question are measured most;"),
        ("lucb", {}, "Candidates that stay in question are measured most;"),
        ("action-elimination", {}, "Candidates that stay in question are measured most;"),
        ("sequential-halving", {"budget": 120}, "in one round all that are left equally often."),
        ("linear-embedding", {"norm_bound": 2.0}, "with shared features these need not be good ones."),
        ("certified-linear", {"norm_bound": 2.0}, "with shared features these need not be good ones."),
    ],
)
def test_each_policy_is_said_to_measure_as_it_does(tmp_path, name, options, words):
    said = page_of(finished(name, **options), tmp_path).words
    assert words in said
    assert ("equally often" in said) == (name == "sequential-halving")


def test_equal_counts_are_said_to_be_equal():
    equal = made_up(4, traits={"uses_features": False, "certifies": "survivors"})
    assert "All candidates were measured equally often." in rendered(equal).words


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
