"""Questions in blocks: what a batch gains, by definition; effects drop out; what is refused."""

import numpy as np
import pytest
from block_studies import drawn, played, seen_of
from budgets import budget
from hypothesis import given, settings, strategies as st

import surepick as sp
from surepick.certificates.document import certificate_document
from surepick.certificates.verify import verify_certificate
from surepick.core.plans import Embedding
from surepick.embeddings import IndependentEmbedding
from surepick.embeddings.base import CentredWithinBlocks
from surepick.estimators.contrast_weights import ContrastWeights
from surepick.policies.base import Problem
from surepick.policies.questions.outlook import Ground, entries_in_blocks, gains_in_blocks, negated
from surepick.questions import wrongly_listed
from surepick.questions.protocol import Bet
from surepick.studies.database import resume_stored_study

ASKED = {"epsilon": 0.4, "delta": 0.1, "noise": sp.SubGaussian(0.5)}
MEANS = np.array([0.0, 1.0, 0.4, 0.1, -0.8])
QUESTIONS = [{"question": "above", "control": "a"}, {"question": "top", "m": 2}, {"question": "all-good"}]
seeds = st.integers(0, 10**6)


def policy_of(question, **options):
    arms = sp.Arms(ids=[*"abcde"])
    return sp.make_policy("certified-independent", arms, **ASKED, **question, **{"blocks": "day", **options})


@settings(max_examples=budget(80))
@given(seeds)
def test_what_a_batch_gains_by_definition(seed):
    """Weights l w_j w_c / (w_j + w_c) on the difference of both means in each block; they sum to 0 in it."""
    rng = np.random.default_rng(seed)
    number, num_arms = int(rng.integers(1, 5)), 4
    counts, scales = rng.integers(0, 4, (number, num_arms)), rng.uniform(0.5, 2.0, num_arms)
    sums = drawn(rng, counts, rng.normal(size=num_arms), 1.0)
    margins, margin = rng.uniform(0.1, 1.0, num_arms), float(rng.normal())
    bet = Bet("2", 2, margin, False, np.array([True, True, False, True]), np.full(num_arms, 1e9))
    found = gains_in_blocks(seen_of(counts, sums), scales, bet, margins, 0.7)
    for arm in (0, 1, 3):
        estimate = spent = whole = 0.0
        for block in range(number):
            ours, theirs = counts[block, arm] / scales[arm] ** 2, counts[block, 2] / scales[2] ** 2
            if min(counts[block, arm], counts[block, 2]) > 0:
                joint = ours * theirs / (ours + theirs)
                level = 0.7 * margins[arm] * joint
                estimate += level * (sums[block, arm] / counts[block, arm] - sums[block, 2] / counts[block, 2])
                each, other = level / counts[block, arm], level / counts[block, 2]
                spent += counts[block, arm] * (each * scales[arm]) ** 2 / 2
                spent += counts[block, 2] * (other * scales[2]) ** 2 / 2
                whole += level
        assert found[arm] == pytest.approx(whole * margin - estimate - spent, rel=1e-7, abs=1e-9)
    assert found[2] == 0.0


@settings(max_examples=budget(60))
@given(seeds)
def test_no_effect_changes_what_a_batch_gains(seed):
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 4, (5, 4))
    sums, effects = drawn(rng, counts, np.zeros(4), 1.0), 1e4 * rng.normal(size=(5, 1))
    bet = Bet("1", 1, 0.3, False, np.array([True, False, True, True]), np.full(4, 3.0))
    plain, moved = (
        gains_in_blocks(seen, np.ones(4), bet, np.full(4, 0.5), 1.0)
        for seen in (seen_of(counts, sums), seen_of(counts, sums + counts * effects))
    )
    assert moved == pytest.approx(plain, abs=1e-6)
    turned = gains_in_blocks(negated(seen_of(counts, -sums)), np.ones(4), bet, np.full(4, 0.5), 1.0)
    assert turned == pytest.approx(plain, abs=1e-12)


# --- with features, and where nobody knows how much differences vary


def ground_of(noise, features=None, **more):
    problem = Problem(4, 0.5, 0.1, noise, question=sp.questions.TopM(1))
    inner = IndependentEmbedding(4) if features is None else sp.LinearEmbedding(features, norm_bound=2.0)
    embedding = inner if features is None else CentredWithinBlocks(inner)
    return Ground(problem, embedding, embedding.max_dim, None, 0.05, **more)


