"""Arms -> vectors, and a bound on how wrong a linear function of them can be. Never sees a reward."""

from surepick.embeddings.base import ArmEmbedding, EmbeddingTraits, IndependentEmbedding
from surepick.embeddings.kernel import KernelEmbedding, make_kernel, parse_kernel
from surepick.embeddings.kernel_functions import CallableKernel, GaussianKernel, Kernel, MaternKernel, PolynomialKernel
from surepick.embeddings.linear import LinearEmbedding
from surepick.embeddings.tangent_kernel import NeuralTangentKernel, unit_rows_with_norm

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
