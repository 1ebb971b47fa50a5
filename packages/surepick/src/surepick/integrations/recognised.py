"""Which program that evaluates models wrote a file, or the files of a folder; none of them is needed for it."""

import re
from enum import StrEnum
from pathlib import Path

from surepick.core.files import is_file, is_folder
from surepick.errors import InvalidInput
from surepick.integrations import lm_eval, promptfoo
from surepick.integrations.answers import answers_text, read_json_file

LOG_BEGINS = re.compile(rb'\s*\{\s*"version"\s*:\s*\d+\s*,\s*"status"\s*:\s*"\w+"\s*,\s*"eval"\s*:\s*\{')
BEGINNING = 4096  # bytes of a log that show what it is


class RecognisedProgram(StrEnum):
    """A program that evaluates models, and writes files."""

    lm_eval = "lm-eval"
    inspect = "inspect"
    promptfoo = "promptfoo"


def written_by(path: Path) -> RecognisedProgram | None:
    """The program that wrote a file, or files in a folder or below it; None: none of those that we know."""
    inside = [one for one in sorted(path.rglob("*")) if is_file(one)] if is_folder(path) else [path]
    if any(map(is_inspect_log, inside)):
        return RecognisedProgram.inspect
    if any(lm_eval.FILE.fullmatch(one.name) for one in inside):
        return RecognisedProgram.lm_eval
    results = path.glob("*.json") if is_folder(path) else [path] * (path.suffix == ".json")
    return RecognisedProgram.promptfoo if any(map(_is_of_promptfoo, results)) else None


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
        "(--log_samples), nor logs of inspect_ai (.eval or .json). Give such a folder, a file of promptfoo's results, "
        "or a table."
    )


def _is_of_promptfoo(path: Path) -> bool:
    try:
        return promptfoo.is_results(read_json_file(answers_text(path), str(path)))
    except InvalidInput:
        return False
