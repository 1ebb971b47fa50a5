"""The records that flow between the parts. Their one JSON codec is in codec.py.

    Arms -embedding-> Embedding -design-> Design -rounding-> Plan
         -someone pulls-> Observations -policy-> Step, Certificate

Every record is frozen; arrays.py says what that means for the arrays inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from surepick.arrays import BoolArray, FloatArray, IntArray, freeze, record, settled
from surepick.errors import InvalidInput, OutOfTurn
from surepick.intervals import Deciding
from surepick.settings import storable_text, texts_of
from surepick.text import printable

__all__ = [
    "CHECKED_ENTRIES",
    "VERDICTS",
    "Allocation",
    "Arms",
    "BoolArray",
    "Certificate",
    "Design",
    "Embedding",
    "FloatArray",
    "IndependentArms",
    "IntArray",
    "Lease",
    "Observations",
    "Plan",
    "RoundRecord",
    "Step",
    "checked_ids",
    "feature_matrix",
    "freeze",
    "pull_key",
    "record",
    "settled",
]


def _named(rows: IntArray, ids: Sequence[str], most: int = 5) -> str:
    shown = ", ".join(repr(ids[row]) for row in rows[:most])
    return shown + (f" and {len(rows) - most} more" if len(rows) > most else "")


def checked_ids(ids: Sequence[object] | None, num_arms: int) -> tuple[str, ...]:
    """The arms' ids as unique strings; "0".."K-1" when none are given.

    Raises:
        InvalidInput: they are no sequence, their number is not K, one is missing (None, NaN) or no text that a file
            can hold, or two are equal.
    """
    if ids is None:
        return tuple(str(row) for row in range(num_arms))
    names = texts_of("ids", ids)
    storable_text("an id", "".join(names))
    if len(names) != num_arms:
        raise InvalidInput(f"there are {len(names)} ids for {num_arms} arms; give one id per arm.")
    if len(set(names)) != num_arms:
        seen: set[str] = set()
        repeated = [name for name in names if name in seen or seen.add(name)]  # type: ignore[func-returns-value]
        raise InvalidInput(
            f"{len(repeated)} ids are repeated (the first is {repeated[0]!r}); an id must name one arm. "
            "If the rows are repeated measurements of the same arm, load them as a table of measurements."
        )
    return names


CHECKED_ENTRIES = 4_000_000


def _matrix(features: ArrayLike) -> FloatArray:
    """The features as a read-only (K, D) array: a float64 copy, unless nobody can write to the float array given."""
    if isinstance(features, np.ndarray) and features.dtype in (np.float32, np.float64) and settled(features):
        matrix: FloatArray = np.asarray(features)
    else:
        try:
            if np.iscomplexobj(features):
                raise TypeError("complex numbers have no order")
            matrix = np.array(features, dtype=np.float64)
        except (OverflowError, TypeError, ValueError) as error:
            raise InvalidInput(f"features are not a numeric (K, D) array: {error}.") from error
        matrix.flags.writeable = False
    if matrix.ndim != 2:
        raise InvalidInput(f"features have shape {matrix.shape}; they must be (K, D), one row an arm.")
    if matrix.shape[0] == 0:
        raise InvalidInput("there is no arm (K = 0); nothing can be chosen.")
    return matrix


def _refuse_not_finite(matrix: FloatArray, ids: Sequence[str] | None) -> None:
    step = max(1, CHECKED_ENTRIES // max(matrix.shape[1], 1))
    tops = range(0, len(matrix), step)
    bad = np.concatenate([top + np.flatnonzero(~np.isfinite(matrix[top : top + step]).all(axis=1)) for top in tops])
    if bad.size:
        names = checked_ids(ids, len(matrix))
        raise InvalidInput(
            f"{bad.size} of {len(names)} arms have NaN or infinite features: {_named(bad, names)}. "
            "Fill or drop these rows."
        )


def feature_matrix(features: ArrayLike) -> FloatArray:
    """Features checked as those of `Arms` are, which names no arm unless it must.

    Returns:
        Shape (K, D), read-only; float64, or the array that was given if nobody can write to it, which may be float32.

    Raises:
        InvalidInput: no arm, wrong shape, non-finite features (the rows are named).
    """
    matrix = _matrix(features)
    _refuse_not_finite(matrix, None)
    return matrix


@record
class Arms:
    """What is chosen among.

    Args:
        features: shape (K, D), finite floats, one row an arm; None or (K, 0) when the arms have no features. A
            read-only float32 or float64 array that nobody can write to (memory-mapped with mode "r", or frozen by its
            owner) is kept as it is and read in blocks; anything else becomes a float64 copy. float32 numbers are
            float64 numbers, and are computed with as such.
        ids: K unique strings; "0".."K-1" when None.
        columns: names of the D feature columns, for messages; may be None.
        preparation: what was done to the features ("standardize", "intercept"), in order; a norm bound refers to
            the result.

    Raises:
        InvalidInput: no arm, wrong shape, non-finite features (the rows are named), repeated ids.
    """

    features: FloatArray
    ids: tuple[str, ...]
    columns: tuple[str, ...] | None
    preparation: tuple[str, ...]

    def __init__(
        self,
        features: ArrayLike | None = None,
        ids: Sequence[object] | None = None,
        *,
        columns: Sequence[str] | None = None,
        preparation: Sequence[str] = (),
    ) -> None:
        if features is None:
            if ids is None:
                raise InvalidInput("arms need features, or ids, or both.")
            ids = texts_of("ids", ids)
            features = np.empty((len(ids), 0))
        matrix = _matrix(features)
        names = checked_ids(ids, matrix.shape[0])
        _refuse_not_finite(matrix, names)
        object.__setattr__(self, "features", matrix)
        object.__setattr__(self, "ids", names)
        object.__setattr__(self, "columns", None if columns is None else texts_of("columns", columns))
        object.__setattr__(self, "preparation", texts_of("preparation", preparation))

    @property
    def num_arms(self) -> int:
        return len(self.ids)


@record
class Embedding:
    """Arms as vectors of which the mean reward is nearly a linear function.

    Args:
        features: psi_d, shape (K, d).
        misspecification: gamma-tilde(d) >= |h(x) - <psi_d(x), theta_d>| for every arm, in reward units.
    """

    features: FloatArray
    misspecification: float

    def __post_init__(self) -> None:
        freeze(self, features=np.float64)

    @property
    def num_arms(self) -> int:
        return int(self.features.shape[0])

    @property
    def dim(self) -> int:
        return int(self.features.shape[1])


@record
class IndependentArms:
    """Arms without structure: one parameter an arm, misspecification 0.

    The features are the K x K identity, formed only when somebody asks for them; design and estimation use the
    diagonal form.
    """

    num_arms: int

    @property
    def misspecification(self) -> float:
        return 0.0

    @property
    def dim(self) -> int:
        return self.num_arms

    @property
    def features(self) -> FloatArray:
        return np.eye(self.num_arms)


@record
class Design:
    """Weights over the arms that say where to measure, with a certificate of their quality.

    Args:
        weights: lambda, shape (K,), non-negative, sum 1.
        value: max over pairs of active arms of ||x_a - x_b||^2 in A(weights)^-1, of *these* weights.
        lower_bound: no design has a smaller value.
        rank: dimension of the span of the arms' features, as the solver saw it.
    """

    weights: FloatArray
    value: float
    lower_bound: float
    rank: int

    def __post_init__(self) -> None:
        freeze(self, weights=np.float64)

    @property
    def gap(self) -> float:
        """value / lower_bound - 1: how far from optimal these weights can be at most."""
        if self.value == self.lower_bound:
            return 0.0
        return self.value / self.lower_bound - 1.0 if self.lower_bound > 0 else float("inf")


@record
class Allocation:
    """A design rounded to whole pulls.

    Args:
        counts: n, shape (K,), non-negative integers.
        total: N, their sum (it may exceed what was asked, to keep the rounding promise).
        value: N times the largest ||x_a - x_b||^2 in A(n)^-1 over pairs of active arms: comparable to the design's.
    """

    counts: IntArray
    total: int
    value: float

    def __post_init__(self) -> None:
        freeze(self, counts=np.int64)


@record
class Lease:
    """Who measures a part of a plan, and until when it is theirs.

    Args:
        number: serial number of the lease among those of the plan, from 1.
        plan: number of the plan in its study, from 1.
        worker: who measures.
        until: seconds since 1970 (UTC); what is missing then is offered to others.
    """

    number: int
    plan: int
    worker: str
    until: float


def pull_key(plan: int, ordinal: int, name: str) -> str:
    """The key of one leased pull of the arm of that name."""
    return f"p{plan}.{ordinal}@{name}"


@record
class Plan:
    """What to measure next.

    Args:
        round: 1, 2, ...
        counts: pulls asked of each arm, shape (K,).
        look: which look inside the round this is, 1 .. looks.
        looks: looks in the round; results are judged after each, with the error probability divided among them.
        allocation: pulls of the whole round, shape (K,); fixed when the round opens.
        dim: dimension of the embedding used, 0 for policies without one.
        value: tau, the design's value; None without a design.
        lower_bound: certified lower bound on the best possible tau; None without a design.
        misspecification: gamma-tilde of the embedding, in reward units.
        ids: ids of the arms, for `table`; None inside a policy.
        candidate: the arm that the batch is to certify, for policies that certify one; `value` is then the number of
            pulls that this is predicted to take still.
        lease: who measures these pulls, if `counts` is a part that was leased; else None.
        ordinals: number of each leased pull among all that were ever leased of its arm in the plan, from 0, arm by
            arm, shape (total,); a pull that is leased again has a new one. None if nothing is leased.
    """

    round: int
    counts: IntArray
    look: int = 1
    looks: int = 1
    allocation: IntArray | None = None
    dim: int = 0
    value: float | None = None
    lower_bound: float | None = None
    misspecification: float = 0.0
    ids: tuple[str, ...] | None = None
    candidate: int | None = None
    lease: Lease | None = None
    ordinals: IntArray | None = None

    def __post_init__(self) -> None:
        freeze(self, counts=np.int64, allocation=np.int64, ordinals=np.int64)

    @property
    def total(self) -> int:
        """Pulls asked, all arms together."""
        return int(self.counts.sum())

    def table(self) -> list[tuple[str, int]]:
        """[(id, pulls)] of the arms to be pulled."""
        return [
            (str(arm) if self.ids is None else self.ids[arm], int(self.counts[arm]))
            for arm in np.flatnonzero(self.counts)
        ]

    def keys(self) -> list[tuple[str, str]]:
        """[(id, key)], one row a pull, of a plan that is leased: tell each result with its key, and it counts once.

        Raises:
            OutOfTurn: the plan is not leased.
        """
        if self.total == 0:
            return []
        if self.lease is None or self.ordinals is None:
            raise OutOfTurn("only pulls that are leased have keys; ask(worker=...) for some.")
        arms = np.repeat(np.arange(len(self.counts)), self.counts)
        names = [str(arm) if self.ids is None else self.ids[arm] for arm in arms.tolist()]
        return [
            (name, pull_key(self.lease.plan, ordinal, name))
            for name, ordinal in zip(names, self.ordinals.tolist(), strict=True)
        ]


@record
class Observations:
    """Sufficient statistics of what was measured.

    Args:
        counts: pulls received of each arm, shape (K,).
        sums: sum of the rewards of each arm, shape (K,), in reward units.
        squares: sum of the squared rewards, shape (K,); None when only totals were reported.
    """

    counts: IntArray
    sums: FloatArray
    squares: FloatArray | None = None

    def __post_init__(self) -> None:
        freeze(self, counts=np.int64, sums=np.float64, squares=np.float64)

    @property
    def total(self) -> int:
        """Pulls received, all arms together."""
        return int(self.counts.sum())

    @property
    def means(self) -> FloatArray:
        """Mean reward of each arm, shape (K,); 0 where nothing was measured."""
        return np.divide(self.sums, self.counts, out=np.zeros_like(self.sums), where=self.counts > 0)

    @staticmethod
    def nothing(num_arms: int) -> Observations:
        """No pull of any arm yet."""
        return Observations(np.zeros(num_arms, np.int64), np.zeros(num_arms), np.zeros(num_arms))

    def plus(self, other: Observations) -> Observations:
        """Both together."""
        both = self.squares is not None and other.squares is not None
        return Observations(
            self.counts + other.counts,
            self.sums + other.sums,
            self.squares + other.squares if both else None,  # type: ignore[operator]
        )


@record
class RoundRecord:
    """What a human wants to know of a round: a row of the trace.

    Args:
        round, look, looks, dim, value, lower_bound, misspecification: as in the plan.
        pulls: pulls received in this round so far.
        total_pulls: pulls received since the start.
        active: indices of the arms not ruled out.
        leader: the arm that would be recommended now.
        certified_gap: with the stated confidence the leader is at most this much worse than the best arm, in reward
            units; None when nothing can be said yet.
        alarms: what the checks of the embedding found at this look, in words.
    """

    round: int
    look: int
    looks: int
    dim: int
    value: float | None
    lower_bound: float | None
    misspecification: float
    pulls: int
    total_pulls: int
    active: IntArray
    leader: int
    certified_gap: float | None
    alarms: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        freeze(self, active=np.int64)


S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Step(Generic[S]):
    """One transition of a policy: the next state, the trace row, and the intervals that decided.

    Args:
        state: the next state.
        record: the row of the trace.
        deciding: gives the intervals that decided, from those of the look before; computed only for whoever asks.
            None for policies that decide by no interval.
    """

    state: S
    record: RoundRecord
    deciding: Deciding | None = field(default=None, compare=False, repr=False)


VERDICTS = ("certified", "heuristic", "not-yet", "budget-exhausted")


@record
class Certificate:
    """The answer, and what it rests on.

    Args:
        best_arm: id of the recommended arm.
        arm: its index.
        epsilon: the arm is at most this much worse than the best one, in reward units ...
        delta: ... except with this probability, under the assumptions.
        pulls: measurements spent.
        verdict: "certified", "heuristic", "not-yet" or "budget-exhausted".
        reason: why the verdict is what it is, in words.
        assumptions: sentences that the certificate rests on.
        certified_gap: the smallest epsilon that the data support, None when nothing can be said.
        minimize: small rewards are good.
        rounds: the trace.
    """

    best_arm: str
    arm: int
    epsilon: float
    delta: float
    pulls: int
    verdict: str
    reason: str
    assumptions: tuple[str, ...]
    certified_gap: float | None = None
    minimize: bool = False
    rounds: tuple[RoundRecord, ...] = ()

    @property
    def promise(self) -> str:
        """What may be claimed, in one sentence."""
        best = "smallest" if self.minimize else "largest"
        if self.verdict == "certified":
            return (
                f"Its mean is within {self.epsilon:g} of the {best} of all; "
                f"this statement is wrong with probability at most {self.delta:g}."
            )
        if self.verdict == "heuristic":
            return f"Its mean should be within {self.epsilon:g} of the {best} of all, but that is not a theorem."
        if self.certified_gap is None or self.pulls == 0:
            return f"Not certified to within {self.epsilon:g}: nothing can be said yet about how good it is."
        return (
            f"Not certified to within {self.epsilon:g}: so far its mean is proved to be within "
            f"{self.certified_gap:.4g} of the {best} of all."
        )

    def __str__(self) -> str:
        lines = [
            f"{self.best_arm}   {self.verdict}",
            self.promise,
            self.reason,
            f"Measurements spent: {self.pulls:,}",
            *(["This holds if:"] if self.assumptions else []),
            *(f"  - {sentence}" for sentence in self.assumptions),
        ]
        return "\n".join(printable(line) for line in lines)
