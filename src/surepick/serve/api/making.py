"""Candidates, policies and forecasts from what a request brings."""

from __future__ import annotations

import base64
import re
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from surepick.core.arms import Arms
from surepick.core.arrays import FloatArray
from surepick.core.json import encode
from surepick.errors import InvalidInput
from surepick.forecasts import advice, compare
from surepick.linalg.blas_threads import one_thread
from surepick.policies.base import Policy, doubts_of_delta, name_of
from surepick.policies.parts import fitting_policy
from surepick.policies.registry import built_policy, uses_features
from surepick.serve.api.models import Candidates, ForecastOf, Goal, Packed
from surepick.tables import keeping_notes, read_arms
from surepick.tables.selection import not_used, wanted_features

OPTIONS = re.compile(r" Give --decimal .*")  # of the command line
PLAIN = "Write numbers with a decimal point, and nothing between thousands."
FEW = 1_000  # candidates for which a second option is forecast beside the one that was asked about


def arms_of(goal: Goal) -> tuple[Arms, list[str]]:
    """(the candidates, what is to be noted about their table). Of a table, features are read where its policy uses any.

    Raises:
        InvalidInput: there are none, or they have no meaning.
    """
    given, doubts = goal.candidates, list(doubts_of_delta(goal.delta))
    if (given.ids is None) == (given.table is None):
        raise InvalidInput("candidates come as ids (with features, costs, segments), or as a table; give one of them.")
    if given.table is None:
        held = {name: getattr(given, name) for name in ("columns", "preparation", "costs", "segments")}
        return Arms(_features(given), given.ids, **held), doubts
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
                **prepared,
            )
        except InvalidInput as error:
            words = OPTIONS.sub(" " + PLAIN, str(error))
            raise InvalidInput(words.replace(str(path), "the table")) from None
        notes = [note.replace(str(path), "the table") for note in said]
        unused = "" if used else not_used(given.feature_columns, said="feature_columns are")
        return arms, [
            *doubts,
            *notes,
            *([unused] if unused else []),
            *([arms.features_said] if arms.features_said else []),
        ]


def _name_of(goal: Goal) -> str:
    """The name of the policy that is asked for, which nobody has checked."""
    if goal.spec is not None:
        return str(goal.spec.get("name"))
    return goal.policy or fitting_policy(goal.options)


def _features(given: Candidates) -> FloatArray | None:
    """The features, exactly as they were sent.

    Raises:
        InvalidInput: their bytes are not those of so many numbers.
    """
    if not isinstance(given.features, Packed):
        return None if given.features is None else np.array(given.features, np.float64)
    try:
        raw = base64.b64decode(given.features.packed, validate=True)
        return np.frombuffer(raw, "<f8").reshape(given.features.shape)
    except ValueError as error:
        raise InvalidInput(f"the bytes of the features are not those of their shape: {error}.") from None


def policy_of(goal: Goal, arms: Arms) -> Policy[Any]:
    """The policy that is asked for.

    Raises:
        InvalidInput: it has no meaning for these candidates.
    """
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
    arms, notes = arms_of(asked)
    policy = policy_of(asked, arms)
    policies = {name_of(policy): policy}
    with one_thread():
        rows = compare(
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
