"""The list of studies: what waits for whom, how far each is, what is proved; by name, state and order."""

from collections import Counter
from dataclasses import replace
from typing import Any

from fastapi import Request, Response

from surepick.core.records import record
from surepick.drawings.numbers import decimals_for, upper
from surepick.errors import StorageError
from surepick.studies.logs.sql.descriptions import ARCHIVED, OWNER, TITLE
from surepick.studies.progress import ListedSoFar, Progress, times
from surepick.studies.study import Study
from surepick_server.access.tokens import Principal, Role
from surepick_server.api.routing import Routes, Shared, Viewer, Visibility
from surepick_server.pages.layout import page
from surepick_server.web.auth import ServerState

routes = Routes(include_in_schema=False)

A_PAGE = 50  # studies
MOST_OPENED = A_PAGE  # studies that go on, the last changed, of which the list knows whom they wait for
GROUPS = (
    ("", "All"),
    ("mine", "Waits for me"),
    ("measuring", "Measuring"),
    ("answered", "Answered"),
    ("attention", "Needs attention"),
    ("closed", "Closed"),
    ("archived", "Archived"),
)
ORDERS = (("", "Last changed"), ("name", "Name"), ("near", "Closest to its answer"))
GROUP_OF = {"yours": "mine", "certified": "answered", "open": "answered", "guess": "answered"}  # others: as the state
ANSWERS = {"certified": "certified", "heuristic": "guess"}


@record
class StudyLine:
    """A study of the list."""

    study: ListedSoFar  # at a glance
    title: str  # what it is called
    owner: str  # who made it
    state: str  # yours, measuring, certified, open, guess, attention, closed or archived
    waits: str  # for what it waits, or how it ended
    held: int = 0  # measurements that the caller has
    until: float = 0.0  # and until when
    progress: Progress | None = None  # None where it was not looked at
    what: str = ""  # of how many candidates, and what is measured
    proved: str = ""

    @property
    def name(self) -> str:
        """Its name."""
        return self.study.name

    @property
    def over(self) -> bool:
        """It needs no more measurements."""
        return self.study.ended or self.study.verdict != "not-yet"

    @property
    def group(self) -> str:
        """Under which it is filtered."""
        return GROUP_OF.get(self.state, self.state)


