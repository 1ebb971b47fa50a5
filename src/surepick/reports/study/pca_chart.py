"""The candidates on a plane, by their features: who is near whom, and what became of them."""

from __future__ import annotations

import math

import numpy as np

from surepick.core.arrays import FloatArray, record
from surepick.linalg.factorisations import symmetric_spectrum
from surepick.reports.study.format import column, shortened
from surepick.reports.study.sections import SYMBOLS, Figure, Part, absent, best_place, fate_words, fates_of, names_of
from surepick.reports.study.svg import Drawing, Mark, Scale, mark, spread
from surepick.reports.study.tables import MOST_ROWS, Table, row, table
from surepick.reports.study.verdict import Document, out_word
from surepick.studies.progress import times

MOST_COLUMNS = 800  # beyond, and with more candidates as well, the directions come from so many of the candidates
TINY = 1e-9  # share of the variance below which a direction is rounding
LEFT, RIGHT, TOP, BOTTOM = 12.0, 628.0, 74.0, 470.0
GRID = 2.0  # marks of one kind nearer than half a unit are one
MANY = 400  # candidates from which marks are small


@record
class Plane:
    """The candidates' places.

    Args:
        places: shape (K, 2); the second column is 0 where one direction says all.
        shares: of the differences between candidates that each direction holds.
    """

    places: FloatArray
    shares: tuple[float, float]


def candidate_map(document: Document, features: FloatArray) -> Part:
    """The part about who is near whom.

    Args:
        features: shape (K, D), as the study has them.
    """
    heading = "A map of the candidates"
    plane = principal_plane(features)
    if features.shape[1] == 0:
        return absent("There is no map: the candidates have no features, only names.")
    if plane is None:
        return absent("There is no map: all candidates have the same features.")
    sentence = (
        "Candidates with similar features are near each other. The two directions are those along which the features "
        "differ most (each feature scaled to the same spread; principal components); they hold "
        f"{sum(plane.shares):.0%} of all differences"
        + (", so neighbours here can still differ in what is not drawn." if sum(plane.shares) < 0.995 else ".")
    )
    if plane.shares[1] == 0.0:
        sentence = (
            "The features differ along one direction only, so candidates with similar features are near each other "
            "from left to right; the three rows are their fates."
        )
    return Part("map", heading, (sentence,), (Figure(_drawing(document, plane), _table(document, plane)),))


def principal_plane(features: FloatArray) -> Plane | None:
    """The places along the two directions of largest variance of the standardised features; None if all are equal.

    Source: principal component analysis. Cost: O(K D m + m^3) for m = min(K, D, 800).
    """
    if features.shape[1] == 0:
        return None
    centred = features - features.mean(axis=0)
    scales = centred.std(axis=0)
    varying = scales > 1e-12 * np.abs(features).max(axis=0, initial=0.0)
    if not varying.any():
        return None
    unit: FloatArray = centred[:, varying] / scales[varying]
    rows = unit
    if min(unit.shape) > MOST_COLUMNS:
        rows = unit[np.linspace(0, len(unit) - 1, MOST_COLUMNS).astype(np.int64)]
    directions = _directions(rows)
    places = unit @ directions
    flip = np.sign(directions[np.abs(directions).argmax(axis=0), np.arange(directions.shape[1])])
    places = places * flip
    shares = (places**2).sum(axis=0) / (unit**2).sum()
    if places.shape[1] == 1 or shares[1] < TINY:
        places = np.column_stack([places[:, 0], np.zeros(len(places))])
        return Plane(places, (float(shares[0]), 0.0))
    return Plane(places, (float(shares[0]), float(shares[1])))


def _directions(rows: FloatArray) -> FloatArray:
    """The (at most two) unit vectors of largest variance, as columns, from the smaller of the two products."""
    if rows.shape[1] <= rows.shape[0]:
        return symmetric_spectrum(rows.T @ rows).vectors[:, :2]
    spectrum = symmetric_spectrum(rows @ rows.T)
    kept = spectrum.values[:2] > TINY * max(float(spectrum.values[0]), 1e-300)
    directions: FloatArray = rows.T @ spectrum.vectors[:, :2][:, kept] / np.sqrt(spectrum.values[:2][kept])
    return directions


