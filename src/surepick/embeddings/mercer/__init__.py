"""Embeddings by the eigenfunctions of a kernel."""

from surepick.embeddings.mercer.eigenfunctions import Expansion, HermiteExpansion, SineExpansion
from surepick.embeddings.mercer.embedding import MercerEmbedding
from surepick.embeddings.mercer.fourier import FourierExpansion
from surepick.embeddings.mercer.products import ExpansionRecord, ProductExpansion, parse_expansion

__all__ = [
    "Expansion",
    "ExpansionRecord",
    "FourierExpansion",
    "HermiteExpansion",
    "MercerEmbedding",
    "ProductExpansion",
    "SineExpansion",
    "parse_expansion",
]
