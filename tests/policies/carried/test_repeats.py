"""Few arms, each often enough: which arms get repeats where scales are unknown and features are used."""

import numpy as np
import pytest
from together import of_each

from surepick.estimators.noise_mgf import least_chi_squares
from surepick.policies.sequential import batches


@pytest.mark.parametrize("failure", [1e-3, 1e-5, 1e-9])
def test_the_repeats_for_a_bound_are_the_fewest_that_make_it_useful(failure):
    needed = batches.repeats_for(failure)
    freedom = np.array([needed - 2, needed - 1])
    less, enough = least_chi_squares(freedom, failure)
    assert (needed - 1) / enough <= batches.HEURISTIC_CRUDE
    assert less == 0.0 or (needed - 2) / less > batches.HEURISTIC_CRUDE
    assert batches.repeats_for(failure / 100.0) > needed


def test_spanning_rows_are_as_few_as_there_are_directions():
    rows = np.array([[1.0, 0, 0], [0.99, 0.01, 0], [0, 2.0, 0], [1.0, 2.0, 0]])
    assert len(batches.spanning_arms(rows)) == 2
    assert not batches.spans(rows)
    assert batches.spans(np.vstack([rows, [0, 0, 0.5]]))
    assert not batches.spans(rows[:0])


def test_an_arm_without_a_bound_is_left_out_unless_it_is_worth_its_repeats():
    white, bounded = np.array([[1.0, 0], [0, 1.0], [1.0, 1.0], [1.0, -1.0]]), np.array([True, True, False, False])
    assert batches.underreplicated(np.array([50.0, 50.0, 3.0, 40.0]), bounded, white, 10).tolist() == [
        False,
        False,
        True,
        False,
    ]
    assert not batches.underreplicated(np.array([50.0, 50.0, 0.0, 40.0]), bounded, white, 10).any()
    alone = np.array([True, False, False, False])
    assert not batches.underreplicated(
        np.array([50.0, 5.0, 3.0, 4.0]), alone, white, 10
    ).any()  # nobody else sees the rest


@of_each(("limit", "expected"), [(None, [20, 8, 10, 0]), (36, [20, 8, 4, 0]), (30, [20, 6, 4, 0]), (10, [20, 6, 4, 0])])
def test_a_plan_is_completed_where_the_largest_batch_has_room(limit, expected):
    counts, seen, bounded = np.array([20, 6, 4, 0]), np.array([30, 2, 0, 0]), np.array([True, False, False, False])
    assert batches.topped_up(counts, seen, bounded, 10, limit).tolist() == expected


def test_arms_that_were_begun_are_finished_if_they_are_needed():
    white = np.array([[1.0, 0], [1.0, 0], [0, 1.0], [1.0, 1.0]])
    assert batches.shortfall(np.array([1, 5, 3, 0]), white, 8).tolist() == [0, 3, 5, 0]


def test_pulls_for_the_checks_keep_their_share_and_finish_one_arm_first():
    rng = np.random.default_rng(1)
    vectors, counts = rng.normal(size=(30, 3)), np.zeros(30, int)
    counts[:3], seen = 100, np.zeros(30, int)
    bounded = np.arange(30) < 5
    seen[7] = 4
    extra = batches.check_repeats(vectors, counts, seen, bounded, 10, 0.05, None)
    assert extra.sum() == 15
    assert extra[:3].sum() == 0
    assert extra[3] == extra[4] == 1
    assert extra[7] == 6
    money = np.where(np.arange(30) == 7, 5.0, 1.0)
    assert batches.check_repeats(vectors, counts, seen, bounded, 10, 0.05, money) @ money <= 15.0
    assert not batches.check_repeats(vectors, counts, seen, bounded, 10, 0.0, None).any()
