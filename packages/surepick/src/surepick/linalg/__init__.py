"""Factorisations, coordinates and distances, with their rounding."""
