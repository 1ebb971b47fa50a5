"""What requests bring, in JSON. Numbers are finite, texts have limits; the library checks what they mean."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from surepick.core.json import read_json
from surepick.errors import InvalidInput
from surepick.serve.web.problems import not_understood

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
    """What a request brings, checked.

    Args:
        kind: of it.
        values: as they came: fields, or JSON.
        what: it is called in messages.

    Raises:
        InvalidInput: it is not understood.
    """
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
    standardize: Yes = False
    intercept: Yes = False


class Goal(Strict):
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


class NewStudy(Goal):
    """A study to be made."""

    name: Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^/\x00-\x1f]+$")]
    judge: Literal["closed rounds", "as they come"] = "closed rounds"
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


class ForecastOf(Goal):
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


class Result(Strict):
    """One measurement: its reward, or that it failed; with constraints what else was measured."""

    id: Text
    reward: Finite | None = None
    failed: Yes = False
    key: Key | None = None
    block: Text | None = None
    item: Text | None = None
    quantities: dict[Text, Finite | None] = Field(default_factory=dict)


class Results(Strict):
    """Results of one caller; all are stored, or none."""

    results: Annotated[list[Result], Field(max_length=MOST_ROWS)]
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
