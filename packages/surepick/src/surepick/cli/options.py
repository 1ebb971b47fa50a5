"""Options that several commands share, alone or as a group that a command takes as one record."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

from typer import Argument, Option

from surepick.chunks.sources import RowBlocks
from surepick.cli.output import note, picked
from surepick.core.arms import Arms
from surepick.core.files import is_file, is_folder
from surepick.environments import Environment, digits, table, two_clusters
from surepick.errors import InvalidInput
from surepick.integrations import lm_eval, promptfoo
from surepick.integrations.answers import Expected, FileAnswers
from surepick.integrations.recognised import RecognisedProgram, unrecognised, written_by
from surepick.noise import Noise
from surepick.policies.registry import uses_features
from surepick.studies.batch import Batch
from surepick.studies.opening import checked_address, is_http
from surepick.studies.study import Study
from surepick.tables import Names, column_names, grouped_arms, is_olympus, read_arms, read_table
from surepick.tables.selection import Unnamed, Unused, not_used, wanted_features

if TYPE_CHECKING:
    from surepick.tables.reading import ReadOptions


class JudgeChoice(StrEnum):
    """When results are judged."""

    closed_rounds = "closed-rounds"
    as_they_come = "as-they-come"


class SurplusChoice(StrEnum):
    """What becomes of results beyond what was asked."""

    counted = "count"
    refused = "refuse"


class Format(StrEnum):
    """How an answer is printed."""

    text = "text"
    json = "json"


FormatOption = Annotated[Format, Option("--format", help="How to print the answer on standard output.")]
SeedOption = Annotated[int, Option("--seed", min=0, help="Decides every random choice; same seed, same answer.")]
TableArgument = Annotated[
    str, Argument(metavar="TABLE", help="CSV, Excel, Parquet, Arrow, JSON, or an Olympus folder.")
]
IdOption = Annotated[
    str | None, Option("--id", help='Column(s) that name a candidate, "n,theta"; none: the row number.')
]
CostOption = Annotated[
    str | None, Option("--cost", help="The column of what one measurement of a candidate costs, in any currency.")
]
SegmentsOption = Annotated[
    str | None, Option("--segments", help="The column of segments, e.g. region: each gets an answer of its own.")
]
MaxCostOption = Annotated[
    float | None, Option("--max-cost", min=0, help="The same in the money of --cost and --batch-cost.")
]
FeaturesOption = Annotated[
    str | None,
    Option(
        "--features",
        help='Feature columns, "a,b"; none: no column. Left out: all other numbers, where features are used.',
    ),
]
RewardOption = Annotated[
    str | None,
    Option("--reward", help='The column of the measurements; several, "a,b", if repeats stand side by side.'),
]
PullsOption = Annotated[
    str | None, Option("--pulls", help="In place of --reward: the column of how many measurements (impressions).")
]
SumOption = Annotated[str | None, Option("--sum", help="With --pulls: the column of their sum (clicks).")]
MinimizeOption = Annotated[bool, Option("--minimize", help="Small measurements are good.")]
JudgeOption = Annotated[
    JudgeChoice,
    Option("--judge", help="When results are judged: a round when it is complete, or what is in, by `surepick judge`."),
]
SurplusOption = Annotated[
    SurplusChoice | None,
    Option(
        "--surplus",
        help="Results beyond what a round asks: they count, or are refused. Else: counted in a database, refused by "
        "a server.",
        show_default=False,
    ),
]
NOISE = (
    "Needed. The noise of one measurement: bernoulli (0 or 1), bounded:LOW:HIGH, subgaussian:SIGMA (the standard "
    "deviation of normal noise, or half the largest range of repeats), or normal (its standard deviation is not known)"
)
NoiseOption = Annotated[str, Option("--noise", help=f"{NOISE}.")]
PILOT = "; or pilot: normal noise whose standard deviation 40 measurements bound (pilot:100: 100 measurements)."
PilotOrNoiseOption = Annotated[str, Option("--noise", help=NOISE + PILOT)]
JobsOption = Annotated[int, Option("--jobs", help="Number of processes; -1: one per processor.")]
DATA = "../shared/data"
DataOption = Annotated[Path, Option("--data", envvar="SUREPICK_DATA", help="The folder of the data sets.")]


@dataclass(frozen=True, slots=True)
class Goal:
    """How good the answer must be, and how sure."""

    epsilon: float
    delta: float

    def __str__(self) -> str:
        return f"within {self.epsilon:g} of the best, wrong with probability at most {self.delta:g}"


EPSILON = "The answer may be this much worse than the best, in reward units."
DeltaOption = Annotated[float, Option("--delta", help="The probability with which the answer may be wrong.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedGoal:
    """The same as options. What difference matters nobody knows but the user."""

    epsilon: Annotated[float | None, Option(help=f"Needed. {EPSILON}")] = None
    delta: DeltaOption = 0.05

    def settled(self, advice: Callable[[float], str]) -> Goal:
        """The goal."""
        if self.epsilon is None:
            raise InvalidInput(advice(self.delta))
        return Goal(self.epsilon, self.delta)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How to read a table."""

    sheet: Annotated[str | None, Option(help="The sheet of a workbook; none: the first that is not hidden.")] = None
    sheets_are_ids: Annotated[
        bool, Option("--sheets-are-ids", help="Each sheet has the rows of one candidate: its name is their id.")
    ] = False
    header: Annotated[int | None, Option(help="The line that names the columns; none: the first.")] = None
    skip_units: Annotated[bool, Option("--skip-units", help="Skip the line below the header, which has units.")] = False
    fill_down: Annotated[
        str | None, Option(help='Columns, "a,b", in which an empty cell says what stands above (merged cells).')
    ] = None
    decimal: Annotated[str | None, Option(help='What stands before decimals, "." or ","; none: the cells show it.')] = (
        None
    )
    thousands: Annotated[str | None, Option(help='What stands between thousands: ",", ".", "\'" or " ".')] = None
    percent: Annotated[bool, Option("--percent", help="Read cells like 1.3% as the number 0.013.")] = False
    drop_missing: Annotated[bool, Option("--drop-missing", help="Leave out rows without a needed cell.")] = False

    @property
    def options(self) -> ReadOptions:
        """The same for `read_table`."""
        found: ReadOptions = {
            "sheet": self.sheet,
            "sheets_are_ids": self.sheets_are_ids,
            "header": self.header,
            "skip_units": self.skip_units,
            "fill_down": self.fill_down,
            "decimal": self.decimal,
            "thousands": self.thousands,
            "percent": self.percent,
            "drop_missing": self.drop_missing,
        }
        return found


