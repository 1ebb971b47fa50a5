"""Where results lie: one part a replicate while running, two Parquet files at the end.

    NAME.parquet          replicates, sorted by key
    NAME.rounds.parquet   rounds, sorted by key, in the order in which they happened
    NAME.parts/           one JSON file a replicate, written by rename; gone when the two files are there

Rounds are written first, so that a file of replicates always has its rounds. A part that cannot be read is not there.
"""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from surepick.core.files import is_file, is_folder
from surepick.core.plans import Embedded, IndependentArms
from surepick.core.records import encode, record, to_json
from surepick.embeddings import LinearEmbedding
from surepick.environments import Environment
from surepick.errors import DatasetMissing, InvalidInput, StorageError
from surepick.linalg.rows import one_thread
from surepick.noise import largest_scale
from surepick.policies.base import Policy, Problem
from surepick.policies.registry import make_policy
from surepick.policies.verdict import claim_certificate
from surepick.questions import wrongly_listed
from surepick.simulation import Run, simulate
from surepick.tables import read_columns, write_table
from surepick_bench.datasets.registry import make_environment
from surepick_bench.spec import Cell
from surepick_bench.theory.complexity import hardness, reference_pulls

# --- The two tidy tables of an experiment: a row per replicate, and a row per round.


@dataclass(frozen=True, slots=True)
class Replicate:
    """What one replicate spent, and whether its answer was right."""

    key: str  # unique; the tables are sorted by it
    experiment: str  # this, environment and policy: names, as in the tables and figures
    environment: str
    num_arms: int | None  # num_arms, dim: K and the columns of the features
    dim: int | None
    policy: str
    seed: int  # of environment and rewards
    epsilon: float  # epsilon, delta, max_pulls: settings
    delta: float
    max_pulls: int
    pulls: int | None = None  # until its own stop, a budget or max_pulls: what a user pays; None if failed
    success: bool | None = None  # it stopped by itself, and is right; None if failed
    best_arm: str | None = None  # id of the recommended arm
    verdict: str | None = None  # of the certificate
    true_gap: float | None = None  # how much worse than the best arm the recommended one is. Needs the truth.
    oracle_pulls: int | None = None  # until only epsilon-best arms were active. Needs the truth; None if never
    best_eliminated: bool | None = None  # the best arm, the first of equals, was; None: the policy does not eliminate
    all_best_eliminated: bool | None = None  # all arms that are exactly as good as the best were ruled out
    num_rounds: int | None = None  # rounds opened
    stops: str | None = None  # "own", "never" or "budget": how the policy ends
    eliminates: bool | None = None  # whether `oracle_pulls` has a meaning
    reference_pulls: float | None = None  # 2 sigma^2 rho* log(1/(2.4 delta)) of this instance. Needs the truth.
    failure: str = ""  # why there is no result; "" when there is one
    seconds: float | None = None  # wall-clock time of the study
    ended_by: str | None = None  # "policy", by itself; "batches", "pulls" or "seconds", the budget that was exhausted
    proved: bool | None = None  # certified, or would have been at its own stop; else that is a heuristic
    listed: int | None = None  # arms on the first list, where the question is answered by lists; else None
    wrong_share: float | None = None  # of the list of which more is wrong; None likewise. Needs the truth.


@dataclass(frozen=True, slots=True)
class Round:
    """One row of the trace of a replicate."""

    key: str  # as in `Replicate`, up to the seed, and in the trace
    experiment: str
    environment: str
    policy: str
    seed: int
    round: int
    look: int
    looks: int
    dim: int
    value: float | None
    lower_bound: float | None
    misspecification: float
    pulls: int
    total_pulls: int
    active: int  # arms not ruled out
    only_good: bool  # all of them are epsilon-best. Needs the truth.
    best_active: bool  # the best arm, the first of equals, is among them. Needs the truth.
    leader: str  # id of the arm that would be recommended now
    certified_gap: float | None
    alarms: str  # what the checks of the embedding found


