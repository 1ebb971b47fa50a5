"""Where the candidates of a study come from: a list that was too long, and how it was shortened."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from surepick.blocks.merkle import Path
from surepick.core.arms import Arms
from surepick.core.arrays import record
from surepick.core.observations import Observations
from surepick.core.validation import as_number, positive_number, whole_number
from surepick.errors import InvalidInput

SHORTENED = (
    "The {number:,} candidates that are compared were selected from {total:,} after {pulls:,} measurements; with "
    "probability at least {sure:g} {best} is one of them, if the next sentence holds of all of these."
)
BEST, NEARLY = "the best of all", "one that is worse than the best of all by at most {slack:g}"


@record
class SubsetRules:
    """How the list was shortened.

    Args:
        delta: the probability that the best is not on the short list.
        noise: what was assumed of a reward, as text.
        norm_bound: C, in reward units per feature unit.
        size: the list was short enough with so many.
        slack: by how much the best on it may be worse than the best of all, in reward units.
        max_rank: directions of the features, or landmarks, that were kept at most; None: as many as usual.
        kernel: in whose space C is a norm, as text; None: rewards are linear in the features.
        epsilon: by which landmarks were chosen; None without a kernel.

    Raises:
        InvalidInput: one has no meaning.
    """

    delta: float
    noise: str
    norm_bound: float
    size: int
    slack: float
    max_rank: int | None
    kernel: str | None = None
    epsilon: float | None = None

    def __post_init__(self) -> None:
        positive_number("norm_bound", self.norm_bound, "the largest norm that the reward function can have.")
        whole_number("size", self.size, least=1, meaning="the most candidates on the short list.")
        if not 0.0 <= as_number("slack", self.slack) < math.inf:
            raise InvalidInput(f"slack is {self.slack}; it is 0 or a positive shortfall in reward units.")
        if self.epsilon is not None:
            positive_number("epsilon", self.epsilon, "the shortfall that matters.")

    def sentence(self, columns: int) -> str:
        """What is assumed of the rewards, in words."""
        if self.kernel is not None:
            return (
                f"The mean reward is a function of norm at most {self.norm_bound:g} in the reproducing kernel Hilbert "
                f"space of the kernel {self.kernel}."
            )
        return (
            f"The mean reward is a linear function of the {columns} features, with a coefficient vector of Euclidean "
            f"norm at most {self.norm_bound:g}."
        )


@record
class Told:
    """A batch of the selection.

    Args:
        ids: of the candidates that were measured.
        counts, sums: pulls and total rewards of each, in the sign in which large is good.
        squares: sums of squared rewards; None where only totals were reported.
    """

    ids: tuple[str, ...]
    counts: tuple[int, ...]
    sums: tuple[float, ...]
    squares: tuple[float, ...] | None

    @staticmethod
    def of(seen: Observations, ids: Sequence[str]) -> Told:
        """That of what was told of candidates with these ids."""
        pulled = np.flatnonzero(seen.counts)
        squares = None if seen.squares is None else tuple(seen.squares[pulled].tolist())
        names = tuple(ids[arm] for arm in pulled.tolist())
        return Told(names, tuple(seen.counts[pulled].tolist()), tuple(seen.sums[pulled].tolist()), squares)

    def among(self, places: Mapping[str, int]) -> Observations:
        """What was told, of the arms at these places (id -> index).

        Raises:
            InvalidInput: one of those measured is not among them.
        """
        counts, sums = np.zeros(len(places), np.int64), np.zeros(len(places))
        squares = None if self.squares is None else np.zeros(len(places))
        for row, name in enumerate(self.ids):
            if name not in places:
                raise InvalidInput(f"candidate {name!r} was measured for the selection and is none of the study.")
            counts[places[name]], sums[places[name]] = self.counts[row], self.sums[row]
            if squares is not None and self.squares is not None:
                squares[places[name]] = self.squares[row]
        return Observations(counts, sums, squares)


@record
class Subset:
    """That the candidates of a study were selected from a longer list.

    Args:
        total: K, the candidates on the long list.
        columns: D.
        root: hash of the long list, in hexadecimal digits.
        sizes: rows of each of its sources.
        rules: how it was shortened.
        rows: the number on the long list of each candidate of the study.
        batches: what was measured for it.
        paths: that candidates of the study are on the long list: of all, or of those measured for the selection.
        minimize: small rewards were good; the sums of `batches` have the other sign.
        facts: what else its certificate assumes of its measurements, as sentences.
    """

    total: int
    columns: int
    root: str
    sizes: tuple[int, ...]
    rules: SubsetRules
    rows: tuple[int, ...]
    batches: tuple[Told, ...]
    paths: tuple[Path, ...]
    minimize: bool = False
    facts: tuple[str, ...] = ()

    @property
    def pulls(self) -> int:
        """Measurements of the selection."""
        return sum(sum(one.counts) for one in self.batches)

    def sentence(self, number: int) -> str:
        """What an answer about `number` candidates that were selected rests on."""
        best = BEST if self.rules.slack == 0.0 else NEARLY.format(slack=self.rules.slack)
        return SHORTENED.format(
            number=number,
            total=self.total,
            pulls=self.pulls,
            sure=1.0 - self.rules.delta,
            best=best,
        )

    def spec(self) -> dict[str, Any]:
        """As plain data."""
        rules = {each.name: getattr(self.rules, each.name) for each in fields(SubsetRules)}
        batches = [
            {
                "ids": list(one.ids),
                "pulls": list(one.counts),
                "sums": list(one.sums),
                "squares": None if one.squares is None else list(one.squares),
            }
            for one in self.batches
        ]
        return {
            "total": self.total,
            "columns": self.columns,
            "root": self.root,
            "sizes": list(self.sizes),
            "rules": rules,
            "rows": list(self.rows),
            "batches": batches,
            "paths": [one.spec() for one in self.paths],
            "minimize": self.minimize,
            "facts": list(self.facts),
        }

    @staticmethod
    def of(spec: Mapping[str, Any] | Subset) -> Subset:
        """From plain data.

        Raises:
            InvalidInput: it is none of ours, or its numbers have no meaning.
        """
        if isinstance(spec, Subset):
            return spec
        try:
            rules, batches = SubsetRules(**spec["rules"]), tuple(_told(one) for one in spec["batches"])
            paths = tuple(Path.of(one) for one in spec["paths"])
            sizes = tuple(map(int, spec["sizes"]))
            size, rows = (int(spec["total"]), int(spec["columns"])), tuple(map(int, spec["rows"]))
            more = bool(spec["minimize"]), tuple(map(str, spec["facts"]))
            found = Subset(*size, str(spec["root"]), sizes, rules, rows, batches, paths, *more)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InvalidInput(f"'selected' cannot be read: {error!r}.") from None
        if sum(found.sizes) != found.total or not (0.0 < rules.delta < 1.0 and rules.slack >= 0.0):
            raise InvalidInput("'selected' contradicts itself: its sizes, its delta or its slack have no meaning.")
        return found

    def check(self, arms: Arms) -> None:
        """Refuse arms that are not those on the long list.

        Raises:
            InvalidInput: an arm with a path has other features than its row, or a path does not lead to the root.
        """
        if len(self.rows) != arms.num_arms or len(set(self.rows)) != arms.num_arms:
            raise InvalidInput(f"{len(self.rows)} rows of the long list are named for {arms.num_arms} candidates.")
        places = {row: place for place, row in enumerate(self.rows)}
        for path in self.paths:
            row = path.features(self.root, self.sizes, self.columns)
            place = places.get(path.row)
            if place is None or not np.array_equal(arms.features[place], row):
                raise InvalidInput(f"row {path.row} of the long list has other features than its candidate here.")


def _told(spec: Mapping[str, Any]) -> Told:
    ids, counts, sums = tuple(map(str, spec["ids"])), tuple(map(int, spec["pulls"])), tuple(map(float, spec["sums"]))
    squares = None if spec["squares"] is None else tuple(map(float, spec["squares"]))
    columns = (ids, counts, sums, ids if squares is None else squares)
    if len({len(each) for each in columns}) != 1 or len(set(ids)) != len(ids) or min(counts, default=1) < 1:
        raise ValueError("a batch has columns of several lengths, an id twice, or a pull of nobody")
    if not np.isfinite([*sums, *(squares or ())]).all():
        raise ValueError("a batch has a sum that is not finite")
    return Told(ids, counts, sums, squares)