def given(group: Any) -> list[str]:
    """The options of a group that were given, as they are typed: ["--sheet", "May", "--percent"]."""
    words: list[str] = []
    for field in fields(group):
        value = getattr(group, field.name)
        if is_dataclass(value):
            words += given(value)
        elif value not in (None, False):
            flag = f"--{field.name.replace('_', '-')}"
            words += [flag] if value is True else [flag, str(value)]
    return words


def with_groups(command: Callable[..., None]) -> Callable[..., None]:
    """The command, in which the options of a group stand in place of the parameter that takes the group."""
    signature = inspect.signature(command, eval_str=True)
    flat = [option for parameter in signature.parameters.values() for option in _flat(parameter)]
    groups = {name: kind.annotation for name, kind in signature.parameters.items() if is_dataclass(kind.annotation)}

    @wraps(command)
    def with_options(**values: Any) -> None:
        gathered = {name: _gathered(group, values) for name, group in groups.items()}
        command(**gathered, **values)

    vars(with_options)["__signature__"] = signature.replace(parameters=flat)
    return with_options


def _flat(parameter: inspect.Parameter) -> list[inspect.Parameter]:
    """The parameter, or the options of the group that it takes."""
    if not is_dataclass(parameter.annotation):
        return [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)]
    hints = get_type_hints(parameter.annotation, include_extras=True)
    own = [
        inspect.Parameter(field.name, parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name])
        for field in fields(parameter.annotation)
    ]
    return [option for each in own for option in _flat(each)]


