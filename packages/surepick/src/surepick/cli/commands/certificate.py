"""`surepick certificate`, `read`, ...: the answer of a durable study, and the assumptions that it rests on."""

import json
import sys
import time
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import typer
from typer import Argument, Option

from surepick.assumptions import Reading
from surepick.certificates.answers import Line
from surepick.certificates.document import certificate_document, write_document
from surepick.certificates.signature import sign_certificate, signing_key
from surepick.certificates.verify import Verification, read_certificate, verify_certificate
from surepick.cli import options
from surepick.cli.answers import print_answer, print_readings, print_registration
from surepick.cli.open_study import NameArgument, UrlArgument
from surepick.cli.options import REQUIRED, opt
from surepick.cli.output import NOT_CERTIFIED, end_by, note, picked, print_either, print_json, say
from surepick.core.arms import Arms
from surepick.core.certificate import Listed
from surepick.core.records import from_json
from surepick.errors import InvalidInput
from surepick.studies.audit import export_results
from surepick.studies.opening import is_http, open_study, resume_study
from surepick.studies.registration import read_code
from surepick.tables import read_arms
from surepick.tables.delimited import check_suffix

AssumeOption = Annotated[
    list[str] | None,
    Option(
        metavar="TEXT",
        help="Read it under this assumption, whoever names it and when: nothing, linear, linear:norm=10, "
        "'smooth:length=0.7 + off by 0.02', 'linear and scatter<=0.6'; repeatable.",
    ),
]
FIELDS = (
    *("candidate", "epsilon", "delta", "gap", "stands", "beaten", "refuted", "norm", "norm_named", "suggested_norm"),
    *("largest_norm", "least_norm", "largest_misspecification", "largest_scatter", "declared_scatter"),
    "suggested_scatter",
)


def certificate(
    url: UrlArgument,
    name: NameArgument,
    *,
    out: Path | None = opt("Write it to this JSON file, which surepick verify checks."),
    sign: Path | None = opt("Sign with this Ed25519 key (PEM, OpenSSH).", "KEYFILE"),
    in_toto: Path | None = opt("Write an in-toto statement about the file of --out; with --sign in an envelope."),
    every_eval_ever: Path | None = opt("Write a file of results for each candidate into this folder.", "FOLDER"),
    organization: str = opt("In these files: who measured.", default="unknown"),
    output: options.FormatOption = options.Format.text,
) -> None:
    """State the answer and the assumptions that it rests on.

    All decisions are computed again first. With --format json, or in the file, the certificate carries all that
    surepick verify needs to compute every number again on another machine, without the database. Exit code 3 if it is
    not certified.
    """
    whole = out is not None or output is options.Format.json or every_eval_ever is not None
    if in_toto is not None and out is None:
        raise InvalidInput("--in-toto makes a statement about the file of the certificate: add --out FILE.")
    if sign is not None:
        if out is None and output is not options.Format.json:
            raise InvalidInput("--sign signs the file, which is not written: add --out FILE, or --format json.")
        signing_key(sign)  # before the work, so that a wrong key costs nothing
    study = resume_study(url, name)
    if whole:  # one pass over the log computes all decisions again and writes the document
        document = certificate_document(study, name, check=True)
        document = document if sign is None else sign_certificate(document, sign)
    answer = study.certificate()
    if out is not None:
        write_document(document, out)
    more = _others(document, out, in_toto, sign, every_eval_ever, organization) if whole else []
    if output is options.Format.json:
        print_json(document)
    else:
        print_answer(answer, study.policy, study)
        print_registration(study.registration)
        if out is not None:
            say(f"Written to {out}. Next: surepick verify {quote(str(out))}")
        for line in more:
            say(line)
    end_by(answer.verdict)


def _others(
    document: dict[str, Any], out: Path | None, in_toto: Path | None, sign: Path | None, folder: Path | None, who: str
) -> list[str]:
    """Write the certificate in forms of other programs, where they are asked for; what was written."""
    said = []
    if in_toto is not None and out is not None:
        from surepick.integrations.in_toto import write_statement  # noqa: PLC0415 (for those who ask for it)

        said.append(f"{write_statement(out, in_toto, sign=sign)}: an in-toto statement about {out}.")
    if folder is not None:
        from surepick.integrations.every_eval_ever_results import write_results  # noqa: PLC0415

        files = write_results(document, folder, seconds=int(time.time()), organization=who)
        said.append(f"{folder}: {len(files):,} files of results by the schema of every-eval-ever.")
    return said


