"""The bias that a batch will have is known before it is measured."""

from __future__ import annotations

import numpy as np
import pytest
from evidence_cases import EPSILON
from neural_studies import through

import surepick as sp
from surepick.core.observations import Observations
from surepick.core.plans import Embedding
from surepick.estimators import batch_evidence, bias_ahead, noise_mgf_after
from surepick.estimators import e_values as evidence


@pytest.mark.parametrize("guessed", [False, True])
@pytest.mark.parametrize("steady", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_the_bias_ahead_is_what_the_batch_will_lose(seed, steady, guessed, monkeypatch):
    """`batch_evidence` bets on margin - beta - drift; that room is seen where the bets are made."""
    embedded, counts, scales, scores, margins = through(seed)
    slack_seen = []
    honest = evidence._bets

    def looked_at(weights, per_arm, pulled, slack, *rest):
        slack_seen.append(slack)
        return honest(weights, per_arm, pulled, slack, *rest)

    monkeypatch.setattr(evidence, "_bets", looked_at)
    scores = scores if guessed else None
    batch_evidence(
        embedded,
        Observations(counts, counts * 0.3),
        centre=2,
        epsilon=EPSILON,
        margins=margins,
        noise_mgf=noise_mgf_after(sp.SubGaussian(1.0), Observations.nothing(12)),
        noise_scales=scales,
        norm_bound=2.0,
        bias_robust=steady,
        scores=scores,
    )
    rivals = np.delete(np.arange(12), 2)
    ahead = {"centre": 2, "rivals": rivals, "noise_scales": scales, "norm_bound": 2.0}
    plain = bias_ahead(embedded, counts, **ahead)
    margins = margins[rivals]
    slack = np.maximum(margins - plain, 0.1 * margins) if steady else None
    expected = bias_ahead(embedded, counts, slack=slack, scores=scores, **ahead)
    assert margins - slack_seen[0] == pytest.approx(expected, abs=1e-12)
    if guessed:
        assert np.all(expected >= bias_ahead(embedded, counts, slack=slack, **ahead) - 1e-12)


def test_the_bias_of_least_squares_is_the_same_for_multiples_of_the_counts():
    embedded, counts, scales, _, _ = through(0)
    ahead = {"centre": 0, "rivals": np.arange(1, 12), "noise_scales": scales, "norm_bound": 2.0}
    assert bias_ahead(embedded, 7 * counts, **ahead) == pytest.approx(bias_ahead(embedded, counts, **ahead))


def test_the_drift_is_what_a_lack_of_fit_would_add_to_a_rivals_lead():
    """Three arms on a line, the middle one not pulled; what is guessed of it is .3 below what the others imply."""
    embedded = Embedding(np.array([[1.0, 0.0], [1.0, 0.5], [1.0, 1.0]]), 0.0)
    ahead = {"centre": 0, "rivals": np.array([1, 2]), "noise_scales": np.ones(3), "norm_bound": 1e-9}
    scores = np.array([0.0, 0.2, 1.0])
    found = bias_ahead(embedded, np.array([4, 0, 4]), scores=scores, **ahead)
    assert found == pytest.approx([0.3, 0.0], abs=1e-6)
    assert bias_ahead(embedded, np.array([4, 0, 4]), scores=-scores, **ahead) == pytest.approx([0.0, 0.0], abs=1e-6)
