"""Embeddings by the eigenfunctions of a kernel."""

from surepick_bench.mercer.embedding import MercerEmbedding
from surepick_bench.mercer.kernels import (
    Expansion,
    ExpansionRecord,
    FourierExpansion,
    HermiteExpansion,
    ProductExpansion,
    SineExpansion,
    parse_expansion,
)

__all__ = [
    "Expansion", "ExpansionRecord", "FourierExpansion", "HermiteExpansion", "MercerEmbedding", "ProductExpansion",
    "SineExpansion", "parse_expansion",
]  # fmt: skip