WITHOUT_OWN_STOP = ("budget-exhausted", "not-yet")  # verdicts of runs that something else ended


def ended_by_itself(*, failure: str, stops: str, verdict: str) -> bool:
    """Whether a run has own-stop pulls: no failure, no outer budget, and a policy that ends at all."""
    return failure == "" and stops != "never" and verdict not in WITHOUT_OWN_STOP


def column_kinds(row: type[Any]) -> dict[str, type]:
    """The type of each column of a row type: int, float, bool or str."""
    kinds = {kind.__name__: kind for kind in (int, float, bool, str)}
    return {column.name: kinds[str(column.type).partition(" ")[0]] for column in fields(row)}


# --- One replicate: a cell and a seed, played to the end, as rows of the two tables.

AS_IN_TRACE = (
    *("round", "look", "looks", "dim", "value", "lower_bound"),
    *("misspecification", "pulls", "total_pulls", "certified_gap"),
)
AS_IN_RUN = ("pulls", "success", "best_arm", "verdict", "true_gap", "oracle_pulls", "seconds", "ended_by")


@record
class Played:
    """A replicate and its rounds, as rows."""

    replicate: dict[str, Any]
    rounds: tuple[dict[str, Any], ...]


def play(cell: Cell, seed: int, data: str | Path = ".") -> Played:
    """Make the environment and the policy, and simulate until the own stop; an error is kept as a failure."""
    named = {
        "key": cell.key(seed),
        "experiment": cell.experiment,
        "environment": cell.environment.label,
        "policy": cell.policy.label,
        "seed": seed,
    }
    pulls = cell.max_pulls if cell.policy.max_pulls is None else cell.policy.max_pulls
    settings: dict[str, Any] = {**named, "epsilon": cell.epsilon, "delta": cell.delta, "max_pulls": pulls}
    try:
        with one_thread():
            environment, policy = _instance(cell, seed, data)
            settings["epsilon"] = policy.problem.epsilon
        with one_thread():  # once more, for what the policy has loaded in the meantime
            reference = _reference(cell, environment, policy.problem)
            run = simulate(policy, environment, seed=seed, max_pulls=pulls, max_seconds=cell.max_seconds)
    except DatasetMissing:
        raise
    except Exception as error:  # kept and reported: one failure must not end a night's run
        failed = Replicate(**settings, num_arms=None, dim=None, failure=f"{type(error).__name__}: {error}")
        return Played(_plain(failed), ())
    replicate = _replicate(settings, environment, policy, run, reference)
    return Played(_plain(replicate), tuple(map(_plain, _rounds(named, policy.problem.epsilon, environment, run))))


def _plain(row: Replicate | Round) -> dict[str, Any]:
    """The row as plain data; a number that is not finite is missing."""
    values: dict[str, Any] = encode(row)
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in values.items()
    }


def _instance(cell: Cell, seed: int, data: str | Path) -> tuple[Environment, Policy[Any]]:
    """The environment and the policy of a replicate."""
    environment = make_environment(cell.environment.name, seed=seed, data=data, **cell.environment.options)
    policy = make_policy(
        cell.policy.name,
        environment.arms,
        epsilon=cell.epsilon if cell.gap_share is None else cell.gap_share * smallest_gap(environment),
        delta=cell.delta,
        noise=environment.noise if cell.policy.noise is None else cell.policy.noise,
        **cell.policy.options,
    )
    return environment, policy


def smallest_gap(environment: Environment, *, rounding: float = 1e-12) -> float:
    """How much worse the best of the worse arms is than the best arm, in reward units."""
    worse = environment.gaps[~environment.epsilon_best(0.0, rounding=rounding)]
    if worse.size == 0:
        raise InvalidInput("all arms are equally good, so no epsilon is a share of the gap to the next worse arm.")
    return float(worse.min())


def _proved(policy: Policy[Any], run: Run) -> bool:
    """Whether the answer is certified, or would have been if it had ended by ruling the others out."""
    if run.verdict != "budget-exhausted":
        return run.verdict == "certified"
    if policy.traits.certifies == "nothing":
        return False
    claim = replace(policy.claim(run.played.state), finished="single")
    return claim_certificate(policy.problem, claim).verdict == "certified"


