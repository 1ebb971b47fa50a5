"""The certificate as a document that others can check: the plans and results, and all that follows from them.

    facts     the policy, the arms, what each plan asked, its results, how it was carried out
    derived   everything else: `document_of` computes it from the facts, for the writer and for the verifier

The published form is certificate.schema.json, beside this file.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from surepick.certificates import answers, signature
from surepick.certificates.answers import plain_cell, plain_numbers, sparse_column, totals_of
from surepick.core.arms import Arms
from surepick.core.files import as_path, write_whole
from surepick.core.plans import Intervals, RoundRecord, Step
from surepick.core.records import IntArray, encode
from surepick.core.values import storable_text
from surepick.errors import InvalidInput
from surepick.linalg.rows import one_thread, several_threads
from surepick.policies.base import Policy, name_of, spec_of, stopped
from surepick.policies.registry import built_policy, is_named
from surepick.studies.audit import audited
from surepick.studies.deviations import EarlyEnd, answer_of
from surepick.studies.logs.base import CLOSED_ROUNDS
from surepick.studies.logs.hash_chain import hash_of_arms
from surepick.studies.registration import code_of
from surepick.studies.replay import Closed, Judged, as_read, contradiction, in_order, judged_plans, replay
from surepick.studies.slips import Repeats
from surepick.studies.study import Study
from surepick.text import quoted

FORMAT = "surepick certificate"
VERSION = 1  # of the format; no other is read
CARRIED_OUT = ("withdrawn", "added", "undone", "confirmed", "unasked")  # of `Deviations`
INLINE = 10_000  # arms whose features, intervals and fates are written out
SCHEMA = Path(__file__).with_name("certificate.schema.json")


@dataclass(frozen=True, slots=True)
class Facts:
    """All that a certificate rests on."""

    study: str | None
    study_id: str
    made_by: str
    arithmetic: str  # how that process rounds (`linalg.arithmetic`)
    reproduced: int  # plans, from the first, that came out equal when it computed them again
    arms: Arms
    policy: Policy[Any]
    minimize: bool
    looks: tuple[Closed, ...]  # the plans that were judged, in order
    end: EarlyEnd | None
    judge: str = CLOSED_ROUNDS


def certificate_document(
    study: Study, name: str | None = None, *, check: bool = False, every_candidate: bool = False
) -> dict[str, Any]:
    """The certificate of a study, from the plans that are closed, as plain JSON data; with what became of every
    candidate it is that of a report, which is not verified."""
    if not isinstance(study, Study):
        raise InvalidInput(
            f"study is {quoted(study)}, a {type(study).__name__}; give a Study, e.g. the .study of a Result."
        )
    if study.elsewhere is not None:
        return study.elsewhere.certificate(name)
    several = several_threads()
    with one_thread():  # as the verifier does: threads change the last bits, and with them designs
        policy, spec = study.policy, spec_of(study.policy)
        if several and spec is not None and is_named(spec.get("name")) and policy.traits.rows is None:
            policy = built_policy(arms=study.arms, **spec)  # without what several threads may have computed
        checked = audited(study, name or "") if check or study.unchecked is not None else None
        looks = judged_plans(study.log, len(study.ids), minimize=study.minimize)
        looks = looks if checked is None else looks[: checked.judged]
        facts = Facts(
            study=name,
            study_id=study.study_id,
            made_by=f"surepick {version()}",
            arithmetic=signature.arithmetic(),
            reproduced=0,
            arms=study.arms,
            policy=policy,
            minimize=study.minimize,
            looks=looks,
            end=study.early_end(),
            judge=study.judging,
        )
        repeated = signature.Repeated(policy, signature.quick_plans(policy, len(looks)))
        replayed = None if checked is None or policy is not study.policy else checked.replayed
        if study.unchecked is not None and checked is not None and replayed is None:
            for _ in checked.replayed:  # decisions were computed as threads were then
                pass
        document = document_of(facts, watch=repeated.watch, replayed=replayed, every_candidate=every_candidate)
        if checked is not None:
            study.unchecked = None
        return signature.sealed({**document, "reproduced": repeated.equal})


def write_certificate(
    study: Study, path: str | Path, *, name: str | None = None, sign: str | Path | None = None
) -> Path:
    """Write the certificate of a study to a JSON file that `verify_certificate` and `surepick verify` check.

    Args:
        study: a study, stopped or not; only closed plans are in its certificate.
        path: the file, replaced if it exists.
        name: what the study is called in it.
        sign: a file with a private Ed25519 key to sign it with (`sign_certificate`).

    Raises:
        InvalidInput: the file cannot be written, or the key cannot be read.
    """
    document = certificate_document(study, None if name is None else storable_text("name", name))
    return write_document(document if sign is None else signature.sign_certificate(document, sign), path)


def write_document(document: dict[str, Any], path: str | Path) -> Path:
    """Write a certificate to a JSON file."""
    target = as_path(path, meaning="there the certificate is written.")
    write_whole(target, f"{signature.laid_out(document)}\n".encode(), what="the certificate")
    return target


def version() -> str:
    """The version of this package."""
    import surepick  # noqa: PLC0415 (the package imports this module)

    return surepick.__version__


# the document


def document_of(
    facts: Facts,
    *,
    watch: Callable[[Closed, Any], None] | None = None,
    replayed: Iterable[Judged] | None = None,
    every_candidate: bool = False,
) -> dict[str, Any]:
    """The certificate that follows from the facts."""
    policy, arms = facts.policy, facts.arms
    state, intervals = policy.init(), None
    active: IntArray = np.setdiff1d(np.arange(arms.num_arms), policy.traits.later)
    rounds: dict[int, list[dict[str, Any]]] = {}
    rows: dict[int, RoundRecord] = {}
    last = answers.LastIntervals(arms.num_arms)
    judged = replay(policy, in_order(facts.looks)) if replayed is None else replayed
    repeats, deviations = Repeats(policy), []
    for look, one in zip(facts.looks, judged, strict=True):
        step = one.step
        if watch is not None:
            watch(look, one.before)
        intervals = None if step.deciding is None else step.deciding(intervals)
        if intervals is not None:
            last.add(look.number, intervals, np.union1d(active, step.record.active))
        entry = _look_entry(facts, look, step, intervals, active)
        rounds.setdefault(step.record.round, []).append(entry)
        rows[step.record.round] = step.record
        state, active = step.state, step.record.active
        deviations.append(replace(look.deviations, contradicted=contradiction(repeats, look)))
    if facts.end is not None and stopped(policy, state):
        raise ValueError("the study is said to have been closed early, and its policy had stopped")
    answer = answer_of(
        policy,
        arms,
        state,
        minimize=facts.minimize,
        rounds=tuple(rows[number] for number in sorted(rows)),
        deviations=deviations,
        end=facts.end,
        judge=facts.judge,
        study_id=facts.study_id,
        measured=lambda: answers.measured_in(look.seen for look in facts.looks),
    )
    candidates, order, inline = _arms_entry(arms), policy.traits.items, arms.num_arms <= INLINE
    document = {
        "format": FORMAT,
        "version": VERSION,
        **{name: getattr(facts, name) for name in ("made_by", "arithmetic", "reproduced", "study", "study_id")},
        "best_arm": answer.best_arm,
        "lists": encode(answer.lists),
        "epsilon": float(answer.epsilon),
        "delta": float(answer.delta),
        **{name: getattr(answer, name) for name in ("pulls", "cost", "verdict", "promise", "reason")},
        "certified_gap": None if answer.certified_gap is None else float(answer.certified_gap),
        "minimize": answer.minimize,
        "judge": facts.judge,
        "items": None
        if order is None
        else {"number": order.items.num_items, "sha256": order.items.digest, "seed": order.seed, "seed_by": order.by},
        "assumptions": list(answer.assumptions),
        "checks": list(policy.traits.checks),
        "policy": encode(spec_of(policy)),
        "algorithm": name_of(policy),
        "arms": candidates,
        "registration": code_of(
            spec_of(policy), candidates, study_id=facts.study_id, minimize=facts.minimize, judge=facts.judge
        ),
        "ended": encode(facts.end),
        "rounds": [
            {
                "round": rows[number].round,
                "dim": rows[number].dim,
                "value": plain_cell(rows[number].value),
                "lower_bound": plain_cell(rows[number].lower_bound),
                "misspecification": float(rows[number].misspecification),
                **_outcome(rows[number], arms),
                "looks": rounds[number],
            }
            for number in sorted(rounds)
        ],
        "intervals": last.entry() if last.known and inline else None,
        "candidates": _candidates(facts, answer.arm, active) if inline or every_candidate else None,
        "signature": None,
    }
    absent = [name for name in ("cost", "items", "lists") if document[name] is None]
    return signature.sealed(signature.without_fields(document, *absent))


def _arms_entry(arms: Arms) -> dict[str, Any]:
    inline = arms.num_arms <= INLINE
    costs = {} if arms.costs is None else {"costs": arms.costs.tolist()}
    segments = {} if arms.segments is None else {"segments": list(arms.segments)}
    return {
        "number": arms.num_arms,
        "ids": list(arms.ids) if inline else None,
        "features": np.asarray(arms.features, np.float64).tolist() if inline else None,
        "columns": None if arms.columns is None else list(arms.columns),
        "preparation": list(arms.preparation),
        **(costs | segments if inline else dict.fromkeys([*costs, *segments])),
        "sha256": hash_of_arms(arms),
    }


def _look_entry(
    facts: Facts, look: Closed, step: Step[Any], intervals: Intervals | None, active: IntArray
) -> dict[str, Any]:
    plan, row, ids = look.plan, step.record, facts.arms.ids
    joined = np.setdiff1d(row.active, active)
    dropped = [one.arm for one in look.deviations.withdrawn if one.independent]
    return {
        "plan": look.number,
        "look": plan.look,
        "looks": plan.looks,
        "candidate": None if plan.candidate is None else ids[plan.candidate],
        "dim": plan.dim,
        "value": plain_cell(plan.value),
        **({} if plan.predicted_cost is None else {"predicted_cost": float(plan.predicted_cost)}),
        "lower_bound": plain_cell(plan.lower_bound),
        "misspecification": float(plan.misspecification),
        "asked": sparse_column(plan.counts),
        "allocation": None if plan.allocation is None else sparse_column(plan.allocation),
        "told": totals_of(look.seen, minimize=facts.minimize),
        **answers.answers_entry(plan, look.seen),
        **answers.blocks_entry(look.seen, minimize=facts.minimize),
        **answers.quantities_entry(look.seen),
        "surplus": bool(np.any(look.seen.counts > plan.counts)),
        "repeated": look.deviations.repeated,
        "abandoned": list(look.deviations.abandoned),
        **{name: encode(getattr(look.deviations, name)) for name in CARRIED_OUT},
        **answers.corrections_entry(look, minimize=facts.minimize),
        **_outcome(row, facts.arms),
        "width": answers.widths_of(intervals),
        "left": _left(np.setdiff1d(np.setdiff1d(active, row.active), dropped), intervals, facts.arms.num_arms),
        "joined": joined.tolist() if facts.arms.num_arms <= INLINE else None,
    }


def _outcome(row: RoundRecord, arms: Arms) -> dict[str, Any]:
    """What came of a plan, or of a round by its last plan."""
    return {
        "pulls": row.pulls,
        "total_pulls": row.total_pulls,
        "active": len(row.active),
        "leader": arms.ids[row.leader],
        "certified_gap": plain_cell(row.certified_gap),
        "alarms": list(row.alarms),
    }


def _left(arms: IntArray, intervals: Intervals | None, num_arms: int) -> dict[str, Any]:
    """Who left: "not the best (witness, margin)"."""
    columns: dict[str, Any] = {"witnesses": None, "leads": None, "widths": None, "margins": None}
    if num_arms > INLINE:
        return {"number": len(arms), "arms": None, **columns}
    if intervals is not None:
        place = np.clip(np.searchsorted(intervals.arms, arms), 0, max(len(intervals.arms) - 1, 0))
        found = np.isin(arms, intervals.arms)
        columns["witnesses"] = np.where(found, intervals.comparators[place], -1).tolist()
        for name in ("leads", "widths", "margins"):
            columns[name] = plain_numbers(np.where(found, getattr(intervals, name)[place], np.nan))
    return {"number": len(arms), "arms": arms.tolist(), **columns}


def _candidates(facts: Facts, best: int, active: IntArray) -> dict[str, Any]:
    """Measurements, plain mean and fate of every arm."""
    num_arms = facts.arms.num_arms
    sign = -1.0 if facts.minimize else 1.0
    pulls, sums = np.zeros(num_arms, np.int64), np.zeros(num_arms)
    for look in as_read(facts.looks):
        pulls += look.seen.counts
        sums += sign * look.seen.sums
    means = np.divide(sums, pulls, out=np.full(num_arms, np.nan), where=pulls > 0)
    fates = np.full(num_arms, "left", dtype=object)
    fates[active] = "possible"
    withdrawn = [*(look.deviations.withdrawn for look in facts.looks), () if facts.end is None else facts.end.withdrawn]
    joined = {one.arm for look in facts.looks for one in look.deviations.added}
    fates[[one.arm for each in withdrawn for one in each]] = "withdrawn"
    fates[[arm for arm in facts.policy.traits.later if arm not in joined]] = "waiting"
    fates[best] = "recommended"
    return {"pulls": pulls.tolist(), "means": plain_numbers(means), "fates": fates.tolist()}