def _gathered(group: Any, values: dict[str, Any]) -> Any:
    """The record of a group; its options are taken from the values."""
    hints = get_type_hints(group)
    return group(
        **{
            field.name: _gathered(kind, values) if is_dataclass(kind := hints[field.name]) else values.pop(field.name)
            for field in fields(group)
        }
    )


# --- Candidates and recorded measurements from a table, and the examples that stand in place of one.


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOptions:
    """Which columns of a table are candidates and features, and how to read it."""

    id: IdOption = None
    features: FeaturesOption = None
    cost: CostOption = None
    segments: SegmentsOption = None
    standardize: Annotated[bool, Option("--standardize", help="Scale each feature to mean 0, deviation 1.")] = False
    intercept: Annotated[bool, Option("--intercept", help="Append a feature that is always 1.")] = False
    drop_candidates: Annotated[
        bool, Option("--drop-candidates", help="The same, and candidates may go of which no row is left.")
    ] = False
    reading: Reading

    def of(self, policies: Iterable[str]) -> TableReader:
        """A reader for these policies: where none of them uses features, no column of them is looked at."""
        used = any(map(uses_features, policies))
        how = self if used else replace(self, standardize=False, intercept=False)
        return TableReader(how, wanted_features(self.features, used=used))

    @property
    def with_features(self) -> TableReader:
        """A reader for whoever uses features."""
        return TableReader(self, wanted_features(self.features, used=True))


@dataclass(frozen=True, slots=True)
class TableReader:
    """Reads tables as candidates.

    Args:
        options: how.
        features: the columns that are features.
    """

    options: TableOptions
    features: Names | Unnamed | Unused

    def arms(self, source: str, *, reward: str | None = None) -> Arms:
        """The candidates, one a row; `reward` names a column of results, which is no feature where it is there."""
        found: Arms = read_arms(source, reward=reward, **self._keywords)
        return found

    def candidates(self, source: str, *, in_blocks: bool = False, reward: str | None = None) -> Arms | RowBlocks:
        """The candidates; those of a folder or a pattern, or if asked, as rows in blocks."""
        return self.rows(source) if in_blocks or in_files(source) else self.arms(source, reward=reward)

    def rows(self, source: str) -> RowBlocks:
        """The candidates as rows in blocks."""
        if others := given(replace(self.options, id=None, features=None)):
            raise InvalidInput(f"candidates in blocks have ids and features only: leave out {others[0]}.")
        found: RowBlocks = read_arms(source, self.options.id, self.options.features, blocks=True)
        return found

    def grouped_arms(self, source: str, reward: str) -> Arms:
        """The candidates, one an id; `reward` names a column of measurements, which is no feature."""
        reading = self.options.reading.options
        reading["drop_missing"] = reading["drop_missing"] or self.options.drop_candidates
        read = read_table(source, **reading)
        prepare = picked(self.options, "cost", "segments", "standardize", "intercept", "drop_candidates")
        return grouped_arms(read, self.options.id, self.features, exclude=column_names(read, reward), **prepare).arms

    def recorded(
        self,
        source: str,
        reward: str | None,
        noise: Noise,
        *,
        minimize: bool = False,
        beside: Sequence[str] = (),
        totals: Mapping[str, str | None] | None = None,
    ) -> Environment:
        """The recorded measurements as an environment; `beside` names columns of what else was measured, and `totals`
        those of pulls and sum in place of a reward."""
        keywords = self._keywords | dict(totals or {})
        return table(source, reward=reward, noise=noise, minimize=minimize or None, beside=beside, **keywords)

    @property
    def not_used(self) -> tuple[str, ...]:
        """A sentence about columns that were named as features and that nobody looks at."""
        if not isinstance(self.features, Unused):
            return ()
        words = not_used(self.options.features, said=f"--features {self.options.features} is", cure="--norm-bound")
        return (words,) if words else ()

    @property
    def _keywords(self) -> dict[str, Any]:
        said = picked(self.options, "id", "cost", "segments", "standardize", "intercept", "drop_candidates")
        return {**said, "features": self.features, **self.options.reading.options}


