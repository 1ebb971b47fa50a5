"""Networks as embeddings; only `network` needs torch."""
