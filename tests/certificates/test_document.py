"""The certificate as a file: what it holds, that every alteration is found, and what else `verify` refuses.

The fixtures of this version's format are written anew by

    PYTHONPATH=tests/helpers python tests/certificates/test_document.py
"""

import json
import os
import subprocess
import sys
import time
from dataclasses import replace

import certificate_flips as flips
import numpy as np
import pytest
from certified_files import FEATURES, FIXTURES, MEANS, POLICIES, cli, resealed, study_of
from typer.testing import CliRunner

import surepick as sp
from surepick.certificates import document as certificate
from surepick.certificates import verify_facts, verify_plans
from surepick.certificates.comparison import Comparison
from surepick.certificates.document import certificate_document
from surepick.certificates.seal import digest
from surepick.certificates.verify import verify_certificate
from surepick.cli.app import app
from surepick.core.random_streams import stream
from surepick.policies.certified.elimination import CertifiedElimination


@pytest.fixture(scope="module", params=POLICIES)
def document(request) -> dict:
    return certificate_document(study_of(request.param, **POLICIES[request.param]), "paint")


@pytest.fixture(scope="module", params=["rage", "certified-independent"])
def short(request) -> dict:
    """Two plans are enough to have every kind of field."""
    return certificate_document(study_of(request.param, most=2, **POLICIES.get(request.param, {})), "paint")


@pytest.fixture(scope="module")
def linear() -> dict:
    return certificate_document(study_of("certified-linear", most=3, norm_bound=2.0), "paint")


# --- alterations


def test_every_altered_field_is_found_by_its_digest(document):
    assert verify_certificate(document).holds
    for path in flips.some_of_each_kind(document, each=10):
        for value in flips.altered(flips.at(document, path)):
            spoilt = flips.replaced(document, path, value)
            assert digest(spoilt) != spoilt.get("sha256"), (path, value)
    assert not verify_certificate({**document, "study": "ink"}, most_plans=0).lines[0].holds


def missed(document: dict, each: int, values: int = 10**6) -> list:
    """Altered derived fields, under a digest that was computed again, of which every line holds.

    Args:
        document: the certificate.
        each: fields of each kind.
        values: other values of a field.
    """
    found = []
    for path in flips.some_of_each_kind(document, each):
        if path == ("sha256",) or flips.is_fact(path):
            continue
        for value in flips.altered(flips.at(document, path))[:values]:
            if verify_certificate(resealed(flips.replaced(document, path, value))).holds:
                found.append((path, value))
    return found


def test_every_altered_derived_field_is_found_without_the_digest(short):
    assert missed(short, each=1, values=2) == []


@pytest.mark.slow
def test_every_single_derived_field_is_found_without_the_digest(document):
    assert missed(document, each=10**6) == []


def test_a_verifier_that_computed_nothing_would_be_noticed(short, monkeypatch):
    monkeypatch.setattr(Comparison, "difference", lambda self, stored, again, where: "")
    assert len(missed(short, each=1, values=1)) > 10


@pytest.mark.parametrize("told", ["pulls", "sums", "squares"])
def test_results_that_were_altered_with_the_digest_do_not_give_the_same_answer(linear, told):
    """The answer follows from what was told: another result gives other numbers somewhere."""
    path = ("rounds", 1, "looks", 0, "told", told, 0)
    spoilt = resealed(flips.replaced(linear, path, flips.at(linear, path) + 1))
    assert not verify_certificate(spoilt).holds


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("rounds", 0, "looks", 0, "told", "sums", 0), 1e6, "outside bounded"),
        (("rounds", 0, "looks", 0, "told", "sums", 0), None, "one number"),
        (("rounds", 0, "looks", 0, "told", "arms", 0), 99, "ascending"),
        (("rounds", 0, "looks", 0, "told", "arms", -1), 99, "no candidate 99"),
        (("rounds", 0, "looks", 0, "told", "pulls", 0), 0, "at least one"),
        (("rounds", 0, "looks", 0, "told", "pulls", 0), 10**30, "int"),
        (("rounds", 0, "looks", 0, "asked", "pulls", 0), 10**6, "neither reported nor given up"),
        (("rounds", 0, "looks", 0, "plan"), 7, "numbered"),
        (("policy", "name"), "guess", "guess"),
        (("policy", "epsilon"), -1.0, "epsilon"),
        (("policy",), None, "without a name"),
        (("minimize",), 1, "true nor false"),
        (("arms", "ids", 0), "b", "repeated"),
        (("arms", "features", 0, 0), "wide", "float"),
        (("arms", "features"), None, "features are not"),
        (("rounds",), 5, "iterable"),
        (("ended",), {"reason": ""}, "missing"),
    ],
)
def test_facts_that_make_no_study_are_named(linear, path, value, words):
    target = flips.at(linear, path[:-1])
    path = (*path[:-1], len(target) - 1) if path[-1] == -1 else path
    result = verify_certificate(resealed(flips.replaced(linear, path, value)))
    assert not result.holds
    assert words in next(line for line in result.lines if not line.holds).words


