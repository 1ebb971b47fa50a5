"""gest-api: a generator whose points are measurements of candidates, for Xopt, libEnsemble, Optimas and others.

Candidates are points with a value for each variable, known from the beginning. A suggested point is a pull that the
study leases; its `_id` is a number that stands for the key of that pull, under which its result counts once.
"""

from __future__ import annotations

import itertools
import math
import secrets
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal, Unpack

import numpy as np

from surepick.core.arms import Arms
from surepick.core.certificate import Certificate
from surepick.core.records import record
from surepick.core.values import check_choice
from surepick.errors import InvalidInput, OutOfTurn
from surepick.noise import Noise
from surepick.policies.option_types import Options
from surepick.policies.options import fitting_policy
from surepick.policies.registry import settled_policy
from surepick.studies.closed_loop import tell_measured
from surepick.studies.opening import kept_study
from surepick.text import quoted

try:
    from gest_api.generator import Generator
    from gest_api.vocs import VOCS, ContinuousVariable, DiscreteVariable, MaximizeObjective, MinimizeObjective
except ImportError as error:
    raise ImportError('gest_api is absent: pip install "surepick[gest-api]".') from error

FIRST_IDS = 2**40  # the first one is drawn below it: programs share none, and tables of floats keep it
US = "gest-api"  # who holds the leases of suggested points
MOST_GRID = 100_000  # points of a grid


@record
class _Pull:
    """A point that was suggested."""

    candidate: str
    plan: int
    key: str
    worker: str  # who holds its lease; "": it was not asked for, and counts as long as its round is open


