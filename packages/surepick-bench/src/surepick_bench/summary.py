"""What a results file says: for each cell, own-stop pulls, oracle pulls, right answers, and what was published.

Own-stop and oracle numbers are different things and stand in different fields. A share comes with its exact
(Clopper-Pearson) 95 % interval.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from types import MappingProxyType
from typing import Any

import numpy as np

from surepick.core.records import record
from surepick.core.special_functions import special
from surepick.errors import InvalidInput
from surepick.policies.registry import policy_options
from surepick_bench.experiments import Published, experiment, experiment_names, published_for
from surepick_bench.results import Played, Results, Row, ended_by_itself
from surepick_bench.spec import Cell, Experiment

MOST_ROUNDS = 8  # of a policy whose rounds are shown; batches of an anytime policy are no rounds


@record
class Spread:
    """How numbers scatter: mean, median, lower and upper quartile, and how many they are."""

    mean: float
    median: float
    lower: float
    upper: float
    count: int


@record
class AtLeast:
    """A number of pulls, or, where it is not exact, a bound that it exceeds."""

    pulls: float
    exact: bool


@record
class Share:
    """count of total, with the exact 95 % interval [low, high] of the probability behind it."""

    count: int
    total: int
    low: float
    high: float


@record
class RoundSummary:
    """The paper's (d_k, s_k): mean dimension of round k, and the share of runs done by its end."""

    round: int  # k
    runs: int  # runs that opened it
    mean_dim: float  # d_k, over these
    done: float  # s_k, the share of all runs whose active set held only epsilon-best arms by then. Needs the truth.


@record
class CellSummary:
    """One policy in one environment.

    Args:
        experiment, environment, policy, delta: which.
        median_of_all: median of the pulls until the own stop, of all these and the runs that a budget ended; None if it
            ended none, or the policy never stops by itself.
        proved: runs whose stop is covered by a proof, of those of which that is known; the others are heuristics.
        listed: mean of the arms on the first list, where the question is answered by lists; else None.
        wrong_share: mean of the share of the worse list that is wrong, of the runs that ended at their own stop.
    """

    experiment: str
    environment: str
    policy: str
    delta: float
    runs: int  # replicates, failed ones included
    failures: int  # replicates without a result
    verdicts: dict[str, int]  # verdict -> replicates
    own: Spread | None  # pulls of the runs that ended at their own stop: what a user pays. None if there are none.
    median_of_all: AtLeast | None
    cut: dict[str, int]  # what ended the runs that a budget ended, "batches", "pulls" or "seconds" -> how many
    proved: Share | None
    right: Share  # runs that ended at their own stop with an epsilon-best arm, of all
    wrong: Share  # runs that ended at their own stop with another arm, of those that did
    oracle: Spread | None  # pulls until only epsilon-best arms were left, of the runs that came there. Needs the truth.
    reached: Share | None  # how many came there; None for policies that do not eliminate
    best_eliminated: Share | None  # runs that ruled out the best arm; None likewise
    reference: float | None  # median of 2 sigma^2 rho* log(1/(2.4 delta)). Needs the truth.
    own_to_reference: float | None  # median of own-stop pulls over it
    seconds: float | None  # median
    rounds: tuple[RoundSummary, ...]  # for policies that eliminate, with an embedding and few rounds; else empty
    published: Published  # what was published of this cell
    listed: float | None = None
    wrong_share: float | None = None

    @property
    def oracle_to_expected(self) -> float | None:
        """Mean of the oracle pulls over what the reimplementation measured; None if there is nothing to compare."""
        if self.oracle is None or self.published.expected is None or self.published.by_median:
            return None
        return self.oracle.mean / self.published.expected

    @property
    def oracle_median_to_expected(self) -> float | None:
        """The same with the median, which a few runs that end a round early or late do not move."""
        if self.oracle is None or self.published.expected is None:
            return None
        return self.oracle.median / self.published.expected

    @property
    def own_to_expected(self) -> float | None:
        """Own-stop pulls over what the reimplementation measured; None if there is nothing to compare."""
        return None if self.own is None or self.published.own is None else self.own.mean / self.published.own


