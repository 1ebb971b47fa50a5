"""Records in notebooks: small tables in which every text is escaped, without script and without colours."""

import html
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
from together import of_each

import surepick as sp
from surepick.text import MOST_ROWS, html_table

EVIL = "<script>alert('x')</script> & \"quotes\"\n\x1b[31m"


class Cells(HTMLParser):
    """The texts of a table, and the elements in it; closes what it opens."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.rows: list[list[str]] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.add(tag)
        if tag in ("tr", "caption"):
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1] == "caption":
            self.rows[-1].append(data)
        else:
            self.rows[-1][-1] += data


def test_a_table_shows_its_cells():
    rows = [("a", 1234, 0.123456), ("b", np.int64(5), np.float32(2.5)), (None, True, "")]
    assert Cells(html_table(["id", "n", "x"], rows, "three")).rows == [
        ["three"],
        ["id", "n", "x"],
        ["a", "1,234", "0.1235"],
        ["b", "5", "2.5"],
        ["", "True", ""],
    ]


def test_every_text_is_escaped():
    text = html_table([EVIL], [[EVIL]], EVIL)
    assert Cells(text).tags == {"table", "caption", "thead", "tbody", "tr", "th", "td"}
    assert text.isprintable()
    assert Cells(text).rows[2] == ["<script>alert('x')</script> & \"quotes\"\\n\\x1b[31m"]


@of_each("rows", [0, 1, MOST_ROWS, MOST_ROWS + 1, 1234])
@of_each("counted", [False, True])
def test_no_more_than_ten_rows_are_shown_and_the_others_counted(rows, counted):
    cells = Cells(html_table(["n"], ([str(row)] for row in range(rows)), total=rows if counted else None)).rows[1:]
    more = [[f"... and {rows - MOST_ROWS:,} more"]] if rows > MOST_ROWS else []
    assert cells == [[str(row)] for row in range(min(rows, MOST_ROWS))] + more


def test_a_long_text_is_cut():
    assert len(html_table([], [["x" * 10_000]])) < 700


def test_no_colour_and_no_script_so_that_dark_pages_stay_readable():
    for text in (html_table(["a"], [[1]]), sp.Arms(np.eye(30))._repr_html_()):
        assert not re.search(r"color|background|<script|<style|class=", text)


def test_arms_show_the_first_of_them():
    arms = sp.Arms(np.arange(24.0).reshape(12, 2), [f"<{arm}>" for arm in range(12)], columns=["x", "y"])
    rows = Cells(arms._repr_html_()).rows
    assert rows[:3] == [["12 arms, 2 features"], ["id", "x", "y"], ["<0>", "0", "1"]]
    assert rows[-1] == ["... and 2 more"]


def test_many_features_are_cut_and_arms_without_any_have_ids():
    assert Cells(sp.Arms(np.eye(9))._repr_html_()).rows[1] == ["id", *"01234567", "..."]
    assert Cells(sp.Arms(ids=["a"])._repr_html_()).rows == [["1 arms, 0 features"], ["id"], ["a"]]


def test_a_million_arms_are_not_walked_through():
    arms = sp.Arms(np.zeros((1_000_000, 1)))
    assert "... and 999,990 more" in arms._repr_html_()


def test_a_certificate_shows_all_that_it_rests_on():
    assumptions = tuple(f"assumption <{number}>" for number in range(15))
    answer = sp.Certificate("<b>", 3, 0.1, 0.05, 1200, "certified", "because", assumptions)
    page = answer._repr_html_()
    assert '<h2 id="is" class="name">&lt;b&gt;</h2>' in page
    assert "✓ Certified" in page
    assert "1,200 measurements." in page
    assert re.findall(r"<li>(.*?)</li>", page) == [html.escape(one) for one in assumptions]
    assert "<script" not in page


def test_a_batch_shows_what_to_measure():
    arms = sp.Arms(ids=[f"<{arm}>" for arm in range(12)])
    study = sp.Study(sp.make_policy("lucb", arms, epsilon=0.1, delta=0.1, noise="bernoulli"))
    rows = Cells(study.ask()._repr_html_()).rows
    assert rows[:3] == [["round 1: 12 pulls"], ["arm", "pulls"], ["<0>", "1"]]
    assert rows[-1] == ["... and 2 more"]
    part = Cells(study.lease(1, worker="<ann>")._repr_html_()).rows
    assert part == [["round 1: 1 pulls, leased to <ann>"], ["arm", "pulls"], ["<0>", "1"]]


def test_a_forecast_shows_its_cost_and_its_warnings():
    arms = sp.Arms(ids=["a", "b"])
    policy = sp.make_policy("action-elimination", arms, epsilon=0.3, delta=0.1, noise="bernoulli")
    found = sp.forecast(policy)
    rows = Cells(found._repr_html_()).rows
    spent = f"{found.total:,} measurements in {found.batches:,} batches in the worst case"
    assert rows[0] == [f"{spent}; uniform sampling takes {found.uniform:,}"]
    assert rows[1] == ["round", "dimension", "measurements", "in all", "arms left"]
    warned = replace(found, warnings=("beware of <b>",))
    assert Cells(warned._repr_html_()).rows[-1] == ["warning", "beware of <b>"]
