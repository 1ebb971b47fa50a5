"""Kernels by name: text <-> kernel, and what else a user may give."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from surepick.embeddings.kernel_functions import (
    CallableKernel,
    GaussianKernel,
    Kernel,
    KernelFunction,
    MaternKernel,
    PolynomialKernel,
)
from surepick.embeddings.neural.tangent_kernel import NeuralTangentKernel
from surepick.errors import InvalidInput
from surepick.text import quoted

_KERNELS: dict[str, tuple[type, tuple[Callable[[str], object], ...]]] = {
    "gaussian": (GaussianKernel, (float,)),
    "matern": (MaternKernel, (float, float)),
    "polynomial": (PolynomialKernel, (int, float, float)),
    "ntk": (NeuralTangentKernel, (int, str, float)),
}


def parse_kernel(text: str) -> Kernel:
    """The kernel that a text names: "gaussian:0.1", "matern:2.5:1", "polynomial:3:1:1", "ntk:3:H-tilde".

    Trailing parameters may be left out where the kernel has defaults.

    Raises:
        InvalidInput: the text is none of these, or a parameter is outside its range.
    """
    name, *values = text.strip().split(":")
    kind, readers = _KERNELS.get(name, (None, ()))
    if kind is not None and len(values) <= len(readers):
        try:
            parsed = [read(value) for read, value in zip(readers, values, strict=False)]
            return cast(Kernel, kind(*parsed))
        except InvalidInput:
            raise
        except (TypeError, ValueError):
            pass
    raise InvalidInput(
        f"kernel {quoted(text)} is not understood. Write gaussian:GAMMA, matern:NU:LENGTH_SCALE, "
        "polynomial:DEGREE:OFFSET:SCALE or ntk:DEPTH:FORM with FORM H-tilde or H."
    )


def make_kernel(kernel: Kernel | KernelFunction | str) -> Kernel:
    """A kernel from a kernel, its text, a function of two arrays, or a scikit-learn kernel object.

    Raises:
        InvalidInput: it is none of these.
    """
    if isinstance(kernel, str):
        return parse_kernel(kernel)
    return kernel if isinstance(kernel, Kernel) else CallableKernel(kernel)
