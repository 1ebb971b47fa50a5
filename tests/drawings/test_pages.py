"""Pictures as HTML: what is in each row, which rows there are, and that nothing is scaled, styled or unescaped."""

import re
from html.parser import HTMLParser

import pytest
from drawn_field import GAPS, candidates, many, row, trace

from surepick.drawings import cards, html, sentences
from surepick.drawings.html import Words

MARKS = {"line", "rect", "circle", "text", "svg"}


class Tags(HTMLParser):
    """All tags with their attributes; raises where one is closed that is not open."""

    def __init__(self, page):
        super().__init__()
        self.open, self.found = [], []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))
        if tag not in ("col", "meta", "link"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def rows(table):
    """(class, cells as texts) of the body rows of a table."""
    found = re.findall(r'<tr class="(\w+)">(.*?)</tr>', table, re.DOTALL)
    strip = re.compile(r"<svg.*?</svg>|<[^>]+>", re.DOTALL)
    return [
        (kind, [strip.sub("", cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", cells, re.DOTALL)])
        for kind, cells in found
    ]


SMALL = candidates(
    row("rxn-14", 82.83, 39),
    row("rxn-17", 81.61, 77, "recommended"),
    row("rxn-04", 72.66, 2, "ruled out", bound=-1.26),
    row("rxn-08", 81.81, 23, bound=2.71),
    row("never", None, 0, "ruled out"),
)
OWN = Words(
    unit="%",
    columns=("Ligand", "Base"),
    described={"rxn-17": ("SPhos", "K<3>"), "rxn-14": ("XPhos", "Cs")},
    link=lambda name: f"candidates/{name}",
)


def test_the_best_mean_is_first_and_each_row_says_what_it_is():
    assert rows(html.means_table(SMALL)) == [
        ("possible", ["◇rxn-14, still possible", "", "82.8 plus or minus 2.0", "39"]),
        ("possible", ["◇rxn-08, still possible", "", "81.8 plus or minus 2.0", "23"]),
        ("best", ["★rxn-17, recommended", "", "81.6 plus or minus 2.0", "77"]),
        ("out", ["·rxn-04, ruled out", "", "72.7 plus or minus 2.0", "2"]),
        ("out", ["·never, ruled out", "", "never measured"]),
    ]


def test_own_columns_and_bounds_are_cells():
    table = html.means_table(SMALL, OWN, bounds=True)
    assert rows(table)[2][1] == ["★rxn-17, recommended", "SPhos · K&lt;3&gt;", "", "81.6 plus or minus 2.0", "77", ""]
    assert [cells[-1] for _, cells in rows(table)] == ["", "+2.8", "", "\N{MINUS SIGN}1.2", ""]
    assert '<a href="candidates/rxn-17">rxn-17</a>' in table
    assert "within 5&nbsp;points" in table
    assert "Mean, %" in table


@pytest.mark.parametrize("words", [Words(), OWN])
def test_pictures_have_no_scale_no_style_and_no_script(words):
    parts = [
        html.means_table(SMALL, words, bounds=True),
        html.key(SMALL),
        html.who_table(SMALL, words),
        html.gap_chart(SMALL.trace, 1),
        html.field_chart(SMALL.trace),
        html.round_meter(11, 10, 24, round_number=6),
        cards.means_section(SMALL, words),
    ]
    for tag, attributes in Tags("".join(parts)).found:
        assert not {"viewbox", "style", "onclick"} & set(attributes)
        assert tag != "script"
    for drawn in re.findall(r"<svg.*?</svg>", "".join(parts), re.DOTALL):
        assert {tag for tag, _ in Tags(drawn).found} <= MARKS


def test_every_header_has_words_and_every_table_a_caption():
    page = html.means_table(many(45), OWN, bounds=True) + html.who_table(SMALL, OWN)
    headers = re.findall(r"<th[^>]*>(.*?)</th>", page, re.DOTALL)
    assert all(re.sub(r"<svg.*?</svg>|<[^>]+>", "", header, flags=re.DOTALL).strip() for header in headers)
    assert page.count("<caption") == page.count("<table")


def test_names_cannot_break_the_page():
    found = candidates(row('<b>"x"\x1b', 1.0, 1, "recommended"), row("y", 0.5))
    page = cards.means_section(found, Words(described={"y": ("<i>", "&")}))
    assert "<b>" not in page
    assert "<i>" not in page
    assert "\\x1b" in page


@pytest.mark.parametrize(
    ("number", "possible", "shown"), [(12, 3, 12), (15, 3, 15), (45, 7, 15), (45, 20, 21), (99, 60, 30)]
)
def test_all_that_are_possible_have_a_row_and_at_least_15(number, possible, shown):
    found = many(number, possible=possible)
    picture, others = found.shown()
    assert len(picture) == shown
    assert len(others) == number - shown
    assert found.recommended in picture
    assert len(rows(html.means_table(found))) == number  # the others are in the fold


def test_the_fold_says_what_is_in_it():
    assert "<summary>30 more <span>all ruled out, best mean 78.5</span></summary>" in html.means_table(many(45))
    assert "60 more" in html.means_table(many(90, possible=50))
    assert "21 still possible, 39 ruled out" in html.means_table(many(90, possible=50))
    large = html.means_table(many(800), Words(results="results.csv"))
    assert '<a href="results.csv">785 more</a>, all ruled out' in large
    assert len(rows(large)) == 15


def test_small_is_good_mirrors_the_axis():
    def places(found):
        return [float(x) for x in re.findall(r'<circle class="g-mark" cx="([\d.]+)%"', html.means_table(found))]

    large = candidates(row("a", 3.0, state="recommended"), row("b", 1.0))
    small = candidates(row("a", -3.0, state="recommended"), row("b", -1.0), minimize=True)
    assert places(large) == places(small)
    assert places(large)[0] > places(large)[1]


def test_before_the_first_round_there_is_no_picture():
    found = candidates(row("a", None, 0), gaps=())
    assert html.means_table(found) == f'<p class="quiet">{sentences.NOTHING_YET}</p>'
    assert html.gap_chart(found.trace, 1) == html.field_chart(found.trace) == ""
    assert cards.means_section(found)


def test_why_not_the_one_with_the_better_mean():
    question, answer = sentences.why_not(SMALL, unit="%")
    assert question == "Why not rxn-14?"
    assert answer.replace("\N{NO-BREAK SPACE}", " ") == (
        "Its mean is 1.2 points higher, from 39 measurements against 77; a difference that your tolerance does not "
        "care about."
    )
    assert sentences.why_not(candidates(row("a", 2.0, state="recommended"), row("b", 1.0))) == ("", "")


def test_what_is_promised_is_said_only_where_something_is():
    assert sentences.promise(SMALL) == (
        "Its true mean is at most 4.8 below the best of all 5. You asked for 5, at 95 % confidence."
    )
    guess = candidates(*SMALL.rows, verdict="heuristic", promised=False)
    assert "nothing is promised" in sentences.promise(guess)
    assert "promised:" not in sentences.with_bounds(guess)
    page = cards.means_section(guess, bounds=True) + sentences.promise(guess)
    assert "is promised:" not in page
    nothing = candidates(*SMALL.rows, verdict="not-yet", gaps=(None,))
    assert sentences.promise(nothing).startswith("Nothing is proved of it yet.")


def test_who_may_still_be_the_best_is_by_bound_with_a_cap():
    table = html.who_table(SMALL)
    assert [cells[0] for _, cells in rows(table)] == ["◇rxn-08, still possible", "·rxn-04, ruled out"]
    assert [cells[-1] for _, cells in rows(table)] == ["+2.8", "\N{MINUS SIGN}1.2"]
    assert table.count('class="g-bar"') == 4  # a line and a cap each
    assert html.who_table(candidates(row("a", 1.0, state="recommended"), row("b", 0.5))) == ""


def test_the_gap_is_a_step_line_between_what_is_known():
    drawn = html.gap_chart(trace(GAPS), 1)
    assert "nothing" in drawn
    assert "proved yet" in drawn
    assert ">4.8<" in drawn
    assert ">asked 5<" in drawn
    assert drawn.count('class="g-step"') == 13  # 7 levels and 6 steps, the last one at the end
    assert html.gap_chart(trace((None, None, 4.0)), 1) == ""


def test_a_gap_that_begins_very_high_is_cut_and_says_so():
    assert "▲ 41.0" in html.gap_chart(trace((41.0, 9.0, 4.9)), 1)
    assert "▲" not in html.gap_chart(trace((29.0, 9.0, 4.9)), 1)


def test_labels_beside_the_gap_do_not_overlap():
    drawn = html.gap_chart(trace((9.0, 6.0, 4.97)), 1)
    places = [float(y) for y in re.findall(r'<text[^>]*dx="9"[^>]*y="([\d.]+)"', drawn)]
    assert abs(places[0] - places[1]) >= 15.9


def test_the_field_is_a_column_a_round_and_of_many_rounds_a_line():
    few = html.field_chart(trace((None,) * 3, (45, 20, 8)))
    assert few.count('class="g-col"') == 2
    assert few.count('class="g-fill"') == 1
    assert "45, 20, 8" in few
    many_rounds = html.field_chart(trace((None,) * 30, tuple(range(45, 15, -1))))
    assert "g-col" not in many_rounds
    assert many_rounds.count("g-step") > 30
    assert html.field_chart(trace((None,) * 3, (45, 45, 45))) == ""


def test_a_notebook_gets_the_stylesheet_and_its_marks_alone():
    page = cards.notebook(cards.verdict_card("certified", "a", "", "It is."), cards.means_section(SMALL))
    style = page[page.index("<style>") : page.index("</style>")]
    assert "url(" not in style
    rules = re.sub(r"/\*.*?\*/", "", style[len("<style>") :], flags=re.DOTALL)
    selectors = re.findall(r"(?:^|\})\s*([^{}@]+)\{", rules)
    assert selectors
    assert all(".surepick" in one for selector in selectors for one in re.split(r",(?![^(]*\))", selector))
    assert '<div class="surepick notebook">' in page
