"""What was read takes the place of what was typed after its round was closed: all that is said then rests on it."""

import json
import warnings

import numpy as np
import pytest
import sqlalchemy as sa
from tampered_studies import rechain
from together import of_each

import surepick as sp
from surepick.certificates.document import certificate_document
from surepick.studies.audit import audit, export_results
from surepick.studies.database import migrate_studies
from surepick.studies.logs.sql.schema import SCHEMA, VERSION_TABLE
from surepick.tables.reading import read_table

MEANS = dict(zip("abcdef", [57.0, 61.0, 66.0, 70.0, 75.0, 79.0], strict=True))


def policy(name="certified-independent", noise="subgaussian:3", means=MEANS, **options):
    arms = sp.Arms([[mean / 60.0, 1.0] for mean in means.values()], ids=list(means))
    return sp.make_policy(name, arms, epsilon=5.0, delta=0.05, noise=noise, **options)


def carried():
    """Its first round has one result of each candidate, among which a slip decides what is planned."""
    return policy(evidence="carried")


@pytest.fixture(params=["memory", "sqlite_url", pytest.param("postgres_url", marks=pytest.mark.slow)])
def make(request):
    def made(asked=None, **options) -> sp.Study:
        asked = carried() if asked is None else asked
        if request.param == "memory":
            return sp.Study(asked, **options)
        return sp.create_study(request.getfixturevalue(request.param), "bread", asked, **options)

    return made


def readings(rng, ids, sign=1.0) -> list[float]:
    return [sign * (MEANS[one] + 2.0 * rng.normal()) for one in ids]


def tell_round(study, rng, slip=None, sign=1.0) -> list[float]:
    """Tell a round; the result at that place with its point elsewhere. What was read."""
    batch = study.ask()
    read = readings(rng, batch.pulls(), sign)
    typed = [10.0 * one if place == slip else one for place, one in enumerate(read)]
    keys = None if batch.blocks else [f"r{batch.number}.{place}" for place in range(len(read))]
    study.tell(batch, typed, keys, accept_unusual=True)
    return read


def finish(study, rng, **given) -> sp.Certificate:
    while study.ask() is not None:
        tell_round(study, rng, **given)
    return study.certificate()


def checked(study) -> dict:
    """The certificate, which others can compute; where the log can be audited, it was."""
    if hasattr(study.log, "_engine"):
        audit(study, "bread")
    document = certificate_document(study, "bread")
    found = sp.verify_certificate(json.loads(json.dumps(document)))
    assert found.holds, str(found)
    return document


# what counts


def test_a_study_corrected_before_the_next_plan_goes_on_as_if_there_had_been_no_slip(make):
    slipped, right = make(), sp.Study(carried())
    read = tell_round(slipped, np.random.default_rng(1), slip=2)
    tell_round(right, np.random.default_rng(1))
    assert slipped.recommend() == "c"
    done = slipped.correct("r1.2", read[2], reason="wrong line")
    assert (done.id, done.typed, done.read, done.plan, done.waits) == ("c", 10.0 * read[2], read[2], 1, 0)
    assert slipped.recommend() == right.recommend() == "f"
    answers = [finish(study, np.random.default_rng(2)) for study in (slipped, right)]
    assert answers[0].pulls == answers[1].pulls
    assert answers[0].certified_gap == pytest.approx(answers[1].certified_gap, rel=1e-12)
    assert slipped.state.seen == right.state.seen
    checked(slipped)


def test_without_a_correction_the_slip_stays(make):
    """The saboteur: what the tests here see, a slip does not do by itself."""
    study = make()
    tell_round(study, np.random.default_rng(1), slip=2)
    assert study.recommend() == "c"


def test_what_was_planned_stays_planned_and_counts_with_what_was_read(make):
    study, rng = make(), np.random.default_rng(1)
    read = tell_round(study, rng, slip=2)
    planned = study.ask()
    assert study.correct("r1.2", read[2]).waits == 2
    assert np.array_equal(study.ask().counts, planned.counts)
    assert study.recommend() == "c"  # until the round is complete
    tell_round(study, rng)
    assert study.recommend() != "c"
    assert study.state.seen.means[2] == pytest.approx(66.0, abs=6.0)
    assert finish(study, rng).best_arm in ("e", "f")
    checked(study)


