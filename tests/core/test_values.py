"""Numbers and names that Python callers pass: taken as they were meant, or refused in a sentence, in every function."""

import copy
import pickle
import unicodedata
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st
from refusals import refused
from scipy.sparse import csr_array
from together import of_each

import surepick as sp
from surepick.core.values import listed, name_text, plain_number, real_numbers
from surepick.studies.logs.base import parse_duration

NO_NUMBERS = {
    "masked": np.ma.array([1.0, 999.0], mask=[0, 1]),
    "masked whole numbers": np.ma.array([1, 1], mask=[0, 1]),
    "a list with a masked one": [1.0, np.ma.masked],
    "complex": np.array([1.0, 2j]),
    "complex without a second part": np.array([1 + 0j, 2 + 0j]),
    "dates": np.array(["2020-01-01", "2020-01-02"], "datetime64[s]"),
    "durations": np.array([5, 6], "timedelta64[s]"),
    "a durations' column": pd.Series(pd.to_timedelta([1, 2], unit="s")),
    "a dates' column": pl.Series(["2020-01-01", "2020-01-02"]).str.to_date(),
    "records": np.array([(1.0, 2.0), (3.0, 4.0)], [("a", float), ("b", float)]),
    "texts": np.array(["1", "2"]),
    "a list with a text": [1.0, "2"],
    "bytes": np.array([b"1", b"2"]),
    "objects": np.array([1.0, "2"], object),
    "complex objects": np.array([1.0, 2j], object),
    "a mapping": {"a": 1.0, "b": 2.0},
    "a set": {1.0, 2.0},
    "a text": "12",
    "a sparse array": csr_array(np.eye(2)),
    "nothing": object(),
}
KINDS = pytest.mark.parametrize("odd", NO_NUMBERS.values(), ids=NO_NUMBERS.keys())
EVERY_FOURTH = pytest.mark.cases(60)  # of 240: five or so of each taker, and each kind with some of them


def open_study(**more):
    study = sp.Study(sp.make_policy("certified-independent", sp.Arms(ids=["a", "b"]), **(PROMISE | more)))
    study.ask()
    return study


PROMISE = {"epsilon": 0.1, "delta": 0.05, "noise": "subgaussian:1"}


@EVERY_FOURTH
@KINDS
@pytest.mark.parametrize(
    "take",
    [
        lambda odd: open_study().tell(["a", "b"], odd),
        lambda odd: open_study().tell_prior(["a", "b"], odd),
        lambda odd: open_study().tell_totals(["a", "b"], [1, 1], odd),
        lambda odd: open_study().tell_totals(["a", "b"], odd, [1.0, 1.0]),
        lambda odd: open_study().tell_totals(["a", "b"], [1, 1], [1.0, 1.0], odd),
        lambda odd: sp.Arms(ids=["a", "b"], costs=odd),
        lambda odd: sp.Arms([odd, odd]),
        sp.SubGaussian,
        lambda odd: sp.round_design(odd, 10),
        lambda odd: sp.solve_design(np.asanyarray(odd).reshape(-1, 1) if isinstance(odd, np.ndarray) else odd),
        lambda odd: sp.pilot_noise([3, 3], odd, [9.0, 9.0], failure=0.01),
        lambda odd: sp.find_best(["a", "b"], lambda ids: odd, epsilon=0.1, noise="subgaussian:1"),
    ],
    ids=[
        "tell",
        "prior",
        "sums",
        "pulls",
        "squares",
        "costs",
        "features",
        "sigma",
        "round",
        "solve",
        "pilot",
        "measure",
    ],
)
def test_what_holds_no_real_numbers_is_refused_by_whoever_takes_numbers(take, odd):
    refused(lambda: take(odd))


def test_nothing_that_is_masked_is_counted():
    study = open_study()
    refused(lambda: study.tell(["a", "b"], NO_NUMBERS["masked"]), "masked")
    assert study.missing.sum() == open_study().missing.sum()
    assert study.tell(["a", "b"], np.ma.array([1.0, 2.0], mask=False)).counted == 2


@of_each(
    "fine",
    [
        [1, 0],
        (1.0, 0),
        [True, False],
        np.array([True, False]),
        np.array([1, 0], object),
        [Decimal(1), Fraction(0)],
        [np.float32(1), np.int8(0)],
        [np.array(1.0), np.array(0)],
        pd.Series([1, 0], dtype="Int64"),
        pd.Series([True, False], dtype="boolean"),
        pl.Series([1.0, 0.0]),
        pa.array([1, 0]),
        range(1, -1, -1),
    ],
    ids=str,
)
def test_numbers_of_every_kind_are_taken(fine):
    assert real_numbers("x", fine).tolist() == [1.0, 0.0]
    study = open_study(noise="bernoulli")
    assert study.tell(["a", "b"], fine).counted == 2


