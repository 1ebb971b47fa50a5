"""Which arm is the best of those that keep some bounds?"""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from surepick.core.records import BoolArray, FloatArray, record
from surepick.core.values import check_reach, check_size, finite_number, not_negative, storable_text
from surepick.errors import InvalidInput
from surepick.estimators.posterior import HEURISTIC_CAUTION, HEURISTIC_DOUBT, HEURISTIC_LEAST_MARGIN, NUMBER, efforts
from surepick.noise import Noise, known_scale, largest_scale, parse_noise, scales
from surepick.questions import protocol
from surepick.text import quoted

RESERVED = ("id", "key", "reward", "item", "pulls", "sum", "squares")  # columns of results
HEURISTIC_FRESH_CANDIDATES = 3  # candidates that a batch begins to test beside the one that looks best
HEURISTIC_CANDIDATES = 30  # that are tested at most, so long as the one that looks best is among them


@record
class Constraint:
    """A quantity that is measured beside the reward, and whose mean has a bound.

    Args:
        name: of the quantity, and of its column in tables.
        bound: b, in its own units.
        at_most: the mean is to be at most b; False: at least b.
        tolerance: the answer's mean may be beyond b by this much, in the quantity's units. > 0 where there is noise.
        noise: what is assumed of a measurement of it; None: it has no noise, so that one measurement tells it.

    Raises:
        InvalidInput: a value has no meaning, or there is noise of unknown scale, without tolerance, or 1e50 times as
            large.
    """

    name: str
    bound: float
    at_most: bool = True
    tolerance: float = 0.0
    noise: Noise | None = None

    def __post_init__(self) -> None:
        name = storable_text("the name of a constraint", self.name).strip()
        if not name or any(mark in name for mark in "<>=,"):
            raise InvalidInput(f"a constraint's name is {quoted(self.name)}; it is a column's, without < > = or comma.")
        if name in RESERVED:
            raise InvalidInput(
                f"a constraint cannot be on {name!r}: tables of results have another column of that name."
            )
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "bound", finite_number(f"the bound of {name}", self.bound))
        object.__setattr__(self, "at_most", bool(self.at_most))
        object.__setattr__(
            self, "tolerance", not_negative("tolerance", self.tolerance, f"how far beyond {name} may be.")
        )
        if isinstance(self.noise, str):
            object.__setattr__(self, "noise", parse_noise(self.noise))
        if self.noise is None:
            return
        if not known_scale(self.noise):
            raise InvalidInput(
                f"noise {self.noise.spec!r} of {name} names no scale, and a constraint needs one: subgaussian:SIGMA, "
                "bounded:LOW:HIGH or bernoulli."
            )
        if self.tolerance <= 0.0:
            raise InvalidInput(
                f"the constraint on {name} has noise and no tolerance: a mean right at the bound would be measured for "
                f"ever. Say how far beyond the bound the answer may be: {name}{self.sign}{self.bound:g},tolerance=..."
            )
        check_size("tolerance", self.tolerance)
        check_reach("tolerance", self.tolerance, largest_scale(self.noise))

    @property
    def sign(self) -> str:
        """Of the inequality."""
        return "<=" if self.at_most else ">="

    @property
    def text(self) -> str:
        """From which `parse_constraint` makes it again."""
        tolerance = f",tolerance={self.tolerance!r}" if self.tolerance else ""
        noise = "" if self.noise is None else f",noise={self.noise.spec}"
        return f"{self.name}{self.sign}{self.bound!r}{tolerance}{noise}"

    def __str__(self) -> str:
        return f"{self.name} {'at most' if self.at_most else 'at least'} {self.bound:g}"

    @property
    def relaxed(self) -> str:
        """What holds of the answer, in words."""
        bound = self.bound + (self.tolerance if self.at_most else -self.tolerance)
        return f"{self.name} {'at most' if self.at_most else 'at least'} {bound:g}"


def parse_constraint(text: object) -> Constraint:
    """A constraint from its text, e.g. "temperature<=80,tolerance=0.5,noise=subgaussian:1.2"."""
    found = re.fullmatch(r"([^<>=,]+)(<=|>=)([^,]+)((?:,.*)?)", text.strip()) if isinstance(text, str) else None
    if found is None:
        raise InvalidInput(
            f"constraint {quoted(text)} is not understood; write e.g. 'temperature<=80' or "
            "'temperature<=80,tolerance=0.5,noise=subgaussian:1.2'."
        )
    name, sign, bound, rest = found.groups()
    given: dict[str, str] = {}
    for word in rest.lstrip(",").split(",") if rest else []:
        key, equals, value = word.partition("=")
        if not equals and given:  # a comma inside of the noise
            given["noise"] = f"{given.get('noise', '')},{word}"
            continue
        if key.strip() not in ("tolerance", "noise") or key.strip() in given:
            raise InvalidInput(f"constraint {quoted(text)}: {quoted(word)} is neither tolerance=... nor noise=...")
        given[key.strip()] = value.strip()
    noise = given.get("noise")
    return Constraint(
        name.strip(),
        _number(text, bound),
        sign == "<=",
        _number(text, given.get("tolerance", "0")),
        None if noise is None else parse_noise(noise),
    )


