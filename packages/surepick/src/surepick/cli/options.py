"""Options that several commands share, alone or as a group that a command takes as one record."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import Field, dataclass, field, fields, is_dataclass
from enum import StrEnum
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, cast, get_type_hints

from typer import Argument, Option

from surepick.errors import InvalidInput

if TYPE_CHECKING:
    from surepick.tables.reading import ReadOptions


class Format(StrEnum):
    """How an answer is printed."""

    text = "text"
    json = "json"


FormatOption = Annotated[Format, Option("--format", help="How to print the answer on standard output.")]
SeedOption = Annotated[int, Option("--seed", min=0, help="Decides every random choice; same seed, same answer.")]
TableArgument = Annotated[
    str, Argument(metavar="TABLE", help="CSV, Excel, Parquet, Arrow, JSON, or an Olympus folder.")
]
NOISE = (
    "The noise of one measurement: normal (usual; repeats show how much it varies), bernoulli (0 or 1), "
    "bounded:LOW:HIGH, or subgaussian:SIGMA (the standard deviation of normal noise, or half the largest range of "
    "repeats)"
)
NoiseOption = Annotated[str, Option("--noise", help=f"{NOISE}.")]
PILOT = "; or pilot: normal noise whose standard deviation 40 measurements bound (pilot:100: 100 measurements)."
PilotOrNoiseOption = Annotated[str, Option("--noise", help=NOISE + PILOT)]


REQUIRED = inspect.Parameter.empty


def opt(text: str, metavar: str | None = None, *, default: Any = None, **more: Any) -> Any:
    """An option, as a field of a group or a parameter of a command: its help, and what else Typer takes; `flag` where
    it is not called as the field is."""
    return field(default=default, metadata={"help": text, "metavar": metavar, **more})


MAX_COST = opt("The same in the money of --cost and --batch-cost.", min=0)
REWARD = opt('The column of the measurements; several, "a,b", if repeats stand side by side.')
PULLS = opt("In place of --reward: the column of how many measurements (impressions).")
SUM = opt("With --pulls: the column of their sum (clicks).", flag="--sum")
MINIMIZE = opt("Small measurements are good.", default=False)


@dataclass(frozen=True, slots=True)
class Goal:
    """How good the answer must be, and how sure."""

    epsilon: float
    delta: float
    any_gap: bool = False  # no epsilon is asked for: whatever a budget can show

    def __str__(self) -> str:
        if self.any_gap:
            return f"as near to the best as the budget can show, wrong with probability at most {self.delta:g}"
        return f"within {self.epsilon:g} of the best, wrong with probability at most {self.delta:g}"


EPSILON = "The answer may be this much worse than the best, in reward units."
DeltaOption = Annotated[float, Option("--delta", help="The probability with which the answer may be wrong.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedGoal:
    """The same as options. What difference matters nobody knows but the user."""

    epsilon: float | None = opt(f"Needed, unless --budget is given. {EPSILON}")
    delta: DeltaOption = 0.05

    def settled(self, advice: Callable[[float], str], *, budget: object = None) -> Goal:
        """The goal."""
        if self.epsilon is None and budget is None:
            raise InvalidInput(advice(self.delta))
        return Goal(self.epsilon or 0.0, self.delta, any_gap=self.epsilon is None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnOptions:
    """Which columns of a table are candidates and features."""

    id: str | None = opt('Column(s) that name a candidate, "n,theta"; none: the row number.')
    features: str | None = opt(
        'Feature columns, "a,b"; none: no column. Left out: all other numbers, where features are used.'
    )
    cost: str | None = opt("The column of what one measurement of a candidate costs, in any currency.")
    prefer: str | None = opt("The column, e.g. price: of all that are certified the one with the smallest is named.")
    segments: str | None = opt("The column of segments, e.g. region: each gets an answer of its own.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How to read a table."""

    sheet: str | None = opt("The sheet of a workbook; none: the first that is not hidden.")
    sheets_are_ids: bool = opt("Each sheet has the rows of one candidate: its name is their id.", default=False)
    header: int | None = opt("The line that names the columns; none: the first.")
    skip_units: bool = opt("Skip the line below the header, which has units.", default=False)
    fill_down: str | None = opt('Columns, "a,b", in which an empty cell says what stands above (merged cells).')
    decimal: str | None = opt('What stands before decimals, "." or ","; none: the cells show it.')
    thousands: str | None = opt('What stands between thousands: ",", ".", "\'" or " ".')
    percent: bool = opt("Read cells like 1.3% as the number 0.013.", default=False)
    drop_missing: bool = opt("Leave out rows without a needed cell.", default=False)

    @property
    def options(self) -> ReadOptions:
        """The same for `read_table`."""
        return cast("ReadOptions", {each.name: getattr(self, each.name) for each in fields(self)})


