"""A memo gives what was formed, forms it once, and holds no more than it must."""

import copy
import gc
import pickle
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from surepick.policies.sequential.engine import Memo


class Large:
    """Something that a weak reference can point to."""


def test_what_is_known_is_not_formed_again():
    memo, formed = Memo(), []
    for key in (1, 1, 2, 2, 1):
        memo.last("a", key, lambda key=key: formed.append(key) or key)
    assert formed == [1, 2, 1]
    for key in (1, 2, 1, 3, 2):
        memo.last("b", key, lambda key=key: formed.append(key) or key, most=2)
    assert formed[3:] == [1, 2, 3]


def test_of_one_two_are_never_held_at_a_time():
    memo = Memo()
    old = weakref.ref(memo.last("a", 1, Large))

    def form() -> Large:
        gc.collect()
        assert old() is None
        return Large()

    memo.last("a", 2, form)


def test_threads_that_share_it_get_what_belongs_to_their_keys():
    memo, wrong = Memo(), []

    def ask(seed: int) -> None:
        for key in np.random.default_rng(seed).integers(0, 4, 3000).tolist():
            if memo.last("a", key, lambda key=key: f"of {key}", most=2) != f"of {key}":
                wrong.append(key)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(ask, range(4)))  # an error in one of them is raised here
    assert wrong == []


def test_what_belongs_to_another_object_goes():
    memo, first, second = Memo(), Large(), Large()
    assert memo.of("a", first, 1, lambda: "one") == "one"
    assert memo.of("a", first, 2, lambda: "two") == "two"
    assert memo.known("a", first, 1) == (True, "one")
    assert memo.of("a", second, 1, lambda: "other") == "other"
    assert memo.known("a", first, 1) == (False, None)


def test_arrays_are_read_only_and_copies_are_empty():
    memo = Memo()
    array = memo.last("a", 1, lambda: np.zeros(2))
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1.0
    for other in (copy.deepcopy(memo), pickle.loads(pickle.dumps(memo))):
        assert other.last("a", 1, lambda: "anew") == "anew"
