"""`surepick status` and `recommend`: where a durable study stands."""

from __future__ import annotations

from typing import Any

from surepick.cli import options
from surepick.cli.format_certificate import print_lists
from surepick.cli.open_study import NameArgument, UrlArgument, opened, resumed
from surepick.cli.output import end_by, known, picked, print_json, say
from surepick.studies.logs.base import CLOSED_ROUNDS
from surepick.studies.logs.leases import format_time, format_utc
from surepick.studies.progress import PROVED, Progress, times


def status(url: UrlArgument, name: NameArgument, output: options.FormatOption = options.Format.text) -> None:
    """Show what is in, what is out, and what the complete rounds say.

    Nothing is computed.
    """
    study = resumed(url, name)
    progress = study.progress()
    if output is options.Format.json:
        print_json({"study": name, **_progress_json(progress), "registration": study.registration})
        return
    say(f"{name}: {progress}")
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
        say(f"  results are judged {progress.judge}: `surepick judge` judges what is in")
    say(f"  registration code {study.registration}")


def _progress_json(progress: Progress) -> dict[str, Any]:
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
    study = opened(url, name)
    answer, progress = study.certificate(), study.progress()
    if output is options.Format.json:
        fields = ("best_arm", *known(answer, "lists"), "verdict", "pulls", *known(answer, "cost"))
        print_json(picked(answer, *fields) | picked(progress, *PROVED))
    elif answer.pulls == 0 and answer.verdict == "not-yet":
        say("No recommendation yet: no round is complete.")
    elif answer.lists is not None:
        print_lists(answer, answer.lists, study.policy.problem)
    else:
        said = f": {progress.proved}." if progress.proved else ""
        say((answer.best_arm, "bold"), f"   {answer.verdict}{said}")
    end_by(answer.verdict)
