"""Candidates that come while a study runs: who is measured, what they have to be ruled out by, who may come at all."""

import math
import os
import signal

import numpy as np
import pytest
from databases import first_on
from study_commands import surepick
from together import of_each
from withdrawn_studies import ARMS, LATER, POLICIES, asked_of, finish, grown, policy_of, tell_plan

import surepick as sp
from surepick.certificates.document import certificate_document
from surepick.errors import InvalidInput, OutOfTurn
from surepick.reports.study.page import report_document
from surepick.studies.logs.base import INDEPENDENT_OF_VALUE
from surepick.studies.registration import registration_code


@of_each("kind", sorted(POLICIES.keys() - {"normal"}))
def test_who_is_not_there_yet_is_neither_measured_nor_named(kind):
    study = sp.Study(policy_of(kind, later=LATER))
    while study.ask() is not None:
        assert not {"a", "e"} & set(asked_of(study))
        assert study.recommend() not in LATER
        tell_plan(study)
    answer = study.certificate()
    assert (answer.verdict, answer.best_arm) == ("certified", "c")
    assert "of all that are left" in answer.promise


@of_each("kind", sorted(POLICIES.keys() - {"normal"}))
def test_who_came_is_measured_and_named(kind):
    study = grown(kind=kind)
    assert study.trace[0].waiting == 1
    answer = finish(study)
    assert (answer.verdict, answer.best_arm) == ("certified", "e")
    assert "1 candidate added while the study ran" in answer.reason
    if kind != "certified-linear":  # others say enough of it
        assert study.log.measured(99)[4] > 0


def test_the_price_of_each_group():
    """delta is .05, and as much of it is set aside as may come: two of five, who come one after the other."""
    study = grown()
    study.ask()
    study.add(["a"])
    tell_plan(study)
    state = study.replay.state_of(study.log.last_decision())
    assert state.roster.cohorts.tolist() == [2, 0, 0, 0, 1]
    found = study.policy._situation.thresholds(state.roster)
    deltas = [0.05 * 0.4 / 2, *[0.05 * 0.6] * 3, 0.05 * 0.4 / 2]
    assert found == pytest.approx([-math.log(one) for one in deltas])
    assert deltas[0] + deltas[1] + deltas[4] == pytest.approx(0.05)


def test_who_comes_together_shares_no_price():
    study = grown()
    study.add(["a"])  # in the same pause as e
    tell_plan(study)
    roster = study.replay.state_of(study.log.last_decision()).roster
    prices = np.exp(-study.policy._situation.thresholds(roster)) / 0.05
    groups = {int(group): float(price) for group, price in zip(roster.cohorts, prices, strict=True)}
    assert groups[0] == pytest.approx(0.6)
    assert sum(groups.values()) == pytest.approx(1.0)


@pytest.mark.parametrize(("later", "share", "aside"), [(1, None, 0.1), (3, None, 0.3), (8, None, 0.5), (3, 0.05, 0.05)])
def test_as_much_is_set_aside_as_may_come(later, share, aside):
    """Of ten candidates: at least a tenth and at most half."""
    ids = [f"p{number}" for number in range(10)]
    policy = sp.make_policy(
        "certified-independent",
        sp.Arms(ids=ids),
        epsilon=1.0,
        delta=0.05,
        noise="bernoulli",
        later=ids[-later:],
        later_share=share,
    )
    assert policy.spec["later_share"] == aside
    assert policy._situation.thresholds(policy.init().roster)[0] == pytest.approx(-math.log(0.05 * (1.0 - aside)))


def test_studies_to_which_nobody_comes_pay_nothing():
    policy = policy_of(evidence="carried")
    assert policy._situation.thresholds(policy.init().roster) == pytest.approx(-math.log(0.05))
    assert "later" not in policy.spec


def test_one_who_comes_in_the_very_batch_that_certifies_another():
    study = sp.Study(policy_of(later=LATER))
    told = sp.Study(policy_of(later=LATER))
    finish(told)
    last = told.log.last_decision().plan
    for _ in range(last - 1):
        tell_plan(study)
    study.ask()
    study.add(["a"])
    tell_plan(study)
    assert not study.stopped
    assert finish(study).best_arm == "a"