def test_what_is_missing_is_no_number():
    for missing in (None, np.nan, pd.NA, pd.NaT, float("nan")):
        assert np.isnan(real_numbers("x", np.array([1.0, missing], object))[1])
        refused(lambda missing=missing: open_study().tell(["a"], [missing]), "not finite")


def test_a_column_in_another_order_than_the_ids_is_not_taken_by_position():
    shuffled = pd.Series({"b": 1.0, "a": 2.0})
    refused(lambda: open_study().tell(["a", "b"], shuffled), "another order", "x.loc[ids]")
    refused(lambda: sp.Arms(ids=["a", "b"], costs=shuffled), "another order")
    refused(lambda: sp.Arms(ids=["a", "b"], segments=shuffled.astype(str)), "another order")
    assert sp.Arms(ids=["a", "b"], costs=shuffled.loc[["a", "b"]]).costs.tolist() == [2.0, 1.0]
    assert sp.Arms(ids=["a", "b"], costs=pd.Series([3.0, 4.0])).costs.tolist() == [3.0, 4.0]


@of_each(
    "call",
    [
        lambda: sp.SubGaussian(True),
        lambda: sp.SubGaussian("1"),
        lambda: sp.SubGaussian(["1", "2"]),
        lambda: sp.SubGaussian([True, False]),
        lambda: sp.SubGaussian(1e-320),
        lambda: sp.SubGaussian(1e200),
        lambda: sp.Bounded(0, 1e308),
        lambda: sp.Bounded(-1e308, 0),
        lambda: sp.Bounded(0, 1e-320),
        lambda: sp.Bounded(False, True),
        lambda: sp.Bounded("0", 1),
        lambda: sp.Normal(True),
        lambda: sp.Normal(1e-320),
        lambda: sp.PilotGaussian(1.0, 1 - 1e-16, 3),
        lambda: parse_duration(True),
        lambda: parse_duration(np.bool_(True)),
        lambda: parse_duration(b"8h"),
        lambda: open_study().lease(duration=True),
        lambda: open_study().lease(True),
        lambda: open_study(delta=1 - 1e-16),
        lambda: open_study(delta=1e-320),
        lambda: open_study(delta=True),
        lambda: open_study(epsilon=True),
        lambda: open_study(epsilon="0.1"),
        lambda: open_study(epsilon=np.ma.masked),
        lambda: open_study(epsilon=np.array([0.1])),
        lambda: open_study(epsilon=0.1 + 0j),
        lambda: open_study(epsilon=pd.Series([0.1])),
    ],
)
def test_a_setting_without_a_meaning_is_refused(call):
    refused(call)


@of_each("value", [Decimal("0.1"), Fraction(1, 10), np.float32(0.1), np.array(0.1), 1, 2**53 + 1])
def test_a_setting_of_any_kind_of_number_is_taken(value):
    asked = open_study(epsilon=value, noise="subgaussian:0.5").policy.problem
    assert asked.epsilon == pytest.approx(float(value))
    assert plain_number(value) == pytest.approx(float(value))


@of_each(
    "odd",
    [np.array([0.1, 0.2]), pd.Series([0.1]), pd.DataFrame({"x": [1.0]}), pl.Series([0.1]), csr_array(np.eye(2)), pd.NA],
)
@of_each("option", ["gap_bound", "evidence", "question", "constraints", "blocks", "later", "largest_batch"])
def test_an_array_or_a_frame_as_an_option_is_refused_or_taken_as_a_list(option, odd):
    refused(lambda: open_study(**{option: odd}))


def test_an_array_of_ids_is_a_list_of_them():
    assert open_study(later=np.array(["b"])).policy.traits.later == open_study(later=["b"]).policy.traits.later


# ids

LOOK_ALIKE = {
    "a number and a decimal": [1, "1.0"],
    "space behind": ["A", "A "],
    "space before": ["A", "\tA"],
    "no-break space": ["A", "A\u00a0"],
    "composed in two ways": ["caf\u00e9", unicodedata.normalize("NFD", "caf\u00e9")],
    "width zero": ["A", "A\u200b"],
    "a byte order mark": ["A", "\ufeffA"],
    "a soft hyphen": ["co-op", "co\u00ad-op"],
}


@of_each("pair", LOOK_ALIKE.values(), ids=LOOK_ALIKE.keys())
def test_two_ids_that_look_alike_are_refused_and_both_are_named(pair):
    message = refused(lambda: sp.Arms(ids=[*pair, "z"]), "look alike")
    assert all(ascii(str(one)) in message for one in pair)
    refused(lambda: sp.find_best(pair, lambda ids: np.zeros(len(ids)), epsilon=0.1, noise="bernoulli"))