@routes.add("GET", "/", Visibility.closed, who=Role.viewer)
def overview(
    request: Request, server: Shared, caller: Viewer, q: str = "", show: str = "", sort: str = "", part: str = ""
) -> Response:
    """The studies that the caller may see."""
    said = server.studies.database.said()
    listed = [one for one in server.studies.database.list() if caller.study in (None, one.name)]
    listed.sort(key=lambda one: (-one.changed_at, one.name))
    opened, lines = 0, list[StudyLine]()
    for one in listed:
        about = said.get(one.name, {})
        going = not one.ended and one.verdict == "not-yet"
        lines.append(line_of(server, one, about, caller, look=going and opened < MOST_OPENED))
        opened += going
    wanted = q.strip().casefold()
    found = [one for one in lines if wanted in f"{one.name}\n{one.title}\n{one.owner}".casefold()]
    counts = Counter(one.group for one in found)
    counts[""] = len(found) - counts["archived"]
    shown = [one for one in found if one.group == show or (not show and one.group != "archived")]
    if sort == "name":
        shown.sort(key=lambda one: one.title.casefold())
    elif sort == "near":
        shown.sort(key=nearness)
    number = int(part) if part.isdecimal() and len(part) < 6 else 1
    parts = max(-(-len(shown) // A_PAGE), 1)
    number = min(max(number, 1), parts)
    lines_shown = [full(server, one, caller) for one in shown[(number - 1) * A_PAGE : number * A_PAGE]]
    asked = {"q": q, "show": show, "sort": sort, "part": ""}
    inbox = [one for one in lines if one.held][:4] if not wanted and not show and number == 1 else []
    more: dict[str, Any] = {"asked": asked, "counts": counts, "groups": GROUPS, "orders": ORDERS, "inbox": inbox}
    more |= {"total": len(shown), "total_known": len(listed), "part": number, "parts": parts}
    return page(request, "list.html", caller, lines=lines_shown, **more)


def line_of(
    server: ServerState, one: ListedSoFar, about: dict[str, str], caller: Principal, *, look: bool
) -> StudyLine:
    """A study at a glance; one that goes on is opened if it is to be looked at."""
    line = StudyLine(
        one, about.get(TITLE, one.name), about.get(OWNER, ""), "", "", what=times(one.candidates, "candidate")
    )
    spent = f"{times(one.pulls, 'measurement')} in {times(one.rounds, 'round')}"
    if about.get(ARCHIVED):
        return replace(line, state="archived", waits=spent)
    if one.ended:
        return replace(line, state="closed", waits=f"Closed early: {spent}")
    if one.verdict != "not-yet":
        return replace(line, state=ANSWERS.get(one.verdict, "open"), waits=f"Done: {spent}")
    line = replace(line, state="measuring", waits=spent)
    return opened(server, line, caller) if look else line


def full(server: ServerState, line: StudyLine, caller: Principal) -> StudyLine:
    """A line with what only the study itself knows."""
    if line.progress is not None or line.state == "attention":
        return line
    found = opened(server, line, caller)
    return found if line.state == "measuring" else replace(found, state=line.state, waits=line.waits)


def opened(server: ServerState, line: StudyLine, caller: Principal) -> StudyLine:
    """A line of a study that is looked at."""
    try:
        with server.studies.open(line.name) as study:
            progress, what = study.progress(), what_of(study)
            proved = proved_of(study, progress, line.study.epsilon)
    except StorageError as error:
        return replace(line, state="attention", waits=str(error))
    waits, mine = waits_for(progress, caller)
    held = [part for part in progress.out if caller.is_worker(part.worker)]
    state = "yours" if mine else "measuring"
    if progress.refused:
        state, waits = "attention", f"All results of round {progress.round} are in, and cannot be judged"
    held_until = min((part.until for part in held), default=0.0)
    line = replace(line, state=state, waits=waits, held=sum(part.pulls for part in held), until=held_until)
    return replace(line, progress=progress, what=what, proved=proved)


def what_of(study: Study) -> str:
    """Of how many candidates, and what is measured."""
    measured = study.column_names.reward or ""
    unit = f" in {study.scale.unit}" if study.scale.unit and measured else ""
    return times(len(study.ids), "candidate") + (f", {measured}{unit}" if measured else "")


def proved_of(study: Study, progress: Progress, tolerance: float) -> str:
    """What the closed rounds say, in a few words."""
    if progress.leader is None:
        return "Nothing is known before the first round is complete"
    if progress.listed:
        return f"{progress.left:,} of {times(progress.candidates, 'candidate')} undecided"
    if progress.certified_gap is None:
        left = f"{progress.left:,} of {progress.candidates:,} still possible"
        return left if not progress.stopped else progress.leader
    wanted = f"; asked for {tolerance:g}" if tolerance else ""
    name = f"{progress.leader}, at" if progress.stopped else "At"
    return f"{name} most {gap_of(study, progress.certified_gap, tolerance)} worse{wanted}"


def gap_of(study: Study, gap: float, tolerance: float) -> str:
    """A bound on a difference, rounded up as the pictures round it, with its unit."""
    return f"{upper(gap, decimals_for(tolerance, [gap]))}{unit_of(study)}"


def unit_of(study: Study) -> str:
    """The unit of a difference, after a space: points where numbers are percentages; "" where nobody said one."""
    unit = study.scale.unit
    return "" if not unit else " points" if unit == "%" else f" {unit}"


def nearness(line: StudyLine) -> tuple[bool, float]:
    """How far a study is from its answer, for an order: those that go on first, by their gap over the tolerance."""
    gap = None if line.progress is None else line.progress.certified_gap
    return line.over, float("inf") if gap is None else gap / max(line.study.epsilon, 1e-300)


def waits_for(progress: Progress, caller: Principal) -> tuple[str, bool]:
    """(what a study waits for, or how it ended; whether it waits for something of the caller)."""
    if progress.stopped:
        return "done", False
    if progress.ended is not None:
        return "closed early", False
    if not progress.plan:
        return "somebody who takes the first measurements of the next round", caller.role >= Role.measurer
    mine = [part for part in progress.out if caller.is_worker(part.worker)]
    who = [f"you {sum(part.pulls for part in mine):,}"] if mine else []
    names = Counter[str]()
    for part in progress.out:
        if not caller.is_worker(part.worker):
            names[part.worker] += part.pulls
    who += [f"{name} {pulls:,}" for name, pulls in names.most_common(3)]
    if len(names) > 3:
        who.append(f"{len(names) - 3} more {sum(pulls for _, pulls in names.most_common()[3:]):,}")
    if progress.free:
        who.append(f"free {progress.free:,}")
    said = f"Round {progress.round}: {progress.told:,} of {progress.asked:,} in"
    takes = bool(progress.free) and caller.role >= Role.measurer
    return f"{said}; {', '.join(who)}" if who else said, bool(mine) or takes
