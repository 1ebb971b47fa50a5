"""What is asked of a study, or done to it, beside measuring: status, judge, withdraw, close, ..."""

import sys
from typing import Any

from surepick.cli import options
from surepick.cli.open_study import DatabaseArgument, NameArgument, UrlArgument, command_line
from surepick.cli.options import REQUIRED, opt
from surepick.cli.output import end_by, known, note, picked, print_either, print_json, print_table, say
from surepick.drawings.terminal import round_line, signs_for
from surepick.studies import opening
from surepick.studies.logs.base import AS_THEY_COME, CLOSED_ROUNDS, INDEPENDENT_OF_VALUE, format_time, format_utc
from surepick.studies.opening import open_study, resume_study
from surepick.studies.progress import PROVED, Progress, times
from surepick.studies.study import Study

# --- `surepick interim`, `release`, `abandon`, `withdraw`, `close`: an end to waiting, leases, results, arms, a study.


def release(
    url: UrlArgument,
    name: NameArgument,
    *,
    worker: str = opt("The worker whose leases end.", default=REQUIRED),
    output: options.FormatOption = options.Format.text,
) -> None:
    """End the leases of a worker, so that others can measure."""
    study = resume_study(url, name)
    pulls = study.release(worker)
    free = f"{pulls:,} measurements of {worker} are free." if pulls else f"{worker} holds nothing."
    released = {"study": name, "worker": worker, "released": pulls}
    print_either(output, released, free, f"{name}: {study.progress()}")


def abandon(
    url: UrlArgument,
    name: NameArgument,
    *,
    reason: str = opt(
        f"Why. {INDEPENDENT_OF_VALUE}: which results are missing has nothing to do with their values; with "
        "any other reason the answer cannot be certified.",
        default=REQUIRED,
    ),
    ids: list[str] | None = opt("Of this candidate only; repeatable.", flag="--id"),
    output: options.FormatOption = options.Format.text,
) -> None:
    """Give up the missing measurements of the open round.

    Once nothing else is missing, the round is judged with what came.
    """
    study = resume_study(url, name)
    study.abandon(reason, ids or None)
    study.ask()  # the next plan, if that was all that was missing
    if reason.strip() != INDEPENDENT_OF_VALUE:
        note(f"the reason is not {INDEPENDENT_OF_VALUE}, so the answer of this study will be heuristic, not certified.")
    _print_status(study, name, output)


def withdraw(
    url: UrlArgument,
    name: NameArgument,
    *,
    ids: list[str] = opt("Of which candidate; repeatable.", default=REQUIRED, flag="--id"),
    reason: str = opt(
        f"Why. {INDEPENDENT_OF_VALUE}: which one goes, and when, has nothing to do with results, so that the "
        "promise is about the others; with any other reason it still has to be ruled out.",
        default=REQUIRED,
    ),
    output: options.FormatOption = options.Format.text,
) -> None:
    """Go on without some candidates: from the next round on they are neither measured nor recommended.

    What they were measured so far still counts. Where one that went for a reason of its own is the only one that is not
    ruled out, the study stops, and its answer is heuristic.
    """
    study = resume_study(url, name)
    study.withdraw(ids, reason)
    study.ask()  # the next plan, if nothing else was missing
    missing = dict(zip(study.ids, study.missing.tolist(), strict=True))
    wanted = sum(missing.get(one, 0) for one in dict.fromkeys(ids))
    if wanted and reason.strip() != INDEPENDENT_OF_VALUE:
        note(
            f"the open round still asks for {times(wanted, 'measurement')} of what was withdrawn: who goes for a "
            "reason that may depend on results goes between two rounds. If they cannot be made: surepick abandon."
        )
    if output is options.Format.text:
        say(f"Withdrawn: {', '.join(dict.fromkeys(ids))}.")
    _print_status(study, name, output)


def add(
    url: UrlArgument,
    name: NameArgument,
    *,
    ids: list[str] = opt("Which candidate; repeatable.", default=REQUIRED, flag="--id"),
    output: options.FormatOption = options.Format.text,
) -> None:
    """From the next round on, measure some of the candidates that were declared to come later.

    For studies that were created with --later. Results may have to do with who comes, and when.
    """
    study = resume_study(url, name)
    study.add(ids)
    if output is options.Format.text:
        say(f"Measured from the next round on: {', '.join(dict.fromkeys(ids))}.")
    _print_status(study, name, output)


def interim(url: UrlArgument, name: NameArgument, output: options.FormatOption = options.Format.text) -> None:
    """Judge what is in, without waiting for the rest of the round.

    For studies that were created with --judge as-they-come. What is still out may come later, and counts then. Which
    results are in, and when they are judged, must not depend on values that were not judged before.
    """
    study = resume_study(url, name)
    judged = study.interim()
    study.ask()  # the next plan
    if not judged:
        note("nothing came since the last judgement.")
    _print_status(study, name, output)


def close(
    url: UrlArgument,
    name: NameArgument,
    *,
    reason: str = opt("Why, for the record.", default=""),
    output: options.FormatOption = options.Format.text,
) -> None:
    """End a study early.

    Its certificate says what the complete rounds prove, and how many more measurements the next batch would have taken.
    """
    study = resume_study(url, name)
    open_round = study.progress()
    study.close(reason)
    if open_round.judge == AS_THEY_COME and open_round.told and not study.progress().stopped:
        note(f"{times(open_round.told, 'result')} of the open round came and were not judged, so they do not count.")
    _print_status(study, name, output)