@pytest.mark.parametrize("make", ["memory", pytest.param("sqlite_url", marks=pytest.mark.slow)], indirect=True)
def test_an_answer_that_was_spoilt_is_given_again(make):
    study, rng = make(), np.random.default_rng(1)
    read = tell_round(study, rng, slip=2)
    wrong = finish(study, rng)
    assert (wrong.verdict, study.stopped) == ("heuristic", True)  # repeats of c lie far apart
    assert study.correct("r1.2", read[2]).waits == 0
    right = study.certificate()
    assert (right.verdict, right.best_arm) == ("certified", "f")
    assert right.pulls == wrong.pulls
    assert "1 result corrected after their round was closed" in " ".join(checked(study)["assumptions"])


def test_a_study_that_had_stopped_goes_on(make):
    study, rng = make(), np.random.default_rng(0)
    read = tell_round(study, rng, slip=5)
    assert finish(study, rng).pulls == 8  # the best candidate looked better still
    assert study.correct("r1.5", read[5]).waits == 0
    assert not study.stopped
    answer = finish(study, rng)
    assert (answer.verdict, answer.best_arm, answer.pulls > 8) == ("certified", "f", True)
    checked(study)


def test_a_correction_is_corrected_and_the_last_one_counts(make):
    study, rng = make(), np.random.default_rng(1)
    read = tell_round(study, rng, slip=2)
    study.correct("r1.2", 999.0)
    assert study.correct("r1.2", read[2]).typed == 999.0
    tell_round(study, rng)
    study.correct("r1.2", read[2] + 1.0)
    study.correct("r1.2", read[2])
    assert study.recommend() in ("e", "f")
    finish(study, rng)
    assert len([each for look in looks(checked(study)) for each in look.get("corrections", ())]) == 4


def looks(document) -> list[dict]:
    return [look for entry in document["rounds"] for look in entry["looks"]]


def test_the_alarm_that_a_slip_sounded_is_silent(make):
    study, rng = make(), np.random.default_rng(1)
    tell_round(study, rng)
    batch = study.ask()
    read = readings(rng, batch.pulls())
    study.tell(
        batch, [1000.0, *read[1:]], ["slip", *[f"k{place}" for place in range(1, len(read))]], accept_unusual=True
    )
    assert "speak against the declared noise" in study.certificate().reason
    assert study.certificate().verdict != "certified"
    study.correct("slip", read[0])
    assert "speak against" not in study.certificate().reason
    assert finish(study, rng).verdict == "certified"
    checked(study)


CASES = {
    "features": (policy("certified-linear", norm_bound=90.0), {}),
    "an embedding that is read": (policy("certified-linear", norm_bound=90.0, evidence="readings"), {}),
    "unknown noise": (policy(noise="normal"), {}),
    "a range": (policy(noise="bounded:0:1000"), {}),
    "few batches": (policy(max_batches=3, evidence="carried"), {}),
    "small batches": (policy(batch_size=8, evidence="carried"), {}),
    "top": (policy(question="top", m=2), {}),
    "above": (policy(question="above", threshold=68.0), {}),
    "all good": (policy(question="all-good"), {}),
    "unknown noise, above": (policy(noise="normal", question="above", threshold=68.0), {}),
    "small is good": (carried(), {"minimize": True}),
    "blocks": (policy(blocks="day", block_size=6), {}),
    "streams": (policy(noise="normal", streams="seed"), {}),
    "as they come": (carried(), {"judge": "as they come"}),
}


