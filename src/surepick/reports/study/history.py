"""The log of a study: what was asked when, what came, from whom, and what was set aside. Closed plans only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from surepick.core.arrays import record
from surepick.reports.study.format import GAP, listed
from surepick.reports.study.sections import Figure, Item, Part
from surepick.reports.study.tables import Table, row, table
from surepick.reports.study.verdict import Document, step_word
from surepick.studies.logs.base import ABANDONED, CLOSED, COUNTED, FAILED, INDEPENDENT_OF_VALUE, LATE, PRIOR, Log
from surepick.studies.logs.leases import BEYOND, NO_TIME, to_the_minute
from surepick.studies.logs.memory import MemoryLog
from surepick.studies.progress import times

EDGES = 150  # of very many batches the first and the last so many are listed
NOBODY = "without a name"


@record
class Kept:
    """A plan that was judged.

    Args:
        number: 1, 2, ...
        opened_at, closed_at: seconds since 1970 (UTC).
        failed: measurements that gave no result.
        given_up: (reason, measurements) that were abandoned.
        tellers: who told its results, and of how many measurements.
    """

    number: int
    opened_at: float
    closed_at: float
    failed: int
    given_up: tuple[tuple[str, int], ...]
    tellers: tuple[tuple[str, int], ...]


@record
class History:
    """What the log says beyond the certificate.

    Args:
        kept: the plans that were judged, in order.
        late, prior: who told results that are not used, of how many measurements.
        durable: the log is in a database, where it was written before anything was measured.
    """

    kept: tuple[Kept, ...]
    late: tuple[tuple[str, int], ...]
    prior: tuple[tuple[str, int], ...]
    durable: bool


def history_of(log: Log, judged: int) -> History:
    """What the log says of the plans up to `judged`, and of what was set aside. No reward is looked at.

    Args:
        judged: number of the last plan that was judged.
    """
    tellers: dict[tuple[str, int], Counter[str]] = {}
    for stored in log.history(judged):
        plan = stored.plan if stored.standing == COUNTED else 0
        found = tellers.setdefault((stored.standing, plan), Counter())
        found[stored.results.source or NOBODY] += int(stored.results.pulls.sum())
    kept = []
    for planned in log.plans():
        if planned.number > judged:
            break
        events = log.arrivals(planned.number).events
        reasons: Counter[str] = Counter()
        for event in events:
            if event.kind == ABANDONED:
                reasons[event.reason] += event.pulls
        closed = [event.at for event in events if event.kind == CLOSED and event.plan == planned.number]
        kept.append(
            Kept(
                planned.number,
                planned.opened_at,
                closed[0] if closed else planned.opened_at,
                sum(event.pulls for event in events if event.kind == FAILED),
                tuple(reasons.items()),
                tuple(tellers.get((COUNTED, planned.number), Counter()).items()),
            )
        )
    aside = {kind: tuple(tellers.get((kind, 0), Counter()).items()) for kind in (LATE, PRIOR)}
    return History(tuple(kept), aside[LATE], aside[PRIOR], not isinstance(log, MemoryLog))


def history(document: Document, kept: History, *, left_out: Sequence[str] = ()) -> Part:
    """The part about the log.

    Args:
        left_out: what else the page does not show, and why.
    """
    heading = "What happened, batch by batch"
    looks = [(entry["round"], look) for entry in document["rounds"] for look in entry["looks"]]
    lists = [("Also in the log", tuple(_aside(document, kept)))]
    if left_out:
        lists.append(("Not on this page", tuple(Item("", sentence) for sentence in left_out)))
    if not looks:
        text = "No batch is complete yet, and what was told of one that is open is not shown before it is."
        return Part("history", heading, (text,), (), tuple(lists))
    first, last = time(kept.kept[0].opened_at), time(kept.kept[-1].closed_at)
    when = f"on {first}" if first == last else f"between {first} and {last}"
    several = "1 batch was" if len(looks) == 1 else f"{len(looks):,} batches were"
    done = "written down" if kept.durable else "decided"
    sentence = (
        f"{several} asked for, measured and judged, {when}. What to measure is {done} when a batch is opened and "
        "never changed; what was told is never changed either."
    )
    figure = Figure(None, _table(looks, kept, one_word=step_word(document) == "batch"))
    return Part("history", heading, (sentence,), (figure,), tuple(lists))


def _table(looks: list[tuple[int, dict[str, object]]], kept: History, *, one_word: bool) -> Table:
    by_number = {one.number: one for one in kept.kept}
    chosen = looks if len(looks) <= 2 * EDGES else [*looks[:EDGES], *looks[-EDGES:]]
    lines = [_cells(round_number, look, by_number) for round_number, look in chosen]
    headers = ("batch", "round", "opened", "complete", "asked", "told", "notes", "told by")
    shown = [name for name in headers if name != "round" or not one_word]
    rows = [row(*(cells[headers.index(name)] for name in shown)) for cells in lines]
    caption = "The batches" + (f" (the first {EDGES} and the last {EDGES})" if len(chosen) < len(looks) else "")
    words = [place for place, name in enumerate(shown) if name not in {"asked", "told"}]
    return table(caption, shown, rows, total=len(looks), words=words, printed=False)


def _cells(round_number: int, look: Document, by_number: dict[int, Kept]) -> tuple[str, ...]:
    number = int(look["plan"])
    one = by_number.get(number)
    asked, told = (sum(look[side]["pulls"]) for side in ("asked", "told"))
    notes = _notes(look, one)
    part = f", part {look['look']} of {look['looks']}" if look["looks"] != 1 else ""
    return (
        str(number),
        f"{round_number}{part}",
        "" if one is None else time(one.opened_at),
        "" if one is None else time(one.closed_at),
        f"{asked:,}",
        f"{told:,}",
        "; ".join(notes),
        "-" if one is None else _who(one.tellers) or "-",
    )


def _who(tellers: tuple[tuple[str, int], ...]) -> str:
    """Who told how many; "" if nobody gave a name."""
    if all(name == NOBODY for name, _ in tellers):
        return ""
    return listed(f"{name} ({count:,})" for name, count in tellers)


def _notes(look: dict[str, object], one: Kept | None) -> list[str]:
    notes = []
    if look["surplus"]:
        notes.append("more came than was asked")
    if look["repeated"]:
        notes.append(f"{look['repeated']:,} asked again")
    if one is not None:
        if one.failed:
            notes.append(f"{one.failed:,} failed")
        for reason, count in one.given_up:
            why = "it has nothing to do with the values" if reason == INDEPENDENT_OF_VALUE else reason
            notes.append(f"{count:,} given up: {why}")
    return notes


def _aside(document: Document, kept: History) -> list[Item]:
    items = []
    for kind, found, why in (
        ("late", kept.late, "came after their batch was complete"),
        ("prior", kept.prior, "were not asked for by this study"),
    ):
        total = sum(count for _, count in found)
        if total:
            who = f" Told by {named}." if (named := _who(found)) else ""
            text = f"{times(total, 'result')} {why}: kept, and not used.{who}"
            items.append(Item(kind, text if total > 1 else text.replace(" were ", " was ").replace("their", "its")))
    if not items:
        items.append(Item("", "No result came late, and none was told that was not asked for."))
    if document["ended"] is not None:
        reason = f": {document['ended']['reason']}" if document["ended"]["reason"] else ""
        items.append(Item("closed", f"The study was closed early, on {time(document['ended']['at'])}{reason}."))
    return items


def time(seconds: float) -> str:
    """A time in UTC, to the minute: the same wherever the report is made."""
    try:
        return to_the_minute(seconds).replace(" ", GAP)
    except BEYOND:
        return NO_TIME