@given(st.text(min_size=1, max_size=8).filter(lambda text: text.strip() and not text.isspace()))
def test_a_text_and_the_same_with_something_unseen_are_never_two(text):
    for other in (f"{text} ", f"{text}\u200b", unicodedata.normalize("NFD", unicodedata.normalize("NFC", text))):
        if other != text:
            with pytest.raises(sp.InvalidInput):
                sp.Arms(ids=[text, other])


@of_each("empty", ["", " ", "\u200b", "\u00a0\t"])
def test_an_id_that_nobody_sees_is_refused(empty):
    refused(lambda: sp.Arms(ids=[empty, "b"]), "empty")


def test_numbers_are_one_id_in_every_spelling():
    refused(lambda: sp.Arms(ids=[1, 1.0]), "repeated")
    assert sp.Arms(ids=[1.0, np.float32(2), np.int64(3)]).ids == ("1", "2", "3")
    study = sp.Study(sp.make_policy("certified-independent", sp.Arms(ids=[1, 2]), **PROMISE))
    study.ask()
    assert study.tell([1.0, np.int64(2)], [0.1, 0.2]).counted == 2
    refused(lambda: study.tell(["1.0"], [0.1]), "'1'")
    refused(lambda: study.tell(["x"], [0.1]), "the first is 'x'.")


@of_each(
    "odd",
    [
        "abc",
        b"abc",
        {"a", "b"},
        frozenset("ab"),
        {"a": 1},
        5,
        None,
        np.array("a"),
        np.array(5),
        np.eye(2),
        np.ma.masked,
        np.ma.array(["a", "b"], mask=[0, 1]),
        np.array([(1, 2)], [("a", int), ("b", int)]),
        pd.DataFrame({"id": ["a", "b"]}),
        [b"a"],
        [[1.0, 2.0], [3.0, 4.0]],
        [np.array([1, 2])],
        [np.ma.masked],
        [pd.NA],
        [pd.NaT],
        [None],
        [np.datetime64("NaT", "s")],
        [object()],
        [frozenset("ab")],
        [lambda: 1, lambda: 2],
    ],
    ids=lambda odd: str(type(odd).__name__),
)
@of_each(
    "take",
    [
        lambda odd: sp.Arms(np.ones((2, 1)), odd) if odd is not None else sp.Arms(ids=odd),
        lambda odd: sp.Arms(ids=odd),
        lambda odd: open_study().tell(odd, [0.5]),
        lambda odd: open_study().fail(odd),
        lambda odd: sp.Items(odd if not isinstance(odd, int) else [odd, odd]),
        lambda odd: sp.find_best(odd, lambda ids: np.zeros(len(ids)), epsilon=0.1, noise="bernoulli"),
    ],
    ids=["features_ids", "ids", "tell", "fail", "items", "find_best"],
)
def test_what_is_no_list_of_names_is_refused_by_whoever_takes_names(take, odd):
    if take.__name__ and isinstance(odd, pd.DataFrame):
        return  # find_best reads it
    refused(lambda: take(odd))


def test_names_that_never_end_are_refused(monkeypatch):
    monkeypatch.setattr("surepick.core.values.MOST", 1000)
    from itertools import count

    refused(lambda: listed("ids", count()), "do not end")
    refused(lambda: listed("ids", range(10**12)), "do not end")


@of_each(
    ("value", "text"),
    [
        (7, "7"),
        (7.0, "7"),
        (7.5, "7.5"),
        (np.float32(0.1), "0.1"),
        (np.array(np.float32(0.1)), "0.1"),
        (np.array(3), "3"),
        (np.str_("a"), "a"),
        ((1, 0.5), "(1, 0.5)"),
        ({"lr": 0.1}, "{'lr': 0.1}"),
        (len, "len"),
        (Decimal("1.10"), "1.10"),
        (sp.Bernoulli, "Bernoulli"),
    ],
)
def test_the_text_of_a_name(value, text):
    assert name_text("an id", value) == text


def test_objects_stay_in_the_process_that_was_given_them():
    arms = sp.Arms(ids=[(1, 2), (3, 4)])
    assert arms.objects.of_text("(1, 2)") == (1, 2)
    for again in (pickle.loads(pickle.dumps(sp.Arms(ids=[lambda: 1, len])))), copy.deepcopy(arms):
        assert again.ids[1] in ("len", "(3, 4)")
    assert pickle.loads(pickle.dumps(arms)) == arms
    assert pickle.loads(pickle.dumps(arms)).objects.of_text("(1, 2)") == "(1, 2)"
    assert copy.deepcopy(arms).objects.of_text("(1, 2)") == (1, 2)
