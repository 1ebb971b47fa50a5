"""What requests bring, in JSON. Numbers are finite, texts have limits; the library checks what they mean."""

import base64
import re
import tempfile
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from surepick.core.arms import Arms
from surepick.core.descriptions import NOTHING_SAID, Described
from surepick.core.records import FloatArray, encode, read_json
from surepick.errors import InvalidInput
from surepick.forecasts import advice, compare_settings
from surepick.linalg.rows import one_thread
from surepick.policies.base import Policy, doubts_of_delta, name_of
from surepick.policies.options import fitting_policy
from surepick.policies.registry import built_policy, uses_features
from surepick.tables import keeping_notes, read_arms
from surepick.tables.selection import not_used, wanted_features
from surepick_server.web.open_studies import not_understood

Text = Annotated[str, Field(min_length=1, max_length=500)]
Key = Annotated[str, Field(min_length=1, max_length=1_000)]
Whole = Annotated[int, Field(ge=0, le=2**53, strict=True)]
Finite = Annotated[float, Field(allow_inf_nan=False, strict=True)]  # a number of JSON: neither true nor "1"
Yes = Annotated[bool, Field(strict=True)]
Plan = Annotated[int, Field(ge=-(2**53), le=2**53, strict=True)]
Whose = Annotated[str, Field(max_length=250)] | None
Accepted = Annotated[
    bool | Literal["unasked"],
    Field(description='Results that stand out are what was read; "unasked": of a program, which nobody can ask.'),
]
MOST_ROWS = 100_000
MOST_CANDIDATES = 200_000


class Strict(BaseModel):
    """Fields that are not known are refused."""

    model_config = ConfigDict(extra="forbid")


Brought = TypeVar("Brought", bound=Strict)


def brought(kind: type[Brought], values: dict[str, Any] | bytes, what: str) -> Brought:
    """What a request brings, checked."""
    try:
        return kind.model_validate(read_json(values) if isinstance(values, bytes) else values)
    except ValidationError as error:
        raise InvalidInput(f"{what} not understood: {not_understood(error.errors())}.") from None
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{what} not understood: no JSON ({error}).") from None


class Packed(Strict):
    """An array of numbers by their bytes: doubles, little-endian, in base 64."""

    packed: str
    shape: tuple[
        Annotated[int, Field(ge=0, le=MOST_CANDIDATES, strict=True)],
        Annotated[int, Field(ge=0, le=10_000_000, strict=True)],
    ]


class Said(Strict):
    """What the candidates are, for people: columns of as many texts as there are candidates."""

    columns: Annotated[list[Text], Field(max_length=1_000)]
    cells: Annotated[
        list[Annotated[list[Annotated[str, Field(max_length=2_000)]], Field(max_length=MOST_CANDIDATES)]],
        Field(max_length=1_000),
    ]


MOST_UNIT = 40  # characters


class Limits(Strict):
    """How numbers are measured: a unit, and limits beyond which one is asked about before it is stored."""

    unit: Annotated[str, Field(max_length=MOST_UNIT)] = ""
    low: Finite | None = None
    high: Finite | None = None


class Candidates(Strict):
    """The candidates, as columns; or a table in the text of a file."""

    ids: Annotated[list[Text], Field(max_length=MOST_CANDIDATES)] | None = None
    features: (
        Packed
        | Annotated[list[Annotated[list[Finite], Field(max_length=10_000)]], Field(max_length=MOST_CANDIDATES)]
        | None
    ) = None
    columns: Annotated[list[Text], Field(max_length=10_000)] | None = None
    costs: Annotated[list[Finite], Field(max_length=MOST_CANDIDATES)] | None = None
    segments: Annotated[list[Text], Field(max_length=MOST_CANDIDATES)] | None = None
    preparation: Annotated[list[Text], Field(max_length=100)] = Field(default_factory=list)
    table: str | None = None
    kind: Literal["csv", "json", "jsonl"] = "csv"
    id_column: Text | None = None
    feature_columns: list[Text] | None = None
    cost_column: Text | None = None
    segment_column: Text | None = None
    described: Said | None = None
    described_columns: list[Text] | None = Field(
        default=None, description="The columns of the table that say what a candidate is; null: all but its id."
    )
    standardize: Yes = False
    intercept: Yes = False


