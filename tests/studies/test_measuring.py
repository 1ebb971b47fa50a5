"""What `find_best` takes for candidates and for the function that measures, and what it gives back."""

import asyncio
import functools
from dataclasses import dataclass

import numpy as np
import pandas as pd
import polars as pl
import pytest
from budgets import budget
from hypothesis import given, settings, strategies as st
from refusals import refused
from together import of_each

import surepick as sp

ASKED = {"epsilon": 0.5, "noise": "subgaussian:0.1", "progress": False}


def zeros(ids):
    return np.zeros(len(ids))


def best_of(candidates, good, **more):
    """What comes back where the good one is better; every other object that `measure` gets must be a candidate."""
    kept = list(candidates)

    def measure(ids):
        assert type(ids) is list
        assert all(any(one is each for each in kept) for one in ids)
        return [float(one is good) for one in ids]

    return sp.find_best(kept, measure, **(ASKED | more))


@dataclass(frozen=True)
class Model:
    name: str
    size: int


def one(x):
    return x


def two(x):
    return x


OBJECTS = {
    "whole numbers": [1, 2, 3],
    "decimals": [0.5, 1.5, 2.0],
    "tuples": [(1, 0.1), (1, 0.2)],
    "dicts": [{"lr": 0.1}, {"lr": 0.2}],
    "records": [Model("a", 1), Model("b", 1)],
    "functions": [one, two],
    "classes": [int, float],
    "truth values": [True, False],
    "dates": [pd.Timestamp("2020-01-01"), pd.Timestamp("2020-01-02")],
    "texts": ["a", "b"],
    "a mixture": [1, "a", (2, 3), None.__class__],
}


@of_each("candidates", OBJECTS.values(), ids=OBJECTS.keys())
def test_objects_go_in_and_come_out(candidates):
    for good in candidates:
        found = best_of(candidates, good)
        assert found.best_arm is good
        assert found.certificate.best_arm in found.study.ids
        assert all(isinstance(name, str) for name in found.study.ids)


hashables = st.one_of(st.integers(), st.floats(allow_nan=False), st.tuples(st.integers(), st.text(max_size=3)))


@settings(max_examples=budget(50), deadline=None)
@given(st.lists(hashables, min_size=2, max_size=5, unique_by=lambda one: str(one).removesuffix(".0")), st.data())
def test_any_hashable_comes_back(candidates, data):
    try:
        sp.Arms(ids=candidates)
    except sp.InvalidInput:
        return  # two look alike
    good = data.draw(st.sampled_from(candidates))
    assert best_of(candidates, good).best_arm is good


def test_the_literal_example():
    table = {1: 1.0, 2: 2.0}
    for arms in (
        [1, 2],
        np.array([1, 2]),
        range(1, 3),
        sp.Arms(ids=[1, 2]),
        sp.Arms([[0.1], [0.2]], [1, 2]),
        pl.Series([1, 2]),
    ):
        assert sp.find_best(arms, lambda ids: [table[i] for i in ids], **ASKED).best_arm == 2


def test_a_study_that_goes_on_gives_objects_too():
    found = best_of([1, 2], 2, max_pulls=0)
    assert found.ended_by == "pulls"
    again = found.study.run(lambda ids: [float(i == 2) for i in ids], progress=False)
    assert again.best_arm == 2


def test_the_test_items_are_given_as_they_were():
    seen = set()

    def measure(ids, items):
        seen.update(items)
        return [float(i == 2) for i in ids]

    items = [(number, "q") for number in range(40)]
    assert sp.find_best([1, 2], measure, **(ASKED | {"noise": "bernoulli", "items": items})).best_arm == 2
    assert seen <= {*items}
    assert seen


def test_a_sample_of_a_long_list_gives_objects():
    found = best_of(range(200), 7, question="one-of", share=0.2, noise="bernoulli")
    assert found.best_arm in range(200)


def test_two_objects_with_one_text_are_refused():
    refused(lambda: best_of([lambda: 1, lambda: 2], None), "same", "name")
    refused(lambda: best_of([1, "1"], 1), "same")

    class Same:
        def __str__(self):
            return "the same"

    refused(lambda: best_of([Same(), Same()], None), "'the same'")
    refused(lambda: best_of([object(), object()], None), "no text of its own")


