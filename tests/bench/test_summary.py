"""Summaries: exact intervals, own stop and oracle kept apart, rounds as in the paper's last table."""

import numpy as np
import pytest
from scipy.stats import binomtest
from together import of_each

from surepick_bench.experiments import PUBLISHED, published_for, read_off
from surepick_bench.results import Replicate, Results, Round, column_kinds
from surepick_bench.summary import share, spread, summarize


def replicate(seed: int = 0, **changes) -> dict:
    row = dict.fromkeys(column_kinds(Replicate))
    row |= {
        "key": f"e/p/{changes.get('policy', 'rage')}/{seed}/d",
        "experiment": "e",
        "environment": "p",
        "policy": "rage",
        "seed": seed,
        "delta": 0.05,
        "num_arms": 4,
        "dim": 3,
        "pulls": 100,
        "max_pulls": 10_000_000,
        "success": True,
        "verdict": "certified",
        "stops": "own",
        "eliminates": True,
        "best_eliminated": False,
        "reference_pulls": 50.0,
        "failure": "",
        "seconds": 1.0,
    }
    return row | changes


def round_of(row: dict, number: int, **changes) -> dict:
    filled = dict.fromkeys(column_kinds(Round))
    return filled | {"key": row["key"], "round": number, "look": 1, "dim": 2, "active": 4, "only_good": False} | changes


def only(*rows: dict, rounds=()):
    (cell,) = summarize(Results(tuple(rows), tuple(rounds)))
    return cell


@of_each(("count", "total"), [(0, 7), (7, 7), (3, 50), (49, 50), (1, 2), (440, 2051)])
def test_the_interval_is_the_exact_one(count, total):
    found = share(count, total)
    expected = binomtest(count, total).proportion_ci(0.95, method="exact")
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_of_nothing_nothing_is_said():
    assert share(0, 0) == type(share(0, 0))(0, 0, 0.0, 1.0)
    assert spread([]) is None


def test_the_spread():
    found = spread([1, 2, 3, 4, 100])
    assert (found.mean, found.median, found.lower, found.upper, found.count) == (22.0, 3.0, 2.0, 4.0, 5)


def test_own_stop_leaves_out_who_did_not_stop():
    cell = only(
        replicate(0, pulls=100),
        replicate(1, pulls=300, success=False),
        replicate(2, pulls=999, success=False, verdict="budget-exhausted"),
        replicate(3, pulls=None, success=None, verdict=None, failure="NotConverged: x"),
    )
    assert (cell.own.mean, cell.own.count) == (200.0, 2)
    assert (cell.right.count, cell.right.total) == (1, 4)
    assert (cell.wrong.count, cell.wrong.total) == (1, 2)
    assert (cell.runs, cell.failures) == (4, 1)
    assert cell.verdicts == {"budget-exhausted": 1, "certified": 2}
    assert cell.own_to_reference == 4.0


def cut(seed, pulls, ended_by):
    return replicate(
        seed, pulls=pulls, max_pulls=1000, success=False, verdict="budget-exhausted", ended_by=ended_by, proved=True
    )


@of_each(
    ("ended", "cuts", "median"),
    [
        ([100, 200, 300], [], None),
        ([100, 200], [(0, "pulls")], (200.0, True)),  # it would have taken more than 1,000
        ([100], [(0, "pulls"), (900, "pulls")], (1000.0, False)),
        ([100, 2000], [(150, "seconds")], (150.0, False)),  # anything above 150
        ([100, 200], [(150, "seconds")], (150.0, False)),
        ([100, 200], [(250, "seconds")], (200.0, True)),
        ([100, 200, 300], [(250, "seconds")], (225.0, False)),
        ([], [(250, "seconds"), (10, "pulls")], (625.0, False)),
    ],
)
def test_the_median_of_all_is_exact_or_a_bound(ended, cuts, median):
    rows = [replicate(seed, pulls=pulls) for seed, pulls in enumerate(ended)]
    rows += [cut(len(ended) + seed, pulls, by) for seed, (pulls, by) in enumerate(cuts)]
    found = only(*rows).median_of_all
    assert (None if found is None else (found.pulls, found.exact)) == median


def test_what_ended_runs_and_whether_stops_are_proved():
    cell = only(replicate(0, proved=False), cut(1, 5, "seconds"), cut(2, 5, "pulls"), cut(3, 5, "seconds"))
    assert cell.cut == {"seconds": 2, "pulls": 1}
    assert (cell.proved.count, cell.proved.total) == (3, 4)
    assert only(replicate()).proved is None
    endless = only(replicate(stops="never", verdict="budget-exhausted", success=False, ended_by="pulls"))
    assert (endless.median_of_all, endless.cut) == (None, {"pulls": 1})


