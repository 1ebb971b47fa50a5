"""Undoing: whoever reported a result takes it back while its round is open. The row stays; an event says so."""

from __future__ import annotations

from collections.abc import Sequence

from surepick.core.validation import storable_text, text_of
from surepick.errors import InvalidInput, OutOfTurn
from surepick.studies.ledger import Ledger
from surepick.studies.logs.base import COUNTED, UNDONE, Event, Reported
from surepick.studies.logs.keys import normal_form
from surepick.studies.logs.leases import ANYONE
from surepick.studies.validation import source, stated
from surepick.text import quoted

NO_REASON = "a typing error"
MEANWHILE = (
    "it cannot be corrected: its round is closed, and what was judged stays judged. Leave it as it is; if it is far "
    "off, repeats of the candidate show it and the verdict becomes heuristic. To be sure, close this study and begin "
    "another, with fresh measurements."
)


def undo(ledger: Ledger, keys: Sequence[object] | None, worker: str | None, reason: str) -> list[Reported]:
    """As `Study.undo`, which has the arguments; gives the results that were taken back."""
    why = stated(reason) or NO_REASON
    wanted = None if keys is None else _texts(keys)
    whose = {"", ANYONE} if worker is None else {source(worker)}
    with ledger.turn():
        planned, open_plan = ledger.log.last_plan(), None
        if planned is not None and (look := ledger.replay.look(planned)).takes_results:
            open_plan = look
        there = [] if planned is None or open_plan is None else ledger.log.reported(planned.number, None)
        own = [one for one in there if one.source in whose]
        if wanted is None:
            if not own:
                _refuse_nothing(worker, any_open=open_plan is not None)
            chosen = own[-1:]
        else:
            chosen = [_found(ledger, key, own) for key in wanted]
        now = ledger.log.clock()
        for one in chosen:
            number = 0 if planned is None else planned.number
            ledger.log.add_event(Event(UNDONE, number, one.arm, one.pulls, one.lease, why, now, one.number))
    return chosen


def _texts(keys: Sequence[object]) -> list[str]:
    if isinstance(keys, str | bytes) or not hasattr(keys, "__iter__"):
        raise InvalidInput(f"keys is {quoted(keys)}; give a sequence of keys, [{quoted(keys)}] for one.")
    found = [normal_form(storable_text("a key", text_of("a key", key))) for key in keys]
    return list(dict.fromkeys(found))


def _found(ledger: Ledger, key: str, own: Sequence[Reported]) -> Reported:
    """The result of that key.

    Raises:
        InvalidInput: there is none, it was undone, or it is another's.
        OutOfTurn: its round is closed.
    """
    for one in own:
        if one.key is not None and normal_form(one.key) == key:
            return one
    stored = ledger.log.recorded([key]).get(key)
    if stored is None:
        raise InvalidInput(f"no result has the key {quoted(key)}, or it was undone already. Nothing was changed.")
    planned = ledger.log.last_plan()
    if stored.status == COUNTED and planned is not None and ledger.replay.look(planned).takes_results:
        there = ledger.log.reported(planned.number, None)
        if any(one.key == key for one in there):
            raise InvalidInput(
                f"the result {quoted(key)} was not reported under this name: only whoever reported a result may undo "
                "it (worker, --worker). Nothing was changed."
            )
    raise OutOfTurn(f"the result {quoted(key)} counts, and {MEANWHILE}" if stored.status == COUNTED else _aside(key))


def _aside(key: str) -> str:
    return f"the result {quoted(key)} is kept apart and enters nothing, so there is nothing to undo."


def _refuse_nothing(worker: str | None, *, any_open: bool) -> None:
    """Say that there is nothing to undo.

    Raises:
        OutOfTurn: always.
    """
    whose = "you" if worker is None else quoted(worker)
    if any_open:
        raise OutOfTurn(f"nothing that {whose} reported in the open round is left to undo. Nothing was changed.")
    raise OutOfTurn(f"no round is open. If a result is wrong, {MEANWHILE}")