def test_it_survives_a_kill(sqlite_url):
    child = os.fork()
    if child == 0:
        grown(sqlite_url).add(["a"])
        os.kill(os.getpid(), signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL
    study = sp.open_study(sqlite_url, "paint")
    tell_plan(study)
    assert study.trace[-1].waiting == 0
    assert finish(study).best_arm == "a"


def test_results_may_be_judged_as_they_come():
    study = sp.Study(policy_of(later=LATER), judge="as they come")
    keys = study.lease(worker="ann").keys()
    study.tell([keys[0][0]], [0.5], [keys[0][1]])
    study.add(["a"])
    study.withdraw(["b"], INDEPENDENT_OF_VALUE)
    assert study.interim()
    assert study.trace[-1].waiting == 1
    assert "b" not in asked_of(study)
    for arm, key in keys[1:]:
        study.tell([arm], [0.2], [key])  # of b too: what was sent out before it went
    answer = finish(study)
    assert (answer.verdict, answer.best_arm) == ("certified", "a")
    assert sp.verify_certificate(certificate_document(study)).holds


def test_who_came_may_go():
    study = grown()
    study.ask()
    study.withdraw(["e"], INDEPENDENT_OF_VALUE)
    assert finish(study).best_arm == "c"
    assert study.progress().withdrawn == 1


def test_status_counts_those_who_are_there():
    study = sp.Study(policy_of(later=LATER, epsilon=0.05))
    study.ask()
    assert (study.progress().candidates, study.progress().waiting) == (3, 2)
    while "ruled out" not in str(study.progress()):
        tell_plan(study)
    assert "; 2 more may come" in str(study.progress())


def test_the_code_says_who_may_come():
    codes = {
        registration_code(ARMS, policy_of(**some), study_id="x") for some in ({}, {"later": LATER}, {"later": ("a",)})
    }
    assert len(codes) == 3


def test_refusals():
    study = sp.Study(policy_of())
    with pytest.raises(InvalidInput, match="was not told that candidates may come"):
        study.add(["a"])
    study = grown()
    with pytest.raises(InvalidInput, match="'e' is there already"):
        study.add(["e"])
    with pytest.raises(InvalidInput, match="'b' is there already, or was not declared"):
        study.add(["b"])
    study.ask()
    with pytest.raises(InvalidInput, match="'a' is not there yet, so that it cannot go"):
        study.withdraw(["a"], "ugly")
    with pytest.raises(InvalidInput, match="all candidates would be withdrawn"):
        study.withdraw(["b", "c", "d", "e"], "ugly")
    finish(study)
    with pytest.raises(OutOfTurn, match="the study has stopped"):
        study.add(["a"])


@of_each(
    ("options", "why"),
    [
        ({"later": ("z",)}, "'z' is none of them"),
        ({"later": ("a", "a")}, "each once"),
        ({"later": ARMS.ids}, "not of all"),
        ({"later": "a"}, "give a list of ids"),
        ({"later_share": 0.2}, "only with later"),
        ({"later": ("a",), "later_share": 1.0}, "strictly between 0 and 1"),
        ({"later": ("a",), "blocks": "day"}, "without blocks"),
        ({"later": ("a",), "noise": sp.Normal()}, "where the noise scale is declared"),
    ],
)
def test_settings_without_meaning_are_refused(options, why):
    with pytest.raises(InvalidInput, match=why):
        policy_of(**options)


def test_other_policies_know_nothing_of_it():
    with pytest.raises(InvalidInput, match="later"):
        sp.make_policy("lucb", ARMS, epsilon=0.2, delta=0.05, noise=sp.SubGaussian(0.3), later=LATER)


@first_on("postgresql")
def test_a_study_in_a_database_is_replayed_and_its_certificate_verified(database_url, tmp_path):
    grown(database_url)
    study = sp.open_study(database_url, "paint")
    assert finish(study).best_arm == "e"
    document = certificate_document(sp.open_study(database_url, "paint"), "paint", check=True)
    looks = [look for row in document["rounds"] for look in row["looks"]]
    assert [one["arm"] for look in looks for one in look["added"]] == [4]
    assert document["candidates"]["fates"][0] == "waiting"
    assert looks[0]["left"]["arms"] == []
    assert sp.verify_certificate(document).holds
    page = sp.write_report(study, tmp_path / "page.html", forecast_up_to=0).read_text(encoding="utf-8")
    assert "never came" in page
    assert "e was added while the study ran" in " ".join(page.split())
    look = next(look for look in looks if look["added"])
    for forged in ([], [{"arm": 1, "at": 1.0}], [{"arm": 0, "at": 1.0}]):
        look["added"] = forged
        assert not sp.verify_certificate(document).holds
    del look["added"]
    assert not sp.verify_certificate(document).holds


def test_the_commands(sqlite_url, tmp_path):
    table = tmp_path / "arms.csv"
    table.write_text("id\n" + "\n".join(ARMS.ids) + "\n")
    created = (
        "create",
        sqlite_url,
        "paint",
        "--arms",
        str(table),
        "--id",
        "id",
        "--noise",
        "subgaussian:0.3",
        "--epsilon",
        "0.2",
    )
    code, output, notes = surepick(*created, "--delta", "0.05", "--later", "a", "--later", "e")
    assert (code, "certified-independent" in output) == (0, True), notes
    assert surepick("add", sqlite_url, "paint", "--id", "e")[0] == 0
    with pytest.raises(InvalidInput, match="'b' is there already"):
        surepick("add", sqlite_url, "paint", "--id", "b")
    study = sp.open_study(sqlite_url, "paint")
    tell_plan(study)
    assert finish(study).best_arm == "e"


def test_the_report_of_a_list_that_is_not_in_the_certificate(monkeypatch):
    monkeypatch.setattr("surepick.certificates.document.INLINE", 4)
    study = grown()
    study.ask()
    study.withdraw(["b"], "ugly")
    finish(study)
    fates = report_document(study)["candidates"]["fates"]
    assert (fates[0], fates[1], fates[4]) == ("waiting", "withdrawn", "recommended")
