"""One of the best share of a list: how large the sample is, what it misses, and that its price does not grow."""

import math
from dataclasses import replace

import numpy as np
import pytest
from block_studies import played as in_blocks_played
from bounds import counted, failures_allowed, trials_to_notice
from budgets import STUDIES, few_and_all
from scipy.stats import hypergeom
from together import of_each

import surepick as sp
from surepick.certificates.document import certificate_document
from surepick.core.observations import Answers, Observations
from surepick.errors import InvalidInput
from surepick.policies.base import stopped
from surepick.policies.questions.one_of_share import OneOfShare
from surepick.questions import OneOf, question_spec

DELTA = 0.1


def policy_of(num_arms, share, seed, *, epsilon=0.5, delta=DELTA, sigma=0.5):
    arms = sp.Arms(ids=range(num_arms))
    noise, question = f"subgaussian:{sigma}", OneOf(share, seed)
    return sp.make_policy("certified-independent", arms, epsilon=epsilon, delta=delta, noise=noise, question=question)


def played(policy, means, seed, sigma=0.5):
    """The claim at the policy's own stop, on normal rewards."""
    rng, state = np.random.default_rng(seed), policy.init()
    while not stopped(policy, state):
        plan = policy.ask(state)
        scatter = sigma * np.sqrt(plan.counts) * rng.standard_normal(len(means))
        state = policy.tell(state, plan, Observations(plan.counts, plan.counts * means + scatter)).state
    return policy.claim(state)


@of_each("num_arms", [1, 2, 7, 60, 1000, 100_000])
@of_each("share", [0.01, 0.05, 0.5, 0.99])
def test_the_sample_misses_the_best_share_with_at_most_half_of_delta(num_arms, share):
    best = min(math.ceil(share * num_arms), num_arms)
    number = len(OneOf(share, 0).sample(num_arms, DELTA))
    assert hypergeom.pmf(0, num_arms, best, number) <= DELTA / 2 * (1 + 1e-9)
    if 1 < number < num_arms - best + 1:
        assert (1 - best / num_arms) ** (number - 1) > DELTA / 2  # the formula asks for no more


def test_the_size_of_the_sample_does_not_grow_with_the_list():
    sizes = {len(OneOf(0.05, 0).sample(num_arms, 0.05)) for num_arms in (10**3, 10**4, 10**5)}
    assert sizes == {72}


def test_the_sample_depends_on_its_seed_alone_and_a_fresh_seed_is_drawn():
    assert np.array_equal(OneOf(0.1, 3).sample(500, DELTA), OneOf(0.1, 3).sample(500, DELTA))
    assert not np.array_equal(OneOf(0.1, 3).sample(500, DELTA), OneOf(0.1, 4).sample(500, DELTA))
    assert len({OneOf(0.1).sample_seed for _ in range(20)}) > 1


@counted(DELTA)
def wrong_of(runs, *, num_arms=40, share=0.1, sample=None):
    """How many of so many studies of a list whose best share stands where the maker of the list likes it, are wrong."""
    best = math.ceil(share * num_arms)
    means = np.zeros(num_arms)
    means[:best] = 1.0  # the first of the list: a sample of the first n would be of use, of the last n of none
    for seed in range(runs):
        policy = policy_of(num_arms, share, seed)
        if sample is not None:
            inner = sp.make_policy(
                "certified-independent", sp.Arms(ids=sample), epsilon=0.5, delta=DELTA / 2, noise="subgaussian:0.5"
            )
            policy = type(policy)(policy.problem, inner, np.array(sample))
        yield bool(means[played(policy, means, seed).leader] < 0.5)


@few_and_all("runs", trials_to_notice(DELTA, 0.9), STUDIES)
def test_lists_made_by_an_adversary_are_answered_rightly(runs):
    assert wrong_of(runs) <= failures_allowed(runs, DELTA)


def test_a_sample_that_the_maker_of_the_list_knows_is_caught():
    assert wrong_of(10, sample=list(range(20, 40))) > failures_allowed(10, DELTA)


