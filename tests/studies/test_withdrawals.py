"""Candidates that are withdrawn from a running study: who is measured, who is named, what the answer then rests on."""

import os
import signal

import pytest
import sqlalchemy as sa
from databases import first_on
from study_commands import surepick
from together import of_each
from withdrawn_studies import ARMS, POLICIES, SIGMA, asked_of, begun, finish, policy_of, tell_plan

import surepick as sp
from surepick import questions
from surepick.certificates.document import certificate_document
from surepick.errors import InvalidInput, OutOfTurn, StorageError
from surepick.studies.logs.base import INDEPENDENT_OF_VALUE
from surepick.studies.logs.sql import schema as tables

# --- out of stock


@of_each("kind", POLICIES)
def test_who_is_out_of_stock_is_neither_measured_nor_named(kind):
    study = sp.Study(policy_of(kind))
    tell_plan(study)
    study.ask()
    study.withdraw(["a", "e"], INDEPENDENT_OF_VALUE)
    if study.ask().number == 2:
        tell_plan(study)
    while study.ask() is not None:
        assert not {"a", "e"} & set(asked_of(study))
        assert study.recommend() not in ("a", "e")
        tell_plan(study)
    answer = study.certificate()
    assert (answer.verdict, answer.best_arm) == ("certified", "c")
    assert "of all that are left" in answer.promise
    assert str(answer).splitlines()[0] == "c   certified, for the list that was left"
    assert "✓ Certified, for the list that was left" in answer._repr_html_()
    assert any("2 candidates withdrawn between" in sentence for sentence in answer.assumptions)
    assert answer.certified_gap <= 0.2


def test_what_is_out_of_one_who_goes_is_given_up():
    study = sp.Study(policy_of())
    study.ask()
    study.withdraw(["a"], INDEPENDENT_OF_VALUE)
    assert study.missing[0] == 0
    assert study.missing[1:].all()
    tell_plan(study)
    assert "a" not in asked_of(study)


def test_a_batch_of_which_nothing_else_is_missing_is_judged():
    study = sp.Study(policy_of())
    others = [one for one in study.ask().pulls() if one != "b"]
    study.tell(others, [0.5] * len(others))
    study.withdraw(["b"], INDEPENDENT_OF_VALUE)
    assert study.progress().judged == 1
    assert study.trace[-1].withdrawn.tolist() == [1]


def test_the_last_one_is_the_answer():
    study = sp.Study(policy_of())
    tell_plan(study)
    study.withdraw(["a", "b", "c", "e"], INDEPENDENT_OF_VALUE)
    assert finish(study).best_arm == "d"
    assert study.certificate().verdict == "certified"


# --- another reason


def test_who_goes_for_another_reason_still_has_to_be_ruled_out():
    study = sp.Study(policy_of())
    while study.progress().ruled_out in (None, 0):
        tell_plan(study)
    out = set(range(5)) - set(study.trace[-1].active.tolist())
    assert out == {3}
    study.ask()
    study.withdraw(["d"], "it looks hopeless")
    answer = finish(study)
    assert (answer.verdict, answer.best_arm) == ("certified", "e")
    assert "of all;" in answer.promise
    assert "('it looks hopeless'), and compared like all others" in answer.reason
    assert not any("withdrawn" in sentence for sentence in answer.assumptions)


@of_each("kind", POLICIES)
def test_where_only_such_a_one_is_not_ruled_out_the_answer_is_heuristic(kind):
    study = sp.Study(policy_of(kind))
    tell_plan(study)
    study.ask()
    study.withdraw(["a", "e"], "nobody liked them")
    answer = finish(study)
    assert (answer.verdict, answer.best_arm) == ("heuristic", "c")
    assert "is not ruled out, and it was withdrawn for a reason that may depend on the results" in answer.reason


def test_what_is_out_of_such_a_one_is_still_wanted():
    study = sp.Study(policy_of())
    study.ask()
    study.withdraw(["a"], "ugly")
    assert study.missing[0] > 0
    tell_plan(study)
    assert "a" not in asked_of(study)


def test_the_batch_in_which_the_winner_goes_names_another():
    """Its results would have certified it."""
    study, told = sp.Study(policy_of()), sp.Study(policy_of())
    assert finish(told).best_arm == "a"
    for _ in range(told.log.last_decision().plan - 1):
        tell_plan(study)
    study.ask()
    study.withdraw(["a"], INDEPENDENT_OF_VALUE)
    assert study.progress().leader_withdrawn
    assert finish(study).best_arm == "e"


def test_who_went_is_not_named_before_the_batch_is_judged():
    study = sp.Study(policy_of())
    while study.recommend() != "a":
        tell_plan(study)
    study.ask()
    study.withdraw(["a"], "ugly")
    assert study.recommend() != "a"
    study.close("enough")
    document = certificate_document(study)
    assert document["best_arm"] != "a"
    assert [one["arm"] for one in document["ended"]["withdrawn"]] == [0]
    assert document["candidates"]["fates"][0] == "withdrawn"
    assert sp.verify_certificate(document).holds
    document["ended"]["withdrawn"] = None
    assert not sp.verify_certificate(document).holds


# --- refusals


