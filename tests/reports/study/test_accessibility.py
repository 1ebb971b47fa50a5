"""A report is for everybody: headings, descriptions, contrast and colours."""

import re
from itertools import pairwise

import numpy as np
import pytest
from report_pages import Page, page_of
from together import of_each

from surepick.reports.study import page as study_report


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


def test_every_picture_says_what_it_shows(readable):
    """Marks in the cells of a table need no words: the other cells of their row are the words."""
    pictures = [one for one in readable.all("svg") if one.get("aria-hidden") != "true"]
    assert len(pictures) >= 3
    said = dict(re.findall(r'<(?:span|h2|p)[^>]* id="([a-z-]+)">(.*?)</(?:span|h2|p)>', readable.source, re.S))
    for one in pictures:
        assert said[one["aria-labelledby"]].strip()
        assert one.get("aria-label") or said[one["aria-describedby"]].strip()
    assert any("None crosses its limit" in text for text in said.values())


def test_every_mark_of_a_candidate_has_its_name(readable):
    """A picture is an image as a whole, or a group of marks that are images with names; axes are not read aloud."""
    found = re.findall(r'<svg role="([a-z]+)"[^>]*>(.*?)</svg>', readable.source, re.S)
    assert found
    for role, drawing in found:
        assert role in {"img", "group"}
        named = re.findall(r'<g role="img"><title>[^<]+</title>', drawing)
        assert len(named) == drawing.count('role="img"')
        assert (len(named) > 0) == (role == "group")
        rest = re.sub(r'<g aria-hidden="true">.*?</g>|<g role="img">.*?</g>', "", drawing, flags=re.S)
        assert role == "img" or not re.search(r"<text(?![^>]*aria-hidden)", rest)


def test_the_numbers_behind_each_picture_can_be_opened(readable):
    assert len(readable.all("table")) >= 4
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


@of_each("theme", ["light", "dark"])
@of_each("eye", LINEAR)
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