def _print_status(study: Study, name: str, output: options.Format) -> None:
    progress = study.progress()
    said = {"study": name, "status": str(progress), "stopped": study.stopped, "best_arm": progress.leader}
    print_either(output, said | picked(progress, *PROVED), f"{name}: {progress}")


# --- `surepick list`: the studies of a database, or of a server.

HEADERS = ("study", "policy", "verdict", "candidates", "epsilon", "delta", "rounds", "measured")


def list_studies(url: UrlArgument, output: options.FormatOption = options.Format.text) -> None:
    """List the studies of a database."""
    found = opening.list_studies(url)
    if output is options.Format.json:
        same = ("name", "candidates", "policy", "epsilon", "delta", "rounds", "pulls", "verdict", "registration")
        more = [{"created": format_utc(one.created_at), "closed_early": one.ended} for one in found]
        print_json({"studies": [picked(one, *same) | added for one, added in zip(found, more, strict=True)]})
        return
    if not found:
        say("No studies yet; start one with surepick create.")
        return
    rows = []
    for one in found:
        verdict = "shortened" if one.shortens and one.verdict == "heuristic" else one.verdict
        verdict += ", closed early" if one.ended else ""
        asked = f"{one.epsilon:g}" if one.epsilon else "any"
        promise = (f"{one.shortens or one.candidates:,}", asked, f"{one.delta:g}")
        rows.append((one.name, one.policy, verdict, *promise, f"{one.rounds:,}", f"{one.pulls:,}"))
    print_table(HEADERS, rows, left=HEADERS[:3])


# --- `surepick migrate`: the tables of a database at the schema of this version.


def migrate(url: DatabaseArgument, output: options.FormatOption = options.Format.text) -> None:
    """Bring a database to the schema of this version; copy it first."""
    from surepick.studies.database import migrate_studies  # noqa: PLC0415 (an extra; the address is checked first)

    before, now = migrate_studies(url)
    if output is options.Format.json:
        print_json({"before": before, "now": now})
    elif before == now:
        say(f"The schema is {now} already; nothing was changed.")
    else:
        say(f"Schema {before} is now {now}.")


# --- `surepick status` and `recommend`: where a durable study stands.


def status(url: UrlArgument, name: NameArgument, output: options.FormatOption = options.Format.text) -> None:
    """Show what is in, what is out, and what the complete rounds say.

    Nothing is computed, but under a class that was named (--assume): up to where the answer so far stands.
    """
    study = resume_study(url, name)
    progress = study.progress()
    if output is options.Format.json:
        print_json({"study": name, **progress_json(progress), "registration": study.registration})
        return
    say(f"{name}: {progress}")
    if progress.plan:
        counts = (progress.told, progress.in_hand, progress.asked)
        signs = signs_for(sys.stdout.encoding)
        say(f"  {round_line(*counts, round_number=progress.round, signs=signs)}")
    for part in progress.out:
        say(f"  {times(part.pulls, 'pull')} with {part.worker} until {format_time(part.until)}")
    if progress.out and progress.free:
        say(f"  {times(progress.free, 'pull')} with nobody")
    late, prior = progress.set_aside
    if late:
        say(f"  {times(late, 'result')} came late: kept, and not used")
    if prior:
        say(f"  {times(prior, 'prior result')}: kept, and not used")
    if progress.judge != CLOSED_ROUNDS:
        say(f"  results are judged {progress.judge}: `surepick interim` judges what is in")
    if progress.steered and progress.judged and study.elsewhere is None:
        from surepick.studies.readings import standing_so_far  # noqa: PLC0415 (the policy, and its readings)

        for line in standing_so_far(study):
            say(f"  {line}")
    say(f"  registration code {study.registration}")
    over = progress.stopped or progress.ended is not None
    say(f"  next: {command_line('certificate' if over else 'ask', url, name)}")


def progress_json(progress: Progress) -> dict[str, Any]:
    late, prior = progress.set_aside
    return {
        "status": str(progress),
        "stopped": progress.stopped or progress.ended is not None,
        "closed_early": progress.ended is not None,
        **picked(progress, "verdict", "plan", "round", "most_rounds", "candidates", "left", "asked", "told", "free"),
        "out": [picked(part, "worker", "pulls") | {"until": format_utc(part.until)} for part in progress.out],
        "done_by": None if progress.done_by is None else format_utc(progress.done_by),
        "best_arm": progress.leader,
        **picked(progress, "pulls", *known(progress, "cost", "plan_cost"), *PROVED),
        "late": late,
        "prior": prior,
        "judge": progress.judge,
    }


def recommend(url: UrlArgument, name: NameArgument, output: options.FormatOption = options.Format.text) -> None:
    """Name the best candidate by the complete rounds.

    Exit code 3 while it is not certified.
    """
    study = open_study(url, name)
    answer, progress = study.certificate(), study.progress()
    if output is options.Format.json:
        fields = ("best_arm", *known(answer, "lists"), "verdict", "pulls", *known(answer, "cost"))
        print_json(picked(answer, *fields) | picked(progress, *PROVED))
    elif answer.pulls == 0 and answer.verdict == "not-yet":
        say("No recommendation yet: no round is complete.")
    elif answer.lists is not None:
        from surepick.cli.answers import print_lists  # noqa: PLC0415 (environments)

        print_lists(answer, answer.lists, study.policy.problem)
    else:
        said = f": {progress.proved}." if progress.proved else ""
        say((answer.best_arm, "bold"), f"   {answer.verdict}{said}")
    end_by(answer.verdict)
