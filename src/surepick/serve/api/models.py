"""What requests bring, in JSON. Numbers are finite, texts have limits; the library checks what they mean."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Text = Annotated[str, Field(min_length=1, max_length=500)]
Key = Annotated[str, Field(min_length=1, max_length=1_000)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
MOST_ROWS = 100_000
MOST_CANDIDATES = 200_000


class Strict(BaseModel):
    """Fields that are not known are refused."""

    model_config = ConfigDict(extra="forbid")


class Candidates(Strict):
    """The candidates, as columns; or a table in the text of a file."""

    ids: Annotated[list[Text], Field(max_length=MOST_CANDIDATES)] | None = None
    features: (
        Annotated[list[Annotated[list[Finite], Field(max_length=10_000)]], Field(max_length=MOST_CANDIDATES)] | None
    ) = None
    columns: Annotated[list[Text], Field(max_length=10_000)] | None = None
    costs: Annotated[list[Finite], Field(max_length=MOST_CANDIDATES)] | None = None
    segments: Annotated[list[Text], Field(max_length=MOST_CANDIDATES)] | None = None
    table: str | None = None
    kind: Literal["csv", "json", "jsonl"] = "csv"
    id_column: Text | None = None
    feature_columns: list[Text] | None = None
    cost_column: Text | None = None
    segment_column: Text | None = None
    standardize: bool = False
    intercept: bool = False


class Goal(Strict):
    """What is asked of which candidates, and how it is found out."""

    candidates: Candidates
    epsilon: Finite
    delta: Finite = 0.05
    noise: Text
    policy: Text | None = None
    options: dict[str, Any] = Field(default_factory=dict)
    minimize: bool = False


class NewStudy(Goal):
    """A study to be made."""

    name: Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^/\x00-\x1f]+$")]
    judge: Literal["closed rounds", "as they come"] = "closed rounds"


class ForecastOf(Goal):
    """What a study would cost."""

    means: list[Finite] | None = None
    assume_scale: Finite | None = None
    rehearsals: Annotated[int, Field(ge=1, le=50)] = 20
    seed: Annotated[int, Field(ge=0, le=2**32 - 1)] = 0


class LeaseOf(Strict):
    """Measurements that somebody wants to make."""

    max_pulls: Annotated[int, Field(ge=1, le=MOST_ROWS)] | None = None
    duration: Annotated[str, Field(max_length=40)] | None = None
    worker: Annotated[str, Field(max_length=100)] | None = None


class Result(Strict):
    """One measurement: its reward, or that it failed; with constraints what else was measured."""

    id: Text
    reward: Finite | None = None
    failed: bool = False
    key: Key | None = None
    block: Text | None = None
    item: Text | None = None
    quantities: dict[Text, Finite | None] = Field(default_factory=dict)


class Results(Strict):
    """Results of one caller; all are stored, or none."""

    results: Annotated[list[Result], Field(max_length=MOST_ROWS)]
    worker: Annotated[str, Field(max_length=100)] | None = None
    plan: Annotated[int, Field(ge=1, le=2**53)] | None = None


class Worker(Strict):
    """Whose leases end."""

    worker: Annotated[str, Field(max_length=100)] | None = None


class Reason(Strict):
    """Why something ends."""

    reason: Annotated[str, Field(max_length=2_000)] = ""


class ReasonFor(Strict):
    """Why some candidates are given up, or go."""

    reason: Annotated[str, Field(min_length=1, max_length=2_000)]
    ids: Annotated[list[Text], Field(max_length=MOST_CANDIDATES)] | None = None


class Ids(Strict):
    """Some candidates."""

    ids: Annotated[list[Text], Field(min_length=1, max_length=MOST_CANDIDATES)]


class NewToken(Strict):
    """A token to be made."""

    name: Annotated[str, Field(min_length=1, max_length=80)]
    role: Literal["viewer", "measurer", "owner", "admin"]
    study: Annotated[str, Field(max_length=200)] | None = None
    days: Annotated[float, Field(gt=0, le=366, allow_inf_nan=False)] = 90.0


class NewWebhook(Strict):
    """An address that is told what happens."""

    url: Annotated[str, Field(min_length=1, max_length=2_000)]
    events: Annotated[
        list[Literal["round-opened", "round-complete", "study-stopped", "lease-expired"]],
        Field(min_length=1, max_length=4),
    ] = ["round-opened", "round-complete", "study-stopped", "lease-expired"]


class AllowWebhook(Strict):
    """Where a webhook may send."""

    private: bool = False


Document = Annotated[dict[str, Any], Field(description="A certificate, as `surepick certificate` writes it.")]