SELDOM = {"a range", "few batches", "small batches", "top", "unknown noise, above"}  # they go with others


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=[pytest.mark.slow] if case in SELDOM else []) for case in CASES]
)
def test_every_kind_of_evidence_is_computed_again(case, sqlite_url):
    """Slips in the first two rounds, corrected while the third is open; then the study goes on to its answer."""
    asked, options = CASES[case]
    study, rng, sign = sp.create_study(sqlite_url, "bread", asked, **options), np.random.default_rng(3), 1.0
    if options.get("minimize"):
        sign = -1.0
    made = []
    for number in (1, 2):
        batch = study.ask()
        read = readings(rng, batch.pulls(), sign)
        keys = [f"r{number}.{place}" for place in range(len(read))]
        study.tell(batch, [9.0 * read[0], *read[1:]], keys, accept_unusual=True)
        made.append((keys[0], read[0]))
    if study.ask() is None:
        study.correct(*made[0])
    study.ask()
    for key, read in made:
        if not any(one.read == read for one in study.log.corrections()):
            study.correct(key, read)
    answer = finish(study, rng, sign=sign)
    assert answer.verdict in ("certified", "budget-exhausted")
    seen = study.replay.seen_up_to(study.replay.settle().decision.plan)
    assert np.all((np.abs(np.abs(seen.means) - list(MEANS.values())) < 6.0) | (seen.counts == 0))
    document = checked(study)
    assert sum(len(look.get("corrections", ())) for look in looks(document)) == 2
    assert " 2 results corrected" in f" {' '.join(document['assumptions'])}"


def test_answers_to_test_items_are_corrected(sqlite_url):
    scores = {"a": 0.2, "b": 0.5, "c": 0.9}
    asked = sp.make_policy(
        "certified-items", sp.Arms(ids=list(scores)), epsilon=0.1, delta=0.1, noise="bernoulli", items=60, seed=3
    )
    study, rng = sp.create_study(sqlite_url, "exam", asked), np.random.default_rng(0)
    read: dict[str, float] = {}
    number = 0
    while (batch := study.ask()) is not None and number < 6:
        answers = [float(rng.random() < scores[one]) for one in batch.pulls()]
        study.tell(batch, answers)
        read |= {key: answer for (_, key), answer in zip(batch.keys(), answers, strict=True)}
        number += 1
    key = next(iter(read))
    study.correct(key, 1.0 - read[key])
    while (batch := study.ask()) is not None:
        study.tell(batch, [float(rng.random() < scores[one]) for one in batch.pulls()])
    assert study.certificate().best_arm == "c"
    audit(study, "exam")
    assert sp.verify_certificate(certificate_document(study)).holds


def test_candidates_withdrawn_and_measurements_given_up_go_together_with_corrections(make):
    study, rng = make(), np.random.default_rng(1)
    read = tell_round(study, rng, slip=2)
    study.ask()
    study.withdraw(["a"], "independent-of-value")
    study.correct("r1.2", read[2])
    study.abandon("independent-of-value")
    assert study.recommend() in ("e", "f")
    assert finish(study, rng).best_arm in ("e", "f")
    checked(study)


def test_money_is_counted_without_the_plan_that_asked_for_nothing(make):
    arms = sp.Arms(ids=list(MEANS), costs=[2.0] * 6)
    asked = sp.make_policy(
        "certified-independent",
        arms,
        epsilon=5.0,
        delta=0.05,
        noise="subgaussian:3",
        evidence="carried",
        batch_cost=100.0,
    )
    study, rng = make(asked), np.random.default_rng(1)
    read = tell_round(study, rng, slip=2)
    spent = study.progress().cost
    study.correct("r1.2", read[2])
    assert study.progress().cost == spent == study.certificate().cost
    assert "round 2 is about to be planned" in str(study.progress())


# what others see


