"""Files of the programs that evaluate models, as options of `create`, `ask` and `tell`."""

from dataclasses import dataclass
from pathlib import Path

from surepick.cli.options import given, opt
from surepick.core.files import is_file, is_folder
from surepick.errors import InvalidInput
from surepick.integrations import every_eval_ever, lm_eval, promptfoo
from surepick.integrations.answers import Expected, FileAnswers, check_folder
from surepick.integrations.recognised import RecognisedProgram, unrecognised, written_by
from surepick.integrations.results import NAMES, reader_of
from surepick.studies.ledger import Batch
from surepick.studies.study import Study


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerOptions:
    """Results that a program wrote."""

    program: RecognisedProgram | None = opt("RESULTS is what this program wrote, or a folder of it.", flag="--as")
    metric: str | None = opt("With --as: the score that counts; none: the usual one.")
    candidate: str | None = opt("With --as: whose answers these are; none: as the files say.")
    filter: str | None = opt("With --as lm-eval: which of its filters; none: the only one.")

    def answers(self, study: Study, path: Path) -> FileAnswers:
        """The answers in the file or folder."""
        order = study.policy.traits.items
        if order is None:
            raise InvalidInput("--as is for answers to test items, and this study has none; tell a table.")
        expected = Expected(study.ids, order.items.ids, self.candidate, self.metric, self.filter)
        if self.program is not RecognisedProgram.lm_eval and self.filter is not None:
            raise InvalidInput(f"--filter is for --as {RecognisedProgram.lm_eval}; leave it out.")
        assert self.program is not None
        read: FileAnswers = reader_of(self.program).read_answers(path, expected)
        return read


def check_command_options(answers: AnswerOptions, *, beside: bool) -> None:
    """Refuse options that have no meaning together."""
    if answers.program is None and (flags := given(answers)):
        raise InvalidInput(f"{flags[0]} is for results that a program wrote; say which program with --as.")
    if answers.program is not None and beside:
        raise InvalidInput(
            f"--as {answers.program} says how the files are written; leave --key, --block, --as-prior and the options "
            "of tables out."
        )


def items_in(path: Path) -> list[str] | None:
    """The ids of the test items in what a program wrote; None where it is a table, or anything else."""
    program = written_by(path)
    if program is RecognisedProgram.inspect:
        return list(reader_of(program).items_in_logs(path))
    if program is RecognisedProgram.lm_eval:
        return lm_eval.items_of(path)
    if program is RecognisedProgram.every_eval_ever:
        return every_eval_ever.items_of(path)
    if program is RecognisedProgram.promptfoo and not is_folder(path):
        return promptfoo.items_of(path)
    if is_folder(path):
        raise unrecognised(path)
    return None


def refuse_untold(path: Path) -> None:
    """Refuse results of a program that are to be read as a table."""
    known = is_folder(path) or path.suffix in (".eval", ".json", ".jsonl") or lm_eval.FILE.fullmatch(path.name)
    program = written_by(path) if known and (is_file(path) or is_folder(path)) else None
    if program is not None:
        raise InvalidInput(f"{path} is what {NAMES[program]} wrote, and no table: give --as {program}.")


def check_program(program: RecognisedProgram, study: Study, folder: Path) -> None:
    """Refuse what cannot be written for a program, before anything is leased."""
    order = study.policy.traits.items
    if order is None:
        raise InvalidInput(f"--as {program} is for test items, and this study has none; leave it out.")
    if program is RecognisedProgram.inspect:
        raise InvalidInput(
            "inspect_ai has no file that says which samples to run; let surepick.integrations.inspect.BestModel run "
            "them, or ask for a table with --out and tell its logs with --as inspect."
        )
    if program is RecognisedProgram.every_eval_ever:
        raise InvalidInput(
            f"{NAMES[program]} is a format of results and runs no samples; ask for a table with --out, and tell its "
            f"files with --as {program}."
        )
    check_folder(study.ids, folder)
    for item in order.items.ids:
        (lm_eval.parts_of if program is RecognisedProgram.lm_eval else promptfoo.variables_of)(item)


def write_plan(program: RecognisedProgram, batch: Batch, folder: Path) -> None:
    """Write what is asked, a file for each candidate."""
    write = lm_eval.write_samples if program is RecognisedProgram.lm_eval else promptfoo.write_tests
    write(batch, folder)


ANSWERS = {RecognisedProgram.lm_eval: "ANSWERS", RecognisedProgram.promptfoo: "ANSWERS.json"}  # what they write


def how_to_run(program: RecognisedProgram, batch: Batch, folder: Path, then: str) -> list[str]:
    """What to type next, a line each."""
    file = f"{folder}/CANDIDATE.json"
    if program is RecognisedProgram.lm_eval:
        run = (
            f"lm-eval run --model_args pretrained=CANDIDATE --tasks {','.join(lm_eval.tasks_of(batch))} "
            f"--samples {file} --log_samples --output_path ANSWERS"
        )
    else:
        run = f"promptfoo eval -c CONFIG --filter-providers CANDIDATE -t {file} -o ANSWERS.json"
    first = f"{folder} has a file for each candidate. Run each of them, then report the answers:"
    return [first, f"  {run}", f"  {then}"]