# --- `surepick verify`: a certificate checked by somebody else, on another machine, without the database.


def verify(
    file: Annotated[Path, Argument(metavar="CERTIFICATE", help="A certificate in JSON.", show_default=False)],
    *,
    arms: str | None = opt(
        "The candidates, if the file has none (over 10,000); or the folder of the list from which they were selected.",
        "TABLE",
    ),
    columns: options.ColumnOptions,
    registered: str | None = opt("The registration code of surepick create; refuse any other study.", "CODE"),
    public_key: Path | None = opt("The Ed25519 key that must have signed it, in PEM or from OpenSSH.", "FILE"),
    reading: options.Reading,
    assume: AssumeOption = None,
    every_plan: bool = opt("Compute every plan again, even for hours.", default=False),
    output: options.FormatOption = options.Format.text,
) -> None:
    """Compute every number of a certificate again, from its measurements.

    Exit code 3 unless all of it holds.
    """
    document = read_certificate(file)
    candidates, long_list = None, None
    if arms is not None and _was_selected(document):
        long_list = read_arms(arms, columns.id, columns.features, blocks=True)
    elif arms is not None:
        candidates = _prepared_arms(arms, columns, reading, document)
    elif options.given(columns) or options.given(reading):
        raise InvalidInput(
            "--id, --features, --cost, --segments, --sheet, --percent and --drop-missing say how to read the table of "
            "--arms, which is not given."
        )
    result = verify_certificate(
        document,
        arms=candidates,
        most_plans=sys.maxsize if every_plan else None,
        registered=registered,
        public_key=public_key,
        long_list=long_list,
        assume=assume or (),
    )
    if output is options.Format.json:
        code = None if registered is None else read_code(registered)
        lines = [picked(line, "what", "holds", "words") for line in result.lines]
        found = picked(result, "holds", "verdict", "registration", "unchecked")
        more = {"readings": [stated(one) for one in result.readings]} if assume else {}
        print_json({"file": str(file), **found, "registered": code, "lines": lines, **more})
    else:
        _print(document, result)
    if not result.holds:
        raise typer.Exit(NOT_CERTIFIED)


def _was_selected(document: dict[str, Any]) -> bool:
    """Whether the candidates are those left of a list too long for memory."""
    described = document.get("policy")
    return isinstance(described, dict) and "selected" in described


def _prepared_arms(
    source: str, columns: options.ColumnOptions, reading: options.Reading, document: dict[str, Any]
) -> Arms:
    """The candidates of the table, prepared as the certificate says."""
    described = document.get("arms")
    said = described if isinstance(described, dict) else {}
    steps = said["preparation"] if isinstance(said.get("preparation"), list) else []
    prepare = {step: step in steps for step in ("standardize", "intercept")} | picked(columns, "cost", "segments")
    features = columns.features if columns.features is not None or said.get("columns") else ()  # these have none
    return read_arms(source, columns.id, features, **prepare, **reading.options)


def _print(document: dict[str, Any], result: Verification) -> None:
    lines = _shortened(result.lines)
    width = max(len(line.what) for line in lines)
    for line in lines:
        mark = ("holds  ", "green") if line.holds else ("FAILS  ", "bold red")
        say(mark, (line.what.ljust(width), "bold"), f"  {line.words}")
    failed = sum(not line.holds for line in result.lines)
    if failed:
        lines_fail = "one line does not hold" if failed == 1 else f"{failed} lines do not hold"
        say(f"Do not rely on this file: {lines_fail}.")
    elif document["pulls"] == 0 and result.verdict == "not-yet":
        say("All of it holds. No round is complete, so there is no answer yet.")
    else:
        lists = document.get("lists")
        answer = document["best_arm"] if lists is None else from_json(Listed, json.dumps(lists)).headline
        say(f"All of it holds: {answer}, {result.verdict}. {document['promise']}")
    for sentence in result.unchecked:
        say(sentence)
    if result.readings:
        print_readings(result.readings, *map(str, result.readings))


