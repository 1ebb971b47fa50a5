"""How many examples a property is tried on, and a belief studies: few in `make test`, all of them in `make prove`."""

from __future__ import annotations

import os

import pytest

FEWEST = 8
ALL = "SUREPICK_ALL_EXAMPLES"  # set by `make prove`
# Studies of each belief in `make prove`: of so many, 149 may err at .05 and 699 at .3 (1e-6). docs/prove.md has 5,000.
STUDIES = int(os.environ.get("SUREPICK_STUDIES", "2000"))


def budget(examples: int, fewest: int = FEWEST) -> int:
    """The number of examples of this run.

    Args:
        examples: how many all are.
        fewest: at least so many; fewer than usual where one takes long.
    """
    return examples if os.environ.get(ALL) else min(examples, max(fewest, examples // 8))


def few_and_all(name: str, few: int, every: int) -> pytest.MarkDecorator:
    """So many of what `name` counts in `make test`, and all of them in `make prove`."""
    return pytest.mark.parametrize(name, [few, pytest.param(every, marks=pytest.mark.slow)])


def some_cases(items: list[pytest.Item]) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Those that run, and those left out: of a test marked `cases(n)`, n cases far apart, the first and last of them.

    Cases marked slow are not counted. All stay where all examples are tried.
    """
    if os.environ.get(ALL):
        return items, []
    of_test: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("cases") and not item.get_closest_marker("slow"):
            of_test.setdefault(item.nodeid.partition("[")[0], []).append(item)
    left_out: set[str] = set()
    for cases in of_test.values():
        (number,) = cases[0].get_closest_marker("cases").args  # type: ignore[union-attr]
        kept = {round(place * (len(cases) - 1) / max(number - 1, 1)) for place in range(number)}
        left_out.update(case.nodeid for place, case in enumerate(cases) if place not in kept)
    return [item for item in items if item.nodeid not in left_out], [item for item in items if item.nodeid in left_out]


# Errors are so rare at the small delta that a few studies tell who makes them; at the large one it takes many more.
AT_EACH_DELTA = [0.05, pytest.param(0.3, marks=pytest.mark.slow)]
at_each_delta = pytest.mark.parametrize("delta", AT_EACH_DELTA)


def few_and_all_studies(few: int, every: int) -> pytest.MarkDecorator:
    """(runs, delta): few at .05 in `make test`, of which as many at .3 would notice hardly anybody; all at both."""
    whole = [pytest.param(every, delta, marks=pytest.mark.slow) for delta in (0.05, 0.3)]
    return pytest.mark.parametrize(("runs", "delta"), [(few, 0.05), *whole])