def test_export_report_and_verification_show_both_values(make, tmp_path):
    study, rng = make(), np.random.default_rng(1)
    read = tell_round(study, rng, slip=2)
    study.correct("c", read[2], reason="wrong line", typed=10.0 * read[2])
    finish(study, rng)
    export_results(study, tmp_path / "results.csv")
    table = read_table(tmp_path / "results.csv")
    rows = list(zip(table.text("status"), table.text("key"), table.numbers("sum"), strict=True))
    typed = rows.index(("corrected", "r1.2", pytest.approx(10.0 * read[2])))
    assert rows[typed + 1] == ("counted", "r1.2", pytest.approx(read[2]))
    sp.write_report(study, tmp_path / "report.html", forecast_up_to=0)
    page = (tmp_path / "report.html").read_text()
    assert f"{10.0 * read[2]:.9g} was typed and {read[2]:.9g} read (wrong line)" in page
    found = str(sp.verify_certificate(certificate_document(study)))
    assert f"1 result, by what was read: {10.0 * read[2]:.12g} of 'c' in plan 1 became {read[2]:.12g}" in found


@of_each(
    "alter",
    [
        lambda look: look["corrections"][0].update(read=65.0),
        lambda look: look["corrections"][0].update(arm=1),
        lambda look: look["corrections"][0].update(plan=2),
        lambda look: look["corrections"][0].update(typed="790"),
        lambda look: look["retold"][0]["told"]["sums"].__setitem__(1, 99.0),
        lambda look: look["retold"][0]["told"]["pulls"].__setitem__(2, 2),
        lambda look: look.update(retold=[]),
        lambda look: look.update(corrections=[]),
        lambda look: look.pop("corrections"),
    ],
)
def test_a_certificate_with_altered_corrections_does_not_hold(alter):
    study, rng = sp.Study(carried()), np.random.default_rng(1)
    read = tell_round(study, rng, slip=2)
    study.correct("r1.2", read[2])
    finish(study, rng)
    document = json.loads(json.dumps(certificate_document(study)))
    alter(next(look for look in looks(document) if "corrections" in look))
    assert not sp.verify_certificate(document).holds


def test_a_row_of_a_correction_that_was_altered_is_noticed(sqlite_url):
    study, rng = sp.create_study(sqlite_url, "bread", carried()), np.random.default_rng(1)
    read = tell_round(study, rng, slip=2)
    study.correct("r1.2", read[2])
    tell_round(study, rng)
    engine = sa.create_engine(sqlite_url)
    with engine.begin() as connection:
        connection.execute(sa.text('UPDATE correction SET "read" = 65.0'))
    with pytest.raises(sp.StorageError, match="one of the corrections of plan 2 is not what was stored"):
        audit(study, "bread")
    study.log._engine.dispose()
    rechain(sqlite_url.removeprefix("sqlite:///"))
    with pytest.raises(sp.StorageError, match="decision 2 does not follow from the reported results"):
        audit(sp.open_study(sqlite_url, "bread"), "bread")


# what is refused


def test_only_what_is_meant_and_ones_own_is_corrected(make):
    study, rng = make(), np.random.default_rng(1)
    with pytest.raises(sp.InvalidInput, match=r"no result has the key, or is of the candidate, 'r1\.2'"):
        study.correct("r1.2", 66.0)
    read = tell_round(study, rng)
    tell_round(study, rng)
    batch = study.ask()
    study.tell(batch.pulls()[:1], [MEANS[batch.pulls()[0]]], ["open"], worker="ann")
    for given, kind, said in (
        (("nothing", 1.0), sp.InvalidInput, "no result has the key, or is of the candidate, 'nothing'"),
        (("f", 66.0), sp.InvalidInput, r"results are of 'f': say which, by its key, or by what was typed"),
        (("r1.2", read[2]), sp.InvalidInput, r"is .* already"),
        (("r1.2", np.nan), sp.InvalidInput, "not finite"),
        (("open", 66.0), sp.InvalidInput, "no result has the key"),  # of the open round, of somebody else
    ):
        with pytest.raises(kind, match=said):
            study.correct(*given)
    with pytest.raises(sp.OutOfTurn, match="is open: take it back"):
        study.correct("open", 66.0, worker="ann")
    with pytest.raises(sp.InvalidInput, match="not reported under this name"):
        study.correct("r1.2", 66.0, worker="ann")
    assert study.log.corrections() == []


