"""The databases that studies live in, shared out among tests."""

import pytest


def first_on(kind: str) -> pytest.MarkDecorator:
    """`database_url` of this kind; in the proofs of the other one too: what both are tried on together is elsewhere."""
    other = "postgresql" if kind == "sqlite" else "sqlite"
    return pytest.mark.parametrize("database_url", [kind, pytest.param(other, marks=pytest.mark.slow)], indirect=True)