def summarize(results: Results) -> tuple[CellSummary, ...]:
    """Every cell of the results, in the order of the file."""
    cells: dict[tuple[str, str, str, float, str], list[Played]] = {}
    for played in results.played:
        row = played.replicate
        digest = row["key"].rpartition("/")[2]  # so that equal labels do not mix different settings
        name = (row["experiment"], row["environment"], row["policy"], row["delta"], digest)
        cells.setdefault(name, []).append(played)
    found = [_cell(*name[:4], several) for name, several in cells.items()]
    return tuple(sorted(found, key=_position))


def _position(cell: CellSummary) -> tuple[Any, ...]:
    """Where a cell stands: as its experiment lists it, else by name."""
    name = (cell.environment, cell.policy, cell.delta)
    if cell.experiment not in experiment_names():
        return (len(experiment_names()), cell.experiment, 0, name)
    listed = [(each.environment.label, each.policy.label, each.delta) for each in experiment(cell.experiment).cells]
    position = listed.index(name) if name in listed else len(listed)
    return (experiment_names().index(cell.experiment), cell.experiment, position, name)


def _cell(experiment: str, environment: str, policy: str, delta: float, played: Sequence[Played]) -> CellSummary:
    rows = [each.replicate for each in played]
    done = [row for row in rows if not row["failure"]]
    own = [row for row in done if ended_by_itself(failure="", stops=row["stops"], verdict=row["verdict"])]
    cut = [row for row in done if row["verdict"] == "budget-exhausted"]
    eliminating = [row for row in done if row["eliminates"]]
    reached = [row["oracle_pulls"] for row in eliminating if row["oracle_pulls"] is not None]
    ratios = [row["pulls"] / row["reference_pulls"] for row in own if row["reference_pulls"]]
    ruled_out = sum(row["best_eliminated"] for row in eliminating)
    right = sum(bool(row["success"]) for row in own)
    return CellSummary(
        experiment=experiment,
        environment=environment,
        policy=policy,
        delta=delta,
        runs=len(rows),
        failures=len(rows) - len(done),
        verdicts=dict(sorted(Counter(row["verdict"] for row in done).items())),
        own=spread(row["pulls"] for row in own),
        median_of_all=median_of_all(own, [row for row in cut if row["stops"] != "never"]),
        cut=dict(Counter(row["ended_by"] for row in cut)),
        proved=_share_of([row["proved"] for row in done if row.get("proved") is not None]),
        right=share(right, len(rows)),
        wrong=share(len(own) - right, len(own)),
        oracle=spread(reached),
        reached=share(len(reached), len(rows)) if eliminating else None,
        best_eliminated=share(ruled_out, len(eliminating)) if eliminating else None,
        reference=_median(row["reference_pulls"] for row in done),
        own_to_reference=_median(ratios),
        seconds=_median(row["seconds"] for row in done),
        rounds=_rounds([each.rounds for each in played]) if any(map(_compressed, played)) else (),
        published=published_for(experiment, environment, policy),
        listed=_mean(row.get("listed") for row in own),
        wrong_share=_mean(row.get("wrong_share") for row in own),
    )


def spread(numbers: Iterable[float]) -> Spread | None:
    """Mean, median and quartiles; None of nothing."""
    values = np.array(list(numbers), dtype=np.float64)
    if values.size == 0:
        return None
    lower, median, upper = (float(value) for value in np.quantile(values, [0.25, 0.5, 0.75]))
    return Spread(float(values.mean()), median, lower, upper, int(values.size))


def median_of_all(own: Sequence[Row], cut: Sequence[Row]) -> AtLeast | None:
    """The median of the pulls until the own stop where a budget ended some runs; None if it ended none. A run that
    max_pulls ended would have taken more than that, one that time or batches ended more than it had. The median is
    exact where it is the same for any such numbers."""
    if not cut:
        return None
    least = [row["pulls"] if row["ended_by"] in ("seconds", "batches") else row["max_pulls"] for row in cut]
    known = [row["pulls"] for row in own]
    median = float(np.median([*known, *least]))
    return AtLeast(median, exact=median == float(np.median([*known, *(math.inf for _ in least)])))


def _share_of(truths: Sequence[bool]) -> Share | None:
    return share(sum(truths), len(truths)) if truths else None


def share(count: int, total: int, *, confidence: float = 0.95) -> Share:
    """count of total with the exact interval of Clopper and Pearson (1934); [0, 1] when total is 0.

    low = Beta^-1(a; count, total - count + 1),   high = Beta^-1(1 - a; count + 1, total - count),   a = (1 - conf)/2
    """
    tail = (1.0 - confidence) / 2.0
    low = float(special.betaincinv(count, total - count + 1, tail)) if count > 0 else 0.0
    high = float(special.betaincinv(count + 1, total - count, 1.0 - tail)) if count < total else 1.0
    return Share(count, total, low, high)