MATRIX = np.array([[0.1, 1.0], [0.2, 0.0]])


@of_each(
    ("candidates", "words"),
    [
        (MATRIX, "sp.Arms(X, ids="),
        (MATRIX.tolist(), "sp.Arms(X, ids="),
        (list(MATRIX), "sp.Arms(X, ids="),
        (np.zeros((2, 2, 2)), "sp.Arms(X, ids="),
        ("abc", "['abc']"),
        (b"abc", "give a list"),
        ({"a", "b"}, "no order"),
        ({"a": 1.0, "b": 2.0}, "list(x)"),
        ({"a": [1.0], "b": [1.0, 2.0]}, "list(x)"),
        ({"a": len, "b": max}, "list(x)"),
        ({"id": ["a", "b"], "x": [1.0, 2.0]}, "data frame"),
        ({}, "list(x)"),
        (np.array(1.0), "shape ()"),
        (np.ma.array([1, 2], mask=[0, 1]), "masked"),
        (5, "5"),
        (None, "None"),
        (pd.Series({"a": 0.1, "b": 0.2}), "list(x.index)"),
    ],
)
def test_what_is_no_list_of_candidates_is_refused(candidates, words):
    refused(lambda: sp.find_best(candidates, zeros, **ASKED), words)


def test_a_mapping_of_vectors_is_ids_and_features():
    found = sp.find_best({"a": [0.1, 2.0], "b": [0.2, 3.0]}, lambda ids: [float(i == "b") for i in ids], **ASKED)
    assert found.best_arm == "b"
    assert found.study.arms == sp.Arms([[0.1, 2.0], [0.2, 3.0]], ["a", "b"])
    found = sp.find_best(
        {1: np.array([0.1]), 2: (0.2,)}, lambda ids: [float(i == 2) for i in ids], norm_bound=10.0, **ASKED
    )
    assert found.best_arm == 2


# the function that measures


async def waits(ids):
    return zeros(ids)


async def yields(ids):
    yield zeros(ids)


class Waits:
    async def __call__(self, ids):
        return zeros(ids)


@of_each("measure", [waits, Waits(), functools.partial(waits), Waits().__call__])
def test_a_coroutine_function_is_awaited(measure):
    assert sp.find_best(["a", "b"], measure, **ASKED).verdict == "certified"


def test_an_asynchronous_generator_is_recognised_before_anything_is_asked():
    study = sp.Study(
        sp.make_policy("certified-independent", sp.Arms(ids=["a", "b"]), delta=0.1, epsilon=1, noise="bernoulli")
    )
    refused(lambda: study.run(yields), "asynchronous generator")
    assert study.missing.sum() == 0


def test_a_coroutine_that_comes_back_is_refused():
    def hides(ids):
        return waits(ids)

    refused(lambda: sp.find_best(["a", "b"], hides, **ASKED), "coroutine")
    found = sp.find_best(["a", "b"], lambda ids: asyncio.run(waits(ids)), **ASKED)
    assert found.verdict == "certified"


TABLE = {"a": 1.0, "b": 2.0}


@of_each(
    ("measure", "cause"),
    [
        (lambda i: TABLE[i], TypeError),
        (lambda i: i * 2.0, TypeError),
        (lambda i: i / 2, TypeError),
        (float, TypeError),
        (lambda i: i.upper(), AttributeError),
        (lambda i: [1.0, 2.0][i], TypeError),
        (lambda i: i > 3, TypeError),
        (lambda i: TABLE[str(i)], KeyError),
        (lambda i: i + "x", TypeError),
    ],
)
def test_a_function_of_one_id_is_recognised_and_its_error_is_the_cause(measure, cause):
    with pytest.raises(sp.InvalidInput, match=r"list of ids.*\[measure\(i\) for i in ids\]") as caught:
        sp.find_best(["a", "b"], measure, **ASKED)
    assert isinstance(caught.value.__cause__, cause)


