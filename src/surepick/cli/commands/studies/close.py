"""`surepick judge`, `release`, `abandon`, `withdraw`, `close`: an end to waiting, leases, results, arms, a study."""

from __future__ import annotations

from typing import Annotated

from typer import Option

from surepick.cli import options
from surepick.cli.open_study import NameArgument, UrlArgument, resumed
from surepick.cli.output import note, picked, print_json, say
from surepick.studies.logs.base import AS_THEY_COME, INDEPENDENT_OF_VALUE
from surepick.studies.progress import PROVED, times
from surepick.studies.study import Study


def release(
    url: UrlArgument,
    name: NameArgument,
    *,
    worker: Annotated[str, Option(help="The worker whose leases end.")],
    output: options.FormatOption = options.Format.text,
) -> None:
    """End the leases of a worker, so that others can measure."""
    study = resumed(url, name)
    pulls = study.release(worker)
    if output is options.Format.json:
        print_json({"study": name, "worker": worker, "released": pulls})
        return
    say(f"{pulls:,} measurements of {worker} are free." if pulls else f"{worker} holds nothing.")
    say(f"{name}: {study.progress()}")


def abandon(
    url: UrlArgument,
    name: NameArgument,
    *,
    reason: Annotated[
        str,
        Option(
            help=f"Why. {INDEPENDENT_OF_VALUE}: which results are missing has nothing to do with their values; with "
            "any other reason the answer cannot be certified."
        ),
    ],
    ids: Annotated[list[str] | None, Option("--id", help="Of this candidate only; repeatable.")] = None,
    output: options.FormatOption = options.Format.text,
) -> None:
    """Give up the missing measurements of the open round.

    Once nothing else is missing, the round is judged with what came.
    """
    study = resumed(url, name)
    study.abandon(reason, ids or None)
    study.ask()  # the next plan, if that was all that was missing
    if reason.strip() != INDEPENDENT_OF_VALUE:
        note(f"the reason is not {INDEPENDENT_OF_VALUE}, so the answer of this study will be heuristic, not certified.")
    _print_status(study, name, output)


def withdraw(
    url: UrlArgument,
    name: NameArgument,
    *,
    ids: Annotated[list[str], Option("--id", help="Of which candidate; repeatable.")],
    reason: Annotated[
        str,
        Option(
            help=f"Why. {INDEPENDENT_OF_VALUE}: which one goes, and when, has nothing to do with results, so that the "
            "promise is about the others; with any other reason it still has to be ruled out.",
        ),
    ],
    output: options.FormatOption = options.Format.text,
) -> None:
    """Go on without some candidates: from the next round on they are neither measured nor recommended.

    What they were measured so far still counts. Where one that went for a reason of its own is the only one that is not
    ruled out, the study stops, and its answer is heuristic.
    """
    study = resumed(url, name)
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
    ids: Annotated[list[str], Option("--id", help="Which candidate; repeatable.")],
    output: options.FormatOption = options.Format.text,
) -> None:
    """From the next round on, measure some of the candidates that were declared to come later.

    For studies that were created with --later. Results may have to do with who comes, and when.
    """
    study = resumed(url, name)
    study.add(ids)
    if output is options.Format.text:
        say(f"Measured from the next round on: {', '.join(dict.fromkeys(ids))}.")
    _print_status(study, name, output)


def judge(url: UrlArgument, name: NameArgument, output: options.FormatOption = options.Format.text) -> None:
    """Judge what is in, without waiting for the rest of the round.

    For studies that were created with --judge as-they-come. What is still out may come later, and counts then. Which
    results are in, and when they are judged, must not depend on values that were not judged before.
    """
    study = resumed(url, name)
    judged = study.judge()
    study.ask()  # the next plan
    if not judged:
        note("nothing came since the last judgement.")
    _print_status(study, name, output)


def close(
    url: UrlArgument,
    name: NameArgument,
    *,
    reason: Annotated[str, Option(help="Why, for the record.")] = "",
    output: options.FormatOption = options.Format.text,
) -> None:
    """End a study early.

    Its certificate says what the complete rounds prove, and how many more measurements the next batch would have taken.
    """
    study = resumed(url, name)
    open_round = study.progress()
    study.close(reason)
    if open_round.judge == AS_THEY_COME and open_round.told and not study.progress().stopped:
        note(f"{times(open_round.told, 'result')} of the open round came and were not judged, so they do not count.")
    _print_status(study, name, output)


def _print_status(study: Study, name: str, output: options.Format) -> None:
    progress = study.progress()
    if output is options.Format.json:
        said = {"study": name, "status": str(progress), "stopped": study.stopped, "best_arm": progress.leader}
        print_json(said | picked(progress, *PROVED))
    else:
        say(f"{name}: {progress}")
