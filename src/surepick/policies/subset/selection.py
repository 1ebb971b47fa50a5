"""Subset selection: measure few of very many candidates, until a short list of them has the best one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np

from surepick.blocks.executors import executor_of
from surepick.blocks.map_reduce import Meter, Passes
from surepick.blocks.moments import Coordinates
from surepick.blocks.rows import RowBlocks
from surepick.blocks.sources import rows_of
from surepick.core.arms import Arms, KnownIds
from surepick.core.arrays import FloatArray, IntArray, record
from surepick.core.observations import Observations
from surepick.core.plan import Plan
from surepick.core.step import Step
from surepick.designs.long_lists.d_optimal import SparseDesign
from surepick.embeddings.kernel_functions import Kernel
from surepick.embeddings.kernel_names import make_kernel
from surepick.errors import InvalidInput
from surepick.linalg.blas_threads import one_blas_thread
from surepick.linalg.factorisations import solve_positive_definite
from surepick.noise import Noise, Normal, failure_probability, parse_noise
from surepick.policies.base import Claim, Problem, Spec, Traits, trace_row
from surepick.policies.carried.batch_sizes import rounded
from surepick.policies.subset.chosen import Subset, SubsetRules, Told
from surepick.policies.subset.evidence import Bet, Left, Rule, left, left_of
from surepick.policies.subset.looking import FirstLook

USUAL_SIZE = 50_000
HEURISTIC_FIRST = 4  # pulls for each direction in the first batch
HELD = 2_000_000  # rows whose features are held once no more are left
MOST_PATHS = 1000  # candidates of which a certificate shows that they are on the long list
STORED = 100_000  # rows that a state lists
OVER = (
    "This study only shortens a list: with probability at least {sure:g}, {best} is among the {left:,} of {total:,} "
    "candidates on the short list. Which of them is good is the question of the next study."
)
BEST, NEARLY = "the best candidate", "one that is worse than the best by at most {slack:g}"


@record
class SubsetState:
    """Where the selection stands.

    Args:
        round: the next batch, from 1.
        batches: what was told, of the arms that may be measured, batch by batch.
        bets: of each batch that served a candidate.
        candidates: rows that were candidates; they stay on the list.
        left: how many rows are not beaten.
        rows: which, if they are few; None: they follow from the bets.
        served: the row that looks best, which the next batch is to serve; -1 before the first.
        leader: the arm that looks best of those that are measured.
        finished: "shortened" when the list is short enough; "" while it is not.
    """

    round: int
    batches: tuple[Observations, ...]
    bets: tuple[Bet, ...]
    candidates: tuple[int, ...]
    left: int
    rows: IntArray | None
    served: int
    leader: int
    finished: str

    @property
    def active(self) -> IntArray:
        """The arms that may be measured, all of them; what is left of the list is `rows`."""
        return np.arange(len(self.batches[0].counts) if self.batches else 0)

    @property
    def pulls(self) -> int:
        return sum(one.total for one in self.batches)

    def seen(self, num_arms: int) -> Observations:
        """All batches together."""
        return together(self.batches, num_arms)


def together(batches: Sequence[Observations], num_arms: int) -> Observations:
    """All batches together."""
    found = Observations.nothing(num_arms)
    for one in batches:
        found = found.plus(one)
    return found


class _Held:
    """The rows that were left last, with their features, and the bets behind them; copied and pickled as empty."""

    __slots__ = ("bets", "features", "found")

    def __init__(self) -> None:
        self.bets: tuple[Bet, ...] | None = None
        self.found: Left | None = None
        self.features: FloatArray | None = None

    def __reduce__(self) -> tuple[type[_Held], tuple[()]]:
        return _Held, ()


@record
class SubsetSelection:
    """Measure a few of K candidates until at most `size` of all K are left that can be the best one.

        theta_hat_b: least squares of batch b,   a = y'A_b^-1 y,   y = u_c - u_j
        log M_j >= sum_b [tau (y'theta_hat_b - bias) - tau^2 a / 2]         if j is the best of all
        j leaves when that reaches log(1/delta)

    for any tau that is a function of the past and of the counts of the batch. The best candidate leaves with
    probability at most delta, however many there are: a wrong list takes the process of that one to reach 1/delta
    (docs/large.md has the proof).

    Each batch is the D-optimal design of all K, and as large as all batches before it. A candidate is the one that
    looked best before the batch. Its batch costs a pass over the rows; nothing is kept of each.

    Args:
        problem: what is asked about the list, and the arms that may be measured: those with weight in the design.
        passes: over all K rows.
        look: what was found out about them before the first measurement: the design, and how rows are seen.
        rules: when the list is short enough, what is assumed, and the probability that the best is not on it.

    Source: ours; the promise is that of subset selection, Gupta (1965).
    Cost: O(K (D r + B r^2)) time for the pass of the B-th batch.
    """

    problem: Problem
    passes: Passes
    look: FirstLook
    rules: SubsetRules
    _held: _Held = field(default_factory=_Held, init=False, compare=False, repr=False)
    spec: Spec | None = field(default=None, compare=False, repr=False, kw_only=True)

    @staticmethod
    def over(
        where: Any,
        *,
        delta: float,
        noise: Noise | str,
        norm_bound: float,
        size: int = USUAL_SIZE,
        slack: float = 0.0,
        max_rank: int | None = None,
        kernel: Kernel | str | None = None,
        epsilon: float | None = None,
        executor: Any = None,
        meter: Meter | None = None,
        look: Mapping[str, Any] | None = None,
        promised: tuple[float, float] | None = None,
    ) -> SubsetSelection:
        """The selection from rows in files or in memory. It makes some four passes over them, before any measurement.

        Args:
            where: an array, a .npy file, a folder of them, or `RowBlocks`.
            delta: probability that the best is not on the list, in (0, 1).
            noise: what is assumed of a reward; only its sub-Gaussian scale is used.
            norm_bound: C.
            size, slack: as in the record.
            max_rank: directions of the features, or landmarks of the kernel, that are kept at most; what the others
                hold counts as misspecification.
            kernel: rewards have norm at most C in its space ("gaussian:0.1"); None: they are linear in the features.
            epsilon: the shortfall that matters, in reward units, by which landmarks are chosen; only with a kernel.
            executor: who makes the passes: None (this process), "processes:N", "dask:tcp://HOST:PORT", or a client.
            meter: notes the passes, and is told how far each is.
            look: what these passes found, as `FirstLook.spec` gives it; None: they are made.
            promised: (epsilon, delta) of the answer that is looked for with the list; None: nobody says.

        Raises:
            InvalidInput: the rows cannot be read, or a setting has no meaning.
        """
        rows: RowBlocks = rows_of(where)
        passes = Passes(rows, executor_of(executor), Meter() if meter is None else meter)
        assumed = parse_noise(noise) if isinstance(noise, str) else noise
        unknown = isinstance(assumed, Normal) or not isinstance(assumed, Noise)
        if unknown or failure_probability(assumed, delta) > 0.0:
            raise InvalidInput(
                f"noise is {noise!r}; a list is shortened with noise of a declared scale: bernoulli, "
                "bounded:LOW:HIGH or subgaussian:S."
            )
        known = None if kernel is None else make_kernel(kernel)
        rules = SubsetRules(delta, assumed.spec, norm_bound, size, slack, max_rank, _named(known), epsilon)
        if look is None:
            with one_blas_thread():
                seen = FirstLook.at(passes, known, rules)
        else:
            seen = FirstLook.of(look, rows, known)
        asked, wanted = (max(slack, 1.0), delta) if promised is None else promised
        problem = Problem(seen.arms.num_arms, asked, wanted, assumed, arms=seen.arms)
        return SubsetSelection(problem, passes, seen, rules)

    @property
    def where(self) -> Coordinates:
        """The coordinates in which rows are seen."""
        return self.look.where

    @property
    def design(self) -> SparseDesign:
        """What is measured."""
        return self.look.design

    @property
    def rule(self) -> Rule:
        """What decides whether a row is beaten."""
        rules, where = self.rules, self.where
        gamma = rules.norm_bound * where.left
        return Rule(math.log(1.0 / rules.delta), rules.slack, rules.norm_bound, gamma, where.longest)

    @property
    def traits(self) -> Traits:
        return Traits(
            uses_features=True,
            certifies="nothing",
            assumptions=(self.rules.sentence(self.passes.rows.num_columns),),
            rows=self.passes.rows,
        )

    def init(self) -> SubsetState:
        num_rows = self.passes.rows.num_rows
        finished, rows = "", None
        if num_rows <= self.rules.size:
            finished, rows = "shortened", np.arange(num_rows)
        return SubsetState(1, (), (), (), num_rows, rows, -1, 0, finished)

    def ask(self, state: SubsetState) -> Plan:
        total = max(state.pulls, HEURISTIC_FIRST * self.where.rank)
        counts = rounded(self.design.weights, total, state.round)
        return Plan(
            round=state.round,
            counts=counts,
            dim=self.where.rank,
            design_value=self.design.value,
            lower_bound=self.design.lower_bound,
            misspecification=self.rule.misspecification,
        )

    def tell(self, state: SubsetState, plan: Plan, seen: Observations) -> Step[SubsetState]:
        before, bets, candidates = state.seen(self.problem.num_arms), state.bets, state.candidates
        if state.served >= 0:
            centre = self.where.of(self.passes.rows.take(np.array([state.served])))[0]
            bet = Bet.of(centre, self._guess(before), self.design.features, seen.counts, seen.sums, self._scale)
            bets = bets if bet is None else (*bets, bet)
            candidates = candidates if state.served in candidates else (*candidates, state.served)
        guess = self._guess(before.plus(seen))
        found = self._left(bets, guess)
        kept = found.rows if found.rows is not None and found.number <= max(STORED, self.rules.size) else None
        after = SubsetState(
            state.round + (seen.total > 0),
            (*state.batches, replace(seen, answers=None, blocks=None, quantities=None)),
            bets,
            candidates,
            found.number,
            kept,
            int(found.best.rows[0]) if found.number else candidates[-1],
            int(np.argmax(self.design.features @ guess)),
            "shortened" if found.number <= self.rules.size else "",
        )
        row = trace_row(plan, after, pulls=seen.total, gap=None)
        return Step(after, replace(row, rows_left=found.number))

    def claim(self, state: SubsetState) -> Claim:
        best = BEST if self.rules.slack == 0.0 else NEARLY.format(slack=self.rules.slack)
        sure, total = 1.0 - self.rules.delta, self.passes.rows.num_rows
        number = len(self.subset(state)) if state.finished else state.left
        reason = OVER.format(sure=sure, best=best, left=number, total=total) if state.finished else ""
        return Claim(
            state.leader,
            state.finished,
            state.pulls,
            spent=self.rules.delta,
            assumptions=self.traits.assumptions,
            reason=reason,
        )

    def subset(self, state: SubsetState) -> IntArray:
        """The short list: numbers of rows, ascending. The candidates that beat others are on it.

        Raises:
            InvalidInput: the list is not short yet.
        """
        if state.rows is None or not state.finished:
            raise InvalidInput(f"the list is not short yet: {state.left:,} candidates are left; measure on.")
        return np.union1d(state.rows, np.array(state.candidates, np.int64))

    def selected(self, state: SubsetState) -> tuple[Arms, Subset]:
        """(the candidates of the next study, where they come from): the short list, and all that may be measured.

        Raises:
            InvalidInput: the list is not short yet.
        """
        rows = np.union1d(self.subset(state), self.design.rows)
        proved = rows if len(rows) <= MOST_PATHS else self.design.rows
        source, tree = self.passes.rows, self.look.tree_of(self.passes)
        subset = Subset(
            total=source.num_rows,
            columns=source.num_columns,
            root=self.look.root,
            sizes=self.look.sizes,
            rules=self.rules,
            rows=tuple(rows.tolist()),
            batches=tuple(Told.of(one, self.arms.ids) for one in state.batches),
            paths=tuple(tree.path(row) for row in proved.tolist()),
        )
        return Arms(source.take(rows), KnownIds(source.ids(rows))), subset

    @property
    def arms(self) -> Arms:
        """The candidates that may be measured.

        Raises:
            InvalidInput: nobody said which they are.
        """
        if self.problem.arms is None:
            raise InvalidInput("a selection is made by SubsetSelection.over.")
        return self.problem.arms

    @property
    def _scale(self) -> float:
        return self.problem.sigma

    def _guess(self, seen: Observations) -> FloatArray:
        """theta by least squares of everything, with a little shrinkage where directions were not seen; (r,)."""
        features, rank = self.design.features, self.where.rank
        information = (features.T * seen.counts) @ features + 1e-9 * self.where.information
        solved = solve_positive_definite(information, features.T @ seen.sums) if seen.total else None
        return np.zeros(rank) if solved is None else solved

    def _left(self, bets: tuple[Bet, ...], guess: FloatArray) -> Left:
        """The rows that are not beaten; those that were last are enough, where they were few and the bets went on."""
        held = self._held
        known = held.found is not None and held.bets is not None and bets[: len(held.bets)] == held.bets
        with one_blas_thread():
            if known and held.found is not None and held.found.rows is not None and held.features is not None:
                found = left_of(held.found.rows, held.features, self.rule, bets, guess)
                where = np.searchsorted(held.found.rows, found.rows) if found.rows is not None else slice(None)
                features = held.features[where]
            else:
                most = HELD if bets or self.passes.rows.num_rows <= HELD else 0  # without bets nobody is beaten
                found = left(self.passes, self.where, self.rule, bets, guess, most=most)
                features = None
                if found.rows is not None:
                    features = self.where.of(self.passes.rows.take(found.rows))
        held.bets, held.found, held.features = bets, found, features
        return found


def _named(kernel: Kernel | None) -> str | None:
    """The text of a kernel.

    Raises:
        InvalidInput: it has none, so that nobody could select again.
    """
    if kernel is not None and kernel.spec is None:
        raise InvalidInput("a selection takes a kernel with a name: gaussian:GAMMA, matern:NU:LENGTH_SCALE, ...")
    return None if kernel is None else kernel.spec
