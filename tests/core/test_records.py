"""Records: frozen, copied, compared by value, and carried exactly by the one JSON codec."""

import copy
import dataclasses
import json
import pickle
from dataclasses import KW_ONLY, FrozenInstanceError, asdict, dataclass, fields, replace
from inspect import signature

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp
from together import of_each

import surepick as sp
from surepick.core import arms as arms_module
from surepick.core.plans import Allocation, IndependentArms, RoundRecord
from surepick.core.records import FloatArray, IntArray, from_json, record, to_json
from surepick.policies.paper.arm_elimination import EliminationState
from surepick.studies.ledger import Batch
from surepick_bench.policies.means import MeansState

PLAN = sp.Plan(
    3,
    [1, 0, 2],
    look=2,
    looks=4,
    allocation=[3, 0, 6],
    dim=2,
    design_value=7.25,
    lower_bound=7.1,
    misspecification=0.1 + 0.2,
)
SEEN = sp.Observations([1, 0, 2], [0.1, 0.0, 1e300], [0.01, 0.0, 5e-324])
ROW = RoundRecord(1, 1, 8, 2, 4.0, None, 3.9, 0.0, 10, 12, [0, 2], 2, 0.25)
BARE_ROW = RoundRecord(1, 1, 1, 0, None, None, None, 0.0, 0, 0, [1], 1, None)
ANSWER = sp.Certificate("x", 3, 0.1, 0.05, 12, "certified", "because", ("one", "two"), 0.07, True, (ROW, BARE_ROW))
RECORDS = [
    PLAN,
    sp.Plan(1, [4]),
    SEEN,
    sp.Observations([1], [0.5]),
    sp.Observations.nothing(3),
    ROW,
    BARE_ROW,
    ANSWER,
    sp.Certificate("x", 0, 0.1, 0.05, 0, "not-yet", "", ()),
    sp.Design([0.25, 0.75], 4.0, 3.99, 2),
    Allocation([1, 3], 4, 4.5),
    sp.Embedding([[1.0, 2.0]], 0.5),
    IndependentArms(4),
    sp.Arms([[1.0, -0.0], [2.0, 1e-310]], ["a", "b"], columns=["x", "y"], preparation=("standardize",)),
    sp.Arms(ids=["a", "b"]),
    sp.Arms(ids=["a", "b"], costs=[1.0, 0.1]),
    sp.Plan(2, [1, 2], predicted_pulls=3.0, lower_bound=0.5, candidate=1, predicted_cost=0.1 + 0.2),
    EliminationState(2, [0, 2], PLAN, SEEN, 9, 2, 0.3, ""),
    EliminationState(1, [0], None, SEEN, 0, 0, None, "single"),
    MeansState(4, [1], SEEN, 1, None, ""),
]


@of_each("value", RECORDS, ids=lambda value: type(value).__name__)
def test_the_codec_carries_every_record_exactly(value):
    text = to_json(value)
    back = from_json(type(value), text)
    assert back == value
    assert to_json(back) == text
    for field in fields(value):
        array = getattr(value, field.name)
        if isinstance(array, np.ndarray):
            other = getattr(back, field.name)
            assert (other.dtype, other.shape) == (array.dtype, array.shape)
            assert other.tobytes() == array.tobytes()  # the sign of zero and denormals too


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=5), st.booleans())
def test_any_finite_float_survives(numbers, with_squares):
    seen = sp.Observations(np.ones(len(numbers)), numbers, numbers if with_squares else None)
    back = from_json(sp.Observations, to_json(seen))
    assert back.sums.tobytes() == seen.sums.tobytes()
    assert (back.squares is None) is not with_squares


def test_the_text_is_one_line_with_the_fields_in_order():
    text = to_json(PLAN)
    assert "\n" not in text
    assert list(json.loads(text)) == [field.name for field in fields(sp.Plan)]
    assert to_json({"b": np.float64(1.5), "a": (np.int64(2), None, True)}) == '{"b":1.5,"a":[2,null,true]}'


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_numbers_that_json_cannot_carry_are_refused(number):
    with pytest.raises(sp.InvalidInput, match="Observations holds a number"):
        to_json(sp.Observations([1], [number]))
    with pytest.raises(sp.InvalidInput, match="Design holds a number"):
        to_json(sp.Design([1.0], number, 0.0, 1))


@pytest.mark.parametrize("change", ["missing", "extra", "renamed", "nested"])
def test_wrong_fields_are_a_storage_error(change):
    data = json.loads(to_json(EliminationState(2, [0, 2], PLAN, SEEN, 9, 2, 0.3, "")))
    if change == "missing":
        del data["leader"]
    elif change == "extra":
        data["colour"] = 1
    elif change == "renamed":
        data["chief"] = data.pop("leader")
    else:
        del data["opened"]["counts"]
    with pytest.raises(sp.StorageError, match=r"has fields .*expected"):
        from_json(EliminationState, json.dumps(data))


