"""Money in studies: stored with the candidates, spent in the answer, and a budget that holds at its edge."""

import json
import sqlite3

import numpy as np
import pytest
import sqlalchemy as sa
from databases import first_on

import surepick as sp
from surepick.core.random_streams import stream
from surepick.core.records import to_json
from surepick.environments import Environment
from surepick.studies.database import resume_stored_study, study_hash
from surepick.studies.logs.hash_chain import hash_of_arms
from surepick.studies.logs.sql.schema import study_seal
from surepick.studies.registration import registration_code

FEATURES = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.6], [-0.4, 0.3], [0.2, -0.5], [0.5, 0.2]])
MEANS = FEATURES @ np.array([0.6, 0.2])
COSTS = [0.1, 2.0, 0.7, 1.3, 0.1, 5.0]
ASKED = {"epsilon": 0.15, "delta": 0.1, "noise": "subgaussian:0.5", "norm_bound": 1.0}


def policy_of(costs, name="certified-linear", **options):
    arms = sp.Arms(FEATURES, [*"abcdef"], costs=costs)
    if name != "certified-linear":
        return sp.make_policy(name, arms, epsilon=0.3, delta=0.1, noise="subgaussian:0.5", **options)
    return sp.make_policy(name, arms, **ASKED, **options)


def world_of(policy) -> Environment:
    return Environment(arms=policy.problem.arms, means=MEANS, noise=sp.SubGaussian(0.5))


def measure(ids, seed=0):
    rng = stream(seed, "costs", len(ids))
    return [float(MEANS["abcdef".index(one)] + 0.5 * rng.standard_normal()) for one in ids]


def billed(study, batch_cost=0.0) -> float:
    """What the log says was measured, at the prices of this page, in exact tenths."""
    tenths = 0
    for stored in study.log.history(study.progress().judged):
        prices = [round(10 * COSTS[arm]) for arm in stored.results.arms.tolist()]
        tenths += sum(price * pulls for price, pulls in zip(prices, stored.results.pulls.tolist(), strict=True))
    return (tenths + round(10 * batch_cost) * study.progress().judged) / 10


@first_on("sqlite")
def test_a_study_with_costs_from_its_first_plan_to_its_certificate(database_url, tmp_path):
    policy = policy_of(COSTS, batch_cost=1.5)
    made = sp.create_study(database_url, "dear", policy)
    assert made.progress().cost == 0.0
    while (batch := resume_stored_study(database_url, "dear").ask()) is not None:  # a fresh process each time
        study = resume_stored_study(database_url, "dear")
        plan_cost = study.prices.total(batch.counts, batches=1)
        assert study.progress().plan_cost == plan_cost
        before = study.progress().cost
        study.tell(batch, measure(batch.pulls()))
        assert resume_stored_study(database_url, "dear").progress().cost == pytest.approx(before + plan_cost, rel=1e-12)
    study = sp.open_study(database_url, "dear")
    assert study.arms == policy.problem.arms
    answer = study.certificate()
    assert answer.verdict == "certified"
    assert answer.cost == study.progress().cost == billed(study, batch_cost=1.5)
    assert f"Money spent: {answer.cost:.2f}".rstrip("0").rstrip(".") in str(answer)
    assert "that cost" in str(study.progress())
    assert study.registration == made.registration == registration_code(study.arms, policy, study_id=study.study_id)
    file = sp.write_certificate(study, tmp_path / "certificate.json")
    stated = json.loads(file.read_text("utf-8"))
    assert (stated["cost"], stated["arms"]["costs"]) == (answer.cost, COSTS)
    result = sp.verify_certificate(file, registered=study.registration)
    assert result.holds, str(result)
    assert (stated["reproduced"], len(study.trace) > 1) == (len(stated["rounds"]), True)


def test_a_forged_cost_in_the_database_is_found(sqlite_url):
    sp.create_study(sqlite_url, "dear", policy_of(COSTS)).log._engine.dispose()
    database = sqlite3.connect(sa.make_url(sqlite_url).database)

    def forge(edit, chained):
        row = dict(zip(names, database.execute("SELECT * FROM study").fetchone(), strict=True))
        configuration = json.loads(row["configuration"])
        edit(configuration)
        row["configuration"] = json.dumps(configuration, ensure_ascii=False)
        if chained:
            row["hash"] = study_hash(row["name"], row["configuration"], row["ids"], row["arms_hash"])
            row["seal"] = study_seal(row)
        database.execute(
            "UPDATE study SET configuration = ?, hash = ?, seal = ?", (row["configuration"], row["hash"], row["seal"])
        )
        database.commit()

    names = [row[1] for row in database.execute("PRAGMA table_info(study)")]
    forge(lambda stored: stored["costs"].__setitem__(1, 0.5), chained=False)
    with pytest.raises(sp.StorageError, match="not what was stored"):
        resume_stored_study(sqlite_url, "dear")
    forge(lambda stored: None, chained=True)  # the forger's next step
    with pytest.raises(sp.StorageError, match="arms are not what was stored"):
        sp.open_study(sqlite_url, "dear")
    forge(lambda stored: stored.pop("costs"), chained=True)
    with pytest.raises(sp.StorageError, match="arms are not what was stored"):
        sp.open_study(sqlite_url, "dear")
    database.close()


