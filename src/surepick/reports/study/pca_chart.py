"""The candidates on a plane, by their features: who is near whom, and what became of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, get_args

import numpy as np

from surepick.core.arrays import FloatArray, record
from surepick.linalg.factorisations import symmetric_spectrum
from surepick.reports.study.facts import Facts, Fate
from surepick.reports.study.format import MOST_ROWS, column
from surepick.reports.study.scales import Frame, diamond, spread

MOST_COLUMNS = 800  # beyond, and with more candidates as well, the directions come from so many of the candidates
TINY = 1e-9  # share of the variance below which a direction is rounding
GRID = 2.0  # marks of one kind nearer than half a unit are one
MANY = 400  # candidates from which marks are small
NAMED = 100  # candidates still possible up to which each mark has its name
# where the features differ along one direction only
ROWS = {"recommended": 2.0, "possible": 1.0, "left": 0.0, "withdrawn": 0.0, "waiting": 0.0, "aside": 0.0}
TALL, FLAT = Frame(12.0, 628.0, 74.0, 470.0, below=36.0), Frame(12.0, 628.0, 74.0, 250.0, below=36.0)


@record
class Plane:
    """The candidates' places.

    Args:
        places: shape (K, 2); the second column is 0 where one direction says all.
        shares: of the differences between candidates that each direction holds.
    """

    places: FloatArray
    shares: tuple[float, float]

    @property
    def flat(self) -> bool:
        """Whether one direction says all."""
        return self.shares[1] == 0.0


@record
class Map:
    """The candidates as marks on their plane.

    Args:
        why: "plane", or the reason why there is none.
        plane: the places.
        dots: of the candidates that are out, as a path.
        diamonds: (name, path) of those still possible; without a name, one path of all.
        best: where the best one is drawn; None while there is none.
        near: those still possible are nearer to the best one than most are; None if there are none.
        listed: candidates in the table, the best and those still possible first.
        written: their places along each direction.
    """

    why: Literal["plane", "no-features", "equal-features"]
    frame: Frame | None = None
    plane: Plane | None = None
    small: bool = False
    dots: str = ""
    diamonds: tuple[tuple[str, str], ...] = ()
    best: tuple[float, float] | None = None
    near: bool | None = None
    listed: tuple[int, ...] = ()
    written: tuple[list[str], ...] = ()


def candidate_map(study: Facts, features: FloatArray) -> Map:
    """The candidates on the plane of their features.

    Args:
        features: shape (K, D), as the study has them.
    """
    plane = principal_plane(features)
    if plane is None:
        return Map("no-features" if features.shape[1] == 0 else "equal-features")
    fates = study.fates
    frame = FLAT if plane.flat else TALL
    left_to_right = plane.places[:, 0].tolist()
    upwards = [ROWS[fate] for fate in fates] if plane.flat else plane.places[:, 1].tolist()
    inner = Frame(frame.left + 14.0, frame.right - 14.0, frame.top + 14.0, frame.bottom - 14.0)
    across = inner.across(*spread(left_to_right))
    up = frame.up(-0.5, 2.5) if plane.flat else inner.up(*spread(upwards))
    where = [(across.at(x), up.at(y)) for x, y in zip(left_to_right, upwards, strict=True)]
    places: dict[Fate, list[int]] = {fate: [] for fate in get_args(Fate)}
    for candidate, fate in enumerate(fates):
        places[fate].append(candidate)
    gone = [*places["left"], *places["withdrawn"], *places["waiting"], *places["aside"]]
    listed = [*places["recommended"], *places["possible"], *gone][:MOST_ROWS]
    small, out = len(fates) > MANY, sorted(gone)
    return Map(
        "plane",
        frame=frame,
        plane=plane,
        small=small,
        dots="".join(f"M{x:g} {y:g}h0" for x, y in _apart(where[candidate] for candidate in out)),
        diamonds=_diamonds(study, where, places["possible"], 3.5 if small else 6.0),
        best=None if study.best is None else where[study.best],
        near=_near(plane, study.best, places["possible"]),
        listed=tuple(listed),
        written=(column(plane.places[listed, 0].tolist()), column(plane.places[listed, 1].tolist())),
    )


def _apart(where: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """The places on a fine grid, each once."""
    return list(dict.fromkeys((round(x * GRID) / GRID, round(y * GRID) / GRID) for x, y in where))


def _diamonds(
    study: Facts, where: list[tuple[float, float]], possible: list[int], size: float
) -> tuple[tuple[str, str], ...]:
    if len(possible) > NAMED:
        return (("", "".join(diamond(x, y, size) for x, y in _apart(where[candidate] for candidate in possible))),)
    found = zip(possible, (_apart([where[candidate]])[0] for candidate in possible), strict=True)
    return tuple((study.names[candidate], diamond(x, y, size)) for candidate, (x, y) in found)


def _near(plane: Plane, best: int | None, possible: list[int]) -> bool | None:
    if best is None or not possible:
        return None
    distance = np.sqrt(((plane.places - plane.places[best]) ** 2).sum(axis=1))
    return bool(np.median(distance[possible]) < np.median(distance))


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
