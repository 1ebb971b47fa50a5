"""Rows too many for memory: where they lie, and how they are gone through block by block."""
