"""The options of all policies by name, for editors and type checkers: what `**options` of `make_policy` may be.

At run time each policy says itself what it knows (`policy_options`), and refuses the rest. tests/test_option_types.py
compares both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from surepick.embeddings import Kernel
    from surepick.items import Items
    from surepick.questions import Constraint, Question


class Options(TypedDict, total=False):
    """Settings of policies; docs/reference/policies.md says which policy takes which, and what it means."""

    # what is asked
    question: str | Question | None
    threshold: float | str | None
    by: float | None
    errors: Literal["family", "discovery"] | None
    m: int | None
    slack: float | None
    share: float | None
    constraints: Sequence[str | Constraint] | None
    sample_seed: int | None
    sample_seed_by: Literal["program", "user"] | None
    budget: int | None
    any_gap: bool | None
    gap_bound: float | None
    prefer: Mapping[Any, float] | ArrayLike | None
    # what is assumed of the means
    assume: str | None
    trust: str | float | None
    norm_bound: float | None
    norm_source: str | None
    bound: str | None
    gamma: float | None
    kernel: str | Kernel | Callable[..., ArrayLike] | None
    expansion: str | None
    embedding: str | None
    misspecification: float | None
    max_rank: int | None
    max_dim: int | None
    nystrom_above: int | None
    rounding: float | None
    dim: int | None
    # rounds, batches, blocks
    batch_size: int | None
    largest_batch: int | None
    first_batch: int | None
    max_batches: int | None
    batch_cost: float | None
    reserve: float | None
    blocks: str | None
    streams: str | None
    block_size: int | None
    control: str | None
    once_a_block: bool | None
    later: Sequence[str] | None
    later_share: float | None
    items: int | Iterable[object] | Items | None
    seed: int | None
    seed_by: Literal["program", "user"] | None
    # evidence, designs, and choices of the field's algorithms
    evidence: str | None
    tolerance: float | None
    tolerance_scale: str | None
    error_tolerance: float | None
    accuracy: float | None
    schedule: str | None
    union: str | None
    stopping: str | None
    dimension: str | None
    vectors: str | None
    looks: int | None
    growth: float | None
    constants: str | None
    boundary: str | None
    floor: str | None
    play: str | None
    pulled: str | None
    radius: str | None
    selection: str | None
    shrinkage: float | None
    # networks
    depth: int | None
    width: int | None
    architecture: str | None
    inputs: str | None
    device: str | None
    precision: str | None
    regularization: float | None
    trainer: str | None


class Asked(Options, total=False):
    """The same, and what else `find_best` takes."""

    id: Any
    features: Any
    epsilon: float | None
    delta: float | None
    noise: Any
    policy: Any
    minimize: bool
    max_pulls: float | None
    max_cost: float | None
    at_once: int | None
    n_jobs: int
    progress: bool | None
    unusual: Literal["warn", "accept", "refuse"]
    url: str | None
    name: str
