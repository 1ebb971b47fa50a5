"""Of a test marked `cases`, `make test` runs some, and `make prove` all; a case that is asked for by name runs."""

from types import SimpleNamespace

import pytest
from budgets import ALL, some_cases


def cases(number: int, *, kept: int | None, slow: tuple[int, ...] = ()) -> list[SimpleNamespace]:
    """Cases of one test as pytest collects them, `kept` of which run."""

    def item(case: int) -> SimpleNamespace:
        marks = {"cases": kept and pytest.mark.cases(kept), "slow": pytest.mark.slow if case in slow else None}
        return SimpleNamespace(nodeid=f"test_a.py::test_b[{case}]", case=case, get_closest_marker=marks.get)

    return [item(case) for case in range(number)]


@pytest.mark.parametrize(
    ("number", "kept", "slow", "run"),
    [
        (10, 3, (), [0, 4, 9]),
        (10, 1, (), [0]),
        (10, 2, (9,), [0, 8, 9]),
        (2, 3, (), [0, 1]),
        (1, 3, (), [0]),
        (4, None, (), [0, 1, 2, 3]),
    ],
)
def test_some_cases_that_are_far_apart_run(number, kept, slow, run, monkeypatch):
    monkeypatch.delenv(ALL, raising=False)
    items = cases(number, kept=kept, slow=slow)
    running, left_out = some_cases(items)
    assert [item.case for item in running] == run
    assert sorted([*run, *(item.case for item in left_out)]) == list(range(number))


def test_all_cases_run_where_all_examples_are_tried(monkeypatch):
    monkeypatch.setenv(ALL, "1")
    assert some_cases(items := cases(10, kept=3)) == (items, [])
