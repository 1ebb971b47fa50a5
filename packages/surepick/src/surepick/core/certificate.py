"""The answer, and what it promises."""

from surepick.core.plans import RoundRecord
from surepick.core.records import record
from surepick.drawings import cards, sentences
from surepick.drawings.numbers import decimals_for
from surepick.drawings.records import Candidates, ClosedRound, Trace
from surepick.text import money, printable


@record
class Segment:
    """The answer of one segment of the candidates."""

    name: str  # of the segment
    inside: tuple[str, ...]  # ids of its candidates, as in `Listed`
    outside: tuple[str, ...]
    undecided: tuple[str, ...]


@record
class Listed:
    """The answer to a question other than "which is the best"."""

    question: str  # in words
    first: str  # what is said of every candidate on the first list, in words
    second: str  # the same of the second list
    inside: tuple[str, ...]  # ids of the candidates on the first list: those that the question asks for
    outside: tuple[str, ...]  # ids of those on the second list
    undecided: tuple[str, ...]  # ids of those on neither, of which the question asks
    guarantee: str  # how often any of this, or which share of it, may be wrong, in words
    segments: tuple[Segment, ...] | None = None  # the same by segment, in the order of the arms; None: one list

    @property
    def headline(self) -> str:
        """The candidates on the first list, by segment if there are segments."""
        if self.segments is None:
            return named(self.inside)
        more = f"; and {len(self.segments) - MOST_NAMED:,} more segments" if len(self.segments) > MOST_NAMED else ""
        return "; ".join(f"{one.name}: {named(one.inside, 5)}" for one in self.segments[:MOST_NAMED]) + more

    @property
    def promise(self) -> str:
        """What may be claimed when nobody is undecided."""
        return f"{self.first} {self.second} {self.guarantee}"


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
        cost: money spent on them, in the currency of the costs; None where nothing has a cost.
        dropped: indices of the arms that were withdrawn and that the promise is not about; None: there are none.
        lists: the answer, where the question is not which arm is the best; then `best_arm` is the one that looks best.
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
    cost: float | None = None
    lists: Listed | None = None
    dropped: tuple[int, ...] | None = None

    @property
    def promise(self) -> str:
        """What may be claimed, in one sentence."""
        if self.lists is not None:
            return self._promise_of(self.lists)
        whom = "all" if self.dropped is None else "all that are left"
        best = f"{'smallest' if self.minimize else 'largest'} of {whom}"
        if self.verdict == "certified":
            near = f"within {self.epsilon:g} of the" if self.epsilon else "the"
            return f"Its mean is {near} {best}; this statement is wrong with probability at most {self.delta:g}."
        if self.verdict == "heuristic":
            return f"Its mean should be within {self.epsilon:g} of the {best}, but that is not a theorem."
        if self.certified_gap is None or self.pulls == 0:
            return f"Not certified to within {self.epsilon:g}: nothing can be said yet about how good it is."
        if self.certified_gap <= self.epsilon:
            return f"So far its mean is proved to be within {self.certified_gap:.4g} of the {best}."
        return (
            f"Not certified to within {self.epsilon:g}: so far its mean is proved to be within "
            f"{self.certified_gap:.4g} of the {best}."
        )

    def _promise_of(self, lists: Listed) -> str:
        if self.verdict == "certified":
            return lists.promise
        if self.verdict == "heuristic":
            return f"{lists.first} {lists.second} But that is not a theorem."
        if not lists.undecided:
            return "Nothing is promised yet."
        return (
            f"{len(lists.undecided)} candidates are undecided; {len(lists.inside)} are on the first list and "
            f"{len(lists.outside)} on the second."
        )

    @property
    def stated(self) -> str:
        """The verdict as the head line says it: of a study from which arms were withdrawn, what it is about."""
        return self.verdict if self.dropped is None else f"{self.verdict}, for the list that was left"

    @property
    def headline(self) -> str:
        """The answer: the recommended arm, or the arms on the first list."""
        return self.best_arm if self.lists is None else self.lists.headline

    def __str__(self) -> str:
        asked = [] if self.lists is None else [self.lists.question]
        lines = [
            *asked,
            f"{self.headline}   {self.stated}",
            self.promise,
            self.reason,
            f"Measurements spent: {self.pulls:,}",
            *([] if self.cost is None else [f"Money spent: {money(self.cost)}"]),
            *(["This holds if:"] if self.assumptions else []),
            *(f"  - {sentence}" for sentence in self.assumptions),
        ]
        return "\n".join(printable(line) for line in lines)

    def _repr_html_(self) -> str:
        """The answer, how the gap closed, and all that the answer rests on, for notebooks."""
        return cards.notebook(*self.html_parts(None))

    def html_parts(self, found: Candidates | None) -> list[str]:
        """The verdict, the pictures and what the answer rests on, as HTML; with the candidates of its study."""
        best = None if found is None else found.recommended
        trace = self._trace if found is None else found.trace
        decimals = decimals_for(trace.tolerance, [one.gap for one in trace.rounds if one.gap is not None])
        said = self.promise if found is None or best is None else sentences.promise(found)
        made_of = f"{self.pulls:,} measurements" + ("" if self.cost is None else f" that cost {money(self.cost)}")
        reason = "" if self.verdict == "certified" and self.lists is None else self.reason
        question = "" if self.lists is None else self.lists.question
        whom = self.stated.removeprefix(self.verdict)
        parts = [cards.verdict_card(self.verdict, self.headline, question, said, reason, f"{made_of}.", of_whom=whom)]
        parts += [] if found is None else [cards.means_section(found)]
        parts += [cards.gap_section(trace, decimals)] if any(one.gap is not None for one in trace.rounds) else []
        return [*parts, cards.assumptions_section(self.assumptions)]

    @property
    def _trace(self) -> Trace:
        """The gap round by round, as far as it can be said without the study."""
        said = () if self.verdict == "heuristic" or self.lists is not None else self.rounds
        rounds = (
            ClosedRound(row.round, row.total_pulls, row.certified_gap, len(row.active), str(row.leader)) for row in said
        )
        return Trace(tuple(rounds), self.epsilon, max((len(row.active) for row in self.rounds), default=0))


MOST_NAMED = 20


def named(ids: tuple[str, ...], most: int = MOST_NAMED) -> str:
    """Ids in a row, of many the first; "none" where there is none."""
    if not ids:
        return "none"
    more = f" and {len(ids) - most:,} more" if len(ids) > most else ""
    return ", ".join(ids[:most]) + more
