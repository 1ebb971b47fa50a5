"""Which program that evaluates models wrote a file, or the files of a folder; none of them is needed for it."""

import re
from enum import StrEnum
from pathlib import Path

from surepick.core.files import is_file, is_folder
from surepick.errors import InvalidInput
from surepick.integrations import every_eval_ever, lm_eval, promptfoo
from surepick.integrations.answers import answers_text, read_json_file

LOG_BEGINS = re.compile(rb'\s*\{\s*"version"\s*:\s*\d+\s*,\s*"status"\s*:\s*"\w+"\s*,\s*"eval"\s*:\s*\{')
BEGINNING = 4096  # bytes of a log that show what it is


class RecognisedProgram(StrEnum):
    """A program that evaluates models, and writes files."""

    lm_eval = "lm-eval"
    inspect = "inspect"
    promptfoo = "promptfoo"
    every_eval_ever = "every-eval-ever"


def written_by(path: Path) -> RecognisedProgram | None:
    """The program that wrote a file, or files in a folder or below it; None: none of those that we know."""
    inside = [one for one in sorted(path.rglob("*")) if is_file(one)] if is_folder(path) else [path]
    if any(map(is_inspect_log, inside)):
        return RecognisedProgram.inspect
    if any(lm_eval.FILE.fullmatch(one.name) for one in inside):
        return RecognisedProgram.lm_eval
    if any(map(every_eval_ever.is_instances, inside)):
        return RecognisedProgram.every_eval_ever
    return RecognisedProgram.promptfoo if promptfoo_files(path) else None


def promptfoo_files(path: Path) -> list[Path]:
    """The files of promptfoo's results at a path: the file itself, or those in a folder."""
    found = sorted(path.glob("*.json")) if is_folder(path) else [path] * (path.suffix == ".json")
    return [one for one in found if _is_of_promptfoo(one)]


def is_inspect_log(path: Path) -> bool:
    """Whether a file is a log of inspect_ai, by its name (.eval) or its beginning (.json)."""
    if path.suffix != ".json" or not is_file(path):
        return path.suffix == ".eval"
    try:
        with path.open("rb") as file:
            return LOG_BEGINS.match(file.read(BEGINNING).removeprefix(b"\xef\xbb\xbf")) is not None
    except OSError:
        return False


def inspect_logs(path: Path) -> list[Path]:
    """The logs of inspect_ai at a path: the file itself, or those in a folder and below it."""
    if not is_folder(path):
        return [path]
    found = [one for one in sorted(path.rglob("*")) if is_file(one) and is_inspect_log(one)]
    if not found:
        raise InvalidInput(f"{path} has no log of inspect_ai in it or below (.eval or .json).")
    return found


def unrecognised(folder: Path) -> InvalidInput:
    """What we raise of a folder in which nothing is known."""
    return InvalidInput(
        f"{folder} is a folder, and nothing in it is known: neither samples_TASK_DATE.jsonl of lm-evaluation-harness "
        "(--log_samples), nor logs of inspect_ai (.eval or .json), nor instances of every-eval-ever "
        "(UUID_samples.jsonl). Give such a folder, a file of promptfoo's results, or a table."
    )


def _is_of_promptfoo(path: Path) -> bool:
    try:
        data = read_json_file(answers_text(path), str(path))
    except InvalidInput:
        return False
    if every_eval_ever.is_summary(data):
        raise InvalidInput(
            f"{path} has results of {every_eval_ever.PROGRAM} without instances; give UUID_samples.jsonl."
        )
    return promptfoo.is_results(data)