def forged(document: dict, spoil) -> dict:
    """All that follows from altered facts, computed as an honest writer would: what a careful forger hands in."""
    spoilt = json.loads(json.dumps(document))
    spoil(spoilt)
    arms = verify_facts.arms_of(spoilt["arms"], None)
    facts = verify_facts.facts_of(spoilt, arms, verify_facts.policy_of(spoilt["policy"], arms, None))
    return {**certificate.document_of(facts)}


def every_look(name: str, value):
    """Spoils one field of every look."""

    def spoil(document: dict) -> None:
        for entry in document["rounds"]:
            for look in entry["looks"]:
                look[name] = value

    return spoil


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize(
    ("name", "field", "value", "words"),
    [
        ("certified-linear", "misspecification", 1e6, "its misspecification is 1000000.0"),
        ("linear-embedding", "misspecification", 1e6, "its misspecification is 1000000.0"),
        ("certified-linear", "lower_bound", 1e9, "its lower bound"),
        ("action-elimination", "dim", 3, "dim is stored as 3 and computed as 0"),
        ("action-elimination", "value", 3.5, "value is stored as 3.5"),
        ("action-elimination", "candidate", "c", "candidate is stored as 2"),
        ("action-elimination", "looks", 99, "looks is stored as 99"),
    ],
)
def test_a_forger_who_computes_everything_anew_cannot_alter_what_the_promise_rests_on(name, field, value, words):
    """On any machine: where plans cannot be computed bit by bit, what `tell` reads of them is checked all the same."""
    honest = certificate_document(study_of(name, most=4, **POLICIES[name]))
    assert verify_certificate(forged(honest, lambda document: None)).holds
    result = verify_certificate(forged(honest, every_look(field, value)))
    assert not result.holds
    assert words in result.lines[-1].words


@pytest.mark.parametrize("where", ["here", "elsewhere"])
@pytest.mark.parametrize(("share", "holds"), [(0.0, True), (1e-8, True), (1e-4, False)])
def test_a_misspecification_that_is_all_rounding_may_be_that_of_another_machine(share, holds, where, request):
    """The columns of two kinds and of the constant are collinear: what four directions leave out is all rounding."""
    kinds = np.eye(2)[[0, 0, 1, 1, 0, 1, 1]]
    features = np.column_stack([np.ones(7), kinds, np.cos(np.arange(7)), np.sin(3 * np.arange(7))])
    policy = sp.make_policy(
        "certified-linear", sp.Arms(features), epsilon=0.5, delta=0.1, noise=sp.SubGaussian(0.3), norm_bound=1.0
    )
    study = sp.Study(policy)
    for _ in range(2):
        plan = study.ask()
        study.tell_totals(study.ids, plan.counts, plan.counts * features[:, 3])
    honest = certificate_document(study)
    biases = {look["misspecification"] for entry in honest["rounds"] for look in entry["looks"]}
    assert 0.0 < max(biases) < 1e-9
    if where == "elsewhere":
        request.getfixturevalue("elsewhere")
    result = verify_certificate(forged(honest, every_look("misspecification", max(biases) * 1.01 + share * 0.5)))
    assert result.holds == holds, str(result)


@pytest.mark.usefixtures("elsewhere")
def test_no_round_can_spend_the_share_of_another():
    honest = certificate_document(study_of("linear-embedding", most=12, epsilon=0.05, norm_bound=2.0))
    assert len(honest["rounds"]) > 1

    def all_in_round_one(document: dict) -> None:
        for entry in document["rounds"]:
            entry["round"] = 1

    result = verify_certificate(forged(honest, all_in_round_one))
    assert not result.holds
    assert "it is of round 1, and the study was in round 2" in str(result)