@pytest.mark.parametrize("text", ["", "{", '{"counts":[1]', "[1]", '"plan"'])
def test_text_that_is_not_a_record_is_a_storage_error(text):
    with pytest.raises(sp.StorageError):
        from_json(sp.Plan, text)


def test_arrays_inside_are_read_only_copies():
    counts, sums = np.array([1, 2]), np.array([0.5, 1.0])
    seen = sp.Observations(counts, sums)
    counts[0], sums[0] = 7, 7.0
    assert seen == sp.Observations([1, 2], [0.5, 1.0])
    with pytest.raises(ValueError, match="read-only"):
        seen.sums[0] = 1.0
    with pytest.raises(FrozenInstanceError):
        seen.sums = sums


def frozen(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


def test_an_array_that_nobody_can_write_to_is_shared():
    own = frozen(np.ones((3, 2)))
    for array in (own, own[:, :1], own[1:][:, ::-1], np.frombuffer(bytes(16))[None]):
        assert np.shares_memory(sp.Embedding(array, 0.0).features, array)
    assert sp.Embedding(own, 0.0).features is own


@pytest.mark.parametrize(
    "array",
    [
        np.ones((3, 2)),
        frozen(np.ones((3, 2))[:]),
        frozen(np.frombuffer(bytearray(48)).reshape(3, 2)),
        frozen(np.ones((3, 2), np.float32)),
    ],
    ids=["writeable", "a view of what is writeable", "over memory that is", "of another type"],
)
def test_an_array_that_somebody_can_write_to_is_copied(array):
    embedded = sp.Embedding(array, 0.0)
    assert not np.shares_memory(embedded.features, array)
    assert embedded.features.dtype == np.float64
    assert not embedded.features.flags.writeable


@pytest.fixture
def file_of_arms(tmp_path):
    np.save(tmp_path / "arms.npy", np.arange(12, dtype=np.float32).reshape(6, 2))
    return tmp_path / "arms.npy"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_arms_that_nobody_can_write_to_stay_where_they_are(file_of_arms, dtype):
    np.save(file_of_arms, np.arange(12, dtype=dtype).reshape(6, 2))
    for array in (
        np.load(file_of_arms, mmap_mode="r"),
        np.memmap(file_of_arms, dtype, mode="r", offset=128, shape=(6, 2)),
        frozen(np.arange(12, dtype=dtype).reshape(6, 2).copy()),
    ):
        arms = sp.Arms(array)
        assert np.shares_memory(arms.features, array)
        assert arms.features.dtype == dtype
        assert not arms.features.flags.writeable
        assert arms == sp.Arms(np.arange(12.0).reshape(6, 2))
        assert np.shares_memory(sp.Arms(arms.features).features, array)


@pytest.mark.parametrize("mode", ["r+", "c"])
def test_arms_in_a_file_that_can_be_written_are_copied(file_of_arms, mode):
    there = np.load(file_of_arms, mmap_mode=mode)
    for array in (there, frozen(there[:])):
        arms = sp.Arms(array)
        assert not np.shares_memory(arms.features, array)
        assert arms.features.dtype == np.float64


def test_arms_of_other_numbers_in_a_file_become_doubles(file_of_arms):
    for numbers in (np.arange(12).reshape(6, 2), np.arange(12.0).reshape(6, 2).astype(">f8")):
        np.save(file_of_arms, numbers)
        assert sp.Arms(np.load(file_of_arms, mmap_mode="r")).features.dtype == np.dtype("=f8")


def test_arms_in_a_file_that_are_not_finite_are_named(file_of_arms, monkeypatch):
    monkeypatch.setattr(arms_module, "CHECKED_ENTRIES", 4)
    numbers = np.ones((7, 2), np.float32)
    numbers[1, 0], numbers[6, 1] = np.nan, -np.inf
    np.save(file_of_arms, numbers)
    with pytest.raises(sp.InvalidInput, match="2 of 7 arms have NaN or infinite features: 'b', 'g'"):
        sp.Arms(np.load(file_of_arms, mmap_mode="r"), list("abcdefg"))
    with pytest.raises(sp.InvalidInput, match="2 of 7 arms have NaN or infinite features: '1', '6'"):
        sp.LinearEmbedding(np.load(file_of_arms, mmap_mode="r"), norm_bound=1.0)


def test_the_features_of_arms_are_a_read_only_copy():
    features = np.ones((2, 2))
    arms = sp.Arms(features)
    features[0, 0] = 5.0
    assert arms.features[0, 0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        arms.features[0, 0] = 1.0


def test_equality_is_by_value_and_by_type():
    assert sp.Observations([1, 2], [0.0, 1.0]) == sp.Observations(np.array([1, 2]), np.array([0.0, 1.0]))
    assert sp.Observations([1, 2], [0.0, 1.0]) != sp.Observations([1, 2], [0.0, 1.5])
    assert sp.Observations([1], [0.0]) != sp.Observations([1], [0.0], [0.0])
    assert sp.Observations([1], [0.0]) != sp.Observations([1, 0], [0.0, 0.0])
    assert sp.Plan(1, [1]) != sp.Observations([1], [1.0])
    assert sp.Plan(1, [1]) != "plan"


def test_means_and_sums_of_observations():
    seen = sp.Observations([2, 0, 4], [1.0, 0.0, -2.0], [1.0, 0.0, 1.5])
    assert seen.means.tolist() == [0.5, 0.0, -0.5]
    assert seen.total == 6
    both = seen.plus(sp.Observations([0, 1, 1], [0.0, 3.0, 1.0], [0.0, 9.0, 1.0]))
    assert both == sp.Observations([2, 1, 5], [1.0, 3.0, -1.0], [1.0, 9.0, 2.5])
    assert seen.plus(sp.Observations([1, 0, 0], [1.0, 0.0, 0.0])).squares is None
    assert seen.plus(sp.Observations.nothing(3)) == seen


def test_a_batch_names_the_arms_to_pull():
    batch = Batch.of(PLAN, ("a", "b,\n", "ü"), 7)
    assert batch.table() == [("a", 1), ("ü", 2)]
    assert batch.pulls() == ["a", "ü", "ü"]
    assert (batch.total, batch.round, batch.design_value, batch.number) == (3, 3, 7.25, 7)
    assert Batch.of(PLAN, ("a", "b", "c"), 7, counts=np.array([0, 0, 1])).table() == [("c", 1)]


@dataclass(frozen=True)
class Carrier:
    whole: IntArray | None
    real: FloatArray | None = None


numbers = st.floats(allow_nan=False, allow_infinity=False)
columns = st.one_of(
    hnp.arrays(np.float64, st.integers(0, 90), elements=st.one_of(st.sampled_from([0.0, -0.0, 2.5]), numbers)),
    hnp.arrays(np.int64, st.integers(0, 90), elements=st.one_of(st.just(3), st.integers(-(2**63), 2**63 - 1))),
    st.sets(st.integers(0, 200)).map(lambda arms: np.array(sorted(arms), np.int64)),
)


@given(columns)
def test_the_sparse_form_carries_every_array_to_the_bit(column):
    row = Carrier(column) if column.dtype == np.int64 else Carrier(None, column)
    back = from_json(Carrier, to_json(row, sparse=True))
    kept = back.whole if column.dtype == np.int64 else back.real
    assert kept.dtype == column.dtype
    assert kept.tobytes() == column.tobytes()


def test_the_sparse_form_carries_numbers_whose_differences_wrap():
    largest = 2**63 - 1
    column = np.array([*range(largest - 20, largest), largest, -(2**63), *range(-(2**63) + 1, -(2**63) + 20)])
    assert from_json(Carrier, to_json(Carrier(column), sparse=True)).whole.tolist() == column.tolist()


def test_the_sparse_form_holds_the_arms_that_differ_and_nothing_else():
    sums = np.zeros(100_000)
    sums[[3, 70_000]] = 0.5
    text = to_json(Carrier(np.delete(np.arange(100_000), 5), sums), sparse=True)
    assert json.loads(text) == {
        "whole": {"runs": [[0, 5], [6, 100_000]]},
        "real": {"size": 100_000, "usual": 0.0, "at": [3, 70_000], "others": [0.5, 0.5]},
    }


def test_the_gap_of_a_design():
    assert sp.Design([1.0], 4.0, 3.2, 1).gap == pytest.approx(0.25)
    assert sp.Design([1.0], 0.0, 0.0, 1).gap == 0.0


def test_arms_without_features_have_ids():
    arms = sp.Arms(ids=["a", 7])
    assert (arms.num_arms, arms.features.shape, arms.ids) == (2, (2, 0), ("a", "7"))
    assert sp.Arms([[1], [2], [3]]).ids == ("0", "1", "2")
    assert sp.Arms([[1], [2]]).features.dtype == np.float64


@pytest.mark.parametrize(
    ("features", "ids", "message"),
    [
        (None, None, "features, or ids"),
        (np.empty((0, 3)), None, "K = 0"),
        (None, [], "K = 0"),
        ([1.0, 2.0], None, r"shape \(2,\)"),
        (np.zeros((2, 2, 2)), None, r"shape \(2, 2, 2\)"),
        (3.0, None, r"shape \(\)"),
        ([["red"]], None, "not a numeric"),
        ([[1.0], [2.0, 3.0]], None, "not a numeric"),
        ([[1.0], [2.0]], ["a"], "1 ids for 2 arms"),
        ([[1.0], [2.0], [3.0]], ["a", "b", "a"], "repeated .the first is 'a'"),
        ([[1.0], [2.0]], [1, "1"], "repeated"),
        ([[1.0], [np.nan], [np.inf]], ["a", "bee", "sea"], "2 of 3 arms .*: 'bee', 'sea'"),
        (np.full((9, 1), np.nan), None, "9 of 9 arms .* and 4 more"),
    ],
)
def test_arms_that_mean_nothing_are_refused(features, ids, message):
    with pytest.raises(sp.InvalidInput, match=message):
        sp.Arms(features, ids)


def test_what_measurements_cost_is_a_read_only_copy():
    given = np.array([1, 20])
    arms = sp.Arms(ids=["a", "b"], costs=given)
    given[0] = 5
    assert (arms.costs.tolist(), arms.costs.dtype, arms.costs.flags.writeable) == ([1.0, 20.0], np.float64, False)
    assert sp.Arms(ids=["a", "b"]).costs is None
    assert arms != sp.Arms(ids=["a", "b"])
    assert arms != sp.Arms(ids=["a", "b"], costs=[1.0, 21.0])
    assert arms == sp.Arms(ids=["a", "b"], costs=[1.0, 20.0])


@pytest.mark.parametrize(
    ("costs", "message"),
    [
        (["dear", "cheap", "free"], "costs are not numbers"),
        (["1", "2", "3"], "costs are not numbers"),
        ([True, False, True], "costs are not numbers"),
        ([1.0, 2.0j, 1.0], "costs are not numbers"),
        ([1.0, 2.0], r"shape \(2,\); they must be \(3,\)"),
        (2.0, r"shape \(\)"),
        ([1.0, 0.0, -1.0], "2 of 3 arms .* not positive and finite: 'bee', 'sea'"),
        ([np.nan, 1.0, np.inf], "2 of 3 arms .*: 'a', 'sea'"),
        ([1.0, 2e9, 2.0], "from 1 to 2e.09 .'a', 'bee'."),
        ([1e-101, 1e-100, 1e-100], "must lie between 1e-100 and 1e.100"),
    ],
)
def test_costs_that_mean_nothing_are_refused(costs, message):
    with pytest.raises(sp.InvalidInput, match=message):
        sp.Arms(ids=["a", "bee", "sea"], costs=costs)


def test_independent_arms_are_the_identity():
    arms = IndependentArms(3)
    assert (arms.dim, arms.misspecification) == (3, 0.0)
    assert np.array_equal(arms.features, np.eye(3))


def test_a_record_is_what_a_frozen_dataclass_would_be():
    def of(decorator):
        class Point:
            x: int
            y: list = dataclasses.field(default_factory=list)
            hidden: int = dataclasses.field(default=3, init=False, repr=False)
            _: KW_ONLY
            scale: float = 2.0

        Point.__annotations__["_"] = KW_ONLY
        return decorator(Point)

    ours, plain = of(record), of(dataclass(frozen=True, slots=True))
    taken = [[(each.name, each.kind) for each in signature(kind).parameters.values()] for kind in (ours, plain)]
    assert taken[0] == taken[1]
    one, other = ours(1, scale=4.0), plain(1, scale=4.0)
    assert asdict(one) == asdict(other) == {"x": 1, "y": [], "hidden": 3, "scale": 4.0}
    assert ours(1).y is not ours(1).y
    assert repr(one) == repr(other)
    assert copy.copy(one) == one != ours(2, scale=4.0)
    assert replace(one, x=2).scale == 4.0
    for change in (lambda made: setattr(made, "x", 2), lambda made: delattr(made, "x")):
        with pytest.raises(FrozenInstanceError) as ours_said:
            change(one)
        with pytest.raises(FrozenInstanceError) as plain_said:
            change(other)
        assert str(ours_said.value) == str(plain_said.value)
    with pytest.raises(TypeError, match=r"Point.__init__\(\) missing 1 required positional argument: 'x'"):
        ours()
    assert pickle.loads(pickle.dumps(PLAN)) == PLAN
