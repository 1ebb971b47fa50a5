"""Every alteration of a certificate is found: by its digest, and because the field no longer follows."""

import functools
import itertools
import json
from collections.abc import Iterator

import certificate_flips as flips
import numpy as np
import pytest
from certified_files import FEATURES, MEANS, POLICIES, cli, resealed, study_of
from forged_certificates import every_look, forged
from together import of_each

import surepick as sp
from surepick.certificates.answers import DocumentComparison
from surepick.certificates.document import certificate_document
from surepick.certificates.signature import digest
from surepick.certificates.verify import verify_certificate


@functools.cache
def short_of(name: str) -> dict:
    """Two plans are enough to have every kind of field."""
    return certificate_document(study_of(name, most=2, **POLICIES.get(name, {})), "paint")


@pytest.fixture(scope="module", params=["rage", "certified-independent"])
def short(request) -> dict:
    return short_of(request.param)


@pytest.mark.cases(1)
def test_every_altered_field_is_found_by_its_digest(document):
    assert verify_certificate(document).holds
    for path in flips.some_of_each_kind(document, each=10):
        for value in flips.altered(flips.at(document, path)):
            spoilt = flips.replaced(document, path, value)
            assert digest(spoilt) != spoilt.get("sha256"), (path, value)
    assert not verify_certificate({**document, "study": "ink"}, most_plans=0).lines[0].holds


def missed(document: dict, each: int, values: int = 10**6, beyond: dict | None = None) -> Iterator:
    """Altered derived fields, under a digest that was computed again, of which every line holds.

    Args:
        document: the certificate.
        each: fields of each kind.
        values: other values of a field.
        beyond: only kinds of fields that this one has not.
    """
    known = {flips.kind(path) for path in flips.paths(beyond or {})}
    for path in flips.some_of_each_kind(document, each):
        if path == ("sha256",) or flips.is_fact(path) or flips.kind(path) in known:
            continue
        for value in flips.altered(flips.at(document, path))[:values]:
            if verify_certificate(resealed(flips.replaced(document, path, value))).holds:
                yield path, value


def test_every_altered_derived_field_is_found_without_the_digest():
    assert list(missed(short_of("certified-independent"), each=1, values=1)) == []


def test_every_altered_derived_field_that_only_others_have_is_found_without_the_digest():
    assert list(missed(short_of("rage"), each=1, values=1, beyond=short_of("certified-independent"))) == []


@pytest.mark.slow
def test_two_alterations_of_every_kind_of_derived_field_are_found_without_the_digest(short):
    assert list(missed(short, each=1, values=2)) == []


@pytest.mark.slow
def test_every_single_derived_field_is_found_without_the_digest(document):
    assert list(missed(document, each=10**6)) == []


def test_a_verifier_that_computed_nothing_would_be_noticed(short, monkeypatch):
    monkeypatch.setattr(DocumentComparison, "difference", lambda self, stored, again, where: "")
    assert len(list(itertools.islice(missed(short, each=1, values=1), 11))) == 11


@pytest.mark.parametrize("told", ["pulls", "sums", "squares"])
def test_results_that_were_altered_with_the_digest_do_not_give_the_same_answer(linear, told):
    """The answer follows from what was told: another result gives other numbers somewhere."""
    path = ("rounds", 1, "looks", 0, "told", told, 0)
    spoilt = resealed(flips.replaced(linear, path, flips.at(linear, path) + 1))
    assert not verify_certificate(spoilt).holds


@of_each(
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
        (("ended",), {"reason": ""}, "no 'withdrawn'"),
        (("ended",), {"reason": "", "withdrawn": []}, "missing"),
    ],
)
def test_facts_that_make_no_study_are_named(linear, path, value, words):
    target = flips.at(linear, path[:-1])
    path = (*path[:-1], len(target) - 1) if path[-1] == -1 else path
    result = verify_certificate(resealed(flips.replaced(linear, path, value)))
    assert not result.holds
    assert words in next(line for line in result.lines if not line.holds).words


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


@pytest.mark.cases(32)
@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("study",), 5),
        (("made_by",), None),
        (("arithmetic",), ["x"]),
        (("arms", "columns"), [1, 2]),
        (("arms", "preparation"), {"a": 1}),
        (("ended",), {"reason": "x", "at": 1e17, "missing": 1, "predicted": None, "withdrawn": []}),
        (("ended",), {"reason": "x", "at": -1e18, "missing": 1, "predicted": None, "withdrawn": []}),
        (("policy", "epsilon"), 1e-9),
        *((("reproduced",), wrong) for wrong in (10**30, 10**6, -1, 4, True, 1.0, None, 10**4000)),
        *((("rounds", 0, "looks", 0, "repeated"), wrong) for wrong in (10**30, -1, True, 10**4000)),
        *((("rounds", 0, "looks", 0, name), -1) for name in ("undone", "confirmed", "unasked")),
        *((("rounds", 0, "looks", 0, name), wrong) for name in ("withdrawn", "added") for wrong in (None, {}, [0])),
        *((("rounds", 0, "looks", 0, "look"), wrong) for wrong in (0, 2, 10**30)),
        *((("rounds", 0, "looks", 0, "looks"), wrong) for wrong in (0, 2, 10**30)),
        *((("rounds", 0, "looks", 0, "dim"), wrong) for wrong in (-1, 10**30)),
        *((("rounds", 0, "looks", 0, "abandoned"), wrong) for wrong in ("reason", [""], [None])),
        *((("rounds", 0, "round"), wrong) for wrong in (1.0, True, 0, 10**30)),
        *((("arithmetic",), wrong) for wrong in ("", "x" * 16, "0" * 15)),
        *(
            (("ended",), {"reason": "x", "at": 1e9, "missing": 1, "predicted": None, "withdrawn": [], name: wrong})
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
    closed = {**document, "ended": {"reason": "no money", "at": 1e9, "missing": 3, "predicted": None, "withdrawn": []}}
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