def test_a_field_that_stands_twice_is_refused(linear, tmp_path):
    file = tmp_path / "c.json"
    file.write_text(json.dumps(linear).replace('"verdict":', '"verdict": "certified", "verdict":', 1))
    with pytest.raises(sp.InvalidInput, match="stands in it twice"):
        verify_certificate(file)


def test_a_margin_keeps_its_sign_and_what_is_allowed_is_exact_however_large_the_means_are():
    features = np.column_stack([FEATURES, np.ones(5)])
    arms = sp.Arms(features)
    policy = sp.make_policy(
        "certified-linear", arms, epsilon=0.3, delta=0.1, noise=sp.SubGaussian(0.3), norm_bound=2e6, dim=3
    )
    study = sp.Study(arms, policy)
    while (plan := study.ask()) is not None:
        study.tell_totals(study.ids, plan.counts, plan.counts * (1e6 + MEANS))
    document = certificate_document(study)
    assert verify_certificate(document).holds
    for name in ("allowed", "margins"):
        values = document["intervals"][name]
        row = next(row for row, value in enumerate(values) if value is not None)
        for other in (-values[row], values[row] * (1 + 1e-4) + 1e-4):
            spoilt = flips.replaced(document, ("intervals", name, row), other)
            assert not verify_certificate(resealed(spoilt)).holds, (name, other)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("study",), 5),
        (("made_by",), None),
        (("arithmetic",), ["x"]),
        (("arms", "columns"), [1, 2]),
        (("arms", "preparation"), {"a": 1}),
        (("ended",), {"reason": "x", "at": 1e17, "missing": 1, "predicted": None}),
        (("ended",), {"reason": "x", "at": -1e18, "missing": 1, "predicted": None}),
        (("policy", "epsilon"), 1e-9),
        *((("reproduced",), wrong) for wrong in (10**30, 10**6, -1, 4, True, 1.0, None, 10**4000)),
        *((("rounds", 0, "looks", 0, "repeated"), wrong) for wrong in (10**30, -1, True, 10**4000)),
        *((("rounds", 0, "looks", 0, "look"), wrong) for wrong in (0, 2, 10**30)),
        *((("rounds", 0, "looks", 0, "looks"), wrong) for wrong in (0, 2, 10**30)),
        *((("rounds", 0, "looks", 0, "dim"), wrong) for wrong in (-1, 10**30)),
        *((("rounds", 0, "looks", 0, "abandoned"), wrong) for wrong in ("reason", [""], [None])),
        *((("rounds", 0, "round"), wrong) for wrong in (1.0, True, 0, 10**30)),
        *((("arithmetic",), wrong) for wrong in ("", "x" * 16, "0" * 15)),
        *(
            (("ended",), {"reason": "x", "at": 1e9, "missing": 1, "predicted": None, name: wrong})
            for name, wrong in (
                *(("missing", wrong) for wrong in (-1, 10**30, 1.5, True, None, "1")),
                *(("predicted", wrong) for wrong in (-1.0, 0.5, "many", True)),
                *(("at", wrong) for wrong in ("now", True, None, 10**400)),
                *(("reason", wrong) for wrong in (5, None)),
            )
        ),
        (("algorithm",), "\ud800\x1b[2J\nholds the verdict: as computed"),
    ],
)
def test_odd_facts_end_in_a_line_that_fails(linear, path, value, tmp_path):
    spoilt = resealed(flips.replaced(linear, path, value))
    result = verify_certificate(spoilt)
    assert not result.holds
    assert all(line.words.isprintable() for line in result.lines)
    file = tmp_path / "odd.json"
    file.write_text(json.dumps(spoilt))
    assert cli("verify", str(file)).exit_code == 3


def test_measurements_cannot_be_hidden_in_a_sum_that_wraps(linear):
    """Four times 2^62 is 0 in 64 bits: as if nothing that was asked were missing."""
    path = ("rounds", 0, "looks", 0, "asked")
    asked = flips.at(linear, path)
    told = dict(zip(*(flips.at(linear, (*path[:-1], "told", name)) for name in ("arms", "pulls")), strict=True))
    more = [told.get(arm, 0) + 2**62 for arm in asked["arms"]]
    spoilt = flips.replaced(linear, path, {**asked, "pulls": more})
    result = verify_certificate(resealed({**spoilt, "reproduced": 0, "arithmetic": "0" * 16}))
    assert not result.holds
    assert "more measurements than can be counted" in str(result)