class StudyGoal(Strict):
    """What is asked of which candidates, and how it is found out.

    Either epsilon, delta, noise, policy and options, of which epsilon and noise are needed; or `spec`, all that is
    stored of a policy.
    """

    candidates: Candidates
    epsilon: Finite | None = None
    delta: Finite = 0.05
    noise: Text | None = None
    policy: Text | None = None
    options: dict[str, Any] = Field(default_factory=dict)
    spec: dict[str, Any] | None = None
    minimize: Yes = False

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        said = {"epsilon", "delta", "noise", "policy", "options"} & self.model_fields_set
        if self.spec is not None and said:
            raise ValueError(f"the spec says all of the policy; leave {sorted(said)[0]} out")
        if self.spec is None and (self.epsilon is None or self.noise is None):
            raise ValueError(f"{'epsilon' if self.epsilon is None else 'noise'} is missing")
        return self


def _address(name: str) -> str:
    """The name of a study, which is a part of addresses."""
    if name.strip() in (".", ".."):
        raise ValueError("a name is more than dots: it is a part of addresses")
    return name


class NewStudy(StudyGoal):
    """A study to be made."""

    name: Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^/\x00-\x1f\x7f]+$"), AfterValidator(_address)]
    judge: Literal["closed rounds", "as they come"] = "closed rounds"
    scale: Limits = Field(default_factory=Limits, description="The unit, and limits for typing errors.")
    reward_column: Text | None = Field(default=None, description="What tables of results call their column.")
    study_id: Annotated[str, Field(min_length=1, max_length=100)] | None = Field(
        default=None, description="A text in the registration code; it is drawn if it is left out."
    )
    surplus: Annotated[
        Literal["count", "refuse"] | None,
        Field(description="What becomes of results beyond what was asked; null: refused, but counted as they come."),
    ] = None

    @property
    def own_surplus(self) -> Literal["count", "refuse"]:
        """What becomes of results beyond what was asked: here they are refused unless somebody says otherwise."""
        return self.surplus or ("refuse" if self.judge == "closed rounds" else "count")


class ForecastOf(StudyGoal):
    """What a study would cost."""

    means: list[Finite] | None = None
    assume_scale: Finite | None = None
    rehearsals: Annotated[int, Field(ge=1, le=50, strict=True)] = 20
    seed: Annotated[int, Field(ge=0, le=2**32 - 1, strict=True)] = 0


class LeaseOf(Strict):
    """Measurements that somebody wants to make."""

    max_pulls: Annotated[int, Field(ge=1, le=MOST_ROWS, strict=True)] | None = None
    duration: Annotated[str, Field(max_length=40)] | Finite | None = None
    worker: Whose = None
    trust_clock: Yes = False
    whole: Yes = Field(default=False, description="Also the batch as the library has it, for its clients.")


class ResultBody(Strict):
    """One measurement: its reward, or that it failed; with constraints what else was measured."""

    id: Text
    reward: Finite | None = None
    failed: Yes = False
    key: Key | None = None
    block: Text | None = None
    item: Text | None = None
    quantities: dict[Text, Finite | None] = Field(default_factory=dict)


class ResultsBody(Strict):
    """Results of one caller; all are stored, or none."""

    results: Annotated[list[ResultBody], Field(max_length=MOST_ROWS)]
    worker: Whose = None
    plan: Plan | None = None
    accept_unusual: Accepted = False


class QuantityTotals(Strict):
    """Totals of what else was measured, an entry for each row."""

    counts: Annotated[list[Whole], Field(max_length=MOST_ROWS)]
    sums: Annotated[list[Finite], Field(max_length=MOST_ROWS)]
    squares: Annotated[list[Finite], Field(max_length=MOST_ROWS)]


