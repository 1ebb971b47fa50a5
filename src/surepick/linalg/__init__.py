"""Factorisations and coordinates, with their rounding."""
