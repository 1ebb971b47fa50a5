"""Kernels whose eigenvalues and eigenfunctions are known: k(x, z) = sum_j mu_j phi_j(x) phi_j(z)."""

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from surepick.core.records import FloatArray, IntArray, record, set_fields
from surepick.core.special_functions import special
from surepick.core.values import check_choice
from surepick.embeddings.base import tail_sums
from surepick.embeddings.kernel import Named, read_named
from surepick.embeddings.kernel_functions import set_positive
from surepick.errors import InvalidInput
from surepick.text import quoted

UNDERFLOW_EXPONENT = 650.0
TAIL_ALLOWANCE = 1.0 + 1e-12  # the closed forms are evaluated to a few machine epsilons; never an underestimate
SQRT2 = math.sqrt(2.0)


@runtime_checkable
class Expansion(Protocol):
    """The Mercer expansion of a kernel with respect to some measure; eigenvalues in decreasing order."""

    def eigenvalues(self, count: int) -> FloatArray:
        """mu_1 .. mu_count, shape (count,)."""

    def eigenfunctions(self, features: FloatArray, count: int) -> FloatArray:
        """phi_j(x) for j = 1 .. count, shape (K, count); InvalidInput where x is outside the domain."""

    def diagonal(self, features: FloatArray) -> FloatArray:
        """k(x, x), shape (K,)."""

    def tails(self, count: int) -> FloatArray:
        """Proved to be at least sum_{j>d} mu_j for d = 0 .. count, shape (count + 1,); infinite without a proof."""

    @property
    def eigenfunction_bound(self) -> float:
        """C_phi >= |phi_j(x)| for every j and every x of the domain; may be infinite."""

    @property
    def max_count(self) -> int | None:
        """How many eigenfunctions there are to ask for; None for no end."""

    @property
    def num_columns(self) -> int | None:
        """How many feature columns an arm has; None for any."""

    @property
    def heuristic(self) -> str:
        """Why the expansion is not exact; empty when it is."""

    @property
    def spec(self) -> str | None:
        """The one-line text from which `parse_expansion` gives an equal expansion; None when it has no name."""


@dataclass(frozen=True, slots=True)
class SineExpansion:
    """min(x, z) on [0, 1]: rewards with h(0) = 0 and a square-integrable derivative, ||h||_H^2 = integral of h'^2.

        phi_j(x) = sqrt(2) sin((2j-1) pi x/2),   mu_j = 4/((2j-1)^2 pi^2),   C_phi = sqrt(2),   Lebesgue measure

        sum_{j>d} mu_j = (1/pi^2) sum_{j>d} (j - 1/2)^-2 = trigamma(d + 1/2)/pi^2

    by the series trigamma(z) = sum_{n>=0} (z + n)^-2 at z = d + 1/2: closed form, nothing is cut.

    Source: the paper's example in section 4; Wainwright, High-Dimensional Statistics (2019), example 12.23.
    Differs from the paper: C_phi is sqrt(2), not 1, because the eigenfunctions have norm one.
    """

    spec: ClassVar[str] = "sine"
    eigenfunction_bound: ClassVar[float] = SQRT2
    max_count: ClassVar[None] = None
    num_columns: ClassVar[int] = 1
    heuristic: ClassVar[str] = ""

    def eigenvalues(self, count: int) -> FloatArray:
        return np.asarray((np.pi * (np.arange(1, count + 1) - 0.5)) ** -2.0, dtype=np.float64)

    def eigenfunctions(self, features: FloatArray, count: int) -> FloatArray:
        return np.asarray(SQRT2 * np.sin(np.pi * np.outer(unit_column(features), np.arange(1, count + 1) - 0.5)))

    def diagonal(self, features: FloatArray) -> FloatArray:
        return unit_column(features).copy()

    def tails(self, count: int) -> FloatArray:
        return hurwitz_zeta(2.0, np.arange(count + 1, dtype=np.float64) + 0.5) * (TAIL_ALLOWANCE / math.pi**2)