def _shortened(lines: tuple[Line, ...]) -> list[Line]:
    """The lines, but rounds that hold in one."""
    rounds = [line for line in lines if line.what.startswith("round ") and line.holds]
    if len(rounds) < 2:
        return list(lines)
    first, last = (line.what.removeprefix("round ") for line in (rounds[0], rounds[-1]))
    whole = Line(f"rounds {first} to {last}", True, f"as computed; the last took {rounds[-1].words}")
    shown = [line for line in lines if line not in rounds]
    shown.insert(lines.index(rounds[0]), whole)
    return shown


# --- `surepick report`: a study as a page that anybody can read.

SUFFIXES = (".html", ".htm")


def report(
    url: UrlArgument,
    name: NameArgument,
    *,
    out: Path = opt("An .html file; one file, which needs no network.", default=REQUIRED),
    forecast_up_to: int = opt("Leave out the slow forecast with more candidates.", default=1_000, min=0),
    open_page: bool = opt("Show it in the browser.", default=False, flag="--open"),
    output: options.FormatOption = options.Format.text,
) -> None:
    """Write a study as one page to pass on: answer, pictures, assumptions and log.

    The page says what the complete rounds say, and nothing of the open round.
    """
    from surepick.linalg.rows import one_thread  # noqa: PLC0415 (`run` imports this module)
    from surepick.reports.study.page import write_report  # noqa: PLC0415

    check_page(out, drawn_here=not is_http(url))
    study = open_study(url, name)
    with one_thread():
        write_report(study, out, name=name, forecast_up_to=forecast_up_to)
    verdict, size, uri = study.certificate().verdict, out.stat().st_size, out.resolve().as_uri()
    written = {"study": name, "verdict": verdict, "file": str(out), "uri": uri, "bytes": size}
    print_either(output, written, f"{out}: {verdict}, {size / 1e6:.2f} MB.", uri)
    if open_page:
        import webbrowser  # noqa: PLC0415 (only where a page is shown)

        if not webbrowser.open(uri):
            note(f"no browser could be started here; open {uri} in one.")


def check_page(path: Path, *, drawn_here: bool = True) -> None:
    """Refuse to go on without what a report needs."""
    from surepick.reports.study.page import check_jinja  # noqa: PLC0415 (`run` needs it for --report only)

    if path.suffix.lower() not in SUFFIXES:
        raise InvalidInput(f"{str(path)!r} does not end in .html; a report is a page for a browser, so name it so.")
    if drawn_here:
        check_jinja()


# --- `surepick export`: the results of a durable study as a table.


def export(
    url: UrlArgument,
    name: NameArgument,
    *,
    out: Path = opt("A .csv, .parquet or .jsonl file.", default=REQUIRED),
    output: options.FormatOption = options.Format.text,
) -> None:
    """Write the results of the complete rounds to a table.

    Results that were set aside are in it too; those of the open round are not.
    """
    check_suffix(out)
    rows = export_results(open_study(url, name), out)
    print_either(output, {"study": name, "rows": rows, "file": str(out)}, f"{out}: {rows:,} rows.")


# --- surepick read


def read(
    url: UrlArgument,
    name: NameArgument,
    *,
    assume: AssumeOption = None,
    output: options.FormatOption = options.Format.text,
) -> None:
    """Say what the results show under assumptions that are named now.

    Nothing is paid for looking under many of them: if one is true, what is said under it is wrong with probability at
    most delta, together with all others that are true. Without --assume: under those that suit the study.
    """
    study = open_study(url, name)
    if study.elsewhere is None:
        found = study.readings(*(assume or ()))
    else:  # the server has no such question: its certificate has what is needed
        found = verify_certificate(certificate_document(study, name), assume=assume or ["nothing", "linear"]).readings
    if output is options.Format.json:
        print_json({"study": name, "readings": [stated(one) for one in found]})
    else:
        print_readings(found, *map(str, found))


def stated(reading: Reading) -> dict[str, Any]:
    """A reading for JSON."""
    return {"assumption": str(reading.assumption), "words": str(reading), **picked(reading, *FIELDS)}