def test_refusals():
    study = sp.Study(policy_of())
    with pytest.raises(InvalidInput, match="needs its reason"):
        study.withdraw(["a"], " ")
    with pytest.raises(InvalidInput, match="not arms of this study"):
        study.withdraw(["z"], "ugly")
    study.ask()
    study.withdraw(["a", "b"], "ugly")
    study.withdraw(["a"], INDEPENDENT_OF_VALUE)  # gone already
    with pytest.raises(InvalidInput, match="all candidates would be withdrawn"):
        study.withdraw(["c", "d", "e"], "ugly")
    done = sp.Study(policy_of())
    finish(done)
    with pytest.raises(OutOfTurn, match="the study has stopped"):
        done.withdraw(["a"], "ugly")


@of_each(
    ("name", "options"),
    [
        ("lucb", {}),
        ("certified-linear", {"norm_bound": 2.0, "evidence": "readings"}),
        ("certified-independent", {"blocks": "day"}),
        ("certified-linear", {"norm_bound": 2.0, "noise": sp.Normal()}),
        ("certified-independent", {"question": questions.AllGood()}),
    ],
)
def test_other_policies_refuse(name, options):
    asked = {"epsilon": 0.2, "delta": 0.05, "noise": sp.SubGaussian(SIGMA)} | options
    study = sp.Study(sp.make_policy(name, ARMS, **asked))
    with pytest.raises(InvalidInput, match="cannot go on without a candidate"):
        study.withdraw(["a"], "ugly")


# --- kept


@first_on("sqlite")
def test_a_study_in_a_database_is_replayed_and_its_certificate_verified(database_url, tmp_path):
    begun(database_url)
    study = sp.open_study(database_url, "paint")  # computes all decisions again
    answer = finish(study)
    assert answer.best_arm == "e"
    document = certificate_document(sp.open_study(database_url, "paint"), "paint", check=True)
    looks = [look for row in document["rounds"] for look in row["looks"]]
    assert [one["arm"] for look in looks for one in look["withdrawn"]] == [3, 0]
    assert document["candidates"]["fates"][0] == document["candidates"]["fates"][3] == "withdrawn"
    found = sp.verify_certificate(document)
    assert found.holds, str(found)
    sp.write_report(study, tmp_path / "page.html", forecast_up_to=0)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "withdrawn" in page


def test_a_certificate_that_tells_less_of_it_does_not_hold(tmp_path):
    study = sp.Study(policy_of())
    for _ in range(2):
        tell_plan(study)
    study.ask()
    study.withdraw(["a"], "ugly")
    tell_plan(study)
    finish(study)
    whole = certificate_document(study)
    look = next(look for row in whole["rounds"] for look in row["looks"] if look["withdrawn"])
    for forged in ([], [{"arm": 0, "reason": INDEPENDENT_OF_VALUE, "at": 1.0}], [{"arm": 9, "reason": "x", "at": 1.0}]):
        look["withdrawn"] = forged
        assert not sp.verify_certificate(whole).holds
    del look["withdrawn"]
    assert not sp.verify_certificate(whole).holds


def test_a_withdrawal_that_is_altered_in_the_database_is_found(sqlite_url):
    study = begun(sqlite_url)
    tell_plan(study)
    event = tables.event.c
    with study.log._engine.begin() as connection:
        told = (event.kind == "withdrawn") & (event.reason == "it looks hopeless")
        changed = connection.execute(sa.update(tables.event).where(told).values(reason=INDEPENDENT_OF_VALUE))
        assert changed.rowcount == 1
    with pytest.raises(StorageError, match="events of plan 3"):
        sp.open_study(sqlite_url, "paint")


def test_it_survives_a_kill(sqlite_url):
    child = os.fork()
    if child == 0:
        study = sp.create_study(sqlite_url, "paint", policy_of())
        tell_plan(study)
        study.ask()
        study.withdraw(["a"], INDEPENDENT_OF_VALUE)
        os.kill(os.getpid(), signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL
    study = sp.open_study(sqlite_url, "paint")
    tell_plan(study)
    assert "a" not in asked_of(study)
    assert finish(study).best_arm == "e"


def test_two_who_withdraw_at_a_time(sqlite_url):
    begun(sqlite_url)
    one, other = sp.open_study(sqlite_url, "paint"), sp.open_study(sqlite_url, "paint")
    one.withdraw(["b"], "ugly")
    with pytest.raises(InvalidInput, match="all candidates would be withdrawn"):
        other.withdraw(["c", "e"], "ugly")
    other.withdraw(["c"], INDEPENDENT_OF_VALUE)
    assert finish(one).best_arm == "e"


# --- from the command line


def test_the_command(sqlite_url):
    sp.create_study(sqlite_url, "paint", policy_of())
    code, output, notes = surepick("withdraw", sqlite_url, "paint", "--id", "a", "--reason", "nobody liked it")
    assert (code, "1 withdrawn" in output) == (0, False)  # nothing is proved yet, so that nothing is said of others
    assert "the open round still asks for" in notes
    assert sp.open_study(sqlite_url, "paint").progress().withdrawn == 1
    study = sp.open_study(sqlite_url, "paint")
    for _ in range(2):
        tell_plan(study)
    code, output, notes = surepick("withdraw", sqlite_url, "paint", "--id", "b", "--reason", INDEPENDENT_OF_VALUE)
    assert (code, notes) == (0, "")
    assert ", and 2 withdrawn" in output
    assert surepick("withdraw", sqlite_url, "paint", "--id", "b")[0] == 2
    finish(study)
    code, output, _ = surepick("certificate", sqlite_url, "paint")
    assert "1 candidate withdrawn ('nobody liked it')" in " ".join(output.split())