def test_without_costs_nothing_is_stored_of_them(sqlite_url, monkeypatch):
    monkeypatch.setattr("surepick.forecasts.simulated_studies.EQUAL_STUDIES", 1)  # how much is not asked here
    plain, priced = policy_of(None), policy_of(COSTS)
    sp.create_study(sqlite_url, "plain", plain).log._engine.dispose()
    database = sqlite3.connect(sa.make_url(sqlite_url).database)
    (stored,) = database.execute("SELECT configuration FROM study").fetchone()
    database.close()
    assert "cost" not in stored
    assert hash_of_arms(plain.problem.arms) != hash_of_arms(priced.problem.arms)
    forecast = json.loads(to_json(sp.forecast(plain, max_pulls=1_000)))
    assert {one for name, one in forecast.items() if "cost" in name} == {None}


@pytest.mark.parametrize("name", ["certified-linear", "certified-independent", "lucb"])
def test_equal_costs_ask_and_answer_as_none(name):
    plain, even = policy_of(None, name), policy_of([3.7] * 6, name)
    runs = [sp.simulate(policy, world_of(policy), seed=4) for policy in (plain, even)]
    plans = [[to_json(planned.plan) for planned in run.study.log.plans()] for run in runs]
    assert plans[0] == plans[1]
    assert runs[0].rounds == runs[1].rounds
    said = [run.certificate for run in runs]
    assert (said[0].best_arm, said[0].promise, said[0].reason) == (said[1].best_arm, said[1].promise, said[1].reason)
    assert (runs[0].cost, runs[1].cost) == (None, pytest.approx(3.7 * runs[1].pulls, rel=1e-12))


@pytest.mark.cases(1)
@pytest.mark.parametrize("batch_cost", [0.0, 0.3])
def test_a_budget_in_money_holds_at_its_edge(batch_cost):
    options = {"batch_cost": batch_cost} if batch_cost else {}
    policy = policy_of(COSTS, **options)
    whole = sp.simulate(policy, world_of(policy), seed=2)
    assert (whole.ended_by, whole.cost) == ("policy", billed(whole.study, batch_cost))
    enough = sp.simulate(policy, world_of(policy), seed=2, max_cost=whole.cost)
    assert (enough.ended_by, enough.cost, enough.pulls) == ("policy", whole.cost, whole.pulls)
    less = sp.simulate(policy, world_of(policy), seed=2, max_cost=float(np.nextafter(whole.cost, 0.0)))
    assert (less.ended_by, less.verdict) == ("cost", "budget-exhausted")
    assert less.cost < whole.cost
    assert less.certificate.reason.startswith("The next plan would have passed the budget of ")
    nothing = sp.simulate(policy, world_of(policy), seed=2, max_cost=0.0)
    assert (nothing.pulls, nothing.cost) == (0, 0.0)


def test_a_run_that_was_stopped_by_its_budget_goes_on():
    study, half = sp.Study(policy_of(COSTS)), sp.Study(policy_of(COSTS)).run(measure).cost / 2
    stopped = study.run(measure, max_cost=half)
    assert (stopped.ended_by, stopped.cost == billed(study)) == ("cost", True)
    assert 0.0 < stopped.cost <= half
    again = study.run(measure, max_cost=1e6)
    assert (again.verdict, again.ended_by) == ("certified", "policy")
    assert again.cost == billed(study)
    arms = sp.Arms(ids=["a", "b"], costs=[1.0, 1.0])
    asked = {"epsilon": 0.5, "noise": "bernoulli", "max_cost": 4.0}
    assert sp.find_best(arms, lambda ids: [float(one == "a") for one in ids], **asked).cost <= 4.0
    with pytest.raises(sp.InvalidInput, match="nothing says what a measurement costs"):
        sp.find_best(["a", "b"], lambda ids: [0.0] * len(ids), **asked)


def test_a_batch_that_was_begun_does_not_cost_its_batch_again():
    study = sp.Study(policy_of(COSTS, batch_cost=100.0))
    batch = study.ask()
    first, *rest = batch.pulls()
    study.tell([first], measure([first]))
    left = study.prices.total(batch.counts, batches=0) - COSTS["abcdef".index(first)]
    assert study.run(measure, max_cost=left + 1e-6).ended_by == "cost"
    assert study.progress().judged == 1
    assert rest


def test_a_forecast_says_what_a_study_costs():
    found = sp.forecast(policy_of(COSTS, batch_cost=2.0), MEANS, rehearsals=2)
    assert found.lowest_cost <= found.cost <= found.highest_cost
    assert found.cost >= 2.0 * found.fewest_batches
    assert found.uniform_cost == pytest.approx(found.uniform / 6 * sum(COSTS) + 2.0)
    assert found.cost_said.endswith(")")
    cut = sp.forecast(policy_of(COSTS), MEANS, rehearsals=2, max_cost=5.0)
    assert cut.highest_cost <= 5.0
    even = sp.forecast(policy_of([2.0] * 6), MEANS, rehearsals=2)
    none = sp.forecast(policy_of(None), MEANS, rehearsals=2)
    assert (even.total, even.cost) == (none.total, pytest.approx(2.0 * np.mean(even.cost / 2.0)))
    assert (none.cost, none.cost_said) == (None, "")
    with pytest.raises(sp.InvalidInput, match="nothing says what a measurement costs"):
        sp.forecast(policy_of(None), max_cost=5.0)


def test_the_log_says_what_was_measured(stored_at):
    policy = policy_of(COSTS)
    stored = sp.create_study(stored_at, "dear", policy)
    for study in (stored, sp.Study(policy)):
        batch = study.ask()
        study.tell(batch, measure(batch.pulls()))
        study.ask()
        counts = {arm: int(batch.counts[arm]) for arm in np.flatnonzero(batch.counts).tolist()}
        assert study.log.measured(1) == study.log.measured(2) == counts
        assert study.log.measured(0) == {}
