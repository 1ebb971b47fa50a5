"""How a report says where the measurements went."""

import re

import pytest
from report_pages import finished, made_up, page_of, rendered

from surepick.reports.study.charts import effort
from surepick.reports.study.facts import facts_of


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
