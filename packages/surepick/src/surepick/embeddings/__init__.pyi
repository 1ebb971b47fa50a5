from .base import ArmEmbedding, EmbeddingTraits, IndependentEmbedding
from .kernel import KernelEmbedding, make_kernel, parse_kernel
from .kernel_functions import CallableKernel, GaussianKernel, Kernel, MaternKernel, PolynomialKernel
from .linear import LinearEmbedding
from .tangent_kernel import NeuralTangentKernel, unit_rows_with_norm

__all__ = [
    "ArmEmbedding",
    "CallableKernel",
    "EmbeddingTraits",
    "GaussianKernel",
    "IndependentEmbedding",
    "Kernel",
    "KernelEmbedding",
    "LinearEmbedding",
    "MaternKernel",
    "NeuralTangentKernel",
    "PolynomialKernel",
    "make_kernel",
    "parse_kernel",
    "unit_rows_with_norm",
]