def given(group: Any) -> list[str]:
    """The options of a group that were given, as they are typed: ["--sheet", "May", "--percent"]."""
    words: list[str] = []
    for each in fields(group):
        value = getattr(group, each.name)
        if is_dataclass(value):
            words += given(value)
        elif value not in (None, False):
            flag = f"--{each.name.replace('_', '-')}"
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

    with_options.__annotations__ = {option.name: option.annotation for option in flat}
    vars(with_options)["__signature__"] = signature.replace(parameters=flat)
    return with_options


def _flat(parameter: inspect.Parameter, panel: str | None = None) -> list[inspect.Parameter]:
    """The parameter as Typer takes it, or the options of the group that it takes, in their panel of --help."""
    if is_dataclass(group := parameter.annotation):
        hints, panel = get_type_hints(group, include_extras=True), PANELS.get(cast(type, group).__name__, panel)
        made = (_parameter(each, hints[each.name], panel=panel) for each in fields(group))
        return [option for each in made for option in _flat(each, panel)]
    if isinstance(parameter.default, Field):
        return [_parameter(parameter.default, parameter.annotation, parameter.name)]
    return [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)]


PANELS = {  # group of options -> its panel of --help; an option that says so itself stands in another
    "AskedGoal": "What is asked",
    "PolicyOptions": "Policy",
    "TableOptions": "Table",
    "Reading": "How the table is written",
}
ASKS, ROUNDS = "What is asked", "Rounds and blocks"


def _parameter(said: Field[Any], kind: Any, name: str = "", panel: str | None = None) -> inspect.Parameter:
    """A field of a group, or what `opt` says of a parameter of that name, as a parameter for Typer."""
    name, more = name or said.name, dict(said.metadata)
    if more:
        more.setdefault("rich_help_panel", panel)
        flags = (
            [more.pop("flag")] if "flag" in more else [f"--{name.replace('_', '-')}"] if said.default is False else []
        )
        kind = Annotated[kind, Option(*flags, **more)]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=said.default, annotation=kind)


def _gathered(group: Any, values: dict[str, Any]) -> Any:
    """The record of a group; its options are taken from the values."""
    hints = get_type_hints(group)
    return group(
        **{
            each.name: _gathered(kind, values) if is_dataclass(kind := hints[each.name]) else values.pop(each.name)
            for each in fields(group)
        }
    )


# --- Names of other packages in help: looked up only where help is shown.

POLICIES, QUESTIONS = "{policies}", "{questions}"  # stand in the help of options


def with_plugins(text: str) -> str:
    """Help with the names that are installed."""
    if POLICIES in text:
        from surepick.policies.registry import policy_names  # noqa: PLC0415 (where help is shown)

        names = policy_names()
        others = ", ".join(name for name in policy_names(None) if name not in names)
        text = text.replace(POLICIES, ", ".join(names) + (f"; with --question {others}" if others else ""))
    if QUESTIONS in text:
        from surepick.questions import question_names  # noqa: PLC0415

        text = text.replace(QUESTIONS, ", ".join(question_names()))
    return text
