"""Subset selection: measure few of very many candidates, until a short list of them has the best one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field, fields, replace
from typing import Any

import numpy as np

from surepick.chunks.moments import Coordinates
from surepick.chunks.passes import Meter, Passes, executor_of
from surepick.chunks.sources import RowBlocks, rows_of
from surepick.core.arms import Arms, KnownIds
from surepick.core.observations import Observations
from surepick.core.plans import Plan, Step
from surepick.core.records import FloatArray, IntArray, record
from surepick.designs.long_lists import SparseDesign
from surepick.embeddings.kernel import make_kernel
from surepick.embeddings.kernel_functions import Kernel
from surepick.errors import InvalidInput
from surepick.linalg.factorisations import solve_positive_definite
from surepick.linalg.rows import one_blas_thread
from surepick.noise import Noise, Normal, failure_probability, parse_noise
from surepick.policies.base import Claim, Policy, Problem, Spec, Traits, trace_row
from surepick.policies.sequential.batches import rounded_batch
from surepick.policies.subset.evidence import FirstPass, Left, RowBet, Rule, Subset, SubsetRules, Tally, left, left_of

USUAL_SIZE = 50_000
HEURISTIC_FIRST_BATCH = 4  # pulls for each direction in the first batch
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
    """Where the selection stands."""

    round: int  # the next batch, from 1
    batches: tuple[Observations, ...]  # what was told, of the arms that may be measured, batch by batch
    bets: tuple[RowBet, ...]  # of each batch that served a candidate
    candidates: tuple[int, ...]  # rows that were candidates; they stay on the list
    left: int  # how many rows are not beaten
    rows: IntArray | None  # which, if they are few; None: they follow from the bets
    served: int  # the row that looks best, which the next batch is to serve; -1 before the first
    leader: int  # the arm that looks best of those that are measured
    finished: str  # "shortened" when the list is short enough; "" while it is not

    @property
    def active(self) -> IntArray:
        """The arms that may be measured, all of them; what is left of the list is `rows`."""
        return np.arange(len(self.batches[0].counts) if self.batches else 0)

    @property
    def pulls(self) -> int:
        return sum(one.total for one in self.batches)

    def seen(self, num_arms: int) -> Observations:
        """All batches together."""
        return Observations.together(self.batches, num_arms)


class _Held:
    """The rows that were left last, with their features, and the bets behind them; copied and pickled as empty."""

    __slots__ = ("bets", "features", "found")

    def __init__(self) -> None:
        self.bets: tuple[RowBet, ...] | None = None
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
    looked best before the batch. Its batch costs a pass over the rows, O(K (D r + B r^2)); nothing is kept of each.
    The promise is that of subset selection, Gupta (1965).
    """

    problem: Problem  # what is asked about the list, and the arms that may be measured: those with weight in the design
    passes: Passes  # over all K rows
    look: FirstPass  # what was found out about them before the first measurement: the design, and how rows are seen
    rules: SubsetRules  # when the list is short enough, what is assumed, and the probability that the best is not on it
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
        """The selection from rows in files or in memory: some four passes over them, before any measurement."""
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
                seen = FirstPass.at(passes, known, rules)
        else:
            seen = FirstPass.of(look, rows, known)
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
        short = num_rows <= self.rules.size
        rows, finished = np.arange(num_rows) if short else None, "shortened" if short else ""
        return SubsetState(1, (), (), (), num_rows, rows, -1, 0, finished)

    def ask(self, state: SubsetState) -> Plan:
        rank, design, gamma = self.where.rank, self.design, self.rule.misspecification
        counts = rounded_batch(design.weights, max(state.pulls, HEURISTIC_FIRST_BATCH * rank), state.round)
        value, bound = design.value, design.lower_bound
        return Plan(state.round, counts, dim=rank, design_value=value, lower_bound=bound, misspecification=gamma)

    def tell(self, state: SubsetState, plan: Plan, seen: Observations) -> Step[SubsetState]:
        before, bets, candidates = state.seen(self.problem.num_arms), state.bets, state.candidates
        if state.served >= 0:
            centre = self.where.of(self.passes.rows.take(np.array([state.served])))[0]
            bet = RowBet.of(centre, self._guess(before), self.design.features, seen.counts, seen.sums, self._scale)
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
        """The short list: numbers of rows, ascending. The candidates that beat others are on it."""
        if state.rows is None or not state.finished:
            raise InvalidInput(f"the list is not short yet: {state.left:,} candidates are left; measure on.")
        return np.union1d(state.rows, np.array(state.candidates, np.int64))

    def selected(self, state: SubsetState) -> tuple[Arms, Subset]:
        """(the candidates of the next study, where they come from): the short list, and all that may be measured."""
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
            batches=tuple(Tally.of(one, self.arms.ids) for one in state.batches),
            paths=tuple(tree.path(row) for row in proved.tolist()),
        )
        return Arms(source.take(rows), KnownIds(source.ids(rows))), subset

    @property
    def arms(self) -> Arms:
        """The candidates that may be measured."""
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

    def _left(self, bets: tuple[RowBet, ...], guess: FloatArray) -> Left:
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
    """The text of a kernel."""
    if kernel is not None and kernel.spec is None:
        raise InvalidInput("a selection takes a kernel with a name: gaussian:GAMMA, matern:NU:LENGTH_SCALE, ...")
    return None if kernel is None else kernel.spec


