"""All answers in files of the programs that evaluate models, of whatever candidates and items they are."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from surepick.core.files import is_folder
from surepick.errors import InvalidInput
from surepick.integrations import every_eval_ever, lm_eval, promptfoo
from surepick.integrations.answers import Expected, FileAnswers
from surepick.integrations.recognised import RecognisedProgram, promptfoo_files, unrecognised, written_by

NAMES = {
    RecognisedProgram.lm_eval: lm_eval.PROGRAM,
    RecognisedProgram.inspect: "inspect_ai",
    RecognisedProgram.promptfoo: promptfoo.PROGRAM,
    RecognisedProgram.every_eval_ever: every_eval_ever.PROGRAM,
}


def reader_of(program: RecognisedProgram) -> Any:
    """The module that reads files of a program."""
    modules: dict[RecognisedProgram, Any] = {
        RecognisedProgram.lm_eval: lm_eval,
        RecognisedProgram.promptfoo: promptfoo,
        RecognisedProgram.every_eval_ever: every_eval_ever,
    }
    if program in modules:
        return modules[program]
    try:
        return importlib.import_module("surepick.integrations.inspect")
    except ImportError as error:
        raise InvalidInput(str(error)) from error


def read_results(
    paths: Sequence[Path],
    metric: str | None = None,
    filter: str | None = None,  # noqa: A002 (the option)
) -> tuple[RecognisedProgram, FileAnswers] | None:
    """The program that wrote files or folders, and all answers in them; None where the one file is none of its.

    Args:
        paths: files and folders, those of one program.
        metric, filter: as in `Expected`; where there are several and none is named, the first one counts.

    Raises:
        InvalidInput: the files are of several programs, or some are of none.
    """
    programs = [written_by(path) for path in paths]
    if len(paths) == 1 and programs[0] is None and not is_folder(paths[0]):
        return None
    for path, program in zip(paths, programs, strict=True):
        if program is None and is_folder(path):
            raise unrecognised(path)
        if program is None:
            raise InvalidInput(
                f"{path} is no file that {', '.join(NAMES.values())} wrote. Several files are given of such a program; "
                "of a table one."
            )
        if program is not programs[0]:
            raise InvalidInput(f"{paths[0]} and {path} are of two programs; their items cannot be compared.")
    program = programs[0]
    assert program is not None
    if filter is not None and program is not RecognisedProgram.lm_eval:
        raise InvalidInput(f"--filter (in Python: filter=) is for files of {lm_eval.PROGRAM}; leave it out.")
    expected, reader = Expected(metric=metric, filter=filter), reader_of(program)
    files = [file for path in paths for file in (promptfoo_files(path) if program == "promptfoo" else [path])]
    if program is RecognisedProgram.every_eval_ever:  # several results of one sample may be in several files
        parts = [reader.read_together(files, expected)]
    else:
        parts = [reader.read_answers(file, expected) for file in files]
    return program, FileAnswers(
        tuple(name for part in parts for name in part.candidates),
        tuple(name for part in parts for name in part.items),
        tuple(score for part in parts for score in part.scores),
        sum(part.empty for part in parts),
        tuple(expected.chosen.values()),
    )
