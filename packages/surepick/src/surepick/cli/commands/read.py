"""`surepick read`: what the results of a study show under assumptions that are named after they are in."""

from collections.abc import Sequence
from typing import Annotated, Any

from typer import Option

from surepick.assumptions import Reading
from surepick.certificates.document import certificate_document
from surepick.certificates.verify import verify_certificate
from surepick.cli import options
from surepick.cli.open_study import NameArgument, UrlArgument, opened_study
from surepick.cli.output import picked, print_json, print_table, say

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
SEPARATE = (
    "Each line is one claim. Largest norm, off by and noise up to say how far that number alone could grow, with all "
    "others as in the line: no two of them hold together."
)


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
    study = opened_study(url, name)
    if study.elsewhere is None:
        found = study.readings(*(assume or ()))
    else:  # the server has no such question: its certificate has what is needed
        found = verify_certificate(certificate_document(study, name), assume=assume or ["nothing", "linear"]).readings
    if output is options.Format.json:
        print_json({"study": name, "readings": [stated(one) for one in found]})
    else:
        print_readings(found)


def stated(reading: Reading) -> dict[str, Any]:
    """A reading for JSON."""
    return {"assumption": str(reading.assumption), "words": str(reading), **picked(reading, *FIELDS)}


def print_readings(readings: Sequence[Reading]) -> None:
    """A sentence and a row for each."""
    for one in readings:
        say(str(one))
    headers = ("assumed", "within", "stands", "norm", "suggested", "largest norm", "off by", "noise up to")
    rows = [
        (
            str(one.assumption),
            _number(one.gap),
            "refuted" if one.refuted else "yes" if one.stands else "no",
            _number(one.norm),
            _number(one.suggested_norm),
            _largest(one.largest_norm, one.norm),
            _number(one.largest_misspecification),
            _number(one.largest_scatter),
        )
        for one in readings
    ]
    print_table(headers, rows, left=("assumed", "stands"))
    say(SEPARATE)


def _largest(norm: float | None, read: float | None) -> str:
    """The largest norm; one a thousand times that of the line is as good as any, and a matter of rounding."""
    return f">{1000.0 * read:.3g}" if norm and read and norm > 1000.0 * read else _number(norm)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"
