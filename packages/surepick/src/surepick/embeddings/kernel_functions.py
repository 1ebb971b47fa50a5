"""Positive semi-definite kernels: how alike two arms are, and so how alike their rewards."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np

from surepick.core.records import FloatArray, set_fields
from surepick.core.special_functions import scipy, special
from surepick.core.values import as_number, reason
from surepick.errors import InvalidInput
from surepick.linalg.factorisations import row_squares
from surepick.text import quoted

KernelFunction = Callable[[FloatArray, FloatArray], FloatArray]

LARGEST_NU = 30.0


@runtime_checkable
class Kernel(Protocol):
    """A positive semi-definite function of two arms."""

    def gram(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """k(x, z) for every row x of `left` (n, D) and z of `right` (m, D), shape (n, m)."""

    def diagonal(self, features: FloatArray) -> FloatArray:
        """k(x, x) for every row, shape (n,)."""

    @property
    def spec(self) -> str | None:
        """The one-line text from which `parse_kernel` gives an equal kernel; None when it has no name."""


@dataclass(frozen=True, slots=True)
class GaussianKernel:
    """exp(-gamma ||x - z||^2).

    Args:
        gamma: inverse squared width, one over squared feature units, > 0 and finite.

    Raises:
        InvalidInput: gamma is not positive and finite.

    Source: the paper's experiments. Distances come from differences, not from the Gram identity ||x||^2 - 2 x'z +
    ||z||^2, so that duplicates are at distance 0 and a tight cluster keeps its digits.
    Cost: O(n m D) time, O(n m) memory.
    """

    gamma: float

    def __post_init__(self) -> None:
        set_positive(
            self, "gamma", "it is one over the squared distance at which two arms stop telling about each other"
        )

    def gram(self, left: FloatArray, right: FloatArray) -> FloatArray:
        gram = distances(left, right, squared=True)
        with np.errstate(over="ignore"):  # beyond all numbers the kernel is 0, which is what exp(-inf) gives
            gram *= -self.gamma
        return np.exp(gram, out=gram)

    def diagonal(self, features: FloatArray) -> FloatArray:
        return np.ones(len(features))

    @property
    def spec(self) -> str:
        return f"gaussian:{self.gamma!r}"


@dataclass(frozen=True, slots=True)
class MaternKernel:
    """2^(1-nu)/Gamma(nu) r^nu K_nu(r),  r = sqrt(2 nu) ||x - z|| / length_scale: rewards nu times differentiable.

    For nu = p + 1/2 the Bessel function K_nu is elementary,

        exp(-r) p!/(2p)! sum_{i=0}^p (p+i)! / (i! (p-i)!) (2r)^(p-i)

    Args:
        nu: smoothness, in (0, 30]; 0.5 is exp(-r), infinity would be the Gaussian kernel.
        length_scale: in feature units, > 0.

    Raises:
        InvalidInput: a parameter is outside its range.

    Source: Rasmussen and Williams, Gaussian Processes for Machine Learning, eqs. (4.14) and (4.16).
    Cost: O(n m D) time, O(n m) memory.
    """

    nu: float
    length_scale: float = 1.0

    def __post_init__(self) -> None:
        set_positive(self, "nu", "it counts the derivatives of the reward; 0.5, 1.5 and 2.5 are usual")
        set_positive(self, "length_scale", "it is the distance, in feature units, over which rewards change")
        if self.nu > LARGEST_NU:
            gamma = 0.5 / self.length_scale / self.length_scale
            raise InvalidInput(
                f"nu is {self.nu:g}, above {LARGEST_NU:g}: so smooth a Matern kernel is a Gaussian one, and its Bessel "
                f"function overflows. Use the Gaussian kernel with gamma = {gamma:g}."
            )

    def gram(self, left: FloatArray, right: FloatArray) -> FloatArray:
        radii = distances(left, right) * (math.sqrt(2.0 * self.nu) / self.length_scale)
        order = self.nu - 0.5
        return _matern_half(radii, int(order)) if order == int(order) else _matern_bessel(radii, self.nu)

    def diagonal(self, features: FloatArray) -> FloatArray:
        return np.ones(len(features))

    @property
    def spec(self) -> str:
        return f"matern:{self.nu!r}:{self.length_scale!r}"


MOST_DEGREE = 1_000_000


@dataclass(frozen=True, slots=True)
class PolynomialKernel:
    """(scale <x, z> + offset)^degree: rewards that are polynomials of the features.

    Args:
        degree: an integer from 1 to a million.
        offset: >= 0; 0 keeps only monomials of exactly this degree.
        scale: > 0, one over squared feature units.

    Raises:
        InvalidInput: a parameter is outside its range (a negative offset is not positive semi-definite).

    Source: Rasmussen and Williams, section 4.2.2.
    """

    degree: int
    offset: float = 1.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        if isinstance(self.degree, bool) or self.degree != int(self.degree) or self.degree < 1:
            raise InvalidInput(f"degree is {quoted(self.degree)}; a polynomial kernel needs an integer of at least 1.")
        if self.degree > MOST_DEGREE:
            raise InvalidInput(f"degree is {quoted(self.degree)}; a polynomial kernel takes at most {MOST_DEGREE:,}.")
        if not (math.isfinite(self.offset) and self.offset >= 0):
            raise InvalidInput(
                f"offset is {quoted(self.offset)}; it must be finite and not negative, or the kernel is not positive "
                "semi-definite."
            )
        set_positive(self, "scale", "it multiplies the inner product")
        set_fields(self, degree=int(self.degree), offset=float(self.offset))

    def gram(self, left: FloatArray, right: FloatArray) -> FloatArray:
        return (self.scale * (left @ right.T) + self.offset) ** self.degree

    def diagonal(self, features: FloatArray) -> FloatArray:
        return (self.scale * row_squares(features) + self.offset) ** self.degree

    @property
    def spec(self) -> str:
        return f"polynomial:{self.degree}:{self.offset!r}:{self.scale!r}"


@dataclass(frozen=True, slots=True)
class CallableKernel:
    """A kernel given as a function, or as a scikit-learn kernel object: k(left (n, D), right (m, D)) -> (n, m).

    It has no name, so a policy that uses it cannot be stored. It is always called with two arguments, so white noise
    in a scikit-learn kernel contributes nothing: noise is not part of the reward function.
    """

    spec: ClassVar[None] = None
    # vectorised and symmetric; whether it is positive semi-definite is checked where it is used
    function: KernelFunction

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise InvalidInput(
                f"kernel is a {type(self.function).__name__}; give a kernel such as GaussianKernel(0.1), its text "
                "('gaussian:0.1'), a function k(left, right) -> (n, m), or a scikit-learn kernel."
            )

    def gram(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """k(x, z) for all pairs, shape (n, m); InvalidInput where the function gave something else."""
        try:
            gram = np.array(self.function(left, right), dtype=np.float64)
        except Exception as error:
            said = f"{type(error).__name__}: {reason(error)}"
            raise InvalidInput(f"the kernel function failed on two arrays of features: {said}.") from error
        if gram.shape != (len(left), len(right)) or not np.isfinite(gram).all():
            raise InvalidInput(
                f"the kernel function gave an array of shape {gram.shape} with {np.sum(~np.isfinite(gram))} entries "
                f"that are not finite, for {len(left)} by {len(right)} arms; it must give k(x, z) for all pairs, "
                f"shape {(len(left), len(right))}."
            )
        return gram

    def diagonal(self, features: FloatArray, *, block: int = 64) -> FloatArray:
        """k(x, x) from small blocks of the gram, which any function of two arguments can give."""
        starts = range(0, len(features), block)
        blocks = (features[start : start + block] for start in starts)
        return np.concatenate([np.diagonal(self.gram(part, part)) for part in blocks])


def distances(left: FloatArray, right: FloatArray, *, squared: bool = False) -> FloatArray:
    """||x - z|| for all pairs (its square on request), from differences formed pair by pair, never stored."""
    found: FloatArray = scipy.spatial.distance.cdist(left, right, "sqeuclidean" if squared else "euclidean")
    return found


def _matern_half(radii: FloatArray, order: int) -> FloatArray:
    """The Matern kernel with nu = order + 1/2 at radii r, of their shape."""
    capped = np.minimum(radii, 1e4)  # exp(-1e4) is 0; keeps infinity * 0 away
    total = np.zeros_like(capped)
    for i in range(order + 1):  # Horner in 2r, highest power first
        total *= 2.0 * capped
        total += math.factorial(order + i) / (math.factorial(i) * math.factorial(order - i))
    return np.exp(-capped) * total * (math.factorial(order) / math.factorial(2 * order))


def _matern_bessel(radii: FloatArray, nu: float) -> FloatArray:
    """The Matern kernel of any nu at radii r, of their shape."""
    result = np.ones_like(radii)  # the limit where r^nu underflows or K_nu overflows: there 1 - k(r) is below rounding
    safe = radii > 2.0 * 10.0 ** (-270.0 / max(nu, 1.0))
    r = np.minimum(radii[safe], 1e4)  # exp(-1e4) is 0; keeps infinity - infinity away
    bessel, factor = np.log(special.kve(nu, r)), (1.0 - nu) * math.log(2.0) - special.gammaln(nu)
    result[safe] = np.exp(factor + nu * np.log(r) + bessel - r)
    return result


def set_positive(kernel: object, name: str, meaning: str) -> None:
    """Make a parameter of a frozen kernel a float."""
    value = getattr(kernel, name)
    number = as_number(name, value)
    if not (math.isfinite(number) and number > 0):
        raise InvalidInput(f"{name} is {quoted(value)}; it must be a positive finite number: {meaning}.")
    object.__setattr__(kernel, name, number)
