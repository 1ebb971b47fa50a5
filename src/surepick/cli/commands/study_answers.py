"""`surepick status`, `recommend`, `certificate` and `export`: what a durable study knows."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Annotated

import typer
from rich.console import Console

from surepick.cli import options
from surepick.cli.commands.studies import NameArgument, UrlArgument, check_extra
from surepick.cli.commands.study_work import check_table_name, resumed
from surepick.cli.output import NOT_CERTIFIED, Text, noted, print_json, say
from surepick.errors import InvalidInput
from surepick.studies.logs.leases import format_time, format_utc
from surepick.studies.progress import Progress, times
from surepick.studies.study import Study


def status(url: UrlArgument, name: NameArgument, output: options.FormatOption = options.Format.text) -> None:
    """Where a study stands: what is in, what is out, and what the complete rounds say. Nothing is computed."""
    study = resumed(url, name)
    progress = study.progress()
    if output is options.Format.json:
        print_json({**_status_json(name, progress), "registration": study.registration})
        return
    console = Console(highlight=False, soft_wrap=True)
    console.print(Text(f"{name}: {progress}"))
    for part in progress.out:
        console.print(Text(f"  {times(part.pulls, 'pull')} with {part.worker} until {format_time(part.until)}"))
    if progress.out and progress.free:
        console.print(Text(f"  {times(progress.free, 'pull')} with nobody"))
    late, prior = progress.set_aside
    if late:
        console.print(Text(f"  {times(late, 'result')} came late: kept, and not used"))
    if prior:
        console.print(Text(f"  {times(prior, 'prior result')}: kept, and not used"))
    console.print(Text(f"  registration code {study.registration}"))


def _status_json(name: str, progress: Progress) -> dict[str, object]:
    late, prior = progress.set_aside
    return {
        "study": name,
        "status": str(progress),
        "stopped": progress.stopped or progress.ended is not None,
        "verdict": progress.verdict,
        "closed_early": progress.ended is not None,
        "plan": progress.plan,
        "round": progress.round,
        "most_rounds": progress.most_rounds,
        "candidates": progress.candidates,
        "left": progress.left,
        "asked": progress.asked,
        "told": progress.told,
        "free": progress.free,
        "out": [{"worker": part.worker, "pulls": part.pulls, "until": format_utc(part.until)} for part in progress.out],
        "done_by": None if progress.done_by is None else format_utc(progress.done_by),
        "pulls": progress.pulls,
        "best_arm": progress.leader,
        "certified_gap": progress.certified_gap,
        "late": late,
        "prior": prior,
    }


def _opened(url: str, name: str) -> Study:
    """The study, with everything that was decided computed again."""
    check_extra()
    from surepick.studies.database import open_study  # noqa: PLC0415 (SQLAlchemy: heavy, and an extra)

    with noted():
        return open_study(url, name)


def recommend(url: UrlArgument, name: NameArgument, output: options.FormatOption = options.Format.text) -> None:
    """The best candidate by the complete rounds. Exit code 3 while it is not certified."""
    answer = _opened(url, name).certificate()
    if output is options.Format.json:
        print_json(
            {
                "best_arm": answer.best_arm,
                "verdict": answer.verdict,
                "certified_gap": answer.certified_gap,
                "pulls": answer.pulls,
            }
        )
    elif answer.pulls == 0 and answer.verdict == "not-yet":
        say("No recommendation yet: no round is complete.")
    else:
        Console(highlight=False, soft_wrap=True).print(Text.assemble((answer.best_arm, "bold"), f"   {answer.verdict}"))
    if answer.verdict != "certified":
        raise typer.Exit(NOT_CERTIFIED)


def certificate(
    url: UrlArgument,
    name: NameArgument,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write it to this JSON file, which surepick verify checks.")
    ] = None,
    sign: Annotated[
        Path | None,
        typer.Option(
            "--sign", metavar="KEYFILE", help="Sign it with this private Ed25519 key, in PEM or from OpenSSH."
        ),
    ] = None,
    output: options.FormatOption = options.Format.text,
) -> None:
    """The answer and what it rests on; all that was decided is computed again before. Exit code 3 if not certified.

    With --format json, or in the file, it carries all that surepick verify needs to compute every number again on
    another machine, without the database.
    """
    from surepick.certificates.document import certificate_document, write_document  # noqa: PLC0415
    from surepick.certificates.signature import sign_certificate, signing_key  # noqa: PLC0415
    from surepick.cli.format_certificate import print_certificate, print_registration, print_rounds  # noqa: PLC0415

    whole = out is not None or output is options.Format.json
    if sign is not None:
        if not whole:
            raise InvalidInput("--sign signs the file, which is not written: add --out FILE, or --format json.")
        signing_key(sign)  # before the work, so that a wrong key costs nothing
    study = resumed(url, name) if whole else _opened(url, name)
    if whole:  # one replay computes what was decided again and writes the document
        document = certificate_document(study, name, check=True)
        document = document if sign is None else sign_certificate(document, sign)
    answer = study.certificate()
    if out is not None:
        write_document(document, out)
    if output is options.Format.json:
        print_json(document)
    else:
        print_rounds(answer.rounds, study.policy)
        print_certificate(answer, study.noise)
        print_registration(study.registration)
        if out is not None:
            Console(highlight=False, soft_wrap=True).print(
                Text(f"Written to {out}. Next: surepick verify {quote(str(out))}")
            )
    if answer.verdict != "certified":
        raise typer.Exit(NOT_CERTIFIED)


def export(
    url: UrlArgument,
    name: NameArgument,
    out: Annotated[Path, typer.Option("--out", help="A .csv, .parquet or .jsonl file.")],
    output: options.FormatOption = options.Format.text,
) -> None:
    """Write the results of the complete rounds to a table, and those that were set aside; nothing of the open round."""
    from surepick.studies.export import export_results  # noqa: PLC0415

    check_table_name(out)
    rows = export_results(_opened(url, name), out)
    if output is options.Format.json:
        print_json({"study": name, "rows": rows, "file": str(out)})
        return
    say(f"{out}: {rows:,} rows.")