def test_a_policy_made_again_from_its_spec_is_equal():
    policy = policy_of(300, 0.05, 7)
    again = sp.make_policy(arms=policy.problem.arms, **policy.spec)
    assert policy.spec["question"] == {"name": "one-of", "share": 0.05, "sample_seed": 7, "sample_seed_by": "user"}
    assert again == policy
    assert question_spec(again.problem.question) == policy.spec["question"]


def test_the_certificate_of_a_study_verifies_and_says_that_a_sample_was_drawn():
    means = np.linspace(0, 1, 200)
    rng = np.random.default_rng(5)
    study = sp.Study(policy_of(200, 0.1, 1))
    result = study.run(lambda ids: means[[int(one) for one in ids]] + 0.5 * rng.standard_normal(len(ids)))
    assert result.verdict == "certified"
    assert result.lists.inside == (result.best_arm,)
    assert result.certificate.lists.inside == (str(result.best_arm),)
    assert result.certificate.lists.undecided == ()
    said = "drawn at random (seed 1, given by whoever set the study up)"
    assert any(said in sentence for sentence in result.certificate.assumptions)
    assert "one of the best 10% of the list" in result.certificate.promise
    assert sp.verify_certificate(certificate_document(study)).holds


def test_results_of_others_than_the_sample_are_not_looked_at():
    policy = policy_of(60, 0.5, 0)
    state = policy.init()
    plan = policy.ask(state)
    others = np.setdiff1d(np.arange(60), policy.members)
    assert not plan.counts[others].any()
    counts = plan.counts.copy()
    counts[others[0]] = 5
    told = policy.tell(state, plan, Observations(counts, 100.0 * (counts > plan.counts)))
    assert told.state == policy.tell(state, plan, Observations(plan.counts, np.zeros(60))).state


@pytest.mark.parametrize("share", [0.0, 1.0, -1, "half"])
def test_a_share_is_between_0_and_1(share):
    with pytest.raises(InvalidInput, match="share"):
        OneOf(share)


# --- in blocks, and of test items: the sample has nothing to do with either


ONE_IN_FOUR = {"question": "one-of", "share": 0.25}
GOOD = np.repeat([1.0, 0.0], [3, 9])  # the maker of the list puts its best quarter first


def in_blocks(seed):
    asked = {"epsilon": 0.5, "delta": DELTA, "noise": "subgaussian:0.5", "blocks": "day"}
    return sp.make_policy("certified-independent", sp.Arms(ids=range(12)), **asked, **ONE_IN_FOUR, sample_seed=seed)


@counted(DELTA)
def wrong_in_blocks(runs):
    """Studies in blocks of four whose effects, three times the gaps, are large where the good ones are not."""
    for seed in range(runs):
        policy = in_blocks(seed)
        _, states = in_blocks_played(policy, GOOD, 0.5, seed=seed, effects=against_the_good, size=4)
        yield bool(GOOD[policy.claim(states[-1]).leader] < 0.5)


def against_the_good(rng, counts):
    share = counts @ GOOD / np.maximum(counts.sum(axis=1), 1)
    return np.where(share > share.mean(), -3.0, 3.0) + rng.normal(0.0, 1.0, len(counts))


@few_and_all("runs", trials_to_notice(DELTA, 0.9), STUDIES)
def test_in_blocks_the_answer_is_right(runs):
    assert wrong_in_blocks(runs) <= failures_allowed(runs, DELTA)


def test_results_whose_blocks_are_lost_are_noticed(monkeypatch):
    told = OneOfShare._seen
    monkeypatch.setattr(OneOfShare, "_seen", lambda self, seen: replace(told(self, seen), blocks=None))
    runs = trials_to_notice(DELTA, 0.99)
    assert wrong_in_blocks(runs) > failures_allowed(runs, DELTA)


def test_a_study_in_blocks_and_one_of_items_verify():
    rng = np.random.default_rng(2)
    study = sp.Study(in_blocks(1))
    found = study.run(
        lambda ids: GOOD[[int(one) for one in ids]] + rng.normal(0.0, 20.0) + 0.5 * rng.normal(size=len(ids))
    )
    assert (found.verdict, GOOD[int(found.best_arm)]) == ("certified", 1.0)
    assert any(sentence.startswith("Measurements of the same day") for sentence in found.certificate.assumptions)
    assert sp.verify_certificate(certificate_document(study)).holds
    study = sp.Study(of_items(1))
    table = scores_of(GOOD, rng)
    found = study.run(lambda ids, items: [table[int(one), int(item) - 1] for one, item in zip(ids, items, strict=True)])
    assert (found.verdict, GOOD[int(found.best_arm)]) == ("certified", 1.0)
    said = " ".join(found.certificate.assumptions)
    assert "were drawn at random (seed 1" in said
    assert "the order of the test items" in said
    assert sp.verify_certificate(certificate_document(study)).holds


