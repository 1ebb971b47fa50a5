from .embedding import MercerEmbedding
from .kernels import (
    Expansion,
    ExpansionRecord,
    FourierExpansion,
    HermiteExpansion,
    ProductExpansion,
    SineExpansion,
    parse_expansion,
)

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
