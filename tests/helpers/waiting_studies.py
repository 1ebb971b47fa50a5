"""A study whose database lets it wait."""

from contextlib import contextmanager

import pytest
from sqlalchemy.engine import make_url

import surepick as sp

ARMS = sp.Arms([[1.0], [0.5], [0.2], [0.1]], ["a", "b", "c", "d"])


NOTHING = "Nothing of this call was stored"


def start(url: str):
    policy = sp.make_policy("certified-independent", ARMS, epsilon=0.5, delta=0.05, noise=sp.SubGaussian(0.5))
    study = sp.create_study(url, "x", ARMS, policy)
    study.tell(["a"], [1.0], ["first"])
    return study


def with_query(url: str, **query: object) -> str:
    text = {name: str(value) for name, value in query.items()}
    return make_url(url).update_query_dict(text).render_as_string(hide_password=False)


@contextmanager
def refused(words: str):
    """The call ends, though what it waits for stays away, with these words, and not that no server answers."""
    with pytest.raises(sp.StorageError) as caught:
        yield
    assert words in str(caught.value)
    assert "no server answers" not in str(caught.value)
