"""The certificate as a document that others can check: what was asked and told, and all that follows from it.

    facts     the policy, the arms, what each plan asked, what was told, how it was carried out
    derived   everything else: `document_of` computes it from the facts, for the writer and for whoever verifies

The published form is certificate.schema.json, beside this file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from surepick.codec import encode
from surepick.errors import StorageError
from surepick.files import write_whole
from surepick.intervals import Intervals
from surepick.linalg import arithmetic
from surepick.records import Arms, FloatArray, IntArray, Observations, Plan, RoundRecord, Step
from surepick.studies.audit import Audit, audited, first_difference
from surepick.studies.circumstances import EarlyEnd
from surepick.studies.fold import steps_of
from surepick.studies.hashes import arms_hash
from surepick.studies.log import Circumstances
from surepick.studies.results import received
from surepick.studies.study import Study, answer_of
from surepick.threads import one_thread

if TYPE_CHECKING:
    from surepick.policies import Policy

FORMAT = "surepick certificate"
VERSION = 1
QUICK_PLANS = 50
LARGEST_QUICK_DESIGN = 30_000
INLINE = 10_000  # arms whose features, intervals and fates are written out
SCHEMA = Path(__file__).with_name("certificate.schema.json")


@dataclass(frozen=True, slots=True)
class Look:
    """One plan that was judged.

    Args:
        number: of the plan in its study.
        plan: what was asked.
        seen: what was received, in the policy's sign.
        circumstances: how it was carried out.
    """

    number: int
    plan: Plan
    seen: Observations
    circumstances: Circumstances


@dataclass(frozen=True, slots=True)
class Facts:
    """All that a certificate rests on.

    Args:
        study: its name, None if it has none.
        made_by: program and version that wrote the certificate.
        arithmetic: how that process rounds (`linalg.arithmetic`).
        reproduced: how many plans, from the first, came out equal when it computed them again; others were asked for
            elsewhere, or were not tried.
        arms, policy: what was chosen among, and how.
        minimize: small rewards are good.
        looks: the plans that were judged, in order.
        end: how the study was closed before its policy stopped, None if it was not.
    """

    study: str | None
    made_by: str
    arithmetic: str
    reproduced: int
    arms: Arms
    policy: Policy[Any]
    minimize: bool
    looks: tuple[Look, ...]
    end: EarlyEnd | None


def certificate_document(study: Study, name: str | None = None, *, check: bool = False) -> dict[str, Any]:
    """The certificate of a study, from the plans that are closed, as plain JSON data.

    Args:
        study: of which nothing is shown that its open plan was told.
        name: what the study is called.
        check: compare each stored decision with what follows from what was told, as `open_study` does; in the same
            fold, for studies that were opened without.

    Raises:
        StorageError: two looks at a log that others write to did not agree, or, with `check`, as `open_study`.
    """
    with one_thread():  # as whoever verifies it: threads change the last bits, and with them designs
        return _certificate_document(study, name, audited(study, name or "") if check else None)


def _certificate_document(study: Study, name: str | None, checked: Audit | None) -> dict[str, Any]:
    looks = _looks(study) if checked is None else _looks(study)[: checked.judged]
    facts = Facts(
        study=name,
        made_by=f"surepick {version()}",
        arithmetic=arithmetic(),
        reproduced=0,
        arms=study.arms,
        policy=study.policy,
        minimize=study.minimize,
        looks=looks,
        end=study.early_end(),
    )
    repeated = Repeated(facts.policy, quick_plans(facts.policy, len(looks)))
    document = document_of(facts, watch=repeated.watch, steps=None if checked is None else checked.steps)
    return sealed({**document, "reproduced": repeated.equal})


def write_certificate(study: Study, path: str | Path, *, name: str | None = None) -> Path:
    """Write the certificate of a study to a JSON file that `verify_certificate` and `surepick verify` check.

    Args:
        study: a study, stopped or not; only closed plans are in its certificate.
        path: the file, replaced if it exists.
        name: what the study is called in it.

    Raises:
        InvalidInput: the file cannot be written.
    """
    return write_document(certificate_document(study, name), path)


def write_document(document: dict[str, Any], path: str | Path) -> Path:
    """Write a certificate to a JSON file.

    Raises:
        InvalidInput: the file cannot be written.
    """
    target = Path(path)
    write_whole(target, f"{laid_out(document)}\n".encode(), what="the certificate")
    return target


def laid_out(value: Any, indent: str = "") -> str:
    """JSON with a field a line, and lists of plain values on one line each."""
    deeper = indent + " "
    if isinstance(value, dict) and value:
        rows = [f"{json.dumps(name, ensure_ascii=False)}: {laid_out(item, deeper)}" for name, item in value.items()]
        return "{\n" + ",\n".join(deeper + row for row in rows) + f"\n{indent}}}"
    if isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        return "[\n" + ",\n".join(deeper + laid_out(item, deeper) for item in value) + f"\n{indent}]"
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def version() -> str:
    """The version of this package."""
    import surepick  # noqa: PLC0415 (the package imports this module)

    return surepick.__version__


def _looks(study: Study) -> tuple[Look, ...]:
    judged = [decision for decision in study.log.decisions() if decision.plan > 0]
    plans = {planned.number: planned.plan for planned in study.log.plans()}
    looks = []
    for decision in judged:
        plan, seen = plans.get(decision.plan), decision.seen
        if plan is None:
            raise StorageError(f"decision {decision.plan} is on a plan that is not there; look again.")
        if seen is None:  # a log in memory keeps the rows and the latest sums
            seen = received(study.log.results(decision.plan), len(study.ids), minimize=study.minimize)
        looks.append(Look(decision.plan, plan, seen, decision.circumstances))
    return tuple(looks)


# the plans


class Repeated:
    """Plans computed again while a study is folded.

    Args:
        policy: asks.
        most: how many plans, from the first.
    """

    def __init__(self, policy: Policy[Any], most: int) -> None:
        self.most = most
        self.equal = 0
        self._policy = policy

    def watch(self, look: Look, state: Any) -> None:
        """Count the plan if all before it and it itself come out equal."""
        if look.number == self.equal + 1 <= self.most and not self._policy.stopped(state):
            self.equal += not plan_difference(look.plan, self._policy.ask(state))


def plan_difference(stored: Plan, again: Plan) -> str:
    """Where two plans differ, "" where they agree: numbers within 1e-9, all else exactly."""
    return first_difference(encode(stored), encode(again)).lstrip(".")


def quick_plans(policy: Policy[Any], number: int) -> int:
    """How many of so many plans can be computed again in a few seconds: all, the first 50, or none.

    None where the arms times the dimensions in which a design may be searched exceed LARGEST_QUICK_DESIGN, since one
    search may take seconds there; all where nothing is designed.
    """
    embedding = getattr(policy, "embedding", None)
    size = int(np.size(getattr(policy, "features", ())))
    if embedding is not None:
        size = 0 if embedding.family == "independent" else int(policy.num_arms * embedding.max_dim)
    if size == 0:
        return number
    return min(number, QUICK_PLANS) if size <= LARGEST_QUICK_DESIGN else 0


# the document


def document_of(
    facts: Facts,
    *,
    watch: Callable[[Look, Any], None] | None = None,
    steps: Iterable[tuple[Any, Step[Any]]] | None = None,
) -> dict[str, Any]:
    """The certificate that follows from the facts.

    Args:
        facts: what it rests on.
        watch: called with each look and the policy's state before it.
        steps: (the policy's state before, its step) of each look, if they are computed anyway.
    """
    policy, arms = facts.policy, facts.arms
    state, intervals, active = policy.init(), None, np.arange(arms.num_arms)
    rounds: dict[int, list[dict[str, Any]]] = {}
    rows: dict[int, RoundRecord] = {}
    last = _LastIntervals(arms.num_arms)
    for look, (before, step) in zip(
        facts.looks, steps_of(policy, facts.looks) if steps is None else steps, strict=True
    ):
        if watch is not None:
            watch(look, before)
        intervals = None if step.deciding is None else step.deciding(intervals)
        if intervals is not None:
            last.add(look.number, intervals, np.union1d(active, step.record.active))
        entry = _look_entry(facts, look, step, intervals, active)
        rounds.setdefault(step.record.round, []).append(entry)
        rows[step.record.round] = step.record
        state, active = step.state, step.record.active
    answer = answer_of(
        policy,
        arms,
        state,
        minimize=facts.minimize,
        rounds=tuple(rows[number] for number in sorted(rows)),
        circumstances=[look.circumstances for look in facts.looks],
        end=facts.end,
    )
    document = {
        "format": FORMAT,
        "version": VERSION,
        "made_by": facts.made_by,
        "arithmetic": facts.arithmetic,
        "reproduced": facts.reproduced,
        "study": facts.study,
        "best_arm": answer.best_arm,
        "epsilon": float(answer.epsilon),
        "delta": float(answer.delta),
        "pulls": answer.pulls,
        "verdict": answer.verdict,
        "promise": answer.promise,
        "reason": answer.reason,
        "certified_gap": None if answer.certified_gap is None else float(answer.certified_gap),
        "minimize": answer.minimize,
        "assumptions": list(answer.assumptions),
        "checks": list(getattr(policy, "checks", ())),
        "policy": encode(policy.spec),
        "algorithm": policy.name,
        "arms": _arms_entry(arms),
        "ended": encode(facts.end),
        "rounds": [{**_row_entry(rows[number], arms), "looks": rounds[number]} for number in sorted(rounds)],
        "intervals": last.entry() if last.known and arms.num_arms <= INLINE else None,
        "candidates": _candidates(facts, answer.arm, active),
    }
    return sealed(document)


def sealed(document: dict[str, Any]) -> dict[str, Any]:
    """The document with the digest of all the rest, at the end."""
    rest = {name: value for name, value in document.items() if name != "sha256"}
    return {**rest, "sha256": digest(rest)}


def digest(document: dict[str, Any]) -> str:
    """SHA-256 of the canonical form of a certificate: its JSON without `sha256`, keys sorted, no spaces, UTF-8."""
    rest = {name: value for name, value in document.items() if name != "sha256"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _arms_entry(arms: Arms) -> dict[str, Any]:
    features = np.ascontiguousarray(arms.features, dtype="<f8")
    inline = arms.num_arms <= INLINE
    return {
        "number": arms.num_arms,
        "ids": list(arms.ids) if inline else None,
        "features": features.tolist() if inline else None,
        "columns": None if arms.columns is None else list(arms.columns),
        "preparation": list(arms.preparation),
        "sha256": arms_hash(json.dumps(arms.ids, ensure_ascii=False), features.shape, features.tobytes()),
    }


def _look_entry(
    facts: Facts, look: Look, step: Step[Any], intervals: Intervals | None, active: IntArray
) -> dict[str, Any]:
    plan, row, ids = look.plan, step.record, facts.arms.ids
    joined = np.setdiff1d(row.active, active)
    return {
        "plan": look.number,
        "look": plan.look,
        "looks": plan.looks,
        "candidate": None if plan.candidate is None else ids[plan.candidate],
        "dim": plan.dim,
        "value": _number(plan.value),
        "lower_bound": _number(plan.lower_bound),
        "misspecification": float(plan.misspecification),
        "asked": _sparse(plan.counts),
        "allocation": None if plan.allocation is None else _sparse(plan.allocation),
        "told": _told(look.seen, minimize=facts.minimize),
        "surplus": bool(np.any(look.seen.counts > plan.counts)),
        "repeated": look.circumstances.repeated,
        "abandoned": list(look.circumstances.abandoned),
        **_outcome(row, facts.arms),
        "width": _widths(intervals),
        "left": _left(np.setdiff1d(active, row.active), intervals, facts.arms.num_arms),
        "joined": joined.tolist() if facts.arms.num_arms <= INLINE else None,
    }


def _row_entry(row: RoundRecord, arms: Arms) -> dict[str, Any]:
    return {
        "round": row.round,
        "dim": row.dim,
        "value": _number(row.value),
        "lower_bound": _number(row.lower_bound),
        "misspecification": float(row.misspecification),
        **_outcome(row, arms),
    }


def _outcome(row: RoundRecord, arms: Arms) -> dict[str, Any]:
    """What came of a plan, or of a round by its last plan."""
    return {
        "pulls": row.pulls,
        "total_pulls": row.total_pulls,
        "active": len(row.active),
        "leader": arms.ids[row.leader],
        "certified_gap": _number(row.certified_gap),
        "alarms": list(row.alarms),
    }


def _told(seen: Observations, *, minimize: bool) -> dict[str, Any]:
    arms = np.flatnonzero(seen.counts)
    sign = -1.0 if minimize else 1.0
    return {
        "arms": arms.tolist(),
        "pulls": seen.counts[arms].tolist(),
        "sums": (sign * seen.sums[arms]).tolist(),
        "squares": None if seen.squares is None else seen.squares[arms].tolist(),
    }


def _sparse(counts: IntArray) -> dict[str, Any]:
    arms = np.flatnonzero(counts)
    return {"arms": arms.tolist(), "pulls": counts[arms].tolist()}


def _widths(intervals: Intervals | None) -> dict[str, float] | None:
    """The narrowest and the widest interval of a look."""
    known = np.empty(0) if intervals is None else intervals.widths[np.isfinite(intervals.widths)]
    return None if len(known) == 0 else {"least": float(known.min()), "largest": float(known.max())}


def _left(arms: IntArray, intervals: Intervals | None, num_arms: int) -> dict[str, Any]:
    """Who left: "not the best (witness, margin)"."""
    columns: dict[str, Any] = {"witnesses": None, "leads": None, "widths": None, "margins": None}
    if num_arms > INLINE:
        return {"number": len(arms), "arms": None, **columns}
    if intervals is not None:
        place = np.clip(np.searchsorted(intervals.arms, arms), 0, max(len(intervals.arms) - 1, 0))
        found = np.isin(arms, intervals.arms)
        columns["witnesses"] = np.where(found, intervals.witnesses[place], -1).tolist()
        for name in ("leads", "widths", "margins"):
            columns[name] = _numbers(np.where(found, getattr(intervals, name)[place], np.nan))
    return {"number": len(arms), "arms": arms.tolist(), **columns}


class _LastIntervals:
    """For every arm the interval of the last look at which it was in question, or was compared with another witness."""

    def __init__(self, num_arms: int) -> None:
        self.known = False
        self._plans = np.zeros(num_arms, np.int64)
        self._witnesses = np.full(num_arms, -1)
        self._numbers = {name: np.full(num_arms, np.nan) for name in ("leads", "widths", "margins", "allowed")}

    def add(self, plan: int, intervals: Intervals, in_question: IntArray) -> None:
        self.known = True
        fresh = np.isin(intervals.arms, in_question) | (self._witnesses[intervals.arms] != intervals.witnesses)
        arms = intervals.arms[fresh]
        self._plans[arms] = plan
        self._witnesses[arms] = intervals.witnesses[fresh]
        for name, column in self._numbers.items():
            column[arms] = getattr(intervals, name)[fresh]

    def entry(self) -> dict[str, Any]:
        columns = {name: _numbers(column) for name, column in self._numbers.items()}
        return {"plans": self._plans.tolist(), "witnesses": self._witnesses.tolist(), **columns}


def _candidates(facts: Facts, best: int, active: IntArray) -> dict[str, Any] | None:
    """Measurements, plain mean and fate of every arm."""
    num_arms = facts.arms.num_arms
    if num_arms > INLINE:
        return None
    sign = -1.0 if facts.minimize else 1.0
    pulls, sums = np.zeros(num_arms, np.int64), np.zeros(num_arms)
    for look in facts.looks:
        pulls += look.seen.counts
        sums += sign * look.seen.sums
    means = np.divide(sums, pulls, out=np.full(num_arms, np.nan), where=pulls > 0)
    fates = np.full(num_arms, "left", dtype=object)
    fates[active] = "possible"
    fates[best] = "recommended"
    return {"pulls": pulls.tolist(), "means": _numbers(means), "fates": fates.tolist()}


def _numbers(values: FloatArray) -> list[float | None]:
    return [value if known else None for value, known in zip(values.tolist(), np.isfinite(values), strict=True)]


def _number(value: float | None) -> float | None:
    return None if value is None else float(value)


def dense(columns: Mapping[str, Any], num_arms: int) -> IntArray:
    """Counts of all arms from {"arms": ..., "pulls": ...}.

    Raises:
        ValueError: arms out of range, twice or not ascending, or counts below 1.
    """
    arms, pulls = _whole(columns["arms"]), _whole(columns["pulls"])
    if len(arms) != len(pulls) or np.any(np.diff(arms) <= 0) or np.any(pulls < 1):
        raise ValueError("candidates must be ascending, each with at least one measurement")
    if len(arms) and not (arms[0] >= 0 and arms[-1] < num_arms):
        raise ValueError(f"there is no candidate {max(arms.tolist(), key=abs)}")
    counts = np.zeros(num_arms, np.int64)
    counts[arms] = pulls
    return counts


def _whole(values: Sequence[int]) -> IntArray:
    if not all(isinstance(value, int) and not isinstance(value, bool) for value in values):
        raise ValueError("counts and positions must be whole numbers")
    return np.array(values, np.int64).reshape(-1)
