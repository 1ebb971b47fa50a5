"""Policies of experiments: with the literal settings of their source, or with their defaults."""

from __future__ import annotations

from typing import Any

from surepick.bench.spec import PolicySpec
from surepick.policies.registry import paper_settings

UNIT_NOISE = "subgaussian:1"  # what the published code assumes, whatever the rewards


def published(
    name: str,
    *,
    label: str | None = None,
    noise: str | None = UNIT_NOISE,
    max_pulls: int | None = None,
    **options: Any,
) -> PolicySpec:
    """A policy with the literal settings of its source."""
    return PolicySpec(label or name, name, {**paper_settings(name), **options}, noise, max_pulls)


def default(name: str, *, label: str | None = None, **options: Any) -> PolicySpec:
    """A policy with its default settings and the environment's own noise."""
    return PolicySpec(label or name, name, options)
