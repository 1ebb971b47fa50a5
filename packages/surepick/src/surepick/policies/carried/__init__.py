"""Certified elimination with one e-process an arm, carried on across batches and candidates."""
