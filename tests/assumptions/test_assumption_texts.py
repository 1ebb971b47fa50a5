"""Assumptions as texts, both ways."""

import pytest
from hypothesis import given, strategies as st

import surepick as sp
from surepick.assumptions import (
    AllOf,
    Effects,
    InRange,
    Linear,
    Near,
    NoStructure,
    Scatter,
    Smooth,
    SumOf,
    parse_assumption,
)
from surepick.errors import InvalidInput

sizes = st.floats(1e-12, 1e12)
norms = st.none() | sizes
lengths = st.floats(1e-3, 1e3).map(lambda length: sp.GaussianKernel(0.5 / length**2))
balls = st.builds(Linear, norms, st.booleans()) | st.builds(Smooth, st.none() | lengths, norms, st.booleans())
plain = st.just(NoStructure()) | balls | st.tuples(sizes, sizes).map(lambda ends: InRange(-ends[0], ends[1]))
near = st.builds(Near, plain, sizes)
added = near | plain | st.builds(lambda one, size: SumOf((one, Effects("round", size))), near | plain, sizes)
joined = st.lists(added | st.builds(Scatter, sizes), min_size=2, max_size=3).map(lambda parts: AllOf(tuple(parts)))


@given(added | joined)
def test_a_text_gives_an_equal_assumption(assumption):
    assert parse_assumption(str(assumption)) == assumption


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("nothing", NoStructure()),
        ("linear", Linear()),
        ("linear:norm=10", Linear(10.0)),
        ("linear:level=no", Linear(level=False)),
        ("smooth:length=0.5,norm=3", Smooth(sp.GaussianKernel(2.0), 3.0)),
        ("smooth:kernel=matern:2.5:0.7", Smooth(sp.embeddings.MaternKernel(2.5, 0.7))),
        ("linear + off by 0.02", Near(Linear(), 0.02)),
        ("linear  +  off by .02 and scatter<=0.6", AllOf((Near(Linear(), 0.02), Scatter(0.6)))),
        ("in -1..1e3", InRange(-1.0, 1000.0)),
        ("in 0...5", InRange(0.0, 0.5)),
        ("linear + effects of round up to 0.1", SumOf((Linear(), Effects("round", 0.1)))),
    ],
)
def test_what_a_text_means(text, meant):
    assert parse_assumption(text) == meant
    assert parse_assumption(meant) is meant


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("lineer", "Did you mean 'linear'"),
        ("off by 0.1", "write linear \\+ off by 0.1"),
        ("linear:nrom=1", "linear has no 'nrom'.*Did you mean 'norm'"),
        ("linear:norm=ten", "'ten' in .* is no number"),
        ("linear:norm=-1", "norm is -1"),
        ("linear:level=maybe", "level=yes or level=no"),
        ("smooth:length=0", "above 0"),
        ("smooth:length=1,kernel=gaussian:1", "leave out one"),
        ("smooth:kernel=gauss", "kernel .* is not understood"),
        ("in 3..1", "the smaller first"),
        ("scatter<=0", "most is 0"),
        ("scatter<=1 + off by 2", "functions"),
        ("", "is not understood"),
    ],
)
def test_a_text_that_means_nothing_is_refused_in_a_sentence(text, words):
    with pytest.raises(InvalidInput, match=words):
        parse_assumption(text)