class CertifiedGenerator(Generator):  # type: ignore[misc, unused-ignore]  # without the package it is of no known type
    """Suggests which candidate to measure next, and knows when one is certified to be within epsilon of the best.

        generator = CertifiedGenerator(vocs, epsilon=0.1)
        while not generator.finished:
            points = generator.suggest(4)
            generator.ingest([{**point, "f": measure(**point)} for point in points])
        generator.best_point(), generator.certificate().verdict

    A measurement must be new each time: a point is suggested often, and a result that is looked up is none. Where more
    points are wanted than the open round has left, the others are more measurements of what it asks for.

    Args:
        vocs: variables, and one objective, MINIMIZE or MAXIMIZE; no constraints.
        candidates: points, each with a value for every variable; None: all combinations of the values of variables that
            are all discrete.
        epsilon: how much worse than the best the answer may be, in the unit of the objective, > 0; None beside a
            `budget`.
        delta, noise, options: as in `find_best`. Where all values are numbers they are features, for options that use
            some (`assume`, `norm_bound`).
        url, name: as in `find_best`: results are kept there, and a killed program goes on. What it had suggested is
            suggested again; results of the points of before still count, without their `_id`. One program at a time.
        when_finished: what becomes of points that are wanted once the study has stopped: "raise" an error; or "repeat"
            the point that is named, for programs that end by a number of points (libEnsemble); its results are kept
            apart.

    Attributes:
        study: the `Study`, for `write_certificate` and `write_report`.

    Raises InvalidInput (a ValueError) if the vocs or the candidates are none for this generator.
    """

    returns_id = True

    def __init__(
        self,
        vocs: VOCS,
        candidates: Sequence[Mapping[str, Any]] | None = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        noise: Noise | str | None = None,
        url: str | None = None,
        name: str = US,
        when_finished: Literal["raise", "repeat"] = "raise",
        **options: Unpack[Options],
    ) -> None:
        super().__init__(vocs)
        self.vocs = vocs
        check_choice("when_finished", when_finished, ("raise", "repeat"))
        self._repeats = when_finished == "repeat"
        self.points = _grid(vocs) if candidates is None else _checked(vocs, candidates)
        ids = [", ".join(f"{name}={point[name]}" for name in vocs.variables) for point in self.points]
        arms = _arms(ids, self.points)
        self._place = {each: place for place, each in enumerate(arms.ids)}
        (self._objective,) = vocs.objectives
        minimize = isinstance(vocs.objectives[self._objective], MinimizeObjective)
        policy = settled_policy(fitting_policy(options), arms, epsilon=epsilon, delta=delta, noise=noise, **options)
        if policy.traits.items is not None or policy.traits.blocks is not None:
            raise InvalidInput("points have no test items and no blocks: leave out items, blocks and streams.")
        self.study, known = kept_study(url, name, arms, policy, minimize=minimize)
        if known:
            self._release()
        self._pulls: dict[int, _Pull] = {}
        self._next = secrets.randbelow(FIRST_IDS)

    def __deepcopy__(self, _: Any) -> CertifiedGenerator:
        return self  # Xopt copies generators, and there is one study

    @property
    def finished(self) -> bool:
        """The study has stopped: no more points are suggested."""
        return self.study.stopped

    def best_point(self) -> dict[str, Any]:
        """The candidate that is named by the rounds that are closed."""
        return dict(self.points[self._place[self.study.recommend()]])

    def certificate(self) -> Certificate:
        """The answer, and what it rests on."""
        return self.study.certificate()

    def suggest(self, num_points: int | None = None) -> list[dict[str, Any]]:
        """Points to be measured.

        Args:
            num_points: how many; None: what is left of the open round, none while all of it is out.

        Raises:
            InvalidInput (a ValueError): the study has stopped, and `num_points` are wanted.
        """
        found = self._leased(num_points)
        if num_points is not None and len(found) < num_points:
            found += self._beyond(num_points - len(found))
        return found

    def ingest(self, results: list[dict[str, Any]]) -> None:
        """Take results, each a point with its objective; those without `_id` count for the open round, if they can.

        Where the objective is NaN or absent, or `xopt_error` says that it failed, the point is suggested again.

        Raises:
            InvalidInput (a ValueError): a point was not suggested with its `_id`, or is no candidate.
        """
        for result in results:
            number, value = result.get("_id"), result.get(self._objective)
            value = math.nan if result.get("xopt_error") or value is None else float(value)
            failed = math.isnan(value)
            candidate = self._candidate(result)
            if number is None or (
                isinstance(number, float) and math.isnan(number)
            ):  # NaN, in tables where others have one
                pull = _Pull(candidate, 0, f"given {uuid.uuid4().hex}", "")
            elif number not in self._pulls or self._pulls[int(number)].candidate != candidate:
                raise InvalidInput(
                    f"{quoted(candidate)} was not suggested with _id {quoted(number)}; leave _id out of points of "
                    "others."
                )
            else:
                pull = self._pulls[int(number)]
            if not failed:
                self._tell(pull, value)
            elif pull.worker:
                self.study.fail([pull.candidate], [pull.key])

    def finalize(self) -> None:
        """Give back the points that are out; results of them that come later still count."""
        self._release()

    def _release(self) -> None:
        """Points that are out are suggested again."""
        with suppress(OutOfTurn):  # no round is open
            self.study.release(US)

    def _validate_vocs(self, vocs: VOCS) -> None:
        if len(vocs.objectives) != 1:
            raise InvalidInput(f"vocs has {len(vocs.objectives)} objectives, and the best has one: name it alone.")
        ((name, one),) = vocs.objectives.items()
        if not isinstance(one, MinimizeObjective | MaximizeObjective):
            raise InvalidInput(f"the objective {quoted(name)} is {type(one).__name__}: give MINIMIZE or MAXIMIZE.")
        if vocs.constraints:
            raise InvalidInput(
                f"vocs has the constraint {quoted(next(iter(vocs.constraints)))}, and this generator keeps none: leave "
                "out candidates that are not allowed."
            )

    def _leased(self, most: int | None) -> list[dict[str, Any]]:
        """Points of the open round that nobody has."""
        worker = f"{US}/{uuid.uuid4().hex[:8]}"
        batch = self.study.lease(most, worker=worker)
        if batch is None:
            if most is None or self._repeats:
                return []
            named = self.study.recommend()
            raise InvalidInput(f"the study has stopped, with {quoted(named)}: there is nothing left to measure.")
        found = []
        for candidate, key in batch.keys():  # noqa: SIM118 (a method of batches)
            found.append(self._point(_Pull(candidate, batch.number, key, worker)))
        return found

    def _beyond(self, number: int) -> list[dict[str, Any]]:
        """More measurements of what the open round asks for, which only counts decide; of the one that is named."""
        batch = self.study.ask()
        pulls, plan = ([self.study.recommend()], 0) if batch is None else (batch.pulls(), batch.number)
        asked = itertools.islice(itertools.cycle(pulls), number)
        return [self._point(_Pull(candidate, plan, f"beyond {uuid.uuid4().hex}", "")) for candidate in asked]

    def _point(self, pull: _Pull) -> dict[str, Any]:
        constants = {name: one.value for name, one in self.vocs.constants.items()}
        self._next += 1
        self._pulls[self._next] = pull
        return {**self.points[self._place[pull.candidate]], **constants, "_id": self._next}

    def _tell(self, pull: _Pull, value: float) -> None:
        """Report a result. One that the open round does not ask for is kept, and does not count."""
        told: dict[str, Any] = {"ids": [pull.candidate], "rewards": [value], "keys": [pull.key]}
        whose: dict[str, Any] = {"worker": pull.worker or None, "plan": pull.plan or None}
        try:
            tell_measured(lambda accept: self.study.tell(**told, **whose, accept_unusual=accept), "warn")
        except (InvalidInput, OutOfTurn):
            if pull.worker:
                raise
            self.study.tell_prior(**told)

    def _candidate(self, result: Mapping[str, Any]) -> str:
        """The candidate that a point without `_id` is."""
        for candidate, place in self._place.items():
            if all(result.get(name) == value for name, value in self.points[place].items()):
                return candidate
        raise InvalidInput(f"{quoted(dict(result))} is no candidate of this generator.")