def test_a_study_that_its_policy_stopped_was_not_closed_early():
    document = certificate_document(study_of("certified-linear", most=40, norm_bound=2.0))
    assert document["verdict"] == "certified"
    closed = {**document, "ended": {"reason": "no money", "at": 1e9, "missing": 3, "predicted": None}}
    assert "its policy had stopped" in str(verify_certificate(resealed(closed)))


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize("looks", [1, 4, 99])
def test_on_any_machine_a_round_has_the_looks_among_which_its_delta_is_divided(looks):
    honest = certificate_document(study_of("linear-embedding", most=1, norm_bound=2.0))
    assert honest["rounds"][0]["looks"][0]["looks"] == 8
    result = verify_certificate(forged(honest, every_look("looks", looks)))
    assert not result.holds
    assert "looks is stored as" in str(result) or "counts" in str(result)


def test_missing_and_unknown_fields_are_named(linear):
    for path, words in (((), "unknown field 'more'"), (("rounds", 0), "rounds[0].more is unknown")):
        spoilt = resealed(flips.replaced(linear, path, {**flips.at(linear, path), "more": 1}))
        assert words in str(verify_certificate(spoilt))
    lacking = resealed({name: value for name, value in linear.items() if name != "promise"})
    assert "field 'promise' is missing" in str(verify_certificate(lacking))


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
    study = study_of("certified-independent", most=1)
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
        sp.write_certificate(study_of("certified-linear", norm_bound=2.0), tmp_path / f"{number}.json", name="paint")
        for number in range(2)
    ]
    assert files[0].read_bytes() == files[1].read_bytes()


def test_nothing_of_an_open_plan_is_in_it():
    quiet, loud = (study_of("certified-independent", most=1) for _ in range(2))
    for study, reward in ((quiet, 0.0), (loud, 2.0)):
        study.tell([study.ask().table()[0][0]], [reward])
    assert certificate_document(quiet) == certificate_document(loud)


def test_a_policy_without_a_name_must_be_given():
    arms = sp.Arms(FEATURES)
    embedding = sp.KernelEmbedding(FEATURES, kernel=lambda left, right: left @ right.T, norm_bound=2.0)
    policy = CertifiedElimination(sp.Problem(len(FEATURES), 0.4, 0.1, sp.SubGaussian(0.3)), embedding)
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


@pytest.fixture
def elsewhere(monkeypatch):
    monkeypatch.setattr(verify_plans, "arithmetic", lambda: "another machine")


@pytest.mark.usefixtures("elsewhere")
def test_where_numbers_round_otherwise_brackets_are_compared(document):
    result = verify_certificate(document)
    assert result.holds, str(result)
    assert "round otherwise" in result.lines[-1].words
    looks = [(row, look) for row, entry in enumerate(document["rounds"]) for look in range(len(entry["looks"]))]
    if document["rounds"][0]["looks"][0]["lower_bound"] is None:
        return
    for row, look in looks[:2]:
        for name, factor in (("value", 0.5), ("lower_bound", 2.0), ("value", -1.0)):
            spoilt = document
            for path in (("rounds", row, name), ("rounds", row, "looks", look, name)):
                spoilt = flips.replaced(spoilt, path, factor * flips.at(document, path))
            assert not verify_certificate(resealed(spoilt)).holds, (row, name, factor)


ANOTHER_KERNEL = """
import json, sys
from surepick.certificates.verify import verify_certificate
results = [verify_certificate(path) for path in sys.argv[1:]]
print(json.dumps([[one.holds, str(one)] for one in results]))
"""


