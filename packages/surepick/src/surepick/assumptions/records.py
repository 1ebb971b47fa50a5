"""Assumptions on the means, and on the noise, that may be named after the data are in: one record each.

Each says which functions f the mean rewards may be, by its support function (`Lines`, `Support`), rounded up. Norms
that are left out are filled in by whoever reads (`reading.py`). Source: docs/certified-elimination.md, lines 38 and 39.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol, runtime_checkable

import numpy as np

from surepick.assumptions.lines import Curve, Lines, Support
from surepick.core.records import FloatArray, record
from surepick.core.values import as_number, positive_number
from surepick.embeddings.kernel_functions import GaussianKernel, Kernel, distances
from surepick.errors import InvalidInput
from surepick.estimators.contrast_weights import EPS
from surepick.estimators.noise_mgf import ROUNDED_UP
from surepick.linalg.factorisations import row_norms, symmetric_spectrum
from surepick.text import quoted

LEVEL = 100.0  # a level of the rewards counts a hundredth of itself in the norm
SAMPLE = 500  # arms whose distances give a length where none is named


@runtime_checkable
class Assumption(Protocol):
    """A class of functions that the mean rewards may be."""

    def support(self, lines: Lines) -> Support:
        """By how much sum_x D(x) f(x) can be above 0 for a function f of the class, along the lines of m rivals.

        Raises:
            InvalidInput: it lacks a norm, or what it is about is not known of this study.
        """

    def __str__(self) -> str:
        """The text from which `parse_assumption` gives an equal one."""


def plain(number: float) -> str:
    """A number as people write it, from which it is read again without loss."""
    return repr(float(number)).removesuffix(".0")


def _nothing(inverse: FloatArray) -> FloatArray:
    return np.zeros_like(inverse)


@record
class NoStructure:
    """Nothing is assumed: any means. A rival is bounded only where what its flows take from it they give to others.

    Source: docs/certified-elimination.md, line 39; docs/mixtures.md, line 45: of the best arm, which alone need be
    bounded, what is given to arms beside the candidate says nothing false.
    """

    def support(self, lines: Lines) -> Support:
        amount, flows = lines.at(lines.candidate), lines.held.flows
        taken, given = -lines.at(lines.rivals), np.maximum(flows, 0.0).sum(axis=1)
        alone = np.count_nonzero(flows < 0.0, axis=1) == 1
        matched = (amount > 0.0) & alone & (np.abs(given - taken) <= lines.rounding * taken)

        def rest(inverse: FloatArray) -> FloatArray:
            return np.where(matched & (np.abs(inverse * amount - 1.0) <= 4.0 * EPS), 0.0, np.inf)

        return Support(rest)

    def __str__(self) -> str:
        return "nothing"


@record
class InRange:
    """All means are between two numbers, in reward units and in the user's sign.

    Raises:
        InvalidInput: the numbers are not finite and ascending.
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        low, high = as_number("low", self.low), as_number("high", self.high)
        if not (np.isfinite(low) and np.isfinite(high) and low < high):
            raise InvalidInput(
                f"means are assumed in {plain(low)}..{plain(high)}; write two numbers, the smaller first."
            )
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    def support(self, lines: Lines) -> Support:
        """hi D+ - lo D-, D+ and D- the sums of the positive and negative parts of D (line 12)."""
        parts = lines.parts()
        high, low = (-self.low, -self.high) if lines.negated else (self.high, self.low)
        middle, half = 0.5 * (high + low), 0.5 * (high - low)
        totals = lines.totals

        def rest(inverse: FloatArray) -> FloatArray:
            gained, lost = parts(inverse)  # sum D f = middle sum D + sum D (f - middle)
            off = lines.rounding * (inverse * lines.held.lengths + 2.0)
            return np.asarray(ROUNDED_UP * (half * (gained + lost) + abs(middle) * off) + middle * inverse * totals)

        return Support(rest)

    def __str__(self) -> str:
        return f"in {plain(self.low)}..{plain(self.high)}"


def _checked_norm(norm: float | None) -> float | None:
    meaning = "the largest norm of the means, in reward units; leave it out to see which one suffices."
    return None if norm is None else positive_number("norm", norm, meaning)