def _reference(cell: Cell, environment: Environment, problem: Problem) -> float | None:
    """2 sigma^2 rho* log(1/(2.4 delta)) with the vectors that the cell names; a mere unit for other rewards."""
    if not 2.4 * cell.delta < 1.0 or problem.question is not None:
        return None
    vectors: Embedded = IndependentArms(environment.num_arms)
    if cell.environment.reference == "linear":
        family = LinearEmbedding(environment.arms.features, norm_bound=1.0)
        dim = cell.environment.reference_dim
        vectors = family.at(family.max_dim if dim is None else dim)
    found = hardness(vectors, -environment.means if environment.minimize else environment.means, problem.epsilon)
    return reference_pulls(found.value, sigma=largest_scale(environment.noise), delta=cell.delta)


def _replicate(
    settings: dict[str, Any], environment: Environment, policy: Policy[Any], run: Run, reference: float | None
) -> Replicate:
    last = run.rounds[-1].active if run.rounds else np.arange(environment.num_arms)
    tied = environment.gaps[last] == 0.0
    return Replicate(
        **settings,
        num_arms=environment.num_arms,
        dim=int(environment.arms.features.shape[1]),
        **{name: getattr(run, name) for name in AS_IN_RUN},
        best_eliminated=environment.best not in last if policy.traits.narrows else None,
        all_best_eliminated=not bool(tied.any()) if policy.traits.narrows else None,
        num_rounds=run.rounds[-1].round if run.rounds else 0,
        stops=policy.traits.stops,
        eliminates=policy.traits.narrows,
        reference_pulls=reference,
        proved=_proved(policy, run),
        **_listed(environment, policy, run),
    )


def _listed(environment: Environment, policy: Policy[Any], run: Run) -> dict[str, Any]:
    """What a replicate says of lists; nothing where the answer is an arm."""
    lists = run.certificate.lists
    if lists is None:
        return {}
    means = -environment.means if environment.minimize else environment.means
    bad = wrongly_listed(policy.problem, lists, environment.arms, means, environment.quantity_means)
    wrong = {environment.arms.ids[arm] for arm in np.flatnonzero(bad)}
    shares = [len(wrong.intersection(ids)) / max(len(ids), 1) for ids in (lists.inside, lists.outside)]
    return {"listed": len(lists.inside), "wrong_share": max(shares)}


def _rounds(named: dict[str, Any], epsilon: float, environment: Environment, run: Run) -> Iterator[Round]:
    good = environment.epsilon_best(epsilon)
    for row in run.rounds:
        yield Round(
            **named,
            **{name: getattr(row, name) for name in AS_IN_TRACE},
            active=len(row.active),
            only_good=bool(good[row.active].all()),
            best_active=environment.best in row.active,
            leader=environment.arms.ids[row.leader],
            alarms="; ".join(row.alarms),
        )


Row = dict[str, Any]


@record
class Results:
    """The two tables as rows."""

    replicates: tuple[Row, ...]  # sorted by key
    rounds: tuple[Row, ...]  # sorted by key, in the order of each study

    @classmethod
    def of(cls, everything: Iterable[Played]) -> Results:
        """The tables of these replicates."""
        ordered = sorted(everything, key=lambda played: str(played.replicate["key"]))
        rounds = tuple(row for played in ordered for row in played.rounds)
        return cls(tuple(played.replicate for played in ordered), rounds)

    @property
    def played(self) -> tuple[Played, ...]:
        """Each replicate with its rounds."""
        rounds: dict[str, list[Row]] = {}
        for row in self.rounds:
            rounds.setdefault(row["key"], []).append(row)
        return tuple(Played(row, tuple(rounds.get(row["key"], ()))) for row in self.replicates)

    @property
    def experiments(self) -> tuple[str, ...]:
        """Names of the experiments, in the order of their first row."""
        return tuple(dict.fromkeys(row["experiment"] for row in self.replicates))


