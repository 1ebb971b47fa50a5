"""The command line, in this process and in one of its own."""

import contextlib
import io
import sys

from typer.testing import CliRunner

from surepick.cli.app import app, main

ANSWER = {"best_arm", "epsilon", "delta", "pulls", "verdict", "assumptions", "rounds"}


ROUND = {"round", "dim", "value", "lower_bound", "pulls", "active"}


def ended(words: list[str]) -> int:
    """The exit code of `surepick` with these words, in a process that has nothing else to do."""
    sys.argv = ["surepick", *words]
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def answered(words: list[str]) -> tuple[int, str]:
    """The exit code and what is said on standard error, as `ended`."""
    with contextlib.redirect_stderr(io.StringIO()) as said:
        return ended(words), said.getvalue()


def printed_to(file: str, words: list[str]) -> None:
    """A process ends as the command does, and leaves what it prints in a file."""
    with open(file, "w") as printed, contextlib.redirect_stdout(printed):  # noqa: PTH123
        code = ended(words)
    sys.exit(code)


def surepick(*arguments, columns=80) -> tuple[int, str, str]:
    """(exit code, standard output, standard error), in this process."""
    words = [str(argument) for argument in arguments]
    result = CliRunner(env={"COLUMNS": str(columns), "TERM": "dumb"}).invoke(app, words, catch_exceptions=False)
    return result.exit_code, result.stdout, result.stderr