def _of_norm(lines: Lines, norm: float | None, unit: Curve, *, level: bool, name: str) -> Support:
    """The support of a ball, with a level of the rewards beside."""
    if norm is None:
        raise InvalidInput(f"{quoted(name)} lacks a norm; write {name}{',' if ':' in name else ':'}norm=10, say.")
    totals = np.abs(lines.totals) + lines.rounding * lines.held.lengths

    def levelled(inverse: FloatArray) -> FloatArray:
        return np.asarray(ROUNDED_UP * np.hypot(unit(inverse), LEVEL * inverse * totals))

    return Support(_nothing, levelled if level else unit, norm)


@record
class Linear:
    """h(x) = <x, theta> + b with ||theta||^2 + (b / 100)^2 <= norm^2, x the features.

    Args:
        norm: in reward units; None: whoever reads says which one suffices.
        level: False: b = 0.

    Raises:
        InvalidInput: the norm is no positive number.
    """

    norm: float | None = None
    level: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "norm", _checked_norm(self.norm))

    def support(self, lines: Lines) -> Support:
        """norm ||X'D||; the level adds the coordinate 100 to every arm."""
        features = checked_features(lines.features, self)
        through = lines.held.flows @ features[lines.held.pulled]
        towards = features[lines.candidate] - features[lines.rivals]
        longest = float(row_norms(features).max(initial=0.0))
        share = lines.rounding + EPS * (features.shape[1] + 8)

        def unit(inverse: FloatArray) -> FloatArray:
            off = share * longest * (inverse * lines.held.lengths + 2.0)
            return np.asarray(ROUNDED_UP * (row_norms(inverse[:, None] * through - towards) + off))

        return _of_norm(lines, self.norm, unit, level=self.level, name=str(self))

    def coordinates(self, features: FloatArray) -> FloatArray:
        """Z with Z Z' the inner products of some arms, (n, r), but for the level."""
        return checked_features(features, self)

    def __str__(self) -> str:
        return _with_options("linear", norm=self.norm, level=None if self.level else "no")