def _grid(vocs: VOCS) -> list[dict[str, Any]]:
    """All combinations of the values of discrete variables."""
    for name, one in vocs.variables.items():
        if not isinstance(one, DiscreteVariable):
            raise InvalidInput(
                f"the variable {quoted(name)} is {type(one).__name__}, and candidates are known beforehand: give "
                "candidates=[...], or discrete variables, whose combinations they are."
            )
    values = [sorted(one.values, key=_order) for one in vocs.variables.values()]
    if math.prod(map(len, values)) > MOST_GRID:
        raise InvalidInput(f"the variables have more than {MOST_GRID:,} combinations: give candidates=[...].")
    return [dict(zip(vocs.variables, point, strict=True)) for point in itertools.product(*values)]


def _order(value: Any) -> tuple[str, Any, str]:
    """Numbers in their order, then others by their texts."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return "" if number else "x", value if number else 0, str(value)


def _checked(vocs: VOCS, candidates: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The candidates, each with a value for every variable that it may have."""
    found = []
    for one in candidates:
        if set(one) != set(vocs.variables):
            raise InvalidInput(f"the candidate {quoted(dict(one))} must have a value for each variable, and no other.")
        for name, variable in vocs.variables.items():
            value, known = one[name], True
            if isinstance(variable, DiscreteVariable):
                known = value in variable.values
            elif isinstance(variable, ContinuousVariable):
                known = variable.domain[0] <= value <= variable.domain[1]
            if not known:
                raise InvalidInput(f"the candidate {quoted(dict(one))} has a {name} that the variable does not have.")
        found.append({name: one[name] for name in vocs.variables})
    return found


def _arms(ids: list[str], points: list[dict[str, Any]]) -> Arms:
    """With features where all values are numbers."""
    rows = [list(point.values()) for point in points]
    numbers = all(isinstance(value, int | float | np.number) for row in rows for value in row)
    return Arms(np.array(rows, np.float64), ids=ids) if numbers else Arms(ids=ids)
