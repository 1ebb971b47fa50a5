"""Subset selection: a list too long for memory becomes a short one that has the best candidate."""