@of_each("error", [RuntimeError("broken"), ValueError("x"), KeyError("gone"), OSError(5, "no"), TypeError("no int")])
def test_other_errors_of_the_function_pass(error):
    def measure(ids):
        raise error

    with pytest.raises(type(error)) as caught:
        sp.find_best(["a", "b"], measure, **ASKED)
    assert caught.value is error


@of_each(
    ("measure", "words"),
    [
        (lambda ids: None, "return"),
        (lambda ids: 1.0, "[measure(i) for i in ids]"),
        (lambda ids: np.float64(1.0), "[measure(i) for i in ids]"),
        (lambda ids: dict.fromkeys(ids, 1.0), "[rewards[i] for i in ids]"),
        (lambda ids: {1.0}, "set"),
        (lambda ids: [1.0], "shape (1,)"),
        (lambda ids: [1.0] * (len(ids) + 1), "one reward for each id"),
        (lambda ids: [[1.0]] * len(ids), "one reward for each id"),
        (lambda ids: (1.0 for _ in range(10**9)), "one reward for each id"),
        (lambda ids: iter(()), "one reward for each id"),
        (lambda ids: pd.DataFrame({"y": zeros(ids)}), "one reward for each id"),
        (lambda ids: pd.Series(zeros(ids), index=ids[::-1]), "another order"),
        (lambda ids: ["1"] * len(ids), "texts"),
        (lambda ids: np.ma.array(zeros(ids), mask=True), "masked"),
        (lambda ids: [1j] * len(ids), "complex"),
        (5, "no function"),
        (None, "no function"),
        ([1.0, 2.0], "no function"),
    ],
)
def test_what_the_function_may_not_return(measure, words):
    refused(lambda: sp.find_best(["a", "b"], measure, **ASKED), words)


@of_each(
    "form",
    [
        list,
        tuple,
        np.array,
        pd.Series,
        pl.Series,
        iter,
        lambda values: (one for one in values),
        lambda v: map(float, v),
    ],
)
def test_what_the_function_may_return(form):
    assert sp.find_best(["a", "b"], lambda ids: form([TABLE[i] for i in ids]), **ASKED).best_arm == "b"


def test_lists_of_a_result_have_the_objects():
    found = best_of([1, 2, 3], 2, question="top", m=1)
    assert (found.lists.inside, {*found.lists.outside}) == ((2,), {1, 3})
    assert found.certificate.lists.inside == ("2",)
    assert best_of([1, 2], 2).lists is None
    arms = sp.Arms(ids=[1, 2, 3, 4], segments=["x", "x", "y", "y"])
    segmented = sp.find_best(arms, lambda ids: [float(one in (1, 4)) for one in ids], question="top", m=1, **ASKED)
    assert [(one.name, one.inside) for one in segmented.lists.segments] == [("x", (1,)), ("y", (4,))]


def test_a_study_in_a_database_gives_objects_in_the_process_that_made_it(sqlite_url):
    policy = sp.make_policy(
        "certified-independent", sp.Arms(ids=[1, 2]), delta=0.1, epsilon=0.5, noise="subgaussian:0.1"
    )
    study = sp.create_study(sqlite_url, "numbers", policy)
    assert study.run(lambda ids: [float(one == 2) for one in ids], progress=False).best_arm == 2
    assert sp.open_study(sqlite_url, "numbers").certificate().best_arm == "2"


def test_a_list_of_coroutines_is_refused():
    refused(lambda: sp.find_best(["a", "b"], lambda ids: [waits(one) for one in ids], **ASKED), "coroutine")


def test_candidates_of_a_tensor():
    torch = pytest.importorskip("torch")
    refused(lambda: sp.find_best(torch.zeros(2, 2), zeros, **ASKED), "sp.Arms(X, ids=")
    refused(lambda: sp.find_best([torch.zeros(2), torch.ones(2)], zeros, **ASKED), "sp.Arms(X, ids=")
    refused(lambda: sp.find_best([pd.Series([1.0, 2.0])], zeros, **ASKED), "sp.Arms(X, ids=")
    found = sp.find_best(torch.arange(2), lambda ids: torch.tensor([float(one == 1) for one in ids]), **ASKED)
    assert (found.best_arm, found.study.ids) == (1, ("0", "1"))