def _number(text: object, word: str) -> float:
    try:
        return float(word)
    except ValueError as error:
        raise InvalidInput(f"constraint {quoted(text)}: {quoted(word)} is no number.") from error


@record
class BestFeasible(protocol.Question):
    """Which arm is the best of those that keep some bounds?

    The answer keeps each bound but for its tolerance, and is at most epsilon worse than any arm that keeps all bounds;
    or no arm keeps them.

        named, c     for each bound: evidence against "c is beyond it by more than the tolerance"; all others are out
        out, j       evidence against "j keeps this bound", for one of the bounds, or against "h_j - h_c > epsilon"
        none         each arm is out for one of the bounds

    Source: ours (docs/questions.md, lines 16 to 18).

    Raises:
        InvalidInput: there is none, or two have the same name.
    """

    constraints: tuple[Constraint, ...] = protocol.settable(  # `Constraint` records, or their texts
        "A bound on another measured column, repeatable: 'temp<=80', or, with its noise, "
        "'temp<=80, tolerance=0.5, noise=subgaussian:1'. The best that keeps it is wanted.",
        list[str],
        flag="constraint",
        metavar="TEXT",
    )
    name: ClassVar[str] = "feasible"
    needs: ClassVar[Mapping[str, str]] = {"constraints": "e.g. 'temperature<=80' (--constraint 'temperature<=80')."}
    implied_by: ClassVar[str] = "constraints"
    wanted: ClassVar[str] = "single out the best candidate that keeps the bounds"

    def __init__(self, constraints: Constraint | str | Sequence[Constraint | str]) -> None:
        alone = isinstance(constraints, str) or not isinstance(constraints, Sequence)
        given: list[Any] = [constraints] if alone else [*constraints]  # type: ignore[misc]
        found = tuple(one if isinstance(one, Constraint) else parse_constraint(one) for one in given)
        names = [one.name for one in found]
        if not found:
            raise InvalidInput("question 'feasible' needs constraints, e.g. 'temperature<=80'.")
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise InvalidInput(
                f"two constraints are on {twice!r}, and a column takes one. For a range, e.g. 14 <= x <= 16, put the "
                "second bound on a copy of the column that has another name."
            )
        object.__setattr__(self, "constraints", found)

    def even_pulls(self, problem: Any, sigma: float, sizes: Sequence[int]) -> int:  # noqa: ARG002
        """The best, and K arms for each bound with half of its tolerance; each with its share of delta."""
        num_arms = problem.num_arms
        noisy = [(one, one.noise) for one in self.constraints if one.noise is not None]
        share = problem.delta / (1 + len(noisy))
        each = [protocol.pulls_of_each(2.0 * sigma**2, self.nulls(num_arms), problem.epsilon, share)]
        for one, noise in noisy:
            scale = float(np.max(scales(noise, num_arms)))
            each.append(protocol.pulls_of_each(scale**2, num_arms, one.tolerance / 2.0, share))
        return int(num_arms * max(*each, 1))

    def said(self, epsilon: float, *, by_segment: bool = False) -> tuple[str, str, str]:  # noqa: ARG002
        bounds, relaxed = _and([*map(str, self.constraints)]), _and([one.relaxed for one in self.constraints])
        return (
            f"Which candidate is the best of those with {bounds}?",
            f"The one on the first list has {relaxed}, and is at most {epsilon:g} worse than the best of those with "
            f"{bounds}. If the first list is empty, there is none with {bounds}.",
            "The second list has the others.",
        )

    def called(self, epsilon: float) -> protocol.ListNames:  # noqa: ARG002
        return protocol.ListNames("the best that keeps the bounds", "the others", "")

    def reason(self, number: int, epsilon: float) -> str:  # noqa: ARG002
        if number == 0:
            return "No candidate keeps all bounds."
        return "Each other candidate is worse, or better by less than epsilon, or does not keep a bound."

    def wrong(
        self, problem: Any, lists: protocol.Lists, means: FloatArray, quantities: FloatArray | None = None
    ) -> BoolArray:
        feasible, near = self._kept(quantities, relaxed=False), self._kept(quantities, relaxed=True)
        if not lists.inside.any():
            return np.asarray(lists.outside & feasible)
        best = float(means[feasible].max(initial=-np.inf))
        return np.asarray(lists.beyond(means, best - problem.epsilon, np.inf) | (lists.inside & ~near))

    def _kept(self, quantities: FloatArray | None, *, relaxed: bool) -> BoolArray:
        """The arms that keep all bounds, or all but for the tolerances, shape (K,)."""
        if quantities is None:
            raise InvalidInput("whether arms keep bounds is not known here: the environment has no such quantities.")
        found = np.ones(len(quantities), bool)
        for one, means in zip(self.constraints, quantities.T, strict=True):
            room = (one.bound - means) * (1.0 if one.at_most else -1.0) + (one.tolerance if relaxed else 0.0)
            found &= room >= -protocol.ROUNDING * max(float(np.abs(means).max()), abs(one.bound)) * relaxed
        return found

    def plain(self) -> dict[str, Any]:
        return {"constraints": [one.text for one in self.constraints]}

    def kept(self, view: protocol.View) -> float:
        """log(2 K / delta): what shows that an arm keeps a bound but for its tolerance; any arm may be the answer.

        Half of delta, unless no bound has noise, so that nothing of this kind can be wrong.
        """
        return protocol.bet_threshold(2 * view.num_arms, view.delta)

    def out(self, view: protocol.View) -> float:
        """log(2 (1 + r) / delta): what shows that an arm does not keep a bound; only the best feasible arm matters.

        r: bounds with noise; where there are none, log(1 / delta).
        """
        noisy = sum(one.noise is not None for one in self.constraints)
        return protocol.bet_threshold(2 * (1 + noisy) if noisy else 1, view.delta)

    def worse(self, view: protocol.View, place: int) -> float:
        """log(2 (1 + r) k (k + 1) / delta): the same, that an arm is no better than the k-th candidate, k = place + 1.

        The weights 1 / (k (k + 1)) of the candidates, in the order in which their tests began, sum to 1.
        """
        return self.out(view) + math.log((place + 1) * (place + 2))

    def bets(self, view: protocol.View) -> tuple[protocol.Bet, ...]:
        made, left = [], ~self._breaks(view)
        opened = _candidates(view)
        for place, arm in enumerate(dict.fromkeys([*opened, *self._fresh(view, opened)])):
            made.append(view.bet(_named(arm), arm, view.epsilon, self.worse(view, place), left, bold=True))
        for place, one in enumerate(self.constraints, 1):
            if one.noise is None:
                continue
            for name, margin, high, threshold in (
                ("breaks", 0.0, one.at_most, self.out(view)),
                ("keeps", one.tolerance, not one.at_most, self.kept(view)),
            ):
                kind: dict[str, Any] = {"high": high, "bold": True, "quantity": place}
                made.append(view.bet(f"{name} {place}", NUMBER, margin, threshold, left, **kind))
        return tuple(made)

    def aims(self, view: protocol.View) -> protocol.Aims:
        candidate, out = self.named(view), self._breaks(view)
        alone, pairs = np.zeros(view.num_arms), np.empty(0, np.int64)
        left = ~out
        leads = lacks = np.empty(0)
        breaking = self._pulls_to_break(view)
        if candidate is not None:
            left[candidate] = False
            alone[candidate] = self._pulls_to_keep(view, candidate)
            place, peaks = self._place(view, candidate), view.processes(_named(candidate)).peaks
            needs = self.worse(view, place) - peaks
            left &= needs > 0.0
            rivals = np.flatnonzero(left)
            by_reward = view.posterior.cautious(candidate, view.epsilon, rivals)
            pulls = (view.scales[rivals] * efforts(-needs[rivals], 0.0) / by_reward) ** 2
            cheaper = pulls <= breaking[rivals]
            pairs, leads, lacks = rivals[cheaper], by_reward[cheaper], needs[rivals[cheaper]]
            left[pairs] = False
        alone[left] = breaking[left]
        if not len(pairs) and not alone.any():
            alone[:] = 1.0
        seconds = np.full(len(pairs), NUMBER if candidate is None else candidate)
        return protocol.Aims(pairs, seconds, leads, lacks, alone)

    def decided(self, view: protocol.View) -> protocol.Lists:
        out = self._breaks(view)
        inside = np.zeros(view.num_arms, bool)
        if out.all():
            return protocol.Lists(inside, ~inside)
        keeps, answers = self._keeps(view) & ~out, []
        for place, arm in enumerate(_candidates(view)):
            beaten = out | (view.processes(_named(arm)).rejected(self.worse(view, place)))
            beaten[arm] = True
            if keeps[arm] and beaten.all():
                answers.append(arm)
        if not answers:
            return view.lists
        inside[max(answers, key=lambda arm: view.posterior.scores[arm])] = True
        return protocol.Lists(inside, ~inside)

    def named(self, view: protocol.View) -> int | None:
        """The arm that looks like the answer; None where no arm seems to keep all bounds."""
        fits = self._fits(view)
        return int(np.argmax(np.where(fits, view.posterior.scores, -np.inf))) if fits.any() else None

    def _fits(self, view: protocol.View) -> BoolArray:
        """The arms that seem to keep all bounds but for half of the tolerance, shape (K,)."""
        fits = ~self._breaks(view)
        for one in view.standings:
            fits &= (one.room >= -0.5 * one.tolerance) | ~one.known
        return fits

    def _fresh(self, view: protocol.View, opened: tuple[int, ...]) -> list[int]:
        """Candidates whose test begins with this batch."""
        candidate = self.named(view)
        if candidate is None:
            return []
        leads, errors = view.posterior.leads(candidate), view.posterior.errors(candidate)
        near = np.flatnonzero(self._fits(view) & (leads <= HEURISTIC_DOUBT * errors))
        likely = near[np.argsort(leads[near], kind="stable")].tolist()
        found = [arm for arm in [candidate, *likely] if arm not in opened]
        if len(opened) >= HEURISTIC_CANDIDATES:
            found = [arm for arm in found if arm == candidate]
        return list(dict.fromkeys(found))[: 1 + HEURISTIC_FRESH_CANDIDATES]

    def _place(self, view: protocol.View, candidate: int) -> int:
        """The place that the candidate has, or will have, in the order of candidates."""
        opened = _candidates(view)
        return opened.index(candidate) if candidate in opened else len(opened)

    def _breaks(self, view: protocol.View) -> BoolArray:
        """The arms that are shown not to keep some bound, shape (K,)."""
        found = np.zeros(view.num_arms, bool)
        for place, one in enumerate(view.standings, 1):
            known = one.known & (one.room < 0.0)
            found |= known if one.exact else view.processes(f"breaks {place}").rejected(self.out(view))
        return found

    def _keeps(self, view: protocol.View) -> BoolArray:
        """The arms that are shown to keep all bounds but for the tolerances, shape (K,)."""
        found = np.ones(view.num_arms, bool)
        for place, one in enumerate(view.standings, 1):
            sure = one.known & (one.room >= -one.tolerance)
            found &= sure if one.exact else view.processes(f"keeps {place}").rejected(self.kept(view))
        return found

    def _pulls_to_break(self, view: protocol.View) -> FloatArray:
        """Pulls after which each arm would be shown not to keep some bound, at best, shape (K,)."""
        best = np.full(view.num_arms, np.inf)
        for place, one in enumerate(view.standings, 1):
            if one.exact:
                pulls = np.where(one.known, np.inf, 1.0)
            else:
                pulls = _pulls(-one.room, self.out(view) - view.processes(f"breaks {place}").peaks, one)
            best = np.minimum(best, pulls)
        return best

    def _pulls_to_keep(self, view: protocol.View, arm: int) -> float:
        """Pulls after which the arm would be shown to keep all bounds but for the tolerances."""
        most = 0.0
        for place, one in enumerate(view.standings, 1):
            if one.exact:
                most = max(most, 0.0 if one.known[arm] else 1.0)
                continue
            lacks = self.kept(view) - view.processes(f"keeps {place}").peaks
            if lacks[arm] > 0.0:
                most = max(most, float(_pulls(one.tolerance + one.room, lacks, one)[arm]))
        return most


def _and(words: list[str]) -> str:
    """Words in a row."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _pulls(leads: FloatArray, lacks: FloatArray, standing: protocol.ConstraintEstimate) -> FloatArray:
    """Pulls of each arm until its evidence is enough; leads are lowered by part of their errors; shape (K,)."""
    errors = np.where(np.isfinite(standing.errors), standing.errors, 0.0)
    careful = np.maximum(leads - HEURISTIC_CAUTION * errors, HEURISTIC_LEAST_MARGIN * standing.tolerance)
    return np.asarray((standing.scales * efforts(-lacks, 0.0) / careful) ** 2)


def _named(arm: int) -> str:
    """The processes of what is shown to be no better than a candidate."""
    return f"than {arm}"


def _candidates(view: protocol.View) -> tuple[int, ...]:
    """Those that are tested, in the order in which their tests began."""
    return tuple(int(one.name.removeprefix("than ")) for one in view.evidence if one.name.startswith("than "))
