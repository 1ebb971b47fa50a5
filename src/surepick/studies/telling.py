"""What was told: once each, of which plan, and for which lease."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from surepick.errors import InvalidInput
from surepick.records import IntArray, Plan
from surepick.studies.board import Board
from surepick.studies.leases import ANYONE, read_key
from surepick.studies.log import Log, Results, Told


def labels(keys: Sequence[object] | None, expected: int) -> tuple[str | None, ...] | None:
    """The keys as texts, None for a row without one.

    Raises:
        InvalidInput: their number is not that of the results, or one is empty.
    """
    if keys is None:
        return None
    names = tuple(None if key is None else str(key) for key in keys)
    if len(names) != expected:
        raise InvalidInput(f"there are {len(names)} keys for {expected} results; give one key per result, or none.")
    if "" in names:
        raise InvalidInput("a key is empty; leave the keys away, or give every result one of its own.")
    return names


def fresh(log: Log, results: Results, ids: Sequence[str]) -> tuple[Results, int]:
    """(the rows that were not told before, how many were).

    Raises:
        InvalidInput: a key was told before for another arm or with another value. The value is not named: it may
            belong to an open plan.
    """
    if results.keys is None:
        return results, 0
    seen = log.told([key for key in results.keys if key is not None])
    kept = []
    rows = zip(results.arms.tolist(), results.pulls.tolist(), results.sums.tolist(), strict=True)
    for row, (key, (arm, pulls, total)) in enumerate(zip(results.keys, rows, strict=True)):
        told = Told(arm, pulls, total)
        if key is None:
            kept.append(row)
        elif key not in seen:
            seen[key] = told
            kept.append(row)
        elif seen[key] != told:
            other = f"of arm {ids[seen[key].arm]!r}" if seen[key].arm != arm else "with another value"
            raise InvalidInput(
                f"key {key!r} was told before {other}; a key names one result. Nothing of this call was stored. If "
                "it is another measurement, give it a key of its own."
            )
    return results.rows(kept), len(results.keys) - len(kept)


def plans_of(
    log: Log,
    results: Results,
    ids: Sequence[str],
    worker: str | None,
    plan: int | None,
    open_number: int,
    latest: int,
) -> IntArray:
    """Number of the plan that each row belongs to, shape (n,); 0 where that is the open one and none is open.

    Args:
        worker: who told; rows without a key of a lease belong to the plan of the worker's latest lease.
        plan: what the caller says; None: nothing.
        open_number: the open plan, 0 if there is none.
        latest: the latest plan.

    Raises:
        InvalidInput: there is no such plan.
    """
    if plan is not None and not (isinstance(plan, int | np.integer) and 1 <= plan <= latest):
        raise InvalidInput(f"plan is {plan!r}; the study has opened {latest} plans so far, numbered from 1.")
    usual = plan or (log.latest_plan_of(worker) if worker else 0) or open_number
    belongs = np.full(len(results.arms), usual, np.int64)
    if plan is None and results.keys is not None:
        for row, (key, arm) in enumerate(zip(results.keys, results.arms.tolist(), strict=True)):
            named = None if key is None else read_key(key, ids[arm])
            if named is None:
                continue
            if named[0] > latest:
                raise InvalidInput(_unknown(str(key)))
            belongs[row] = named[0]
    return belongs


def check_given(board: Board, arm: int, ordinal: int, key: str) -> None:
    """Refuse a key of a pull that was never leased: it would collide with the key of one that will be.

    Raises:
        InvalidInput: it is one.
    """
    if ordinal >= board.granted[arm]:
        raise InvalidInput(_unknown(key))


def _unknown(key: str) -> str:
    return (
        f"key {key!r} looks like one that ask gave, and this study never gave it: it is of another study, or was given "
        "after the backup from which this database was restored. Nothing of this call was stored. Give the results "
        "keys of their own."
    )


def check_asked(plan: Plan, arms: IntArray, ids: Sequence[str]) -> None:
    """Refuse results of arms that the plan does not ask for.

    Raises:
        InvalidInput: there are some.
    """
    stray = arms[plan.counts[arms] == 0]
    if len(stray):
        raise InvalidInput(
            f"{len(stray)} results are of arms that the open plan did not ask for, the first is "
            f"{ids[stray[0]]!r}. Which arms are measured must not depend on a hunch, or the certificate means "
            "nothing. Nothing of this call was stored. To keep such results apart: tell_prior(), or tell --as-prior."
        )


def with_leases(results: Results, board: Board, ids: Sequence[str], worker: str | None) -> Results:
    """The rows with the number of the lease that each answers.

    Raises:
        InvalidInput: a key looks like that of a lease, and there is no such lease.
    """
    if not board.held and results.keys is None:
        return results
    keys = results.keys or (None,) * len(results.arms)
    leases = []
    for key, arm in zip(keys, results.arms.tolist(), strict=True):
        named = None if key is None else read_key(key, ids[arm])
        ordinal = None if named is None or named[0] != board.planned.number else named[1]
        if ordinal is not None:
            check_given(board, arm, ordinal, str(key))
        leases.append(board.lease_of(arm, ordinal=ordinal, worker=worker or ANYONE))
    return replace(results, leases=np.array(leases, np.int64)) if board.held else results
