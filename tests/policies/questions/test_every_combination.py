"""Question x blocks x noise x features: what is refused is what cannot be had, and each is named here.

A combination that is accepted plans its first batches, and takes their results.
"""

import itertools

import numpy as np
import pytest
from together import of_each

import surepick as sp
from surepick.certificates.document import certificate_document
from surepick.certificates.verify import verify_certificate

FEATURES = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.6], [-0.4, 0.3], [0.2, -0.8], [0.9, 0.1]])
MEANS = FEATURES @ np.array([0.9, 0.2])
HEAT = np.array([0.9, 0.2, 0.5, 0.1, 0.8, 0.4])
QUESTIONS = {
    "best": {},
    "threshold": {"question": "above", "threshold": 0.4},
    "control": {"question": "above", "control": "2"},
    "shares": {"question": "above", "control": "2", "errors": "discovery"},
    "top": {"question": "top", "m": 2},
    "all-good": {"question": "all-good"},
    "one-of": {"question": "one-of", "share": 0.3, "sample_seed": 1},
    "a fact": {"constraints": ["heat<=0.7"]},
    "a bound": {"constraints": ["heat<=0.7,tolerance=0.2,noise=subgaussian:0.2"]},
    "segments": {"question": "top", "m": 1},
}
BLOCKS = {
    "none": {},
    "days": {"blocks": "day"},
    "plates": {"blocks": "plate", "block_size": 4},
    "streams": {"streams": "seed"},
    "batches": {"batch_size": 7},
}
NOISES = {"known": "subgaussian:0.3", "normal": "normal", "bounded": "bounded:-3:3"}
POLICIES = {
    "certified-independent": {},
    "certified-linear": {"norm_bound": 2.0},
    "certified-kernel": {"norm_bound": 4.0, "gamma": 0.5},
}
COMBINATIONS = list(itertools.product(QUESTIONS, BLOCKS, NOISES, POLICIES))


def why_not(question: str, blocks: str, noise: str, policy: str) -> str:
    """What stands in the way, as the sentence says it; "" if nothing does."""
    effects, normal, features = blocks in ("days", "plates"), noise == "normal", policy != "certified-independent"
    lists = question not in ("best", "one-of")
    if blocks == "streams" and features and not lists:
        return "has no option 'streams'"
    if blocks == "streams" and not normal:
        return "is measured, not declared"
    if effects and question == "threshold":
        return "a threshold does not shift with them"
    if effects and question == "a bound":
        return "their bounds do not shift with them"
    if (effects or blocks == "streams") and normal and features:
        return "with features two candidates are compared by a sum" if lists else "are compared without features"
    if blocks == "plates" and normal and not lists:  # pairs within blocks of the best arm: each block has everybody
        return "has no option 'block_size'"
    return ""


def policy_of(question: str, blocks: str, noise: str, policy: str):
    segments = {"segments": ["north"] * 3 + ["south"] * 3} if question == "segments" else {}
    arms = sp.Arms(FEATURES, ids=range(6), **segments)
    options = {**QUESTIONS[question], **BLOCKS[blocks], **POLICIES[policy]}
    return sp.make_policy(policy, arms, epsilon=0.3, delta=0.1, noise=NOISES[noise], **options)


@of_each("question", QUESTIONS)
def test_only_what_cannot_be_had_is_refused(question):
    for combination in [one for one in COMBINATIONS if one[0] == question]:
        if not (expected := why_not(*combination)):
            policy_of(*combination)
            continue
        with pytest.raises(sp.InvalidInput) as error:
            policy_of(*combination)
        assert expected in str(error.value), combination
        assert "so far" not in str(error.value)


PLAYED = [
    ("control", "plates", "known", "certified-linear"),
    ("top", "days", "known", "certified-kernel"),
    ("segments", "days", "normal", "certified-independent"),
    ("shares", "days", "normal", "certified-independent"),
    ("all-good", "plates", "normal", "certified-independent"),
    ("threshold", "streams", "normal", "certified-independent"),
    ("a bound", "streams", "normal", "certified-independent"),
    ("one-of", "days", "normal", "certified-independent"),
    ("a fact", "plates", "known", "certified-linear"),
    ("all-good", "batches", "normal", "certified-kernel"),
]


@pytest.mark.cases(7)
@pytest.mark.parametrize("combination", PLAYED, ids=" ".join)
def test_a_study_of_it_ends_with_the_truth(combination):
    policy, rng, effects = policy_of(*combination), np.random.default_rng(3), {}
    study, constraints = sp.Study(policy), "constraints" in QUESTIONS[combination[0]]
    while not study.stopped:
        batch = study.ask()
        at = np.array([int(one) for one in batch.pulls()])
        size = 5.0 if combination[1] in ("days", "plates") else 0.0
        shifts = [effects.setdefault(one, size * rng.normal()) for one in batch.blocks or [""] * len(at)]
        rewards = MEANS[at] + shifts + 0.3 * rng.standard_normal(len(at))
        beside = HEAT[at] + (0.2 * rng.standard_normal(len(at)) if combination[0] == "a bound" else 0.0)
        study.tell(batch, np.column_stack([rewards, beside]) if constraints else rewards)
    answer = study.certificate()
    assert answer.verdict == "certified"
    wrong = sp.questions.wrongly_listed(policy.problem, answer.lists, policy.problem.arms, MEANS, HEAT[:, None])
    assert not wrong.any()
    assert verify_certificate(certificate_document(study)).holds
