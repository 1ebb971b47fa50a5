"""Arms -> vectors, and a bound on how wrong a linear function of them can be. Never sees a reward."""

from surepick.embeddings.base import ArmEmbedding, EmbeddingTraits
from surepick.embeddings.independent import IndependentEmbedding
from surepick.embeddings.kernel import KernelEmbedding
from surepick.embeddings.kernel_functions import CallableKernel, GaussianKernel, Kernel, MaternKernel, PolynomialKernel
from surepick.embeddings.kernel_names import make_kernel, parse_kernel
from surepick.embeddings.linear import LinearEmbedding
from surepick.embeddings.mercer.eigenfunctions import Expansion, HermiteExpansion, SineExpansion
from surepick.embeddings.mercer.embedding import MercerEmbedding
from surepick.embeddings.mercer.fourier import FourierExpansion
from surepick.embeddings.mercer.products import ExpansionRecord, ProductExpansion, parse_expansion
from surepick.embeddings.neural.tangent_kernel import NeuralTangentKernel, unit_rows_with_norm

__all__ = [
    "ArmEmbedding",
    "CallableKernel",
    "EmbeddingTraits",
    "Expansion",
    "ExpansionRecord",
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
    "PolynomialKernel",
    "ProductExpansion",
    "SineExpansion",
    "make_kernel",
    "parse_expansion",
    "parse_kernel",
    "unit_rows_with_norm",
]