def uneven() -> sp.Study:
    """Columns of very different sizes: the bias that rounding costs is large beside it, and drifts."""
    rng = np.random.default_rng(3)
    features = np.column_stack([np.ones(30), rng.normal(size=(30, 3)) * [1.0, 100.0, 1e4]])
    arms, means = sp.Arms(features), features @ [0.2, 0.3, 0.004, 0.00003]
    policy = sp.make_policy(
        "certified-linear", arms, epsilon=0.3, delta=0.05, noise=sp.SubGaussian(0.3), norm_bound=50.0
    )
    study = sp.Study(arms, policy)
    while (plan := study.ask()) is not None:
        study.tell_totals(study.ids, plan.counts, plan.counts * means + np.sqrt(plan.counts) * rng.normal(0.0, 0.3, 30))
    assert study.certificate().verdict == "certified"
    return study


def test_another_processor_verifies_it(tmp_path):
    """OpenBLAS with the kernels of another processor adds in another order."""
    studies = {name: study_of(name, most=12, **POLICIES[name]) for name in POLICIES} | {"uneven": uneven()}
    files = [sp.write_certificate(study, tmp_path / f"{name}.json") for name, study in studies.items()]
    environment = {**os.environ, "OPENBLAS_CORETYPE": "Prescott"}
    words = [sys.executable, "-c", ANOTHER_KERNEL, *map(str, files)]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True, timeout=120)
    for holds, text in json.loads(done.stdout):
        assert holds, text


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*.json")), ids=lambda path: path.stem)
def test_certificates_of_every_version_are_verified(path, monkeypatch):
    stored = json.loads(path.read_text(encoding="utf-8"))
    assert verify_certificate(path).holds
    monkeypatch.setattr(sp, "__version__", "0.9.0")
    result = verify_certificate(path)
    assert result.holds, str(result)
    assert "round otherwise" in result.lines[-1].words
    assert stored["reproduced"] > 0
    wrong = flips.replaced(stored, ("pulls",), stored["pulls"] + 1)
    assert not verify_certificate(resealed(wrong)).holds


def test_there_is_a_fixture_of_this_version():
    versions = {json.loads(path.read_text(encoding="utf-8"))["version"] for path in FIXTURES.glob("*.json")}
    assert versions == set(range(1, certificate.VERSION + 1))


def test_a_newer_version_is_refused(linear):
    result = verify_certificate(resealed({**linear, "version": certificate.VERSION + 1}))
    assert not result.holds
    assert "newer surepick" in str(result)


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
    started = time.perf_counter()
    assert verify_certificate(document).holds
    assert time.perf_counter() - started < 5.0


def test_designs_that_take_long_are_computed_only_when_asked_for(linear, monkeypatch):
    monkeypatch.setattr(certificate, "LARGEST_QUICK_DESIGN", 9)
    quick, whole = verify_certificate(linear), verify_certificate(linear, most_plans=3)
    assert quick.holds
    assert whole.holds
    assert quick.lines[-1].words.startswith("3 were not computed again")
    assert whole.lines[-1].words.startswith("what the policy asks, with their designs and brackets (3)")
    words = verify_certificate(linear, most_plans=1).lines[-1].words
    assert words.startswith("the first 1 of 3 are")
    assert "2 were not computed again" in words
    monkeypatch.setattr(certificate, "LARGEST_QUICK_DESIGN", 10)
    monkeypatch.setattr(certificate, "QUICK_PLANS", 2)
    assert verify_certificate(linear).lines[-1].words.startswith("the first 2 of 3 are")


def test_plans_that_were_asked_for_elsewhere_are_not_said_to_be_reproduced():
    """Where the log's second plan is not what the policy asks here, the file says that one came out equal."""
    study = study_of("certified-linear", most=1, norm_bound=2.0)
    first = study.ask()
    counts = first.counts + 1
    study.log._plans[-1] = replace(study.log._plans[-1], plan=replace(study.log._plans[-1].plan, counts=counts))
    study = sp.Study(study.arms, study.policy, log=study.log)
    study.tell_totals(study.ids, counts, counts * 0.5, counts * 0.5)
    document = certificate_document(study)
    assert document["reproduced"] == 1
    result = verify_certificate(document)
    assert result.holds, str(result)
    assert result.lines[-1].words.startswith("the first 1 of 2 are")
    assert not verify_certificate(resealed({**document, "reproduced": 2})).holds


# --- the commands