def _drawing(document: Document, plane: Plane) -> Drawing:
    fates, names = document["candidates"]["fates"], names_of(document)
    flat = plane.shares[1] == 0.0
    heights = {"recommended": 2.0, "possible": 1.0, "left": 0.0}
    upright = [heights[fate] for fate in fates] if flat else plane.places[:, 1].tolist()
    bottom = 250.0 if flat else BOTTOM
    across = Scale(*spread(plane.places[:, 0].tolist()), LEFT + 14.0, RIGHT - 14.0)
    up = Scale(-0.5, 2.5, bottom, TOP) if flat else Scale(*spread(upright), bottom - 14.0, TOP + 14.0)
    where = [(across.at(x), up.at(y)) for x, y in zip(plane.places[:, 0].tolist(), upright, strict=True)]
    small = len(fates) > MANY
    marks = [
        mark("rect", "frame", x=LEFT, y=TOP, width=RIGHT - LEFT, height=bottom - TOP),
        mark("path", "points left" + (" small" if small else ""), d=_dots(where, fates)),
        mark("path", "rings possible", d=_diamonds(where, fates, 3.5 if small else 6.0)),
    ]
    best = best_place(document)
    if best is not None:
        x, y = where[best]
        marks.append(mark("path", "fill recommended outlined", d=_star(x, y, 13.0)))
        end = x > 320.0
        name = shortened(names[best], 24)
        marks.append(
            mark(
                "text",
                "label halo",
                name,
                x=x + (-18.0 if end else 18.0),
                y=y + 5.0,
                text_anchor="end" if end else "start",
            )
        )
    marks += _legend(document)
    name = f"first direction ({plane.shares[0]:.0%} of the differences)"
    marks.append(mark("text", "axis", name, x=320.0, y=bottom + 24.0, text_anchor="middle"))
    if not flat:
        marks.append(mark("text", "axis", f"upwards: second direction ({plane.shares[1]:.0%})", x=LEFT, y=TOP - 10.0))
    finding = _finding(document, plane, best)
    return Drawing("chart-map", "The candidates by their features", finding, bottom + 36.0, tuple(marks))


def _finding(document: Document, plane: Plane, best: int | None) -> str:
    fates = document["candidates"]["fates"]
    possible = [place for place, fate in enumerate(fates) if fate == "possible"]
    if best is None:
        return f"{times(len(fates), 'candidate')}; none is recommended yet."
    if not possible:
        return (
            f"All other {times(len(fates) - 1, 'candidate')} are {out_word(document)}."
            if len(fates) > 1
            else "The only one."
        )
    distance = np.sqrt(((plane.places - plane.places[best]) ** 2).sum(axis=1))
    near, usual = float(np.median(distance[possible])), float(np.median(distance))
    side = "nearer to it than most" if near < usual else "not nearer to it than others"
    best_word = fates_of(document)["recommended"]
    others = f"{times(len(possible), 'candidate')} still possible besides the one that is {best_word}"
    return f"{others}, on the whole {side}."


def _legend(document: Document) -> list[Mark]:
    fates, words = document["candidates"]["fates"], fates_of(document)
    marks: list[Mark] = [mark("path", "fill recommended", d=_star(14.0, 18.0, 11.0))]
    marks.append(mark("text", "tick", words["recommended"], x=30.0, y=23.0))
    if possible := fates.count("possible"):
        marks.append(mark("path", "rings possible", d=_diamond(222.0, 18.0, 6.0)))
        marks.append(mark("text", "tick", f"still possible {possible:,}", x=236.0, y=23.0))
    if out := fates.count("left"):
        marks.append(mark("path", "points left", d="M456 18h0"))
        marks.append(mark("text", "tick", f"{out_word(document)} {out:,}", x=468.0, y=23.0))
    return marks


def _dots(where: list[tuple[float, float]], fates: list[str]) -> str:
    kept = dict.fromkeys(
        (round(x * GRID) / GRID, round(y * GRID) / GRID)
        for (x, y), fate in zip(where, fates, strict=True)
        if fate == "left"
    )
    return "".join(f"M{x:g} {y:g}h0" for x, y in kept)


def _diamonds(where: list[tuple[float, float]], fates: list[str], size: float) -> str:
    kept = dict.fromkeys(
        (round(x * GRID) / GRID, round(y * GRID) / GRID)
        for (x, y), fate in zip(where, fates, strict=True)
        if fate == "possible"
    )
    return "".join(_diamond(x, y, size) for x, y in kept)


def _diamond(x: float, y: float, size: float) -> str:
    return f"M{x - size:g} {y:g}l{size:g} {-size:g} {size:g} {size:g} {-size:g} {size:g}z"


def _star(x: float, y: float, size: float) -> str:
    corners = []
    for corner in range(10):
        radius = size if corner % 2 == 0 else 0.42 * size
        angle = math.pi * (corner / 5.0 - 0.5)
        corners.append(f"{x + radius * math.cos(angle):.1f} {y + radius * math.sin(angle):.1f}")
    return f"M{'L'.join(corners)}Z"


def _table(document: Document, plane: Plane) -> Table:
    fates, names = document["candidates"]["fates"], names_of(document)
    words, rank = fate_words(document), {"recommended": 0, "possible": 1, "left": 2}
    order = sorted(range(len(fates)), key=lambda candidate: (rank[fates[candidate]], candidate))
    chosen = order[:MOST_ROWS]
    written = [column(plane.places[chosen, direction].tolist()) for direction in (0, 1)]
    rows = [
        row(names[candidate], words[candidate], first, second)
        for candidate, first, second in zip(chosen, *written, strict=True)
    ]
    headers = ("candidate", "fate", "first direction", "second direction")
    caption = f"Places on the map ({SYMBOLS['recommended']} first, then those still possible)"
    return table(caption, headers, rows, total=len(order), words=(0, 1))
