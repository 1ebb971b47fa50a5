"""The answer of a report in words: what is proved, what is a guess, and what is missing."""

import re

import pytest
from report_pages import NO_FORECAST, NO_LOG, POLICIES, finished, made_up, page_of, rendered
from together import of_each

from surepick.reports.study.facts import History, history_of


def test_a_certified_answer_says_what_is_promised(certified, tmp_path):
    page = page_of(certified, tmp_path, name="paint")
    answer = certified.certificate()
    assert page.texts["h1"] == ["paint"]
    assert f"Recommended: {answer.best_arm}" in page.words
    assert "Its true mean is within 0.5 of the largest mean of all" in page.words
    assert "Of many such studies at most 5\xa0% name a wrong answer, in the long run (delta = 0.05)" in page.words
    assert f"{answer.pulls:,} measurements of 5 candidates" in page.words
    assert "What is missing" not in page.words


def test_small_rewards_are_said_to_be_good(tmp_path):
    assert "the smallest mean of all" in page_of(finished(minimize=True), tmp_path).words


def test_an_answer_that_is_no_theorem_says_why():
    document = made_up(verdict="heuristic", reason="The pull counts rest on a guess.")
    words = rendered(document).words
    assert "a good guess, not proved" in words
    assert "This is a good guess and not a promise" in words
    assert "A proof. The measurement counts rest on a guess." in words
    assert "What is promised" not in words


ALARM = "two arms with equal features differ"


def contradicted(verdict="heuristic", **changes) -> dict:
    reason = f"The data speak against the embedding: {ALARM}. No other candidate can be better by more than 0.2."
    document = made_up(verdict=verdict, reason=reason, **changes)
    document["rounds"][0]["alarms"] = [ALARM]
    return document


FLAT = re.compile(r"(?<!rule, )ruled out|a good guess|recommended|for the same promise|shows that this", re.I)


@pytest.mark.parametrize("verdict", ["heuristic", "not-yet"])
def test_an_answer_that_the_results_contradict_is_not_to_be_relied_on(verdict):
    words = rendered(contradicted(verdict), expected=NO_FORECAST).words
    assert "the results contradict an assumption; do not rely on this" in words
    assert "By the rule of the algorithm, which the results contradict, no other candidate can be better" in words
    assert FLAT.findall(words) == []
    assert words.count("two candidates with equal features differ") == 1


def test_a_proof_may_say_it_flatly():
    """So that the test above can fail."""
    assert FLAT.findall(rendered(made_up()).words)


def test_a_guess_is_said_to_be_one_everywhere():
    reason = "A rule of thumb. No other candidate can be better by more than 0.2."
    document = made_up(verdict="heuristic", reason=reason)
    document["rounds"][0]["looks"][0]["certified_gap"] = 0.2
    words = rendered(document).words
    assert (
        "By the rule of the algorithm, which is not proved, no other candidate can be better by more than 0.2" in words
    )
    assert "ruled out" not in words.replace("hardest to rule out", "")
    assert "A proof. A rule of thumb." in words


def test_a_network_is_said_to_have_been_used():
    words = rendered(made_up(verdict="heuristic", algorithm="certified-neural")).words
    assert "we used a network's predictions, and nobody can prove how wrong they are." in words


def test_a_candidate_that_was_never_measured_is_said_so_and_shown():
    document = made_up(400)
    found = document["candidates"]
    found["pulls"][0], found["means"][0] = 0, None
    page = rendered(document)
    assert "0 itself was never measured; what we say of it comes from similar candidates" in page.words
    document["traits"] = {"uses_features": False, "certifies": "candidate"}
    assert "similar candidates" not in rendered(document).words


@of_each(
    ("policy", "gap", "proved"),
    [
        ({"noise": "bernoulli"}, 0.99, True),
        ({"noise": "bernoulli"}, 1.0, False),
        ({"noise": "bounded:-1.0:4.0"}, 4.9, True),
        ({"noise": "bounded:-1.0:4.0"}, 5.0, False),
        ({"noise": "subgaussian:1.0"}, 99.0, True),
        ({"noise": "subgaussian:1.0", "gap_bound": 2.0}, 2.0, False),
    ],
)
def test_a_bound_that_held_anyway_proves_nothing(policy, gap, proved):
    promise = f"Not certified to within 0.2: so far its mean is proved to be within {gap:.4g} of the largest of all."
    document = made_up(
        verdict="not-yet", certified_gap=gap, promise=promise, policy={"name": "certified-linear"} | policy
    )
    document["rounds"][0]["looks"][0]["certified_gap"] = gap
    document["intervals"]["widths"][1] = gap + 0.1  # less its lead
    words = rendered(document).words
    assert ("Nothing is proved yet." in words) != proved
    assert ("nothing proved" in words) != proved
    assert (f"to be within {gap:.4g} of" in words) == proved
    assert ("We have proved nothing yet of 1 candidate" in words) != proved


