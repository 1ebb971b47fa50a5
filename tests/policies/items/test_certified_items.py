"""The choice on a finite set of test items: plans, answers, ends, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
from item_studies import answered, certified_items, item_table, play
from together import of_each

import surepick as sp
from surepick.core.observations import Answers, Observations
from surepick.core.records import from_json, to_json
from surepick.environments import recorded_answers
from surepick.items import ItemOrder, Items
from surepick.policies.items import ItemsState

SCORES = item_table(6, 120, seed=4)


def test_the_first_plan_asks_everybody_for_the_first_items_of_the_order():
    policy = certified_items(SCORES, seed=3)
    plan = policy.ask(policy.init())
    assert plan.counts.tolist() == [2] * 6
    assert plan.first_items.tolist() == [0] * 6
    assert plan.places.tolist() == [0, 1] * 6
    assert sorted(policy.order.order) == list(range(120))
    assert policy.ask(policy.init()) == plan


def test_every_arm_answers_the_same_items_until_it_is_out_and_batches_grow():
    turns = play(certified_items(SCORES), SCORES)
    sizes = [int(turn.plan.counts.max()) for turn in turns]
    assert sizes == sorted(sizes)
    assert sizes[-1] > 2
    drawn = np.cumsum([0, *sizes])
    for turn, start in zip(turns, drawn, strict=False):
        asked = np.flatnonzero(turn.plan.counts)
        assert set(turn.plan.counts[asked]) == {turn.plan.counts.max()}
        assert set(turn.plan.first_items[asked]) == {start}
        assert set(asked) == set(turn.state.open)
    assert len(turns[-1].state.open) < 6
    assert all(set(turn.after.active) <= set(turn.state.active) for turn in turns)


def test_it_ends_with_a_certified_answer_and_says_what_it_rests_on():
    policy = certified_items(SCORES, seed=5)
    state = play(policy, SCORES)[-1].after
    answer = sp.Study(sp.Arms(ids=[*"abcdef"]), policy).policy.claim(state)
    means = SCORES.mean(axis=1)
    assert answer.finished == "certified"
    assert answer.gap <= 0.1
    assert means.max() - means[answer.leader] <= answer.gap + 1e-9
    assert state.pulls < SCORES.size / 2


def test_the_certificate_names_the_set_and_the_seed_and_no_independent_draws():
    environment = recorded_answers(SCORES)
    run = sp.simulate(certified_items(SCORES, seed=5), environment)
    assert run.verdict == "certified"
    assert run.success
    text = " ".join(run.certificate.assumptions)
    assert Items(120).digest[:16] in text
    assert "(seed 5)" in text
    assert "independent draw" not in text


def test_a_simulation_goes_as_the_policy_alone():
    run = sp.simulate(certified_items(SCORES, seed=7), recorded_answers(SCORES))
    turns = play(certified_items(SCORES, seed=7), SCORES)
    assert run.pulls == turns[-1].after.pulls
    assert run.arm == turns[-1].after.leader
    assert len(run.rounds) == len(turns)


def test_all_items_used_are_the_exact_answer_also_where_arms_were_out():
    scores = item_table(4, 30, seed=1)
    scores[1] = scores[0]
    scores[1, 3] = 1.0 - scores[1, 3]  # differs in one item
    for seed in range(3):
        policy = certified_items(scores, seed=seed, epsilon=1e-6, delta=1e-9)
        turns = play(policy, scores)
        claim = policy.claim(turns[-1].after)
        assert claim.finished == "certified"
        assert claim.leader == np.argmax(scores.mean(axis=1))
        assert claim.gap == 0.0
        assert turns[-1].after.pulls < scores.size


def test_equal_arms_end_before_the_set_does():
    scores = np.tile(item_table(1, 200, seed=2), (3, 1))
    turns = play(certified_items(scores), scores)
    assert turns[-1].after.finished == "certified"
    assert turns[-1].after.drawn < 200


def test_one_arm_needs_no_answer():
    policy = certified_items(SCORES[:1])
    assert policy.claim(policy.init()).finished == "single"


def test_a_state_comes_back_from_json_and_goes_on_the_same():
    policy, fresh = certified_items(SCORES), certified_items(SCORES)
    turns = play(policy, SCORES)
    for turn in (turns[2], turns[-1]):
        stored = from_json(ItemsState, to_json(turn.state, sparse=True))
        assert stored == turn.state
        assert fresh.ask(stored) == turn.plan
        again = fresh.tell(stored, turn.plan, turn.seen)
        assert again.state == turn.after
        assert again.record == turn.step.record


def test_missing_answers_count_as_the_worst_and_are_asked_for_at_the_end():
    scores = item_table(3, 24, seed=9)
    scores[1] = scores[0]
    scores[1, 5] = 1.0 - scores[0, 5]  # differs in one item
    policy = certified_items(scores, epsilon=0.01, delta=1e-6)
    state, lost = policy.init(), 0
    while not state.finished:
        plan = policy.ask(state)
        seen = answered(policy, plan, scores)
        if state.drawn < 12 and plan.counts[0]:  # the first answer of each arm of the batch is lost
            keep = np.concatenate([[False], np.diff(seen.answers.arms) == 0])
            lost += int((~keep).sum())
            kept = Answers(*(each[keep] for each in (seen.answers.arms, seen.answers.items, seen.answers.scores)))
            seen = Observations(np.bincount(kept.arms, minlength=3), np.zeros(3), None, kept)
        state = policy.tell(state, plan, seen).state
    assert lost > 3
    assert len(state.late.at) > 0
    assert state.leader == np.argmax(scores.mean(axis=1))


def test_the_order_depends_on_the_seed_and_on_the_set():
    order = ItemOrder(Items(50), 3).order
    assert np.array_equal(order, ItemOrder(Items(50), 3).order)
    assert not np.array_equal(order, ItemOrder(Items(50), 4).order)
    assert not np.array_equal(order, ItemOrder(Items([f"q{row}" for row in range(50)]), 3).order)
    assert np.array_equal(ItemOrder(Items(50), 3).places[order], np.arange(50))
    assert Items(Items(["b", "a"]).spec) == Items(["b", "a"])
    assert Items(Items(7).spec) == Items(7)


@of_each(
    ("make", "says"),
    [
        (lambda: Items(0), "items"),
        (lambda: Items([]), "no item"),
        (lambda: Items(["a", "b", "a"]), "'a'"),
        (lambda: Items(["a", ""]), "empty"),
        (lambda: certified_items(SCORES, seed=-1), "seed"),
        (lambda: certified_items(SCORES, growth=-1.0), "growth"),
        (lambda: certified_items(SCORES, first_batch=0), "first_batch"),
        (lambda: certified_items(SCORES, noise=sp.SubGaussian(0.5)), "between 0 and 1"),
        (lambda: certified_items(SCORES, noise=sp.Bounded(0, 100)), "divide"),
        (lambda: recorded_answers([[0.2, 1.2]]), "between 0 and 1"),
        (lambda: recorded_answers([0.2, 1.2]), "shape"),
        (lambda: recorded_answers("no"), "numbers"),
    ],
)
def test_settings_without_a_meaning_are_refused(make, says):
    with pytest.raises(sp.InvalidInput, match=says):
        make()


def test_it_is_made_by_name_and_its_spec_makes_it_again():
    arms = sp.Arms(ids=list("abcdef"))
    asked = {"epsilon": 0.1, "delta": 0.05, "noise": "bernoulli"}
    policy = sp.make_policy("certified-items", arms, **asked, items=["q3", "q1", "q2"], seed=8, growth=0.5)
    assert policy.spec["items"] == ["q3", "q1", "q2"]
    assert policy.spec["seed"] == 8
    assert sp.make_policy(arms=arms, **json.loads(to_json(policy.spec))) == policy
    assert sp.make_policy("certified-items", arms, **asked, items=sp.Items(9)).spec["items"] == 9
    with pytest.raises(sp.InvalidInput, match="needs items"):
        sp.make_policy("certified-items", arms, **asked)
    assert (policy.spec["seed_by"], policy.order.by) == ("user", "user")
    with pytest.raises(sp.InvalidInput, match="simulate"):
        sp.forecast(policy)
    assert sp.Study(policy).registration is not None


def test_an_order_that_is_not_given_is_drawn_once_and_kept():
    arms = sp.Arms(ids=list("abcdef"))
    asked = {"epsilon": 0.1, "delta": 0.05, "noise": "bernoulli", "items": 50}
    policy = sp.make_policy("certified-items", arms, **asked)
    assert policy.spec["seed_by"] == "program"
    assert policy.seed == policy.spec["seed"] == policy.order.seed
    again = sp.make_policy(arms=arms, **json.loads(to_json(policy.spec)))
    assert again == policy
    assert again.spec == policy.spec
    assert np.array_equal(again.order.order, policy.order.order)
    said = " ".join(sp.Study(policy).certificate().assumptions)
    assert f"was drawn by the program when the study was set up (seed {policy.seed})" in said
    said = " ".join(sp.Study(sp.make_policy("certified-items", arms, **asked, seed=4)).certificate().assumptions)
    assert "was given by whoever set the study up (seed 4)" in said
    for wrong in ({"seed_by": "program"}, {"seed": 4, "seed_by": "nobody"}, {"seed": 1.5}, {"seed": "four"}):
        with pytest.raises(sp.InvalidInput, match="seed"):
            sp.make_policy("certified-items", arms, **asked, **wrong)


def test_a_closed_loop_gives_the_items_to_the_measurement():
    arms = sp.Arms(ids=list("abcdef"))
    places = {f"q{row}": row for row in range(120)}

    def measure(ids: list[str], items: list[str]) -> np.ndarray:
        return SCORES[["abcdef".index(name) for name in ids], [places[item] for item in items]]

    pulls = []
    for seed in range(5):  # of the order; one order in ten takes more than half of the answers
        found = sp.find_best(
            arms, measure, epsilon=0.1, delta=0.05, noise=sp.Bernoulli(), items=list(places), seed=seed, progress=False
        )
        assert found.verdict == "certified"
        assert found.best_arm == "abcdef"[int(np.argmax(SCORES.mean(axis=1)))]
        pulls.append(found.pulls)
    assert np.median(pulls) < SCORES.size / 2


# a study


def open_study(**settings: object) -> tuple[sp.Study, sp.Batch]:
    study = sp.Study(sp.Arms(ids=list("abcdef")), certified_items(SCORES, **settings))
    return study, study.ask()


def scores_of(batch: sp.Batch) -> np.ndarray:
    return SCORES[np.repeat(np.arange(6), batch.counts), batch.items]


def test_a_batch_names_the_items_and_each_answer_counts_once():
    study, batch = open_study()
    assert batch.items.tolist() == study.policy.order.order[:2].tolist() * 6
    rewards = scores_of(batch)
    keys = [key for _, key in list(batch.keys())]
    assert len(set(keys)) == 12
    study.tell(batch.pulls()[:5], rewards[:5], keys[:5])
    left = study.ask()
    assert left.keys() == batch.keys()[5:]
    assert study.tell(batch.pulls()[:5], rewards[:5], keys[:5]).repeated == 5
    with pytest.raises(sp.InvalidInput, match="reported before"):
        study.tell(batch.pulls()[:1], [1.0 - rewards[0]], keys[:1])
    assert study.tell(left, rewards[5:]).closed


def test_answers_to_items_that_were_not_asked_are_refused():
    study, batch = open_study()
    other = int(study.policy.order.order[7])
    for key in (f"item{other}@a", "item999@a", "mine", None):
        with pytest.raises(sp.InvalidInput, match=r"did not ask|not answers to items"):
            study.tell(["a"], [0.0], [key])
    with pytest.raises(sp.InvalidInput, match="not answers to items"):
        study.tell_totals(batch, batch.counts, np.zeros(6))
    with pytest.raises(sp.InvalidInput, match="report 1 - score"):
        sp.Study(sp.Arms(ids=list("abcdef")), certified_items(SCORES), minimize=True)


def test_the_closed_loop_measures_in_parts():
    study, _ = open_study()
    told: list[str] = []

    def measure(ids: list[str], items: list[str]) -> np.ndarray:
        told.extend(ids)
        return SCORES[["abcdef".index(name) for name in ids], [int(item) - 1 for item in items]]

    found = study.run(measure, at_once=4, progress=False)
    assert found.verdict == "certified"
    assert found.pulls == len(told)
    assert found.best_arm == "abcdef"[int(np.argmax(SCORES.mean(axis=1)))]


def test_an_environment_without_items_says_so():
    environment = sp.environments.falling_means(6)
    with pytest.raises(sp.InvalidInput, match="test items"):
        sp.simulate(certified_items(SCORES), environment)
