"""Arms -> vectors, and a bound on how wrong a linear function of them can be. Never sees a reward."""

from surepick.embeddings.composite_expansions import ExpansionRecord, ProductExpansion, parse_expansion
from surepick.embeddings.decay import ExponentialDecay, PolynomialDecay, effective_dimension_of_tails
from surepick.embeddings.expansions import Expansion, HermiteExpansion, SineExpansion
from surepick.embeddings.independent import IndependentEmbedding
from surepick.embeddings.kernel import KernelEmbedding
from surepick.embeddings.kernels import CallableKernel, GaussianKernel, Kernel, MaternKernel, PolynomialKernel
from surepick.embeddings.linear import LinearEmbedding
from surepick.embeddings.mercer import MercerEmbedding
from surepick.embeddings.named_kernels import make_kernel, parse_kernel
from surepick.embeddings.neural_tangent import NeuralTangentKernel, unit_rows_with_norm
from surepick.embeddings.periodic_expansions import FourierExpansion
from surepick.embeddings.protocol import ArmEmbedding

__all__ = [
    "ArmEmbedding",
    "CallableKernel",
    "Expansion",
    "ExpansionRecord",
    "ExponentialDecay",
    "FourierExpansion",
    "GaussianKernel",
    "HermiteExpansion",
    "IndependentEmbedding",
    "Kernel",
    "KernelEmbedding",
    "LinearEmbedding",
    "MaternKernel",
    "MercerEmbedding",
    "NeuralTangentKernel",
    "PolynomialDecay",
    "PolynomialKernel",
    "ProductExpansion",
    "SineExpansion",
    "effective_dimension_of_tails",
    "make_kernel",
    "parse_expansion",
    "parse_kernel",
    "unit_rows_with_norm",
]