@dataclass(frozen=True, slots=True)
class HermiteExpansion:
    """exp(-gamma (x - z)^2) on the line, with a Gaussian measure of standard deviation `spread` around 0.

        a = 1/(2 spread^2),   b = (1 + 4 gamma/a)^(1/4),   D2 = a (b^2 - 1)/2,   S = a + D2 + gamma,   q = gamma/S
        mu_j = sqrt(a/S) q^(j-1)
        phi_j(x) = sqrt(b) exp(-D2 x^2) H_{j-1}(b sqrt(a) x) / sqrt(2^(j-1) (j-1)!)

    with Hermite polynomials H, evaluated by their normalised three-term recurrence. The eigenfunctions grow without
    bound on the line, so C_phi is infinite and only the pointwise bound applies. The tail is a geometric series,
    sum_{j>d} mu_j = sqrt(a/S) q^d/(1 - q).

    Args:
        gamma: inverse squared width of the kernel, > 0.
        spread: standard deviation of the measure, > 0, in feature units; about that of the arms is a good choice. It
            decides which functions come first, never whether the bound holds.

    Raises:
        InvalidInput: a parameter is not positive, or so extreme that no eigenvalue can be computed; on use: arms so far
            out (D2 x^2 > 650) that the functions underflow.

    Source: Rasmussen and Williams, Gaussian Processes for Machine Learning, section 4.3.1; Fasshauer and McCourt,
        Stable evaluation of Gaussian RBF interpolants (2012).
    """

    eigenfunction_bound: ClassVar[float] = math.inf
    max_count: ClassVar[None] = None
    num_columns: ClassVar[int] = 1
    heuristic: ClassVar[str] = ""
    gamma: float
    spread: float = 1.0

    def __post_init__(self) -> None:
        set_positive(
            self, "gamma", "it is one over the squared distance at which two arms stop telling about each other"
        )
        set_positive(self, "spread", "it is about the standard deviation of the arms' feature")
        try:
            computable = 0 < self.ratio < 1 and self._first > 0
        except (OverflowError, ZeroDivisionError):
            computable = False
        if not computable:
            raise InvalidInput(
                f"gamma {self.gamma:g} with spread {self.spread:g} leaves what floats hold: the eigenvalues fall too "
                "fast or too slowly. Take another unit for the feature, or a spread of about its standard deviation."
            )

    def eigenvalues(self, count: int) -> FloatArray:
        return self._first * self._powers(count)

    def eigenfunctions(self, features: FloatArray, count: int) -> FloatArray:
        """phi_1 .. phi_count at the arms, shape (K, count); InvalidInput where an arm is too far out."""
        x = _column(features)
        exponents = self._flattening * x**2
        far = np.flatnonzero(exponents > UNDERFLOW_EXPONENT)
        if far.size:
            raise InvalidInput(
                f"{far.size} arms lie too far from 0 for this expansion (the first is row {far[0]}, {x[far[0]]:g}, "
                f"with spread {self.spread:g} and gamma {self.gamma:g}): their eigenfunctions underflow. Centre the "
                "feature, or raise spread to about its standard deviation."
            )
        y = math.sqrt(self._precision) * self._stretch * x
        functions = np.empty((len(x), count))
        previous, current = np.zeros_like(x), math.sqrt(self._stretch) * np.exp(-exponents)
        for n in range(count):
            functions[:, n] = current
            previous, current = current, (math.sqrt(2.0) * y * current - math.sqrt(n) * previous) / math.sqrt(n + 1)
        return functions

    def diagonal(self, features: FloatArray) -> FloatArray:
        return np.ones_like(_column(features))

    def tails(self, count: int) -> FloatArray:
        return np.asarray(self._first / (1.0 - self.ratio) * TAIL_ALLOWANCE * self._powers(count + 1))

    @property
    def spec(self) -> str:
        return f"hermite:{self.gamma!r}:{self.spread!r}"

    def _powers(self, count: int) -> FloatArray:
        """1, q, q^2, ..., shape (count,)."""
        return np.asarray(self.ratio ** np.arange(count, dtype=np.float64))

    @property
    def _precision(self) -> float:
        return 0.5 / self.spread**2

    @property
    def _stretch(self) -> float:
        return float((1.0 + 4.0 * self.gamma / self._precision) ** 0.25)

    @property
    def _flattening(self) -> float:
        return 0.5 * self._precision * (self._stretch**2 - 1.0)

    @property
    def ratio(self) -> float:
        """q: how much smaller each eigenvalue is than the one before."""
        return self.gamma / (self._precision + self._flattening + self.gamma)

    @property
    def _first(self) -> float:
        return math.sqrt(self._precision / (self._precision + self._flattening + self.gamma))


