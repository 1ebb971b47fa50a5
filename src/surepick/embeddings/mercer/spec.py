"""The name of the embedding by a kernel's eigenfunctions: an entry point of `surepick.embeddings` gives it."""

from surepick.embeddings.spec import EmbeddingSpec

MERCER = EmbeddingSpec(
    "surepick.embeddings.mercer.embedding:MercerEmbedding",
    ("expansion", "norm_bound", "bound", "max_dim", "norm_source"),
    "a kernel by its eigenfunctions, for instance expansion='hermite:1.0:0.5'",
)