def test_the_average_is_no_promise_and_the_end_has_a_date():
    page = rendered(made_up())
    assert "0.5 in 2 measurements; not part of the promise." in page.words
    assert "When it ended" in page.words
    assert "1970-01-01\xa000:00\xa0UTC" in page.words
    assert "How recent it is" in rendered(made_up(verdict="not-yet")).words


def test_bars_that_compare_with_another_than_the_star_say_why():
    document = made_up(5, verdict="not-yet")
    document["candidates"]["fates"][:2] = ["possible", "recommended"]
    document["best_arm"] = "1"
    words = rendered(document).words
    assert "The star, 1, has the best estimate by now, but 0 was the one under test" in words
    assert "can be better than 0 by (unit of the rewards)" in words
    assert "The star has no bar of its own; nor has 0" in words
    for name, value in (("leads", 0.1), ("widths", 0.2), ("margins", 0.1), ("allowed", 0.2), ("witnesses", 3)):
        document["intervals"][name][0] = value
    assert "that of 0 compares it with 3, which was under test before." in rendered(document).words
    assert "The star" not in rendered(made_up(5)).words


def test_one_word_for_steps_that_are_one_batch_each():
    document = made_up()
    assert not re.search(r"\brounds?\b", rendered(document).words)
    look = document["rounds"][0]["looks"][0]
    document["rounds"][0]["looks"] = [look | {"look": 1, "looks": 2}, look | {"plan": 2, "look": 2, "looks": 2}]
    assert "1, part 2 of 2" in rendered(document).words
    assert "in 1 round (2 batches" in rendered(document).words


def test_only_a_database_is_said_to_have_written_plans_down(certified):
    assert not history_of(certified.log, 1).durable
    kept = History(NO_LOG.kept, (), (), durable=False)
    assert "What to measure was decided before it was measured" in rendered(made_up(), history=kept).words
    assert "written down" not in rendered(made_up(), history=kept).words
    assert "What to measure was written down before it was measured" in rendered(made_up()).words


def test_an_unfinished_study_says_what_is_missing(tmp_path):
    study = finished(most_plans=1, largest_batch=5)  # one result of each
    words = page_of(study, tmp_path).words
    assert "not certified yet" in words
    assert "5 candidates of 5 are still possible; more measurements are needed" in words
    study.close("no money left")
    words = page_of(study, tmp_path).words
    assert "closed early, not certified" in words
    assert "The study was closed early, on 2025-06-15\xa015:06\xa0UTC (no money left)." in words
    assert re.search(r"Its next batch would have taken [\d,]+ more measurements; about [\d,]+ were predicted", words)
    assert "We do not use results of a batch that was not complete" in words


def test_what_is_proved_so_far_is_said():
    words = rendered(made_up(verdict="not-yet", certified_gap=0.7)).words
    assert "It is at most 0.7 worse than the best candidate." in words


def test_candidates_that_are_ruled_out_as_the_best_are_counted():
    traits = {"uses_features": True, "certifies": "candidate", "eliminates": True}
    document = made_up(verdict="not-yet", certified_gap=0.7, traits=traits)
    document["rounds"][0]["active"] = 3
    words = rendered(document).words
    assert (
        "worse than the best candidate. 1 of 4 candidates is ruled out as the best, whichever is recommended" in words
    )
    document["certified_gap"] = None
    assert "Nothing is proved yet about 0. 1 of 4 candidates is ruled out as the best" in rendered(document).words
    document["rounds"][0]["active"] = 4
    assert "Nothing is proved yet." in rendered(document).words
    assert "as the best, whichever" not in rendered(document).words
    document["rounds"][0] |= {"active": 2, "alarms": ["the norm is larger"]}
    assert "as the best, whichever" not in rendered(document).words


def test_a_spent_budget_is_said():
    assert "A larger budget" in rendered(made_up(verdict="budget-exhausted")).words


def test_before_the_first_round_nothing_is_named(tmp_path):
    study = finished(most_plans=0)
    study.ask()
    words = page_of(study, tmp_path).words
    assert "No candidate can be named yet" in words
    assert "Recommended" not in words
    assert "No batch is complete yet" in words
    assert "★" not in "".join(page_of(study, tmp_path).texts["td"])


def test_a_leader_of_whom_nothing_is_proved_is_not_called_recommended(tmp_path):
    page = page_of(finished(most_plans=1, largest_batch=5), tmp_path)
    assert any(header.startswith("★") and header.endswith(", best so far") for header in page.texts["th"])
    assert "recommended" not in page.words


@pytest.mark.parametrize("name", ["certified-linear", "linear-embedding", "sequential-halving"])
def test_the_words_are_plain(tmp_path, name):
    options = POLICIES.get(name, {"budget": 200})
    words = page_of(finished(name, 8, **options), tmp_path, forecast_up_to=10).words
    assert re.findall(r"\b(arms?|pulls?|bandits?)\b", words, re.I) == []