def in_files(source: str) -> bool:
    """Whether candidates of that name are read in blocks without being asked to."""
    return (is_folder(source) and not is_olympus(source)) or "*" in source or source.endswith(".npy")


@dataclass(frozen=True, slots=True)
class Example:
    """An environment that has a name, and a norm bound that is known to hold there."""

    make: Callable[[int], Environment]
    norm_bound: str


EXAMPLES = {
    "two-clusters": Example(lambda seed: two_clusters(seed=seed), "1"),
    "digits": Example(digits, "2"),
}
SourceArgument = Annotated[str, Argument(metavar="TABLE", help="As for run, or an example: two-clusters, digits.")]


def example_named(source: str, options: TableOptions, reward: str | None, *, minimize: bool) -> Example | None:
    """The example of this name; None where it is the name of a file, or of no example."""
    if source not in EXAMPLES or is_file(Path(source)):
        return None
    if given(options) or reward is not None or minimize:
        raise InvalidInput(
            f"{source} is a built-in example: --id, --features, --cost, --segments, --reward, --minimize, "
            "--standardize, --intercept, and what says how to read a table are for tables."
        )
    return EXAMPLES[source]


# --- Files of the programs that evaluate models, as options of `create`, `ask` and `tell`.

PROGRAMS = {
    RecognisedProgram.lm_eval: lm_eval.PROGRAM,
    RecognisedProgram.inspect: "inspect_ai",
    RecognisedProgram.promptfoo: promptfoo.PROGRAM,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerOptions:
    """Results that a program wrote."""

    program: Annotated[
        RecognisedProgram | None,
        Option("--as", help="RESULTS is what this program wrote, or a folder of it."),
    ] = None
    metric: Annotated[str | None, Option(help="With --as: the score that counts; none: the usual one.")] = None
    candidate: Annotated[str | None, Option(help="With --as: whose answers these are; none: as the files say.")] = None
    filter: Annotated[str | None, Option(help="With --as lm-eval: which of its filters; none: the only one.")] = None

    def answers(self, study: Study, path: Path) -> FileAnswers:
        """The answers in the file or folder."""
        order = study.policy.traits.items
        if order is None:
            raise InvalidInput("--as is for answers to test items, and this study has none; tell a table.")
        expected = Expected(study.ids, order.items.ids, self.candidate, self.metric, self.filter)
        if self.program is not RecognisedProgram.lm_eval and self.filter is not None:
            raise InvalidInput(f"--filter is for --as {RecognisedProgram.lm_eval}; leave it out.")
        if self.program is RecognisedProgram.promptfoo:
            return promptfoo.read_answers(path, expected)
        return (
            _inspect().read_answers(path, expected)
            if self.program is RecognisedProgram.inspect
            else (lm_eval.read_answers(path, expected))
        )


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
        found: list[str] = _inspect().items_in_logs(path)
        return found
    if program is RecognisedProgram.lm_eval:
        return lm_eval.items_of(path)
    if program is RecognisedProgram.promptfoo and not is_folder(path):
        return promptfoo.items_of(path)
    if is_folder(path):
        raise unrecognised(path)
    return None


def refuse_untold(path: Path) -> None:
    """Refuse results of a program that are to be read as a table."""
    known = is_folder(path) or path.suffix in (".eval", ".json") or lm_eval.FILE.fullmatch(path.name)
    program = written_by(path) if known and path.exists() else None
    if program is not None:
        raise InvalidInput(f"{path} is what {PROGRAMS[program]} wrote, and no table: give --as {program}.")


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
    check = lm_eval.check_plan if program is RecognisedProgram.lm_eval else promptfoo.check_plan
    check(order.items.ids, study.ids, folder)


def write_plan(program: RecognisedProgram, batch: Batch, folder: Path) -> None:
    """Write what is asked, a file for each candidate."""
    write = lm_eval.write_samples if program is RecognisedProgram.lm_eval else promptfoo.write_tests
    write(batch, folder)


ANSWERS = {
    RecognisedProgram.lm_eval: "ANSWERS",
    RecognisedProgram.promptfoo: "ANSWERS.json",
}  # what the programs are told to write


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
    return [
        f"{folder} has a file for each candidate. Run each of them, then report the answers:",
        f"  {run}",
        f"  {then}",
    ]


def _inspect() -> Any:
    """The module for inspect_ai, which it needs."""
    try:
        return importlib.import_module("surepick.integrations.inspect")
    except ImportError as error:
        raise InvalidInput(str(error)) from error


# --- The study that a command works on: its address, its name, and how it is opened.

VARIABLE = "SUREPICK_URL"
PASSWORD = re.compile(r"://[^/?]*:[^/?]+@|[?&]password=")


def given_url(url: str) -> str:
    """The address that a command was given, of a database or a server: "-" is the one in the environment."""
    found = _meant(url)
    if is_http(found):
        _check_package("httpx", "client", "studies on a server")
        return checked_address(found)
    _check_package("sqlalchemy", "studies", "studies that last")
    if found == url and PASSWORD.search(url):
        note(
            "there is a password in the command; others can read it in the list of processes and in your shell's "
            f"history. Put the address into {VARIABLE} and write - in its place, or the password into ~/.pgpass."
        )
    return found


def given_database(url: str) -> str:
    """As `given_url`, for what only the database itself can be asked."""
    if is_http(_meant(url)):
        raise InvalidInput(
            "this works on the database itself, and the address is a server's. Give the command where the database is, "
            "with its address: sqlite:///FILE or postgresql+psycopg://USER@HOST/DATABASE."
        )
    return given_url(url)


def _meant(url: str) -> str:
    if url != "-":
        return url
    if not (kept := os.environ.get(VARIABLE, "")):
        raise InvalidInput(
            f"- stands for the address in {VARIABLE}, which is not set: "
            f"export {VARIABLE}=postgresql+psycopg://USER:PASSWORD@HOST/DATABASE, or write the address itself."
        )
    return kept


def _check_package(package: str, extra: str, what: str) -> None:
    if importlib.util.find_spec(package) is None:
        raise InvalidInput(f'{what} need {package}, which is absent: pip install "surepick[{extra}]".')


UrlArgument = Annotated[
    str,
    Argument(
        metavar="URL",
        help="The database: sqlite:///FILE or postgresql+psycopg://USER@HOST/DATABASE; or a server: https://HOST; - "
        f"for the one in {VARIABLE}.",
        show_default=False,
        callback=given_url,
    ),
]
DatabaseArgument = Annotated[
    str,
    Argument(
        metavar="URL",
        help=f"The database: sqlite:///FILE or postgresql+psycopg://USER@HOST/DATABASE; - for the one in {VARIABLE}.",
        show_default=False,
        callback=given_database,
    ),
]
NameArgument = Annotated[str, Argument(metavar="NAME", help="The study.", show_default=False)]
WorkerOption = Annotated[str | None, Option("--worker", help="The name of the one who measures, e.g. lab-2.")]


def opened_study(url: str, name: str) -> Study:
    """The study; everything that was decided in it is computed again."""
    from surepick.studies.opening import open_study  # noqa: PLC0415 (numpy: `--help` needs none)

    return open_study(url, name)


def resumed(url: str, name: str) -> Study:
    """The study; nothing is computed again."""
    from surepick.studies.opening import resume_study  # noqa: PLC0415 (numpy: `--help` needs none)

    return resume_study(url, name)


def command_line(command: str, url: str, *words: str) -> str:
    """A command to type next, quoted for a shell; a password in the address is not shown."""
    address = "-" if url == os.environ.get(VARIABLE) else _shown(url)
    return shlex.join(["surepick", command, address, *words])


def _shown(url: str) -> str:
    if is_http(url):
        return url
    from surepick.studies.logs.sql.engine import shown  # noqa: PLC0415 (SQLAlchemy: heavy, and an extra)

    return str(shown(url))
