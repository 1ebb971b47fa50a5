"""Algorithms 1, 3 and 4 and RAGE: rounds of designed least squares that rule arms out."""