def test_verify_says_which_lines_hold(linear, tmp_path):
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text(json.dumps(linear))
    bad.write_text(json.dumps(resealed(flips.replaced(linear, ("verdict",), "certified"))))
    result = cli("verify", str(good))
    assert result.exit_code == 0
    assert "All of it holds: " in result.stdout
    assert "FAILS" not in result.stdout
    result = cli("verify", str(bad))
    assert result.exit_code == 3
    assert "verdict is stored as 'certified' and computed as 'not-yet'" in result.stdout
    assert "Do not rely on this file" in result.stdout
    answer = json.loads(cli("verify", str(bad), "--format", "json").stdout)
    assert not answer["holds"]
    assert [line["what"] for line in answer["lines"] if not line["holds"]] == ["the verdict"]


@pytest.mark.parametrize("text", ["", "no json", "[]", "{}", "5", '{"format": NaN}', "[" * 5000, '{"sku": 1}'])
def test_what_is_no_certificate_is_bad_input(text, tmp_path):
    file = tmp_path / "c.json"
    file.write_text(text)
    with pytest.raises(sp.InvalidInput, match=r"cannot be read as JSON|no certificate"):
        verify_certificate(file)
    assert isinstance(cli("verify", str(file)).exception, sp.InvalidInput)
    with pytest.raises(sp.InvalidInput, match="there is no file"):
        verify_certificate(tmp_path / "absent.json")


@pytest.mark.parametrize(
    "text", ['{"format": 5}', '{"sha256": null}', '{"rounds": 1, "format": "surepick certificate"}']
)
def test_a_fragment_of_a_certificate_does_not_hold(text, tmp_path):
    file = tmp_path / "c.json"
    file.write_text(text)
    assert cli("verify", str(file)).exit_code == 3


def test_the_certificate_of_a_durable_study(tmp_path):
    url = f"sqlite:///{tmp_path / 'lab.db'}"
    arms = sp.Arms(ids=["a", "b"])
    policy = sp.make_policy("certified-independent", arms, epsilon=0.5, delta=0.2, noise=sp.Bernoulli())
    study = sp.create_study(url, "coins", arms, policy)
    while (plan := study.ask()) is not None:
        study.tell_totals(
            study.ids, plan.counts, plan.counts * np.array([0.0, 1.0]), plan.counts * np.array([0.0, 1.0])
        )
    file = tmp_path / "c.json"
    result = cli("certificate", url, "coins", "--out", str(file))
    assert result.exit_code == 0
    assert "Next: surepick verify" in result.stdout
    printed = cli("certificate", url, "coins", "--format", "json")
    assert json.loads(printed.stdout) == json.loads(file.read_text()) == certificate_document(study, "coins")
    (tmp_path / "printed.json").write_text(printed.stdout)
    assert cli("verify", str(tmp_path / "printed.json")).exit_code == 0
    with pytest.raises(sp.InvalidInput, match="cannot be written"):
        sp.write_certificate(study, tmp_path / "absent" / "c.json")


def test_a_rehearsal_writes_its_certificate_and_its_report(tmp_path):
    (tmp_path / "cups.csv").write_text("cup,score\n" + "".join(f"{cup},{cup == 'b':d}\n" for cup in "abca"))
    words = [str(tmp_path / "cups.csv"), "--id", "cup", "--reward", "score", "--noise", "bernoulli", "--epsilon", "0.4"]
    file, page = tmp_path / "c.json", tmp_path / "r.html"
    result = cli("run", *words, "--certificate", str(file), "--report", str(page), "--format", "json")
    assert result.exit_code == 0
    answer, document = json.loads(result.stdout), json.loads(file.read_text())
    assert all(answer[name] == document[name] for name in ("best_arm", "pulls", "verdict", "reason", "assumptions"))
    assert cli("verify", str(file)).exit_code == 0
    assert document["sha256"] in page.read_text(encoding="utf-8")
    assert isinstance(cli("run", *words, "--report", "r.txt").exception, sp.InvalidInput)


def rewrite() -> None:
    """Write the fixtures of this version anew; those of earlier versions are never touched."""
    FIXTURES.mkdir(exist_ok=True)
    for name, options in POLICIES.items():
        study = study_of(name, most=12, minimize=name == "linear-embedding", **options)
        path = FIXTURES / f"v{certificate.VERSION}_{name}.json"
        path.write_text(json.dumps(certificate_document(study, "fixture"), separators=(",", ":")) + "\n")


if __name__ == "__main__":
    rewrite()
