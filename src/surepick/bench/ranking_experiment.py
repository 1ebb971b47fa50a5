"""Ranking and selection's three-stage line, beside the totals that its procedures are published with.

A published total is another procedure's, with other assumptions and another promise: it stands beside ours with both,
and no ratio is made of it. Its designs, its observation (50 jobs after 2,000) and delta = .1, alpha = .05 are the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from surepick.bench.results import Row
from surepick.bench.spec import Cell, EnvironmentSpec, Experiment, PolicySpec
from surepick.core.arrays import record
from surepick.environments.line_chain import throughput

NAME = "ranking-and-selection"
EPSILON, DELTA = 0.1, 0.05
NOISES: Mapping[int, tuple[str, ...]] = MappingProxyType(
    {20: ("bounded:0:15", "normal"), 50: ("bounded:0:45", "normal")}
)
BEST_THROUGHPUT: Mapping[str, float] = MappingProxyType(  # of the exact chain, which the tests solve
    {"line L=20": 5.776121751463529, "line L=50": 15.697584822793669}
)
NORMAL = "normal observations, variances unknown and unequal"
NORMAL_ONLY = "normal observations"
SELECTS_BEST = "the best, if it leads by delta"
SELECTS_GOOD = "one within delta of the best"


@record
class Procedure:
    """What a procedure of others is published with on one instance.

    Args:
        name: as its authors call it; "+ CRN": with common random numbers.
        total: observations, mean over its replications.
        assumes, promises: in the words of the field.
    """

    name: str
    total: float
    assumes: str
    promises: str


def _normal(promises: str, totals: Mapping[str, float], assumes: str = NORMAL) -> tuple[Procedure, ...]:
    return tuple(Procedure(name, total, assumes, promises) for name, total in totals.items())


_SLIPPAGE = {100: (23_304, 26_876, 28_761), 500: (137_878, 155_376, 176_223), 1000: (291_689, 328_355, 380_382)}
PROCEDURES: Mapping[tuple[str, str], tuple[Procedure, ...]] = MappingProxyType(
    {
        (NAME, "line L=20"): (
            *_normal(SELECTS_BEST, {"VKN": 2.12e5, "PPP": 4.04e5}),
            *_normal(SELECTS_GOOD, {"PAC-PPP": 4.18e5, "GSP, beta 100": 4.68e5, "GSP, beta 200": 6.53e5}),
        ),
        (NAME, "line L=50"): (
            *_normal("few good ones lost, on average", {"PASS": 4.26e6}),
            *_normal("none: a budget is spent", {"FBKT + CRN": 4.70e6}),
            *_normal(SELECTS_BEST, {"KT + CRN": 6.17e6}),
            *_normal(SELECTS_GOOD, {"PAC-PPP": 1.076e7, "GSP, beta 100": 1.083e7, "GSP, beta 200": 1.318e7}),
        ),
        ("slippage", "slippage K=2000"): _normal(SELECTS_BEST, {"iKT": 3.06e6, "KT": 4.11e6}, NORMAL_ONLY),
        **{
            ("slippage", f"slippage K={size}"): _normal(
                SELECTS_BEST, dict(zip(("KN", "Paulson", "PPP"), totals, strict=True)), NORMAL_ONLY
            )
            for size, totals in _SLIPPAGE.items()
        },
    }
)


def _cell(length: int, noise: str, **options: str) -> Cell:
    place = EnvironmentSpec(
        f"line L={length}", "simulated-production-line", {"length": length}, reference="independent"
    )
    label = " ".join(["certified-independent", noise, *(f"with {option}" for option in options)])
    policy = PolicySpec(label, "certified-independent", options, noise=noise)
    return Cell(NAME, place, policy, EPSILON, DELTA, max_pulls=20_000_000)


RANKING_AND_SELECTION = Experiment(
    NAME,
    "a three-stage line simulated job by job: the best of 3,249 and of 57,624 designs, delta .1, alpha .05",
    tuple(
        cell
        for length, noises in NOISES.items()
        for cell in (*(_cell(length, noise) for noise in noises), _cell(length, "normal", streams="stream"))
    ),
    note="Exponential services have no bound: an observation above the declared 15 (45) has a chance below 1e-9. With "
    "noise normal observations are taken for normal; they have a skewness of .4.",
)


def procedures_for(experiment: str, environment: str) -> tuple[Procedure, ...]:
    """What is published on an instance; empty if nothing is."""
    return PROCEDURES.get((experiment, environment), ())


def right_in_the_long_run(rows: Sequence[Row]) -> tuple[int, int]:
    """How many of these runs chose a design whose throughput is within epsilon of the best, and how many stopped.

    An observation's mean exceeds the throughput, not by the same for all designs, so the two may rank differently.

    Args:
        rows: replicates of this experiment.
    """
    ended = [row for row in rows if row["experiment"] == NAME and row["ended_by"] == "policy"]
    return sum(_is_good(row) for row in ended), len(ended)


def _is_good(row: Row) -> bool:
    first, second, third, before, after = (int(part) for part in row["best_arm"].split("-"))
    short = BEST_THROUGHPUT[row["environment"]] - throughput(first, second, third, before, after)
    return bool(short <= row["epsilon"] + 1e-9)
