"""`surepick certificate`: the answer of a durable study, and the assumptions that it rests on."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Annotated

from typer import Option

from surepick.certificates.document import certificate_document, write_document
from surepick.certificates.signature import sign_certificate, signing_key
from surepick.cli import options
from surepick.cli.format_certificate import print_answer, print_registration
from surepick.cli.open_study import NameArgument, UrlArgument, opened, resumed
from surepick.cli.output import end_by, print_json, say
from surepick.errors import InvalidInput


def certificate(
    url: UrlArgument,
    name: NameArgument,
    *,
    out: Annotated[Path | None, Option(help="Write it to this JSON file, which surepick verify checks.")] = None,
    sign: Annotated[Path | None, Option(metavar="KEYFILE", help="Sign with this Ed25519 key (PEM, OpenSSH).")] = None,
    output: options.FormatOption = options.Format.text,
) -> None:
    """State the answer and the assumptions that it rests on.

    All decisions are computed again first. With --format json, or in the file, the certificate carries all that
    surepick verify needs to compute every number again on another machine, without the database. Exit code 3 if it is
    not certified.
    """
    whole = out is not None or output is options.Format.json
    if sign is not None:
        if not whole:
            raise InvalidInput("--sign signs the file, which is not written: add --out FILE, or --format json.")
        signing_key(sign)  # before the work, so that a wrong key costs nothing
    study = resumed(url, name) if whole else opened(url, name)
    if whole:  # one pass over the log computes all decisions again and writes the document
        document = certificate_document(study, name, check=True)
        document = document if sign is None else sign_certificate(document, sign)
    answer = study.certificate()
    if out is not None:
        write_document(document, out)
    if output is options.Format.json:
        print_json(document)
    else:
        print_answer(answer, study.policy)
        print_registration(study.registration)
        if out is not None:
            say(f"Written to {out}. Next: surepick verify {quote(str(out))}")
    end_by(answer.verdict)
