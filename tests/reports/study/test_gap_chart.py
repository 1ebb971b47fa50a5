"""The figure of the certified gap: a line that falls, and its interruptions."""

import re

import pytest
from report_pages import finished, made_up, page_of, rendered
from together import of_each

from surepick.reports.study.charts import gaps
from surepick.reports.study.facts import facts_of
from surepick.reports.study.lists import place


def proving(*batches, epsilon=0.2, **changes) -> dict:
    """A certificate whose batches of 8 measurements proved these gaps, each of this leader."""
    document = made_up(epsilon=epsilon, **changes)
    entry = document["rounds"][0]
    (look,) = entry["looks"]
    document["rounds"] = [
        entry
        | {
            "round": number,
            "total_pulls": 8 * number,
            "looks": [look | {"plan": number, "certified_gap": gap, "leader": leader}],
        }
        for number, (gap, leader) in enumerate(batches, start=1)
    ]
    return document


def drawn(*batches, **changes):
    return gaps(facts_of(proving(*batches, **changes)))


def section(document) -> str:
    return re.search(r'<section id="gap".*?</section>', rendered(document).source, re.S)[0]


def test_the_line_stays_until_the_next_batch_and_then_steps():
    line = drawn((0.8, "0"), (0.4, "0"), (0.1, "0"))
    (path,) = line.paths
    x, y = line.across.at, line.up.at
    corners = place(y(0.8)), place(x(16)), place(y(0.4)), place(x(24)), place(y(0.1))
    assert path == "M{} {}H{}V{}H{}V{}".format(place(x(8)), *corners)
    assert (line.kept, line.changes, line.rises) == ((), (), False)
    assert line.end == (x(24), y(0.1))
    assert line.epsilon == y(0.2)


def test_batches_that_prove_nothing_interrupt_it():
    line = drawn((None, "1"), (0.8, "0"), (None, "1"), (None, "1"), (0.4, "0"), (0.1, "0"))
    assert len(line.paths) == 2
    x, y = line.across.at, line.up.at
    assert line.paths[0] == f"M{place(x(16))} {place(y(0.8))}H{place(x(24))}"
    (kept,) = line.kept
    assert kept == f"M{place(x(24))} {place(y(0.8))}H{place(x(40))}"
    words = section(proving((None, "1"), (0.8, "0"), (None, "1"), (0.4, "0")))
    assert "Before 16 measurements nothing was proved." in words
    assert "Where the line is interrupted nothing was proved yet about" in words
    assert "Where the line is interrupted" not in section(proving((0.8, "0"), (0.4, "0")))


def test_a_last_batch_that_proves_nothing_leaves_what_was_proved_before():
    line = drawn((0.8, "0"), (0.4, "0"), (None, "1"))
    assert line.end == (line.across.at(16), line.up.at(0.4))
    assert len(line.kept) == 1


def test_another_leader_is_marked_and_a_rise_is_explained():
    line = drawn((0.4, "0"), (0.6, "1"), (0.1, "1"))
    assert line.changes == ((line.across.at(16), line.up.at(0.6)),)
    assert line.rises
    assert "Where the line rises" in section(proving((0.4, "0"), (0.6, "1"), (0.1, "1")))
    assert "Where the line rises" not in section(proving((0.4, "0"), (0.2, "1")))


def test_the_axis_counts_factors_where_numbers_differ_by_many():
    assert not drawn((0.8, "0"), (0.1, "0")).up.logarithmic
    line = drawn((0.8, "0"), (0.01, "0"), epsilon=0.02)
    assert line.up.logarithmic
    assert line.frame.top < line.end[1] < line.frame.bottom
    nothing_left = drawn((0.8, "0"), (0.0, "0"))
    assert nothing_left.frame.top <= nothing_left.end[1] <= nothing_left.frame.bottom


@of_each(
    "document",
    [
        proving((0.4, "0")),
        proving((None, "0"), (0.4, "0")),
        proving((1.0, "0"), (1.5, "0"), (0.4, "0")),  # rewards between 0 and 1 say as much
        proving((0.8, "0"), (0.4, "0"), traits={"uses_features": True, "certifies": "nothing"}),
        proving((0.8, "0"), (0.4, "0"), verdict="heuristic"),
    ],
)
def test_there_is_no_line_where_little_or_nothing_is_proved(document):
    assert gaps(facts_of(document)) is None
    page = rendered(document)
    assert "gap" not in {one["id"] for one in page.all("section")}
    proves = document["verdict"] == "certified" and document["traits"]["certifies"] == "candidate"
    assert ("There is no chart of how close to the best" in page.words) == proves


@pytest.mark.parametrize("name", ["certified-linear", "action-elimination"])
def test_the_figure_of_a_study_ends_where_its_certificate_does(tmp_path, name):
    options = {"norm_bound": 2.0} if name == "certified-linear" else {}
    study = finished(name, epsilon=0.3, **options)
    page = page_of(study, tmp_path)
    text = next(text for text in page.texts["section"] if text.lstrip().startswith("How close to the best"))
    rows = [row for row in study.trace if row.certified_gap is not None]
    assert f"At most {rows[0].certified_gap:.4g} worse than the best after" in text
    assert f"and at most {rows[-1].certified_gap:.4g} after {study.certificate().pulls:,}; 0.3 is what was" in text
    assert "with 95\xa0% confidence" in text
