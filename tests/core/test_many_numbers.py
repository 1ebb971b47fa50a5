"""The stored form of many floats: rows that are not zero, and numbers by their bytes."""

import json
from dataclasses import dataclass

import numpy as np
import pytest

from surepick.core.records import FloatArray, from_json, to_json
from surepick.errors import InvalidInput, StorageError


@dataclass(frozen=True)
class Rows:
    flows: FloatArray


def test_rows_of_zeros_cost_nothing_and_other_floats_the_bytes_of_their_numbers():
    rng = np.random.default_rng(4)
    flows = np.zeros((5_000, 20))
    assert len(to_json(Rows(flows), sparse=True)) < 100
    flows[[7, 4_000]] = rng.standard_normal((2, 20))
    flows[4_001, 3] = -0.0
    few = to_json(Rows(flows), sparse=True)
    full = rng.standard_normal((5_000, 20)) * 10.0 ** rng.integers(-300, 300, (5_000, 1))
    text = to_json(Rows(full), sparse=True)
    assert (len(few), len(text)) < (2_000, 10.7 * full.size)
    for matrix, stored in ((flows, few), (full, text), (full, to_json(Rows(full))), (np.asfortranarray(full), text)):
        back = from_json(Rows, stored).flows
        assert (back.shape, back.dtype) == (matrix.shape, np.float64)
        assert back.tobytes() == matrix.tobytes()
    assert json.loads(to_json(Rows(full[:100]), sparse=True)) == {"flows": full[:100].tolist()}
    column = full.ravel()[:9_000]
    assert from_json(Rows, to_json(Rows(column), sparse=True)).flows.tobytes() == column.tobytes()


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_no_form_carries_what_is_not_finite(wrong):
    full = np.ones((500, 20))
    full[3, 4] = wrong
    for sparse in (False, True):
        with pytest.raises(InvalidInput, match="Rows holds a number that JSON cannot carry"):
            to_json(Rows(full), sparse=sparse)


@pytest.mark.parametrize(
    "change", [('"packed":"', '"packed":"?'), ("[500,20]", "[500,21]"), ("[[0,500]]", "[[0,499]]")]
)
def test_damaged_bytes_of_numbers_are_refused(change):
    text = to_json(Rows(np.random.default_rng(0).random((500, 20))), sparse=True)
    assert change[0] in text
    with pytest.raises(StorageError, match="stored Rows cannot be read"):
        from_json(Rows, text.replace(*change))