@settings(max_examples=budget(60))
@given(seeds)
def test_what_a_batch_gains_on_vectors_by_definition(seed):
    """Least squares of the rewards on the vectors, a level for each block among the unknowns."""
    rng = np.random.default_rng(seed)
    features, counts = rng.normal(size=(4, 2)), rng.integers(1, 4, (3, 4))
    sums, noise = drawn(rng, counts, np.zeros(4), 1.0), sp.SubGaussian(tuple(rng.uniform(0.5, 2.0, 4)))
    ground = ground_of(noise, features, in_blocks=True)
    bet = Bet("1", 1, 0.3, False, np.array([True, False, True, True]), np.full(4, 1e9))
    past = seen_of(counts, sums)
    found = ground.gains(bet, past, past, ground.posterior(past))
    blocks, arms = np.nonzero(counts)
    number, scales = counts[blocks, arms], np.array(noise.sigma)[arms]
    design = np.column_stack([features[arms], np.eye(3)[blocks]])
    weights = number / scales**2
    solve = np.linalg.pinv(design.T @ (weights[:, None] * design))
    for arm in (0, 2, 3):
        towards = np.append(features[arm] - features[1], np.zeros(3))
        each = (towards @ solve @ design.T) / scales**2  # a pull's weight
        spread = float(np.sum(number * each**2 * scales**2))
        ahead = float(each @ sums[blocks, arms])
        margin = ground.posterior(past).margins(1, 0.3)[arm]
        bold = 0.7 * margin / spread
        assert found[arm] == pytest.approx(bold * (0.3 - ahead) - 0.5 * bold**2 * spread, rel=1e-6, abs=1e-7)


@settings(max_examples=budget(40))
@given(seeds)
def test_misspecification_counts_the_flow_of_an_arm_over_all_its_blocks(seed):
    """beta = C ||what the weights miss|| + gamma sum_x |flow_x - wanted|, by definition."""
    rng = np.random.default_rng(seed)
    features, counts, gamma = rng.normal(size=(4, 2)), rng.integers(1, 4, (3, 4)), 0.1
    blocks, scales = seen_of(counts, drawn(rng, counts, np.zeros(4), 1.0)).blocks, rng.uniform(0.5, 2.0, 4)
    embedded, entries = entries_in_blocks(Embedding(features, gamma), blocks, scales)
    both, owners = np.append(scales, scales[blocks.arms]), np.append(np.arange(4), blocks.arms)
    asked = {"centre": 1, "noise_scales": both, "norm_bound": 2.0, "owners": owners}
    found = ContrastWeights.of(embedded, entries.counts, **asked)
    weights = found.least_squares(np.array([0, 2]))
    flows = np.array([[sum((one * found.counts)[blocks.arms == arm]) for arm in range(4)] for one in weights])
    wanted = np.eye(4)[[0, 2]] - np.eye(4)[1]
    missed = np.linalg.norm(wanted @ features - flows @ features, axis=1)
    expected = 2.0 * missed + gamma * np.abs(flows - wanted).sum(axis=1)
    assert found.bias(np.array([0, 2]), weights) == pytest.approx(expected, rel=1e-6, abs=1e-9)


@settings(max_examples=budget(40))
@given(seeds)
def test_no_effect_changes_what_vectors_and_pairs_gain(seed):
    rng = np.random.default_rng(seed)
    features, counts = rng.normal(size=(4, 2)), (rng.random((12, 4)) < 0.8).astype(int)
    counts[:, 1] = 1
    sums, effects = drawn(rng, counts, np.zeros(4), 1.0), 1e4 * rng.normal(size=(12, 1))
    quiet, loud = seen_of(counts, sums), seen_of(counts, sums + counts * effects)
    for high in (False, True):
        bet = Bet("1", 1, 0.3, high, np.array([True, False, True, True]), np.full(4, 3.0))
        ground = ground_of(sp.SubGaussian(1.0), features, in_blocks=True)
        guess = ground.posterior(quiet)
        assert ground.gains(bet, quiet, loud, guess) == pytest.approx(ground.gains(bet, quiet, quiet, guess), abs=1e-6)
        ground = ground_of(sp.Normal(), in_pairs=True)
        plain = ground.wager(bet, quiet, guess, quiet.blocks)(quiet)
        assert ground.wager(bet, quiet, guess, loud.blocks)(loud) == pytest.approx(plain, abs=1e-6)
        assert np.any(plain != 0.0)


STUDIES = {
    "control and features": (
        "certified-linear",
        {"question": "above", "control": "a", "blocks": "day", "noise": "subgaussian:0.5", "norm_bound": 3.0},
    ),
    "top and differences": ("certified-independent", {"question": "top", "m": 2, "blocks": "day", "noise": "normal"}),
    "a threshold and streams": (
        "certified-independent",
        {"question": "above", "threshold": 0.2, "streams": "seed", "noise": "normal"},
    ),
    "all that are good, and streams": (
        "certified-independent",
        {"question": "all-good", "streams": "seed", "noise": "normal"},
    ),
    "a fact": (
        "certified-independent",
        {"constraints": ["heat<=1"], "blocks": "day", "noise": "subgaussian:0.5", "block_size": 6},
    ),
    "a fact and differences": (
        "certified-independent",
        {"constraints": ["heat<=1"], "blocks": "day", "noise": "normal"},
    ),
}
HEAT = np.array([0.0, 2.0, 0.0, 0.0, 0.0])


