"""Elimination under a class of means that is named without a number."""
