"""Streams depend on the seed and the names, and on nothing else."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

import surepick as sp
from surepick.core.random_streams import stream

GOLDEN = [0.16712902694714848, 0.2478459061191821]

names = st.lists(st.one_of(st.integers(0, 99), st.text("ab1", max_size=3)), max_size=3).map(tuple)


def draws(*arguments, size=4):
    return stream(*arguments).random(size).tolist()


@given(st.integers(0, 2**70), names)
def test_equal_names_give_equal_streams(seed, chosen):
    assert draws(seed, *chosen) == draws(seed, *chosen)


@given(st.integers(0, 5), names, st.integers(0, 5), names)
def test_different_names_give_different_streams(seed, chosen, other_seed, other):
    if (seed, chosen) != (other_seed, other):
        assert draws(seed, *chosen) != draws(other_seed, *other)


def test_a_number_is_not_its_text_and_parts_are_not_their_sum():
    family = [draws(7, "1"), draws(7, 1), draws(7, "a", "b"), draws(7, "ab"), draws(7, "b", "a"), draws(7)]
    assert len({tuple(row) for row in family}) == len(family)


def test_the_streams_are_the_same_on_every_machine_and_in_every_version():
    assert draws(7, "noise", 3, size=2) == GOLDEN


def test_a_stream_is_fresh():
    stream(7, "a").random(100)
    assert stream(7, "a").random() == stream(7, "a").random()


def test_neighbouring_streams_are_not_correlated():
    rows = np.array([stream(0, "noise", number).normal(size=500) for number in range(40)])
    correlations = np.corrcoef(rows)[np.triu_indices(40, 1)]
    assert np.abs(correlations).max() < 6 / np.sqrt(500)


def test_a_negative_seed_is_refused():
    with pytest.raises(sp.InvalidInput, match="seed is -1"):
        stream(-1)
