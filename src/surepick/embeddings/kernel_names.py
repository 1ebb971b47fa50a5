"""Kernels by name: text <-> kernel, and what else a user may give."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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

Named = Mapping[str, tuple[type, tuple[Callable[[str], object], ...]]]  # name -> its class and how to read parameters

_KERNELS: Named = {
    "gaussian": (GaussianKernel, (float,)),
    "matern": (MaternKernel, (float, float)),
    "polynomial": (PolynomialKernel, (int, float, float)),
    "ntk": (NeuralTangentKernel, (int, str, float)),
}


def read_named(text: str, known: Named, refusal: str) -> object:
    """What a text "NAME:PARAMETER:..." names.

    Raises:
        InvalidInput: the refusal, if it is none of the known ones; or a parameter is outside its range.
    """
    name, *values = text.strip().split(":")
    kind, readers = known.get(name, (None, ()))
    if kind is not None and len(values) <= len(readers):
        try:
            return kind(*[read(value) for read, value in zip(readers, values, strict=False)])
        except InvalidInput:
            raise
        except (TypeError, ValueError):
            pass
    raise InvalidInput(refusal)


def parse_kernel(text: str) -> Kernel:
    """The kernel that a text names: "gaussian:0.1", "matern:2.5:1", "polynomial:3:1:1", "ntk:3:H-tilde".

    Trailing parameters may be left out where the kernel has defaults.

    Raises:
        InvalidInput: the text is none of these, or a parameter is outside its range.
    """
    return cast(
        Kernel,
        read_named(
            text,
            _KERNELS,
            f"kernel {quoted(text)} is not understood. Write gaussian:GAMMA, matern:NU:LENGTH_SCALE, "
            "polynomial:DEGREE:OFFSET:SCALE or ntk:DEPTH:FORM with FORM H-tilde or H.",
        ),
    )


def make_kernel(kernel: Kernel | KernelFunction | str) -> Kernel:
    """A kernel from a kernel, its text, a function of two arrays, or a scikit-learn kernel object.

    Raises:
        InvalidInput: it is none of these.
    """
    if isinstance(kernel, str):
        return parse_kernel(kernel)
    return kernel if isinstance(kernel, Kernel) else CallableKernel(kernel)
