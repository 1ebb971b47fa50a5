"""A small experiment, and its results without the seconds that they took."""

from surepick_bench.spec import EnvironmentSpec, PolicySpec, crossed

EPSILON = 1.0


SOARE = EnvironmentSpec("soare", "soare", {"dim": 3, "angle": 0.6})


SPHERE = EnvironmentSpec("sphere", "sphere", {"num_arms": 5, "dim": 2})


LINEAR = PolicySpec("certified-linear", "certified-linear", {"norm_bound": 1.0})


MEANS = PolicySpec("action-elimination", "action-elimination", {"growth": 0.5})


SMALL = crossed("small", "a small one", [SOARE, SPHERE], [LINEAR, MEANS], epsilon=EPSILON)


def without_seconds(rows) -> list[dict]:
    return [{name: value for name, value in row.items() if "seconds" not in name} for row in rows]


def same(left, right) -> bool:
    return all(
        without_seconds(getattr(left, table)) == without_seconds(getattr(right, table))
        for table in ("replicates", "rounds")
    )