@pytest.mark.parametrize("options", [{}, {"blocks": "day", "block_size": 6}])
def test_equal_results_of_a_round_are_alike_but_not_in_blocks(options):
    study = sp.Study(policy(**options))
    batch = study.ask()
    ids = [*batch.pulls(), "c"]
    blocks = None if not options else [*batch.blocks, "another day"]
    study.tell(ids, [66.0 if one == "c" else MEANS[one] for one in ids], blocks=blocks)
    if options:
        with pytest.raises(sp.InvalidInput, match="results are of 'c': say which"):
            study.correct("c", 65.0, typed=66.0)
    else:
        assert study.correct("c", 65.0, typed=66.0).typed == 66.0


def test_totals_late_and_prior_results_are_refused(make):
    study, rng = make(), np.random.default_rng(1)
    study.ask()
    study.tell_totals(["a"], [2], [114.0], [6498.0], ["sum"])
    study.tell_prior(["b"], [61.0], ["before"])
    ids = [one for one, number in zip(study.ids, study.missing.tolist(), strict=True) for _ in range(number)]
    study.tell(ids, readings(rng, ids))
    study.ask()
    study.tell(["b"], [61.5], ["late"], plan=1)
    with pytest.raises(sp.InvalidInput, match="adds up 2 measurements"):
        study.correct("sum", 60.0)
    for key in ("late", "before"):
        with pytest.raises(sp.OutOfTurn, match="kept apart and enters nothing"):
            study.correct(key, 60.0)


def test_a_study_that_was_closed_stays_as_it_is_and_none_is_closed_over_a_correction(make):
    study, rng = make(), np.random.default_rng(1)
    read = tell_round(study, rng, slip=2)
    study.ask()
    study.correct("r1.2", read[2])
    with pytest.raises(sp.OutOfTurn, match="a correction waits for the open round"):
        study.close("enough")
    study.abandon("independent-of-value")
    study.close("enough")
    with pytest.raises(sp.OutOfTurn, match="the study was closed on"):
        study.correct("r1.1", 66.0)
    assert checked(study)["best_arm"] in ("e", "f")


@pytest.mark.parametrize("name", ["action-elimination", "linear-embedding", "rage"])
def test_policies_that_cannot_judge_it_say_so(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        study = sp.Study(policy(name, **({"norm_bound": 90.0} if name == "linear-embedding" else {})))
    batch = study.ask()
    if name in ("action-elimination", "rage"):
        study.tell(batch, [MEANS[one] for one in batch.pulls()], [f"k{place}" for place in range(batch.total)])
    with pytest.raises(sp.InvalidInput, match="cannot judge corrected results"):
        study.correct("k1", 66.0)


# a database of the schema before


def test_a_database_of_the_first_schema_is_migrated(sqlite_url):
    study, rng = sp.create_study(sqlite_url, "bread", carried()), np.random.default_rng(1)
    read = tell_round(study, rng, slip=2)
    study.ask()
    study.log._engine.dispose()
    engine = sa.create_engine(sqlite_url)
    with engine.begin() as connection:  # as that version wrote it
        for table in ("correction", "description"):
            connection.execute(sa.text(f"DROP TABLE {table}"))
        connection.execute(sa.text(f"UPDATE {VERSION_TABLE} SET version_num = '1'"))
        for plan, text in connection.execute(sa.text("SELECT plan, deviations FROM decision")).all():
            kept = {name: value for name, value in json.loads(text).items() if name not in ("corrected", "alone")}
            values = {"plan": plan, "text": json.dumps(kept)}
            connection.execute(sa.text("UPDATE decision SET deviations = :text WHERE plan = :plan"), values)
    engine.dispose()
    with pytest.raises(sp.StorageError, match=rf"schema 1 and this .* works with {SCHEMA}.*`surepick migrate"):
        sp.open_study(sqlite_url, "bread")
    assert migrate_studies(sqlite_url) == ("1", SCHEMA)
    rechain(sqlite_url.removeprefix("sqlite:///"))
    study = sp.open_study(sqlite_url, "bread")
    study.correct("r1.2", read[2])
    assert finish(study, rng).best_arm in ("e", "f")
    checked(study)
