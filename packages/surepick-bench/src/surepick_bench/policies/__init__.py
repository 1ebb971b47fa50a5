"""Algorithms of others, to compare with."""