@record
class Place:
    """The files of one `--out`; a name that ends otherwise is refused."""

    out: Path  # the file of replicates; its name ends in .parquet

    def __post_init__(self) -> None:
        object.__setattr__(self, "out", Path(self.out))
        if self.out.suffix != ".parquet" or self.out.name.endswith(".rounds.parquet"):
            raise InvalidInput(
                f"--out is {self.out}; results are written as NAME.parquet, with the rounds in NAME.rounds.parquet."
            )
        if is_folder(self.out) or is_file(self.parts):
            raise InvalidInput(f"{self.out} or {self.parts} is in the way; choose another --out.")

    @property
    def rounds(self) -> Path:
        return self.out.with_suffix(".rounds.parquet")

    @property
    def parts(self) -> Path:
        return self.out.with_suffix(".parts")

    def part(self, digest: str, seed: int) -> Path:
        """The file of one replicate while the experiment runs."""
        return self.parts / f"{digest}-{seed:06d}.json"

    def write_part(self, digest: str, seed: int, played: Played) -> None:
        """Keep a replicate: after this it survives whatever happens to the process."""
        path = self.part(digest, seed)
        unfinished = path.with_suffix(".unfinished")
        try:
            unfinished.write_text(to_json(played), encoding="utf-8")
            unfinished.replace(path)
        except OSError as error:
            raise StorageError(
                f"{path} cannot be written: {error.strerror}. Other parts are kept; run again."
            ) from error

    def read_part(self, digest: str, seed: int, key: str) -> Played | None:
        """A replicate that is kept; None if it is not there, or not what it should be."""
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            kept = json.loads(self.part(digest, seed).read_text(encoding="utf-8"))
            if kept["replicate"]["key"] == key:
                return Played(kept["replicate"], tuple(kept["rounds"]))
        return None

    def open_parts(self) -> None:
        """Make the folder of parts."""
        try:
            self.parts.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidInput(f"{self.parts} cannot be made: {error.strerror}. Choose another --out.") from error

    def write(self, everything: Iterable[Played]) -> Results:
        """Write both tables, each by rename."""
        results = Results.of(everything)
        _write(self.rounds, results.rounds, Round)
        _write(self.out, results.replicates, Replicate)
        return results

    def remove_parts(self, names: Iterable[tuple[str, int]]) -> None:
        """Remove the parts of these (digest, seed), and the folder if no other part is in it."""
        for digest, seed in names:
            self.part(digest, seed).unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self.parts.rmdir()


def _write(path: Path, rows: tuple[Row, ...], kind: type[Any]) -> None:
    kinds = column_kinds(kind)
    write_table(path, {name: [row.get(name) for row in rows] for name in kinds}, kinds=kinds)


def read_results(out: str | Path) -> Results:
    """The two tables of a finished experiment."""
    place = Place(Path(out))
    if not is_file(place.out) and is_folder(place.parts):
        raise InvalidInput(
            f"{place.out} is not there yet: {place.parts} holds an experiment that did not finish. Run the same "
            "`surepick bench run` again; it goes on where it stopped."
        )
    replicates = tuple(_rows(place.out, Replicate))
    if not is_file(place.rounds):
        raise InvalidInput(
            f"{place.rounds} is missing, which belongs to {place.out}. Put it back, or move {place.out.name} away and "
            "run the experiment again."
        )
    return Results(replicates, tuple(_rows(place.rounds, Round)))


def _rows(path: Path, kind: type[Any]) -> Iterator[Row]:
    columns = read_columns(path)
    missing = [name for name in column_kinds(kind) if name not in columns]
    if missing:
        raise InvalidInput(
            f"{path} has no column {missing[0]!r}: it is not a table that `surepick bench run` of this version wrote."
        )
    return (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))


def finished(place: Place) -> Mapping[str, Played]:
    """What an earlier run has written to the two files: key -> replicate; empty when there are none."""
    if not is_file(place.out):
        return {}
    return {played.replicate["key"]: played for played in read_results(place.out).played}
