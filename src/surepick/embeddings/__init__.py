"""Arms -> vectors, and a bound on how wrong a linear function of them can be. Never sees a reward."""

from surepick.embeddings.independent import IndependentEmbedding
from surepick.embeddings.linear import LinearEmbedding
from surepick.embeddings.protocol import ArmEmbedding

__all__ = ["ArmEmbedding", "IndependentEmbedding", "LinearEmbedding"]
