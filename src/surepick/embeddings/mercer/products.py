"""Expansions made of others, or supplied by hand; and expansions by name."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np
from numpy.typing import ArrayLike

from surepick.core.arrays import FloatArray, IntArray, record, set_fields
from surepick.embeddings.base import tail_sums
from surepick.embeddings.kernel_names import Named, read_named
from surepick.embeddings.mercer.eigenfunctions import Expansion, HermiteExpansion, SineExpansion
from surepick.embeddings.mercer.fourier import FourierExpansion
from surepick.errors import InvalidInput
from surepick.text import quoted

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

    Raises:
        InvalidInput: the text is none of these, or a parameter is outside its range.
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