# --- A selection made again from the long list, by somebody who does not believe it.


@record
class LongList:
    """The long list behind the candidates of a study."""

    subset: Subset  # how they were selected

    @property
    def total(self) -> int:
        """Its candidates."""
        return self.subset.total

    @property
    def minimize(self) -> bool:
        """Small rewards are good."""
        return self.subset.minimize

    def check(self, rows: RowBlocks) -> str:
        """Select the candidates again; what was found, in words."""
        stated, rules = self.subset, self.subset.rules
        policy = SubsetSelection.over(rows, **{each.name: getattr(rules, each.name) for each in fields(rules)})
        if (policy.look.root, policy.look.sizes) != (stated.root, stated.sizes):
            raise InvalidInput(
                f"it is another list: its root is {policy.look.root[:16]}..., and that of the certificate "
                f"{stated.root[:16]}..."
            )
        places = {name: place for place, name in enumerate(policy.arms.ids)}
        state = policy.init()
        for batch in stated.batches:
            state = policy.tell(state, policy.ask(state), batch.among(places)).state
        if not state.finished:
            raise InvalidInput(f"after its measurements {state.left:,} candidates are left, more than {rules.size:,}.")
        expected = np.union1d(policy.subset(state), policy.design.rows)
        if expected.tolist() != sorted(stated.rows):
            raise InvalidInput(f"{len(expected):,} candidates are selected from it, and the certificate has others.")
        return f"{len(expected):,} of {self.total:,} candidates, the same again"


# --- The best of a list that was shortened: it is within epsilon of the best of the long list.


@record
class BestOfSubset:
    """Find the best of the selected candidates, from where their selection left off.

        P(wrong) <= P(the best of all is not selected) + P(the answer is not good among those selected)

    What was measured for the selection is no evidence here: it only says where to begin.

    Source: ours (docs/large.md, line 6).
    """

    problem: Problem  # what is asked about the long list
    inner: Policy[Any]  # finds the best of the arms with what the selection has left of delta and epsilon
    subset: Subset  # where the arms come from
    spec: Spec | None = field(default=None, compare=False, repr=False, kw_only=True)
    _prior: Observations = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        arms = self.problem.arms
        if arms is None:
            raise InvalidInput("the best of a selection is asked of arms with ids and features.")
        self.subset.check(arms)
        places = {name: place for place, name in enumerate(arms.ids)}
        told = [one.among(places) for one in self.subset.batches]
        object.__setattr__(self, "_prior", Observations.together(told, arms.num_arms))

    @property
    def traits(self) -> Traits:
        return replace(self.inner.traits, long_list=LongList(self.subset))

    @property
    def evidence(self) -> Any:
        """The kind of evidence of the inner policy."""
        return getattr(self.inner, "evidence", None)

    @property
    def _counted(self) -> int:
        """Pulls of the selection that the inner policy counts as its own."""
        return self._prior.total if self.evidence == "carried" else 0

    def init(self) -> Any:
        state = self.inner.init()
        if self._counted == 0 or self.inner.claim(state).finished:
            return state
        began = self.inner.tell(state, self.inner.ask(state), self._prior).state
        silent = began.vectors is not None and not began.vectors.begun  # the first batch has bet on nothing
        return replace(began, round=state.round) if silent and not began.finished else state

    def ask(self, state: Any) -> Plan:
        return self.inner.ask(state)

    def tell(self, state: Any, plan: Plan, seen: Observations) -> Step[Any]:
        step = self.inner.tell(state, plan, seen)
        return replace(step, record=replace(step.record, total_pulls=step.record.total_pulls - self._counted))

    def claim(self, state: Any) -> Claim:
        claim = self.inner.claim(state)
        own = max(0, claim.pulls - self._counted)
        return replace(
            claim,
            pulls=own,
            gap=None if claim.gap is None else claim.gap + self.subset.rules.slack,
            spent=claim.spent + self.subset.rules.delta,
            assumptions=(
                self.subset.sentence(self.problem.num_arms),
                *(f"Of the measurements for the selection: {fact}" for fact in self.subset.facts),
                *dict.fromkeys((self.subset.rules.sentence(self.subset.columns), *claim.assumptions)),
            ),
        )
