"""A root of all rows: each row has a path to it, and no other row has."""

import hashlib
from itertools import pairwise

import numpy as np
import pytest
from block_functions import written
from budgets import budget
from hypothesis import HealthCheck, given, settings, strategies as st

from surepick.chunks.merkle import LEAF_ROWS, Path, leaves_of
from surepick.chunks.moments import first_look
from surepick.chunks.passes import Passes
from surepick.chunks.sources import ArraySource, RowBlocks
from surepick.errors import InvalidInput


def sourced(sizes, dtype=np.float32):
    features = np.random.default_rng(7).standard_normal((sum(sizes), 2)).astype(dtype)
    edges = np.cumsum([0, *sizes])
    parts = [features[a:b] for a, b in pairwise(edges)]
    return features, RowBlocks([ArraySource(part) for part in parts], block_entries=128)


def tree_of(rows):
    return first_look(Passes(rows))[1]


def by_the_book(leaves):
    """The tree of RFC 6962, from its definition."""
    if len(leaves) == 1:
        return leaves[0]
    half = 1
    while 2 * half < len(leaves):
        half *= 2
    return hashlib.sha256(b"\1" + by_the_book(leaves[:half]) + by_the_book(leaves[half:])).digest()


@pytest.mark.parametrize("number", [1, 2, 3, 5, 8, 13, 31])
def test_the_root_is_that_of_the_definition(number):
    features, rows = sourced([LEAF_ROWS * number - 3])
    digests = leaves_of(features, 0)
    top = by_the_book([digests[top : top + 32] for top in range(0, len(digests), 32)])
    sizes = b"".join(size.to_bytes(8, "little") for size in (2, LEAF_ROWS * number - 3))
    assert tree_of(rows).root == hashlib.sha256(b"\2" + sizes + top).hexdigest()


@settings(max_examples=budget(40), suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.integers(1, 150), min_size=1, max_size=4), st.sampled_from([np.float32, np.float64]), st.data())
def test_every_row_has_a_path(sizes, dtype, data):
    features, rows = sourced(sizes, dtype)
    tree, row = tree_of(rows), data.draw(st.integers(0, sum(sizes) - 1))
    path = Path.of(tree.path(row).spec())
    assert np.array_equal(path.features(tree.root, tree.sizes, 2), features[row])


def test_the_root_does_not_depend_on_the_size_of_blocks(tmp_path):
    features, _ = sourced([500])
    small = written(tmp_path, features, [200, 300])
    assert tree_of(small).root == tree_of(RowBlocks(small.sources)).root


@pytest.mark.parametrize(
    "what", ["a number", "the row", "a neighbour", "one less", "one more", "type", "root", "sizes"]
)
def test_what_is_altered_is_refused(what):
    _, rows = sourced([300, 77])
    tree = tree_of(rows)
    path, root, sizes = tree.path(40), tree.root, tree.sizes
    spec = path.spec()
    if what == "a number":
        content = bytearray(path.rows)
        content[3] ^= 1
        path = Path(path.row, bytes(content), path.dtype, path.beside)
    elif what == "the row":
        path = Path.of({**spec, "row": 40 + LEAF_ROWS})
    elif what == "a neighbour":
        path = Path.of({**spec, "beside": ["00" * 32, *path.beside[1:]]})
    elif what == "one less":
        path = Path.of({**spec, "beside": path.beside[:-1]})
    elif what == "one more":
        path = Path.of({**spec, "beside": [*path.beside, "00" * 32]})
    elif what == "type":
        path = Path.of({**spec, "dtype": "<f8"})
    elif what == "root":
        root = "0" * 64
    else:
        sizes = (301, 76)
    with pytest.raises(InvalidInput, match="is not shown to be one of the list"):
        path.features(root, sizes, 2)


@pytest.mark.parametrize("spec", [{}, {"row": "x", "rows": "", "dtype": "<f4", "beside": []}, {"row": 1, "rows": "?"}])
def test_what_is_no_path_is_refused(spec):
    with pytest.raises(InvalidInput, match="a path of a row cannot be read"):
        Path.of(spec)


def test_one_leaf_is_its_own_root():
    features, rows = sourced([5])
    tree = tree_of(rows)
    path = tree.path(4)
    assert path.beside == ()
    assert np.array_equal(path.features(tree.root, (5,), 2), features[4])