def test_a_policy_that_never_stops_has_no_own_stop():
    cell = only(replicate(stops="never", pulls=999, success=True, oracle_pulls=70))
    assert cell.own is None
    assert cell.right.count == 0
    assert cell.oracle.mean == 70.0


def test_oracle_pulls_are_of_the_runs_that_came_there():
    cell = only(*(replicate(seed, oracle_pulls=pulls) for seed, pulls in enumerate([10, None, 30])))
    assert (cell.oracle.mean, cell.reached.count, cell.reached.total) == (20.0, 2, 3)
    none = only(replicate(eliminates=False, best_eliminated=None))
    assert (none.oracle, none.reached, none.best_eliminated) == (None, None, None)


def test_rounds_as_in_the_paper():
    first, second = replicate(0), replicate(1)
    rounds = [
        round_of(first, 1, dim=190, only_good=True, active=2),
        round_of(second, 1, dim=180, active=3),
        round_of(second, 2, dim=192, only_good=True, active=1),
    ]
    cell = only(first, second, rounds=rounds)
    assert [(row.round, row.runs, row.mean_dim, row.done) for row in cell.rounds] == [
        (1, 2, 185.0, 0.5),
        (2, 1, 192.0, 1.0),
    ]


@pytest.mark.parametrize("dims", [(3, 3), (0, 0), (4, 2)])
def test_no_rounds_without_an_embedding(dims):
    """The features themselves, no vectors at all, or one dimension for each arm that is left."""
    row = replicate()
    rounds = [round_of(row, 1, dim=dims[0], active=2), round_of(row, 2, dim=dims[1], active=1)]
    assert only(row, rounds=rounds).rounds == ()


def test_medians_where_the_tails_are_heavy():
    name = ("yahoo-like", "200 records", "rage")
    assert PUBLISHED[name].by_median
    rows = [
        replicate(seed, experiment=name[0], environment=name[1], policy=name[2], oracle_pulls=pulls)
        for seed, pulls in enumerate([100_000, 100_000, 10_000_000])
    ]
    assert only(*rows).oracle_to_expected is None
    assert only(*rows).oracle_median_to_expected == 1.0
    assert published_for("yahoo-like", "200 records", "certified-independent").expected is None


def test_the_order_is_that_of_the_experiment():
    rows = [
        replicate(0, experiment="peers", environment=place, policy=policy)
        for place in ("digits", "soare", "sphere")
        for policy in ("action-elimination", "lingape")
    ]
    found = [(cell.environment, cell.policy) for cell in summarize(Results(tuple(rows), ()))]
    assert found[:2] == [("sphere", "lingape"), ("sphere", "action-elimination")]
    assert found[-1] == ("digits", "action-elimination")


def test_the_reference_is_a_median():
    rows = [replicate(seed, reference_pulls=value) for seed, value in enumerate([1.0, 2.0, 90.0])]
    assert only(*rows).reference == np.median([1.0, 2.0, 90.0])


def test_what_the_paper_draws():
    drawn = read_off()
    assert drawn["paper-linear", "K=250, D=20", "linear-embedding"] == 2_800
    assert drawn["paper-linear", "K=1000, D=25", "rage"] == 12_500
    assert drawn["paper-nonlinear", "K=200, D=20", "action-elimination"] == 46_000
    assert drawn["yahoo-like", "200 records", "rage"] == 50_000
    assert ("paper-linear", "K=500, D=20", "linear-embedding") not in drawn
    assert ("mnist", "200 images", "means-neural-rule") not in drawn


def test_equal_labels_of_different_settings_are_not_pooled():
    rows = [replicate(0), replicate(1, key="e/p/rage/1/another")]
    assert [cell.runs for cell in summarize(Results(tuple(rows), ()))] == [1, 1]


@pytest.mark.parametrize("verdict", ["budget-exhausted", "not-yet"])
def test_what_something_else_ended_is_no_own_stop(verdict):
    assert only(replicate(verdict=verdict, success=False)).own is None


def test_a_fixed_budget_is_the_own_stop_of_a_policy_that_has_one():
    cell = only(replicate(stops="budget", verdict="heuristic", pulls=70))
    assert (cell.own.mean, cell.right.count) == (70.0, 1)