def hurwitz_zeta(power: float, start: FloatArray) -> FloatArray:
    """sum_{n>=0} (start + n)^-power; the trigamma function at power 2."""
    return np.asarray(special.zeta(power, start))


def _column(features: FloatArray) -> FloatArray:
    """The only column of (K, 1), shape (K,); InvalidInput where there are more or none."""
    if features.shape[1] != 1:
        raise InvalidInput(
            f"the arms have {features.shape[1]} feature columns and this expansion is of one variable; choose a "
            "column, or combine one expansion per column in a ProductExpansion."
        )
    return features[:, 0]


def unit_column(features: FloatArray) -> FloatArray:
    """The only column of (K, 1), shape (K,), in [0, 1]; InvalidInput where a value lies outside, or there are more."""
    column = _column(features)
    outside = np.flatnonzero((column < 0) | (column > 1))
    if outside.size:
        raise InvalidInput(
            f"{outside.size} arms lie outside [0, 1], where this expansion is defined (the first is row {outside[0]}, "
            f"{column[outside[0]]:g}). Shift and scale the feature; norm_bound refers to the result."
        )
    return column


# --- Periodic kernels, whose eigenfunctions are the Fourier basis.

FOURIER_DECAYS = ("polynomial", "geometric")


@dataclass(frozen=True, slots=True)
class FourierExpansion:
    """A periodic kernel on [0, 1]: constant, then cosines and sines whose eigenvalues fall in pairs.

        k(x, z) = 1 + 2 sum_{m>=1} v_m cos(2 pi m t),   t = x - z
        phi_1 = 1,  phi_2m = sqrt(2) cos(2 pi m x),  phi_2m+1 = sqrt(2) sin(2 pi m x),   C_phi = sqrt(2)

        "polynomial":  v_m = m^(-2 rate)
        "geometric":   v_m = r^m with r = rate,   k = (1 - r^2)/(1 - 2 r cos(2 pi t) + r^2)

    For an integer rate s the first is the spline kernel 1 + (-1)^(s-1) (2 pi)^(2s) B_2s({t})/(2s)! with a Bernoulli
    polynomial. With m whole pairs taken, the tails are 2 zeta(2 rate, m + 1) (Hurwitz, the sum over n > m of
    n^(-2 rate)) and 2 r^(m+1)/(1 - r); a pair that is cut in half adds its v. Both are closed forms: nothing is cut.

    Args:
        decay_of: "polynomial" or "geometric".
        rate: polynomial: > 1/2, about the number of derivatives of the reward; geometric: r in (0, 1).

    Raises:
        InvalidInput: unknown decay, or a rate outside its range; on use: arms outside [0, 1].

    Source: Wahba, Spline Models for Observational Data (1990), section 2.1; Poisson's kernel.
    """

    eigenfunction_bound: ClassVar[float] = SQRT2
    max_count: ClassVar[None] = None
    num_columns: ClassVar[int] = 1
    heuristic: ClassVar[str] = ""
    decay_of: str = "polynomial"
    rate: float = 1.0

    def __post_init__(self) -> None:
        check_choice("decay_of", self.decay_of, FOURIER_DECAYS)
        low, high = (0.5, math.inf) if self.decay_of == "polynomial" else (0.0, 1.0)
        if not low < self.rate < high:
            raise InvalidInput(
                f"rate is {quoted(self.rate)}; {self.decay_of} decay needs a rate in ({low:g}, {high:g}), or the "
                "eigenvalues have no finite sum."
            )
        object.__setattr__(self, "rate", float(self.rate))

    def eigenvalues(self, count: int) -> FloatArray:
        pairs = np.arange(2, count + 1) // 2
        return np.append(1.0, self._pair_values(pairs))[:count]

    def eigenfunctions(self, features: FloatArray, count: int) -> FloatArray:
        x = unit_column(features)
        index = np.arange(1, count + 1)
        turns = 2.0 * np.pi * np.outer(x, index // 2)
        functions = SQRT2 * np.where(index % 2 == 0, np.cos(turns), np.sin(turns))
        functions[:, :1] = 1.0
        return functions

    def diagonal(self, features: FloatArray) -> FloatArray:
        return np.full(len(unit_column(features)), 1.0 + self._pairs_after(np.zeros(1, dtype=np.int64))[0])

    def tails(self, count: int) -> FloatArray:
        dims = np.arange(1, count + 1)
        split = np.where(dims % 2 == 0, self._pair_values(np.maximum(dims // 2, 1)), 0.0)
        sums = np.append(1.0 + self._pairs_after(np.zeros(1, dtype=np.int64)), self._pairs_after(dims // 2) + split)
        return sums * TAIL_ALLOWANCE

    @property
    def spec(self) -> str:
        return f"fourier:{self.decay_of}:{self.rate!r}"

    def _pair_values(self, pairs: IntArray) -> FloatArray:
        """v_m of given m, of their shape."""
        orders = pairs.astype(np.float64)
        return np.asarray(orders ** (-2.0 * self.rate) if self.decay_of == "polynomial" else self.rate**orders)

    def _pairs_after(self, pairs: IntArray) -> FloatArray:
        """2 sum_{m > pairs} v_m."""
        first = pairs.astype(np.float64) + 1.0
        if self.decay_of == "polynomial":
            return 2.0 * hurwitz_zeta(2.0 * self.rate, first)
        return np.asarray(self.rate**first * (2.0 / (1.0 - self.rate)))


# --- Expansions made of others, or supplied by hand; and expansions by name.

EPS = float(np.finfo(np.float64).eps)
_EXPANSIONS: Named = {
    "sine": (SineExpansion, ()),
    "hermite": (HermiteExpansion, (float, float)),
    "fourier": (FourierExpansion, (str, float)),
}


@dataclass(frozen=True, slots=True)
class ProductExpansion:
    """k(x, z) = prod_i k_i(x_i, z_i), one expansion of one variable for each column of the features.

        phi_(j1..jD)(x) = prod_i phi_ji(x_i),   mu_(j1..jD) = prod_i mu_ji,   in decreasing order of the product
        sum_{j>d} mu_j = prod_i tails_i[0] - (the d largest products)

    The order is found best first: a heap holds the candidates, and (j1..jD) enters when its only parent, one lower in
    its last index above 1, leaves; a parent is never smaller, so what leaves is the largest of all that remain. The
    tail is the trace less a finite sum. The trace is the product of the factors' proven sums from 0, so it is an upper
    bound, and so is the tail, after an allowance for rounding.

    Args:
        factors: D expansions of one variable, each of one column and without end.

    Raises:
        InvalidInput: no factor, or one that is not of one variable.

    Source: the eigen-system of a tensor product; ours is the order.
    Cost: O(d D log(d D)) for the order.
    """

    max_count: ClassVar[None] = None
    factors: tuple[Expansion, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "factors", tuple(self.factors))
        if not self.factors or any(part.num_columns != 1 or part.max_count is not None for part in self.factors):
            raise InvalidInput(
                "a product expansion needs at least one factor, each of one variable and without end, such as "
                "SineExpansion(), HermiteExpansion(gamma) or FourierExpansion()."
            )

    def indices(self, count: int) -> IntArray:
        """(j1 - 1, .., jD - 1) of the `count` largest products, shape (count, D), in decreasing order."""
        size = 1
        while True:
            chosen = self._best(count, [part.eigenvalues(size) for part in self.factors])
            if chosen is not None:
                return chosen
            size *= 2

    def eigenvalues(self, count: int) -> FloatArray:
        chosen = self.indices(count)
        values = np.ones(count)
        for part, column in zip(self.factors, chosen.T, strict=True):
            values *= part.eigenvalues(int(column.max(initial=0)) + 1)[column]
        return values

    def eigenfunctions(self, features: FloatArray, count: int) -> FloatArray:
        self._check(features)
        chosen = self.indices(count)
        functions = np.ones((len(features), count))
        for i, (part, column) in enumerate(zip(self.factors, chosen.T, strict=True)):
            functions *= part.eigenfunctions(features[:, i : i + 1], int(column.max(initial=0)) + 1)[:, column]
        return functions

    def diagonal(self, features: FloatArray) -> FloatArray:
        self._check(features)
        values = np.ones(len(features))
        for i, part in enumerate(self.factors):
            values *= part.diagonal(features[:, i : i + 1])
        return values

    def tails(self, count: int) -> FloatArray:
        trace = math.prod(float(part.tails(0)[0]) for part in self.factors)
        left_over = trace - np.append(0.0, np.cumsum(self.eigenvalues(count)))
        return np.maximum(left_over, 0.0) + (4 * len(self.factors) + count + 16) * EPS * trace

    @property
    def eigenfunction_bound(self) -> float:
        return math.prod(part.eigenfunction_bound for part in self.factors)

    @property
    def num_columns(self) -> int:
        return len(self.factors)

    @property
    def heuristic(self) -> str:
        return next((part.heuristic for part in self.factors if part.heuristic), "")

    @property
    def spec(self) -> str | None:
        names = [part.spec for part in self.factors]
        return None if None in names else "*".join(str(name) for name in names)

    def _best(self, count: int, values: list[FloatArray]) -> IntArray | None:
        """The `count` best indices, or None when one of them is the last of the eigenvalues given."""
        start = (0,) * len(values)
        heap = [(-math.prod(float(part[0]) for part in values), start)]
        chosen = np.empty((count, len(values)), dtype=np.int64)
        for row in range(count):
            _, index = heapq.heappop(heap)
            chosen[row] = index
            if any(position + 1 == len(part) for position, part in zip(index, values, strict=True)):
                return None
            last = max((i for i, position in enumerate(index) if position), default=0)
            for i in range(last, len(index)):
                child = (*index[:i], index[i] + 1, *index[i + 1 :])
                product = math.prod(float(part[position]) for part, position in zip(values, child, strict=True))
                heapq.heappush(heap, (-product, child))
        return chosen

    def _check(self, features: FloatArray) -> None:
        """Refuse features (K, D) of which there is not one column for each factor."""
        if features.shape[1] != len(self.factors):
            raise InvalidInput(
                f"the arms have {features.shape[1]} feature columns and the product has {len(self.factors)} factors; "
                "give one expansion per column, in their order."
            )


@record
class ExpansionRecord:
    """An eigen-system supplied by hand, closed-form or numerical.

    Args:
        values: mu_1 >= mu_2 >= ... > 0, shape (n,).
        functions: (features (K, D), count) -> phi_1 .. phi_count, shape (K, count).
        kernel_diagonal: features -> k(x, x), shape (K,): of the whole kernel, not of the n terms.
        c_phi: C_phi >= |phi_j(x)|; infinity when unknown.
        remainder: proved to be at least sum_{j>n} mu_j; infinity when nothing is proved. The paper's bound needs it.
        approximate: the eigenfunctions or eigenvalues are numerical; then no theorem backs the bound. False is your
            word that they are exact to rounding.

    Raises:
        InvalidInput: eigenvalues that are not positive and decreasing, or constants without meaning.

    Source: the paper's footnote in section 4: eigen-systems may be calculated or approximated.
    """

    num_columns: ClassVar[None] = None
    spec: ClassVar[None] = None
    values: FloatArray
    functions: Callable[[FloatArray, int], FloatArray]
    kernel_diagonal: Callable[[FloatArray], FloatArray]
    c_phi: float
    remainder: float
    approximate: bool

    def __init__(
        self,
        eigenvalues: ArrayLike,
        eigenfunctions: Callable[[FloatArray, int], FloatArray],
        kernel_diagonal: Callable[[FloatArray], FloatArray],
        *,
        c_phi: float = math.inf,
        remainder: float = math.inf,
        approximate: bool = True,
    ) -> None:
        values = np.array(eigenvalues, dtype=np.float64)
        if values.ndim != 1 or not len(values) or not (values > 0).all() or (np.diff(values) > 0).any():
            raise InvalidInput(
                f"eigenvalues of shape {values.shape} must be a list of positive numbers in decreasing order; drop the "
                "ones that are zero."
            )
        if not (c_phi > 0 and remainder >= 0):
            raise InvalidInput(
                f"c_phi is {quoted(c_phi)} and remainder {quoted(remainder)}; they must be above 0, and at least 0."
            )
        set_fields(self, values=values, functions=eigenfunctions, kernel_diagonal=kernel_diagonal)
        set_fields(self, c_phi=float(c_phi), remainder=float(remainder), approximate=bool(approximate))

    def eigenvalues(self, count: int) -> FloatArray:
        return self.values[:count]

    def eigenfunctions(self, features: FloatArray, count: int) -> FloatArray:
        return _shaped(self.functions(features, count), (len(features), count), "eigenfunctions")

    def diagonal(self, features: FloatArray) -> FloatArray:
        return _shaped(self.kernel_diagonal(features), (len(features),), "kernel_diagonal")

    def tails(self, count: int) -> FloatArray:
        sums = tail_sums(self.values) * (1.0 + len(self.values) * EPS) + self.remainder
        return np.asarray(sums[: count + 1], dtype=np.float64)

    @property
    def eigenfunction_bound(self) -> float:
        return self.c_phi

    @property
    def max_count(self) -> int:
        return len(self.values)

    @property
    def heuristic(self) -> str:
        return "the eigen-system was approximated numerically, with no bound on its error" if self.approximate else ""


def parse_expansion(text: str) -> Expansion:
    """The expansion that a text names: "sine", "hermite:GAMMA:SPREAD", "fourier:polynomial:1", products with "*".

    Trailing parameters may be left out where the expansion has defaults.
    """
    parts = text.split("*")
    if len(parts) > 1:
        return ProductExpansion(tuple(parse_expansion(part) for part in parts))
    refusal = (
        f"expansion {quoted(text)} is not understood. Write sine, hermite:GAMMA:SPREAD, fourier:polynomial:RATE, "
        "fourier:geometric:RATIO, or one of these per feature column joined by '*'."
    )
    return cast(Expansion, read_named(text, _EXPANSIONS, refusal))


def _shaped(values: ArrayLike, shape: tuple[int, ...], name: str) -> FloatArray:
    """What a given function returned, refused unless it is finite and of that shape."""
    array = np.asarray(values, dtype=np.float64)
    if array.shape != shape or not np.isfinite(array).all():
        raise InvalidInput(f"{name} gave shape {array.shape}; it must give finite numbers of shape {shape}.")
    return array
