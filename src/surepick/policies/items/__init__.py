"""Candidates that answer one finite set of test items."""