@pytest.mark.cases(4)
@pytest.mark.parametrize("kind", STUDIES)
def test_whole_studies_end_with_a_certificate_that_verifies(kind):
    name, options = STUDIES[kind]
    arms = sp.Arms(np.column_stack([MEANS, [0.3, -0.2, 0.5, -0.4, 0.0]]), [*"abcde"])
    policy = sp.make_policy(name, arms, epsilon=0.4, delta=0.1, **options)
    study, rng, effects = sp.Study(policy), np.random.default_rng(1), {}
    while not study.stopped:
        batch = study.ask()
        at = np.array(["abcde".index(one) for one in batch.pulls()])
        size = 20.0 if "blocks" in options else 0.0
        shifts = [effects.setdefault(one, size * rng.normal()) for one in batch.blocks]
        rewards = MEANS[at] + shifts + 0.5 * rng.standard_normal(len(at))
        study.tell(batch, np.column_stack([rewards, HEAT[at]]) if "constraints" in options else rewards)
    answer = study.certificate()
    assert answer.verdict == "certified"
    assert not wrongly_listed(policy.problem, answer.lists, arms, MEANS, HEAT[:, None]).any()
    assert policy.traits.blocks.once == (options["noise"] == "normal")
    assert verify_certificate(certificate_document(study)).holds
    assert sp.make_policy(arms=arms, **policy.spec) == policy


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_study_goes_as_it_would_without_effects(question):
    policy = policy_of(question, block_size=6)
    quiet = played(policy, MEANS, 0.5, seed=3, effects=lambda _, counts: np.zeros(len(counts)))
    loud = played(policy, MEANS, 0.5, seed=3, effects=lambda rng, counts: 50.0 * rng.normal(size=len(counts)))
    assert [plan.counts.tolist() for plan in quiet[0]] == [plan.counts.tolist() for plan in loud[0]]
    assert quiet[1][-1].lists == loud[1][-1].lists
    assert quiet[1][-1].lists.decided.sum() >= 4


def test_every_block_has_the_control():
    policy = policy_of({"question": "above", "control": "c"}, block_size=4)
    assert policy.traits.blocks.control == 2
    plans, _ = played(policy, MEANS, 0.5, seed=1, effects=lambda _, counts: np.zeros(len(counts)))
    for plan in plans[1:]:
        assert plan.counts[2] >= policy.traits.blocks.number_for(plan.counts)


def test_a_study_in_blocks_from_its_first_plan_to_its_certificate(stored_at):
    policy = policy_of(QUESTIONS[0], block_size=5, once_a_block=True)
    sp.create_study(stored_at, "days", policy)
    assert sp.open_study(stored_at, "days").policy == policy
    rng, effects = np.random.default_rng(0), {}
    while (batch := resume_stored_study(stored_at, "days").ask()) is not None:
        rewards = [
            MEANS["abcde".index(one)] + effects.setdefault(day, 20.0 * rng.normal()) + 0.5 * rng.normal()
            for one, day in zip(batch.pulls(), batch.blocks, strict=True)
        ]
        resume_stored_study(stored_at, "days").tell(batch, rewards)
    study = sp.open_study(stored_at, "days")
    answer = study.certificate()
    assert (answer.verdict, answer.lists.inside[0], "e" in answer.lists.outside) == ("certified", "b", True)
    assert any(sentence.startswith("Measurements of the same day") for sentence in answer.assumptions)
    assert verify_certificate(certificate_document(study)).holds


def test_a_spec_without_blocks_says_nothing_of_them():
    spec = policy_of(QUESTIONS[1], blocks=None).spec
    assert not {"blocks", "block_size", "once_a_block"} & set(spec)


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"question": "above", "threshold": 0.0}, "a day may shift all of its measurements"),
        (
            {"question": "all-good", "policy": "certified-linear", "norm_bound": 1.0, "noise": sp.Normal()},
            "with features two candidates are compared by a sum",
        ),
        ({"question": "all-good", "blocks": None, "block_size": 4}, "block_size has a meaning only with blocks"),
        ({"question": "all-good", "streams": "seed", "blocks": None}, "is measured, not declared: with streams"),
        ({"question": "all-good", "streams": "seed", "noise": sp.Normal()}, "blocks and streams are both given"),
        (
            {"question": "best", "constraints": ["heat<=1,tolerance=0.5,noise=subgaussian:1"]},
            "may shift the quantities",
        ),
        ({"question": "top", "m": 2, "control": "a"}, "question 'top' has no option 'control'"),
        ({"question": "top", "m": 2, "later": ["a"]}, "who comes later changes who is among the best"),
        ({"question": "all-good", "gap_bound": 3.0}, "a larger bound says nothing of who is on which list"),
        ({"question": "one-of", "share": 0.5, "later": ["a"]}, "drawn before the first measurement"),
    ],
)
def test_what_cannot_be_asked_in_blocks_is_refused(more, says):
    asked = {"policy": "certified-independent", "blocks": "day", **ASKED, **more}
    with pytest.raises(sp.InvalidInput, match=says):
        sp.make_policy(asked.pop("policy"), sp.Arms(np.eye(5), [*"abcde"]), **asked)