class Totals(Strict):
    """Totals of several measurements in each row, as columns; all are stored, or none."""

    ids: Annotated[list[Text], Field(max_length=MOST_ROWS)]
    pulls: Annotated[list[Whole], Field(max_length=MOST_ROWS)]
    sums: Annotated[list[Finite], Field(max_length=MOST_ROWS)]
    squares: Annotated[list[Finite], Field(max_length=MOST_ROWS)] | None = None
    keys: Annotated[list[Key | None], Field(max_length=MOST_ROWS)] | None = None
    blocks: Annotated[list[Text], Field(max_length=MOST_ROWS)] | None = None
    quantities: Annotated[list[QuantityTotals], Field(max_length=1_000)] | None = None
    worker: Whose = None
    plan: Plan | None = None
    accept_unusual: Accepted = False


class Undone(Strict):
    """Results of the open round that whoever reported them takes back."""

    keys: Annotated[list[Key], Field(max_length=MOST_ROWS)] | None = Field(
        default=None, description="Which; null: the latest one of the worker."
    )
    worker: Whose = None
    reason: Annotated[str, Field(max_length=2_000)] = ""


class Correction(Strict):
    """What was read, in the place of a result of a closed round that was typed wrongly."""

    key: Annotated[Key, Field(description="Of the result; or the id of its candidate, if that is enough.")]
    value: Annotated[Finite, Field(description="What was read for this very measurement.")]
    typed: Finite | None = Field(default=None, description="What was typed, where a candidate has several results.")
    worker: Whose = None
    reason: Annotated[str, Field(max_length=2_000)] = ""


class Failures(Strict):
    """Measurements that gave no result."""

    ids: Annotated[list[Text], Field(max_length=MOST_ROWS)]
    keys: Annotated[list[Key | None], Field(max_length=MOST_ROWS)] | None = None
    worker: Whose = None


class Keys(Strict):
    """Keys, each with the id of its candidate."""

    ids: Annotated[list[Text], Field(max_length=MOST_ROWS)]
    keys: Annotated[list[Key | None], Field(max_length=MOST_ROWS)]


class PlanOf(Strict):
    """Which part of the open plan."""

    free: Yes = Field(default=False, description="Without what is in, and what others hold.")


class Worker(Strict):
    """Whose leases end."""

    worker: Whose = None


class Reason(Strict):
    """Why something ends."""

    reason: Annotated[str, Field(max_length=2_000)] = ""


class ReasonFor(Strict):
    """Why some candidates are given up, or go."""

    reason: Annotated[str, Field(max_length=2_000)]
    ids: Annotated[list[Text], Field(max_length=MOST_CANDIDATES)] | None = None


class Ids(Strict):
    """Some candidates."""

    ids: Annotated[list[Text], Field(max_length=MOST_CANDIDATES)]


class NewToken(Strict):
    """A token to be made."""

    name: Annotated[str, Field(min_length=1, max_length=80)]
    role: Literal["viewer", "measurer", "owner", "admin"]
    study: Annotated[str, Field(max_length=200)] | None = None
    days: Annotated[float, Field(gt=0, le=366, allow_inf_nan=False, strict=True)] = 90.0
    identity: Annotated[str, Field(min_length=1, max_length=600)] | None = None


class NewWebhook(Strict):
    """An address that is told what happens."""

    url: Annotated[str, Field(min_length=1, max_length=2_000)]
    events: Annotated[
        list[Literal["round-opened", "round-complete", "study-stopped", "lease-expired"]],
        Field(min_length=1, max_length=4),
    ] = ["round-opened", "round-complete", "study-stopped", "lease-expired"]


class AllowWebhook(Strict):
    """Where a webhook may send."""

    private: Yes = False


Document = Annotated[dict[str, Any], Field(description="A certificate, as `surepick certificate` writes it.")]


# --- Candidates, policies and forecasts from what a request brings.

OPTIONS = re.compile(r" Give --decimal .*")  # of the command line
PLAIN = "Write numbers with a decimal point, and nothing between thousands."
FEW = 1_000  # candidates for which a second option is forecast beside the one that was asked about


