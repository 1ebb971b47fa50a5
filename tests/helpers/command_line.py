"""The command line, in this process and in one of its own."""

from typer.testing import CliRunner

from surepick.cli.app import app

ANSWER = {"best_arm", "epsilon", "delta", "pulls", "verdict", "assumptions", "rounds"}


ROUND = {"round", "dim", "value", "lower_bound", "pulls", "active"}


def surepick(*arguments, columns=80) -> tuple[int, str, str]:
    """(exit code, standard output, standard error), in this process."""
    words = [str(argument) for argument in arguments]
    result = CliRunner(env={"COLUMNS": str(columns), "TERM": "dumb"}).invoke(app, words, catch_exceptions=False)
    return result.exit_code, result.stdout, result.stderr
