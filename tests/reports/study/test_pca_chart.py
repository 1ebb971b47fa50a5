"""The map of the candidates in a report."""

import re

import numpy as np
import pytest
from report_pages import made_up, rendered

from surepick.core.random_streams import stream
from surepick.reports.study import lists as study_map


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
