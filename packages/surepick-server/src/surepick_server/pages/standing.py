"""Where a study stands, for the pages of a study: its head, its lead sentence, and what is asked."""

from typing import Any

from surepick.questions import asked_of
from surepick.studies.logs.sql.descriptions import ARCHIVED, NOTE, OWNER, TITLE
from surepick.studies.progress import Progress
from surepick.studies.study import Study
from surepick.text import percent
from surepick_server.access.tokens import Principal
from surepick_server.api.studies import study_status
from surepick_server.pages.overview import ANSWERS, gap_of, proved_of, unit_of, waits_for
from surepick_server.web.auth import ServerState


def standing_of(server: ServerState, study: Study, name: str, caller: Principal) -> dict[str, Any]:
    """Where a study stands, for templates."""
    progress, problem = study.progress(), study.policy.problem
    waits, mine = waits_for(progress, caller)
    over = progress.stopped or progress.ended is not None
    about = server.studies.database.said(name.strip()).get(name.strip(), {})
    tolerance = 0.0 if study.policy.traits.any_gap else problem.epsilon
    measured = study.column_names.reward or ""
    return {
        "name": name,
        "title": about.get(TITLE, name),
        "owner": about.get(OWNER, ""),
        "archived": bool(about.get(ARCHIVED)),
        "remark": about.get(NOTE, ""),
        "asked": study_status(study, name),
        "progress": progress,
        "waits": waits,
        "mine": mine,
        "over": over,
        "state": state_of(progress, mine=mine),
        "held": sum(part.pulls for part in progress.out if caller.is_worker(part.worker)),
        "question": question_of(study),
        "short_question": short_question(study),
        "noise_words": noise_words(study.noise.spec),
        "tolerance": f"{tolerance:g}{unit_of(study)}" if tolerance else "",
        "confidence": f"{percent(1.0 - problem.delta)} %",
        "measured": measured,
        "unit": study.scale.unit,
        "result_head": f"{measured or 'Result'}{f', {study.scale.unit}' if study.scale.unit else ''}",
        "gap": "" if progress.certified_gap is None else gap_of(study, progress.certified_gap, tolerance),
        "proved": proved_of(study, progress, tolerance),
        "leader_line": line_of_leader(study, progress),
        "can_withdraw": study.policy.traits.withdraw is not None,
        "statistics": statistics_of(study),
    }


def state_of(progress: Progress, *, mine: bool) -> str:
    """The state of a study, as its chip says it."""
    if progress.stopped:
        return ANSWERS.get(progress.verdict, "open")
    if progress.ended is not None:
        return "closed"
    if progress.refused:
        return "attention"
    return "yours" if mine else "measuring"


def line_of_leader(study: Study, progress: Progress) -> str:
    """What the leading candidate is; "" where nobody said it."""
    if progress.leader is None or not study.described:
        return ""
    return study.described.line(study.ids.index(progress.leader)).replace(" · ", ", ")


def short_question(study: Study) -> str:
    """What is asked, in a few words."""
    wanted = asked_of(study.policy.problem.question, by_segment=study.arms.segments is not None)
    if wanted is None:
        return "Which one is the best?"
    return str(wanted.said(study.policy.problem.epsilon, by_segment=study.arms.segments is not None)[0])


def question_of(study: Study) -> str:
    """What is asked, and what is promised of the answer."""
    problem, by_segment = study.policy.problem, study.arms.segments is not None
    wanted = asked_of(problem.question, by_segment=by_segment)
    if wanted is None:
        largest = "smallest" if study.minimize else "largest"
        if study.policy.traits.any_gap:
            return (
                f"One as near to the {largest} as {study.policy.traits.budget:,} measurements can show. How near, the "
                f"answer says; that may be wrong with probability {problem.delta:g} at most."
            )
        return (
            f"One whose mean is within {problem.epsilon:g} of the {largest}; that may be wrong with probability "
            f"{problem.delta:g} at most."
        )
    return " ".join((*wanted.said(problem.epsilon, by_segment=by_segment), wanted.guarantee(problem.delta)))


def noise_words(spec: str) -> str:
    """What is assumed of a measurement, for people who never saw how we write it; "" for kinds that are seldom."""
    kind, *numbers = spec.split(":")
    if kind == "bernoulli":
        return "0 or 1"
    if kind == "normal":
        return "scatters like a bell curve, nobody knows how far"
    if kind == "bounded" and len(numbers) == 2:
        return f"between {float(numbers[0]):g} and {float(numbers[1]):g}"
    if kind == "subgaussian" and len(numbers) == 1:
        return f"scatters like a bell curve with a standard deviation of {float(numbers[0]):g}, or less"
    return ""


def statistics_of(study: Study) -> str:
    """What statisticians call it."""
    problem, traits = study.policy.problem, study.policy.traits
    aim = f"budget {traits.budget:,}" if traits.any_gap else f"epsilon {problem.epsilon:g}"
    return f"{aim}, delta {problem.delta:g}, noise {study.noise.spec}, K = {len(study.ids):,}"
