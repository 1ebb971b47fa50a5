"""What blocks cost where they help nothing: studies with the same seeds, with and without them."""

import numpy as np
import pytest

import surepick as sp
from surepick.core.records import from_json, to_json
from surepick.forecasts import forecast
from surepick.forecasts.result import Forecast
from surepick.forecasts.warnings import forecast_price_of_blocks

MEANS = np.array([0.0, 1.0, 0.3, 0.1])
ASKED = {"epsilon": 0.8, "delta": 0.1, "noise": "subgaussian:0.5"}
FEATURES = {"certified-linear": {"norm_bound": 1.5}, "certified-independent": {}}


def policy_of(name: str, **options):
    arms = sp.Arms(np.column_stack([MEANS, [0.3, -0.2, 0.5, 0.1]]), ids=list("abcd"))
    return sp.make_policy(name, arms, **ASKED, **FEATURES[name], **options)


@pytest.mark.parametrize("name", FEATURES)
@pytest.mark.parametrize("guess", [None, MEANS])
def test_the_forecast_says_what_the_study_takes_without_blocks(name, guess):
    asked = {"seed": 3, "rehearsals": 2}
    found = forecast(policy_of(name, blocks="plate", block_size=3), guess, **asked)
    bare = forecast(policy_of(name), guess, **asked)
    assert found.without_blocks == bare.total
    assert bare.without_blocks is None
    said = forecast_price_of_blocks("plate", found.total, bare.total, guess=guess is not None)
    assert [sentence for sentence in found.warnings if sentence == said]
    assert not any("without blocks" in sentence for sentence in bare.warnings)
    assert from_json(Forecast, to_json(found)) == found


@pytest.mark.parametrize("kind", ["blocks", "streams"])
def test_pairs_of_unknown_scale_are_compared_with_independent_measurements(kind):
    asked = {"epsilon": 0.4, "delta": 0.1, "noise": "normal"}
    arms = sp.Arms(ids=list("abcd"))
    paired, bare = (sp.make_policy("certified-independent", arms, **asked, **more) for more in ({kind: "run"}, {}))
    found, usual = (forecast(one, MEANS[:4], rehearsals=2, seed=2, assume_scale=0.5) for one in (paired, bare))
    assert found.without_blocks == usual.total
    assert found.total > 20


def test_small_blocks_are_simulated_as_they_are_dealt():
    """A batch dealt into pairs tells less than one that is a single block."""
    pairs, whole = (
        forecast(policy_of("certified-independent", blocks="plate", **size), MEANS, rehearsals=8)
        for size in ({"block_size": 2}, {})
    )
    assert pairs.without_blocks == whole.without_blocks
    assert pairs.total > whole.total


def test_the_sentence_says_more_fewer_and_as_many():
    assert "120 measurements where no day has an effect of its own, and 100" in forecast_price_of_blocks(
        "day", 120, 100, guess=True
    )
    assert forecast_price_of_blocks("day", 120, 100, guess=True).endswith(": 20 % more.")
    assert forecast_price_of_blocks("day", 75, 100, guess=False).endswith(": 25 % fewer.")
    assert forecast_price_of_blocks("day", 100, 100, guess=False).endswith(": as many.")