def _mean(numbers: Iterable[float | None]) -> float | None:
    values = [value for value in numbers if value is not None]
    return float(np.mean(values)) if values else None


def _median(numbers: Iterable[float | None]) -> float | None:
    values = [value for value in numbers if value is not None]
    return float(np.median(values)) if values else None


def _rounds(studies: Sequence[Sequence[Row]]) -> tuple[RoundSummary, ...]:
    """(d_k, s_k), if the studies have few rounds."""
    most = max((rows[-1]["round"] for rows in studies if rows), default=0)
    found = []
    for number in range(1, most + 1 if most <= MOST_ROUNDS else 0):
        opened = [[row["dim"] for row in rows if row["round"] == number] for rows in studies]
        dims = [mine[0] for mine in opened if mine]
        done = sum(any(row["only_good"] for row in rows if row["round"] <= number) for rows in studies)
        found.append(RoundSummary(number, len(dims), float(np.mean(dims)) if dims else 0.0, done / len(studies)))
    return tuple(found)


def _compressed(played: Played) -> bool:
    """Whether some round went through an embedding: of another dimension than the features, and than the arms left."""
    left = [played.replicate["num_arms"], *(row["active"] for row in played.rounds)]
    dims = zip((row["dim"] for row in played.rounds), left, strict=False)
    return any(dim not in (0, played.replicate["dim"], before) for dim, before in dims)


# --- The paper's search for its constants: every combination of a grid, judged by the true success rate.
#
# It USES THE TRUTH, which a user does not have. It is here so that the paper's constants can be traced; a user calls
# `choose_kernel` on pilot pulls instead.

DECADES = tuple(10.0**power for power in range(-5, 4))  # of C and gamma
TOLERANCES = tuple(10.0**power for power in range(-5, 0))  # of eps-bar
AXES: Mapping[str, tuple[float, ...]] = MappingProxyType(
    {"norm_bound": DECADES, "gamma": DECADES, "error_tolerance": TOLERANCES}
)


def grid_experiment(
    base: Experiment, policy: str, *, environment: str | None = None, axes: Mapping[str, Sequence[float]] | None = None
) -> Experiment:
    """Every combination of the paper's grid ("Experimental setups") for one policy, in one environment."""
    cell = _cell_of(base, policy, environment)
    spec, known = cell.policy, policy_options(cell.policy.name)
    varied = {name: tuple(dict.fromkeys(values)) for name, values in (axes or AXES).items() if name in known}
    if not varied or not all(varied.values()):
        raise InvalidInput(
            f"{policy} has none of the constants that a grid varies ({', '.join(AXES)}); take another --policy."
        )
    name, cells = f"grid-{base.name}", []
    for values in product(*varied.values()):
        point = dict(zip(varied, values, strict=True))
        label = " ".join([policy, *(f"{option}={value:.12g}" for option, value in point.items())])
        tried = replace(spec, label=label, options={**spec.options, **point})
        cells.append(replace(cell, experiment=name, policy=tried))
    return Experiment(name, f"grid search for {policy}: USES THE TRUTH", tuple(cells), base.note)


def ranked(cells: Sequence[CellSummary]) -> tuple[CellSummary, ...]:
    """As the paper ranks them: the highest true success rate of active sets, then the fewest oracle pulls."""

    def merit(cell: CellSummary) -> tuple[float, float]:
        reached = cell.reached.count / cell.reached.total if cell.reached else 0.0
        return -reached, cell.oracle.median if cell.oracle else float("inf")

    return tuple(sorted(cells, key=merit))


def _cell_of(base: Experiment, policy: str, environment: str | None) -> Cell:
    mine = [cell for cell in base.cells if cell.policy.label == policy]
    if not mine:
        raise InvalidInput(f"{base.name} has no policy {policy!r}; it has {', '.join(base.policies)}.")
    if environment is None:
        return mine[0]
    found = next((cell for cell in mine if cell.environment.label == environment), None)
    if found is None:
        places = "; ".join(cell.environment.label for cell in mine)
        raise InvalidInput(f"{base.name} runs {policy} in no environment {environment!r}; it does in {places}.")
    return found
