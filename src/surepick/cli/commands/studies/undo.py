"""`surepick undo`: take back results that were typed wrongly, while their round is open."""

from __future__ import annotations

from typing import Annotated

from typer import Argument, Option

from surepick.cli import options
from surepick.cli.open_study import NameArgument, UrlArgument, WorkerOption, resumed
from surepick.cli.output import print_json, say
from surepick.studies.progress import times


def undo(
    url: UrlArgument,
    name: NameArgument,
    keys: Annotated[list[str] | None, Argument(metavar="[KEY]...", help="Which; none: the latest one.")] = None,
    *,
    worker: WorkerOption = None,
    reason: Annotated[str, Option(help="Why, for the record.")] = "a typing error",
    output: options.FormatOption = options.Format.text,
) -> None:
    """Take back results that were typed wrongly, while their round is open.

    You can take back what you reported, nothing else. The measurements are wanted again: tell the right values, under
    the same keys. The log keeps what was taken back, and the certificate says how many were. Do so only because a
    result is not what was read, whatever its value. Once a round is closed its results stay.
    """
    study = resumed(url, name)
    ids = study.undo(keys or None, worker=worker, reason=reason)
    if output is options.Format.json:
        print_json({"study": name, "undone": ids})
        return
    say(f"{times(len(ids), 'result')} taken back, of {', '.join(dict.fromkeys(ids))}.")
    say(f"{name}: {study.progress()}")