def candidates_of(goal: StudyGoal) -> tuple[Arms, list[str]]:
    """(the candidates, notes on their table). Of a table, features are read where its policy uses any."""
    given, doubts = goal.candidates, list(doubts_of_delta(goal.delta))
    if (given.ids is None) == (given.table is None):
        raise InvalidInput("candidates come as ids (with features, costs, segments), or as a table; give one of them.")
    if given.table is None:
        held = {name: getattr(given, name) for name in ("columns", "preparation", "costs", "segments")}
        arms = Arms(_features(given), given.ids, **held)
        return arms.with_description(_said(given.described)), doubts
    used = uses_features(_name_of(goal))
    prepared: dict[str, Any] = {"standardize": given.standardize and used, "intercept": given.intercept and used}
    with tempfile.TemporaryDirectory() as folder, keeping_notes() as said:
        path = Path(folder) / f"candidates.{given.kind}"
        path.write_text(given.table, encoding="utf-8")
        try:
            arms = read_arms(
                path,
                given.id_column,
                wanted_features(given.feature_columns, used=used),
                cost=given.cost_column,
                segments=given.segment_column,
                reward=goal.reward_column if isinstance(goal, NewStudy) else None,
                describe=given.described_columns,
                **prepared,
            )
        except InvalidInput as error:
            words = OPTIONS.sub(" " + PLAIN, str(error))
            raise InvalidInput(words.replace(str(path), "the table")) from None
        notes = [note.replace(str(path), "the table") for note in said]
        unused = "" if used else not_used(given.feature_columns, said="feature_columns are")
        return arms, [*doubts, *notes, *filter(None, (unused, arms.features_said))]


def _said(given: Said | None) -> Described:
    """What somebody says of the candidates."""
    return NOTHING_SAID if given is None else Described(tuple(given.columns), tuple(map(tuple, given.cells)))


def _name_of(goal: StudyGoal) -> str:
    """The name of the policy that is asked for, which nobody has checked."""
    if goal.spec is not None:
        return str(goal.spec.get("name"))
    return goal.policy or fitting_policy(goal.options)


def _features(given: Candidates) -> FloatArray | None:
    """The features, exactly as they were sent."""
    if not isinstance(given.features, Packed):
        return None if given.features is None else np.array(given.features, np.float64)
    try:
        raw = base64.b64decode(given.features.packed, validate=True)
        return np.frombuffer(raw, "<f8").reshape(given.features.shape)
    except ValueError as error:
        raise InvalidInput(f"the bytes of the features are not those of their shape: {error}.") from None


def policy_of(goal: StudyGoal, arms: Arms) -> Policy[Any]:
    """The policy that is asked for."""
    if goal.spec is not None:
        try:
            return built_policy(arms=arms, **goal.spec)
        except (LookupError, TypeError) as error:
            raise InvalidInput(f"the spec of the policy is not understood: {error}.") from None
    options = dict(goal.options)
    reserved = {"epsilon", "delta", "noise"} & options.keys()
    if reserved:
        raise InvalidInput(f"{sorted(reserved)[0]} is given beside the options, not among them.")
    name = _name_of(goal)
    assert goal.epsilon is not None, "the model refuses it"
    assert goal.noise is not None
    return built_policy(name, arms, epsilon=goal.epsilon, delta=goal.delta, noise=goal.noise, **options)


def forecast_of(asked: ForecastOf) -> dict[str, Any]:
    """What the study would cost, beside measuring all candidates equally often."""
    arms, notes = candidates_of(asked)
    policy = policy_of(asked, arms)
    policies = {name_of(policy): policy}
    with one_thread():
        rows = compare_settings(
            policies,
            asked.means,
            minimize=asked.minimize,
            seed=asked.seed,
            rehearsals=asked.rehearsals,
            assume_scale=asked.assume_scale,
        )
    uniform = next((row.worst.uniform for row in rows if row.worst is not None), None)
    return {
        "candidates": arms.num_arms,
        "uniform_pulls": uniform,
        "rows": [{**encode(row), "warnings": row.warnings, "believable": row.believable} for row in rows],
        "advice": advice(rows, uniform) if uniform is not None else "",
        "notes": notes,
    }