@record
class Smooth:
    """h = f + b with ||f||^2 + (b / 100)^2 <= norm^2, ||f|| the norm in the space of a kernel on the features.

    Args:
        kernel: None: Gaussian, exp(-||x - z||^2 / (2 l^2)), l the median distance of two arms.
        norm: in reward units; None: whoever reads says which one suffices.
        level: False: b = 0.

    Raises:
        InvalidInput: the norm is no positive number, or the kernel is none.
    """

    kernel: Kernel | None = None
    norm: float | None = None
    level: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "norm", _checked_norm(self.norm))
        if self.kernel is not None and not isinstance(self.kernel, Kernel):
            raise InvalidInput(f"kernel is {quoted(self.kernel)}; give a kernel such as GaussianKernel(0.5).")

    def of(self, features: FloatArray) -> Kernel:
        """The kernel, for these arms."""
        if self.kernel is not None:
            return self.kernel
        some = checked_features(features, self)[:: max(1, len(features) // SAMPLE)]
        apart = distances(some, some)
        apart = apart[apart > 0.0]
        return GaussianKernel(0.5 / float(f"{np.median(apart):.2g}") ** 2 if len(apart) else 1.0)

    def support(self, lines: Lines) -> Support:
        """norm sqrt(D'KD) = norm sqrt(q0 u^2 - 2 q1 u + q2), with a bound on the rounding of the quadratic."""
        features, kernel = checked_features(lines.features, self), self.of(lines.features)
        pulled, flows = features[lines.held.pulled], lines.held.flows
        centre, own = features[lines.candidate : lines.candidate + 1], features[lines.rivals]
        diagonal = kernel.diagonal(features)
        q0 = np.einsum("ij,ij->i", flows @ kernel.gram(pulled, pulled), flows)
        q1 = flows @ kernel.gram(pulled, centre)[:, 0] - np.einsum("ij,ji->i", flows, kernel.gram(pulled, own))
        q2 = diagonal[lines.candidate] + diagonal[lines.rivals] - 2.0 * kernel.gram(centre, own)[0]
        largest = float(np.sqrt(diagonal.max(initial=0.0)))
        share = 4.0 * lines.rounding + 2.0 * EPS * (features.shape[1] + 16)

        def unit(inverse: FloatArray) -> FloatArray:
            size = largest * (inverse * lines.held.lengths + 2.0)
            square = np.maximum(q0 * inverse**2 - 2.0 * q1 * inverse + q2, 0.0)
            return np.asarray(ROUNDED_UP * np.sqrt(square + share * size**2))

        return _of_norm(lines, self.norm, unit, level=self.level, name=str(self))

    def coordinates(self, features: FloatArray) -> FloatArray:
        """Z with Z Z' = K of some arms, (n, r), up to rounding; but for the level."""
        checked = checked_features(features, self)
        found = symmetric_spectrum(self.of(features).gram(checked, checked))
        kept = found.values > 1e-12 * found.values[0]
        return np.asarray(found.vectors[:, kept] * np.sqrt(found.values[kept]))

    def __str__(self) -> str:
        options: dict[str, Any] = {"norm": self.norm, "level": None if self.level else "no"}
        length = _length_of(self.kernel) if isinstance(self.kernel, GaussianKernel) else None
        named = None if self.kernel is None or length is not None else self.kernel.spec or "?"
        return _with_options("smooth", length=length, kernel=named, **options)


def _length_of(kernel: GaussianKernel) -> float | None:
    """l with gamma = 1 / (2 l^2), of as few digits as give exactly this gamma; None: none does."""
    short = (float(f"{(0.5 / kernel.gamma) ** 0.5:.{digits}g}") for digits in range(1, 18))
    return next((one for one in short if 0.5 / one**2 == kernel.gamma), None)


def _with_options(name: str, **options: Any) -> str:
    written = ",".join(
        f"{key}={value if isinstance(value, str) else plain(value)}"
        for key, value in options.items()
        if value is not None
    )
    return f"{name}:{written}" if written else name


def checked_features(features: FloatArray, wanted: object) -> FloatArray:
    """The features, where there are any."""
    if features.shape[1] == 0:
        raise InvalidInput(f"{quoted(str(wanted))} is about features, and these candidates have none; read 'nothing'.")
    return np.asarray(features, np.float64)


@record
class Near:
    """Each mean is off what another assumption allows by at most gamma.

    Args:
        assumption: of the functions near which the means are.
        gamma: at least 0, in reward units.

    Raises:
        InvalidInput: gamma is no such number, or the assumption is not one of the means alone.
    """

    assumption: Assumption
    gamma: float

    def __post_init__(self) -> None:
        gamma = as_number("gamma", self.gamma)
        if not (np.isfinite(gamma) and gamma >= 0.0):
            raise InvalidInput(f"means are assumed off by {quoted(self.gamma)}; it must be a number of at least 0.")
        _refuse_sets((self.assumption,))
        object.__setattr__(self, "gamma", gamma)

    def support(self, lines: Lines) -> Support:
        """B of the assumption + gamma sum |D|."""
        length, gamma = lines.length(), self.gamma
        return self.assumption.support(lines).plus(Support(lambda inverse: gamma * length(inverse)))

    def __str__(self) -> str:
        return f"{self.assumption} + off by {plain(self.gamma)}"


ROUND = "round"


@record
class Effects:
    """All rewards of a round, or of a block, are off by one number of at most `size`, fixed before their own noise.

    It is added to an assumption of the means by `SumOf`.

    Args:
        blocks: "round", what was measured for one plan; or what the blocks of the study are called.
        size: in reward units, > 0.

    Raises:
        InvalidInput: the size is no positive number.
    """

    blocks: str
    size: float

    def __post_init__(self) -> None:
        size = positive_number("size", self.size, "the largest effect of a round, in reward units.")
        object.__setattr__(self, "size", size)

    def support(self, lines: Lines) -> Support:
        """size u sum over the rounds of |sum of w in the round|; 0 of blocks within which weights sum to 0."""
        if self.blocks != ROUND:
            if self.blocks != lines.block_name:
                known = "round" if lines.block_name is None else f"round and {lines.block_name}"
                raise InvalidInput(
                    f"effects of {quoted(self.blocks)} cannot be read: the study does not say which measurements "
                    f"belong to one. It knows {known}."
                )
            return Support(_nothing)
        sums = self.size * (np.abs(lines.held.batches).sum(axis=1) + lines.rounding * lines.held.lengths)
        return Support(lambda inverse: inverse * sums)

    def __str__(self) -> str:
        return f"effects of {self.blocks} up to {plain(self.size)}"


@record
class Scatter:
    """The noise of every arm is sub-Gaussian with a scale of at most `most`, in reward units.

    It says nothing of the means: join it to an assumption that does, by `AllOf`.

    Raises:
        InvalidInput: the scale is no positive number.
    """

    most: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "most", positive_number("most", self.most, "a scale of the noise, in reward units."))

    def support(self, lines: Lines) -> Support:
        """That of no structure."""
        return NoStructure().support(lines)

    def __str__(self) -> str:
        return f"scatter<={plain(self.most)}"


@record
class SumOf:
    """The means are sums of one function of each assumption."""

    parts: tuple[Assumption, ...]

    def __post_init__(self) -> None:
        _refuse_sets(self.parts)

    def support(self, lines: Lines) -> Support:
        """The sum of the supports."""
        first, *others = (one.support(lines) for one in self.parts)
        for other in others:
            first = first.plus(other)
        return first

    def __str__(self) -> str:
        return " + ".join(map(str, self.parts))


@record
class AllOf:
    """All of these hold at once."""

    parts: tuple[Assumption, ...]

    def __post_init__(self) -> None:
        if not self.parts or any(isinstance(one, AllOf) for one in self.parts):
            raise InvalidInput("assumptions that hold together are listed one by one, and there is at least one.")

    def support(self, lines: Lines) -> Support:
        """At each u the smallest of the supports: the sup over an intersection is at most that over each part."""
        found = [one.support(lines) for one in alternatives(self)]
        return Support(lambda inverse: np.min([one.at(inverse) for one in found], axis=0))

    def __str__(self) -> str:
        return " and ".join(map(str, self.parts))


def _refuse_sets(parts: tuple[Assumption, ...]) -> None:
    if not parts or any(isinstance(one, AllOf | Scatter) for one in parts):
        raise InvalidInput(
            "what is added up are functions: put 'and scatter<=...' and other assumptions that hold beside at the end."
        )


def alternatives(assumption: Assumption) -> tuple[Assumption, ...]:
    """Those of which each alone bounds the means; the smallest bound counts."""
    parts = assumption.parts if isinstance(assumption, AllOf) else (assumption,)
    return tuple(one for one in parts if not isinstance(one, Scatter)) or (NoStructure(),)


def scatter_of(assumption: Assumption) -> float | None:
    """The scale that the noise is assumed to have at most; None: what was declared."""
    parts = assumption.parts if isinstance(assumption, AllOf) else (assumption,)
    return min((one.most for one in parts if isinstance(one, Scatter)), default=None)


def mapped(assumption: Assumption, change: Callable[[Assumption], Assumption]) -> Assumption:
    """The assumption with what it is made of changed."""
    if isinstance(assumption, Near):
        return replace(assumption, assumption=mapped(assumption.assumption, change))
    if isinstance(assumption, SumOf | AllOf):
        return replace(assumption, parts=tuple(mapped(one, change) for one in assumption.parts))
    return change(assumption)


def off_by(assumption: Assumption) -> float:
    """How far each mean may be off what else is assumed, in reward units."""
    if isinstance(assumption, Near):
        return assumption.gamma + off_by(assumption.assumption)
    return sum(map(off_by, assumption.parts)) if isinstance(assumption, SumOf) else 0.0


def balls(assumption: Assumption) -> list[Linear | Smooth]:
    """The classes of bounded norm that it is made of, from the left."""
    found: list[Linear | Smooth] = []

    def note(one: Assumption) -> Assumption:
        found.extend([one] if isinstance(one, Linear | Smooth) else [])
        return one

    mapped(assumption, note)
    return found


def settled(assumption: Assumption, features: FloatArray, norm: float | None = None) -> Assumption:
    """The assumption with the kernels that these arms suggest, and that norm (None: none), where they are left out."""

    def filled(one: Assumption) -> Assumption:
        if isinstance(one, Smooth):
            one = replace(one, kernel=one.of(features))
        return replace(one, norm=norm) if isinstance(one, Linear | Smooth) and one.norm is None else one

    return mapped(assumption, filled)
