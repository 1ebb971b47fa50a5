"""Embeddings by the eigenfunctions of a kernel."""