def test_results_are_judged_as_they_come():
    policy, rng = policy_of(40, 0.2, 1), np.random.default_rng(3)
    study, means = sp.Study(policy, judge="as they come"), np.linspace(0.0, 2.0, 40)
    while not study.stopped:
        ids = rng.permutation(study.ask().pulls()).tolist()  # which come first has nothing to do with who they are
        some = ids[: max(len(ids) // 2, 1)]
        study.tell(some, means[[int(one) for one in some]] + 0.5 * rng.standard_normal(len(some)))
        if len(some) < len(ids):
            study.interim()
    answer = study.certificate()
    assert answer.verdict == "certified"
    assert means[int(answer.best_arm)] >= np.sort(means)[-8] - 0.5
    assert sp.verify_certificate(certificate_document(study)).holds


def scores_of(good, rng):
    """A table of right and wrong answers to 60 items: of .8 of them, or of .2."""
    return np.array([rng.permutation(np.arange(60) < (48 if one else 12)) for one in good]).astype(float)


def of_items(seed, **more):
    asked = {"epsilon": 0.3, "delta": DELTA, "noise": "bernoulli", "items": 60, "seed": seed}
    arms = sp.Arms(ids=range(12))
    return sp.make_policy("certified-items", arms, **asked, **ONE_IN_FOUR, sample_seed=seed, **more)


@counted(DELTA)
def wrong_of_items(runs, *, sample=None):
    for seed in range(runs):
        policy, table = of_items(seed), scores_of(GOOD, np.random.default_rng(seed))
        if sample is not None:
            inner = sp.make_policy(
                "certified-items",
                sp.Arms(ids=sample),
                epsilon=0.3,
                delta=DELTA / 2,
                noise="bernoulli",
                items=60,
                seed=seed,
            )
            policy = type(policy)(policy.problem, inner, np.array(sample))
        state = policy.init()
        while not stopped(policy, state):
            plan = policy.ask(state)
            arms, items = np.repeat(np.arange(12), plan.counts), policy.traits.items.order[plan.places]
            scores = table[arms, items]
            totals = plan.counts, np.bincount(arms, scores, minlength=12), np.bincount(arms, scores**2, minlength=12)
            state = policy.tell(state, plan, Observations(*totals, answers=Answers(arms, items, scores))).state
        yield bool(GOOD[policy.claim(state).leader] < 0.5)


@few_and_all("runs", trials_to_notice(DELTA, 0.9), STUDIES)
def test_of_items_the_answer_is_right(runs):
    assert wrong_of_items(runs) <= failures_allowed(runs, DELTA)


def test_a_sample_without_the_good_is_noticed_of_items_too():
    assert wrong_of_items(10, sample=list(range(4, 12))) > failures_allowed(10, DELTA)


@pytest.mark.slow
def test_the_price_does_not_grow_with_the_list():
    """Of samples of equal size; the best 5 of 100 are better by a standard deviation; 300 lists of each length."""
    prices = []
    for num_arms in (10**3, 10**4, 10**5):
        totals = []
        for seed in range(300):
            means = np.zeros(num_arms)
            means[np.random.default_rng(seed).permutation(num_arms)[: num_arms // 20]] = 0.5
            totals.append(played(policy_of(num_arms, 0.05, seed, delta=0.05, epsilon=0.4), means, seed).pulls)
        prices.append(np.median(totals))
    print(f"median pulls of 1,000, 10,000 and 100,000 candidates: {prices}")
    assert max(prices) <= 1.15 * min(prices)


def test_a_share_of_a_list_is_not_rounded_up_by_floating_point():
    assert 0.07 * 100 > 7.0
    assert [OneOf(0.07, 0).best_of(number) for number in (1, 100, 101, 1000)] == [1, 7, 8, 70]
