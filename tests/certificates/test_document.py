"""The certificate as a file: what it holds of how a study was carried out."""

import json
import time

import certificate_flips as flips
import numpy as np
import pytest
from certified_files import FEATURES, MEANS, resealed, study_of
from typer.testing import CliRunner

import surepick as sp
from surepick.certificates import document as certificate
from surepick.certificates.document import certificate_document
from surepick.certificates.verify import verify_certificate
from surepick.cli.app import app
from surepick.core.random_streams import stream
from surepick.policies.carried.elimination import CarriedElimination

# --- how a study was carried out


def carried_out(study: sp.Study) -> None:
    result = verify_certificate(json.loads(json.dumps(certificate_document(study))))
    assert result.holds, str(result)


def test_what_is_missing_must_have_been_given_up():
    study = study_of("certified-independent", most=1)
    plan = study.ask()
    name, pulls = plan.table()[0]
    study.tell([name] * (pulls + 2), [0.5] * (pulls + 2))
    study.abandon("independent-of-value")
    carried_out(study)
    document = certificate_document(study)
    (look,) = document["rounds"][1]["looks"]
    assert look["abandoned"] == ["independent-of-value"]
    assert look["surplus"]
    assert any("missing" in sentence for sentence in document["assumptions"])
    spoilt = flips.replaced(document, ("rounds", 1, "looks", 0, "abandoned"), [])
    assert "neither reported nor given up" in str(verify_certificate(resealed(spoilt)))


def test_a_doubtful_reason_and_totals_without_squares():
    study = study_of("certified-independent", most=1, batch_size=18)
    plan = study.ask()
    counts = np.maximum(plan.counts - 1, 0)
    study.tell_totals(study.ids, counts, 0.5 * counts)
    study.abandon("it looked good")
    carried_out(study)
    assert certificate_document(study)["rounds"][1]["looks"][0]["told"]["squares"] is None
    assert "it looked good" in certificate_document(study)["reason"]


def test_a_round_of_which_nothing_came():
    study = study_of("linear-embedding", most=0, norm_bound=2.0)
    study.ask()
    study.abandon("independent-of-value")
    carried_out(study)


def test_before_the_first_round_and_closed_early():
    study = study_of("certified-linear", most=0, norm_bound=2.0)
    carried_out(study)
    study.ask()
    carried_out(study)
    study.close("no more paint")
    carried_out(study)
    document = certificate_document(study)
    assert document["ended"]["reason"] == "no more paint"
    assert "no more paint" in document["reason"]
    assert "UTC" in document["reason"]


def test_one_candidate_and_an_answer_that_needs_no_measurement():
    arms = sp.Arms(ids=["only"])
    policy = sp.make_policy("certified-independent", arms, epsilon=0.1, delta=0.05, noise=sp.Bernoulli())
    carried_out(sp.Study(arms, policy))
    arms = sp.Arms(ids=["a", "b"])
    policy = sp.make_policy("action-elimination", arms, epsilon=1.5, delta=0.05, noise=sp.Bernoulli())
    carried_out(sp.Study(arms, policy))


def test_a_noise_that_was_measured_first(tmp_path):
    noise = sp.pilot_noise([2, 2, 0], [2.1, 4.2, 0.0], [2.21, 8.84, 0.0], failure=0.01)
    arms = sp.Arms(ids=["a", "b", "c"])
    study = sp.Study(arms, sp.make_policy("certified-independent", arms, epsilon=1.0, delta=0.05, noise=noise))
    plan = study.ask()
    study.tell_totals(study.ids, plan.counts, 1.0 * plan.counts, 2.0 * plan.counts)
    carried_out(study)


def test_equal_studies_give_equal_files(tmp_path):
    files = [
        sp.write_certificate(
            study_of("certified-linear", norm_bound=2.0, study_id=drawn), tmp_path / f"{number}.json", name="paint"
        )
        for number, drawn in enumerate(["same", "same", None])
    ]
    assert files[0].read_bytes() == files[1].read_bytes()
    assert files[0].read_bytes() != files[2].read_bytes()  # of another study of the same question


def test_nothing_of_an_open_plan_is_in_it():
    quiet, loud = (study_of("certified-independent", most=1, study_id="same") for _ in range(2))
    for study, reward in ((quiet, 0.0), (loud, 2.0)):
        study.tell([study.ask().table()[0][0]], [reward])
    assert certificate_document(quiet) == certificate_document(loud)


def test_a_policy_without_a_name_must_be_given():
    arms = sp.Arms(FEATURES)
    embedding = sp.KernelEmbedding(FEATURES, kernel=lambda left, right: left @ right.T, norm_bound=2.0)
    policy = CarriedElimination(sp.Problem(len(FEATURES), 0.4, 0.1, sp.SubGaussian(0.3)), embedding)
    assert policy.spec is None
    study = sp.Study(arms, policy)
    plan = study.ask()
    study.tell_totals(study.ids, plan.counts, plan.counts * MEANS)
    document = certificate_document(study)
    assert "without a name" in str(verify_certificate(document))
    assert verify_certificate(document, policy=policy).holds
    other = sp.make_policy("certified-independent", arms, epsilon=0.4, delta=0.1, noise=sp.SubGaussian(0.3))
    assert "not that of the certificate" in str(verify_certificate(document, policy=other))


# --- other machines, other versions, many candidates


def test_more_candidates_than_are_written_out(monkeypatch, tmp_path):
    monkeypatch.setattr(certificate, "INLINE", 4)
    study = study_of("certified-linear", norm_bound=2.0)
    file = sp.write_certificate(study, tmp_path / "c.json")
    document = json.loads(file.read_text())
    assert document["arms"]["ids"] is document["arms"]["features"] is document["candidates"] is None
    assert "--arms TABLE" in str(verify_certificate(file))
    assert verify_certificate(file, arms=study.arms).holds
    moved = sp.Arms(FEATURES + 1e-9, study.arms.ids)
    assert not verify_certificate(file, arms=moved).holds
    rows = ["id,x,y", *(f"{one},{x!r},{y!r}" for one, (x, y) in zip("abcde", FEATURES.tolist(), strict=True))]
    (tmp_path / "arms.csv").write_text("\n".join(rows))
    words = ["verify", str(file), "--arms", str(tmp_path / "arms.csv"), "--id", "id"]
    assert CliRunner().invoke(app, words).exit_code == 0
    assert CliRunner().invoke(app, words[:2]).exit_code == 3
    assert CliRunner().invoke(app, [*words[:2], "--id", "id"]).exception.args[0].startswith("--id, --features")


@pytest.mark.cases(1)
@pytest.mark.parametrize("name", ["certified-linear", "certified-independent"])
def test_a_thousand_candidates_are_verified_in_seconds(name):
    """About half a second on one core; five are asked for."""
    world = sp.environments.two_clusters(num_arms=1000, dim=20, reward="linear", perturbation=1e-3, seed=0)
    options = {"norm_bound": 0.9} if name == "certified-linear" else {}
    policy = sp.make_policy(name, world.arms, epsilon=0.3, delta=0.05, noise=sp.Bernoulli(), **options)
    study = sp.Study(world.arms, policy)
    for number in range(12):
        if (plan := study.ask()) is None:
            break
        seen = world.pull(plan.counts, stream(0, "thousand", number))
        study.tell_totals(study.ids, seen.counts, seen.sums, seen.squares)
    document = certificate_document(study)
    started = time.process_time()
    assert verify_certificate(document).holds
    assert time.process_time() - started < 5.0
