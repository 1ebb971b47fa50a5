"""Who holds a certificate cannot make it promise more: with the registration code every forgery is refused.

Every field of a certificate is altered, everything that follows is computed anew as an honest writer would, and the
result is handed to `verify` with the code of the true study. What may be altered all the same stands, each with its
reason, in `certificate_forger.NOT_COVERED`.
"""

import functools
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import certificate_flips as flips
import certificate_forger as forger
import pytest
from certified_files import study_of
from typer.testing import CliRunner

from surepick.certificates import document as certificate
from surepick.certificates.document import certificate_document
from surepick.certificates.verify import verify_certificate
from surepick.cli.app import app

SUBJECTS = {
    "certified-linear": {"norm_bound": 2.0},
    "certified-independent": {"evidence": "carried"},
    "linear-embedding": {"norm_bound": 2.0},
}
FACTS = ("policy", "arms", "minimize")  # 8 and 8.0, "bounded:0:1" and "bounded:0.0:1.0" are the same ones
ASKED = (("policy", "epsilon"), ("policy", "delta"), ("policy", "noise"), ("minimize",))


@pytest.fixture(scope="module", params=SUBJECTS)
def document(request) -> dict:
    return certificate_document(study_of(request.param, most=4, **SUBJECTS[request.param]), "paint")


@functools.cache
def short(name: str) -> dict:
    """Two plans are enough to have every kind of field."""
    return certificate_document(study_of(name, most=2, **SUBJECTS[name]), "paint")


@pytest.fixture(scope="module", params=SUBJECTS)
def brief(request) -> dict:
    return short(request.param)


def through(found: forger.Forgeries) -> dict:
    """Forgeries that hold, and should not."""
    return {kind: number for kind, number in found.passed.items() if kind not in forger.NOT_COVERED}


def test_with_the_code_a_forgery_of_each_kind_is_refused():
    found = forger.forge(short("certified-independent"), each=1, values=1)
    assert found.tried > 80
    assert through(found) == {}


@pytest.mark.cases(1)
@pytest.mark.parametrize("name", ["certified-linear", "linear-embedding"])
def test_with_the_code_a_forgery_of_each_kind_that_only_others_have_is_refused(name):
    found = forger.forge(short(name), each=1, values=1, beyond=short("certified-independent"))
    assert through(found) == {}
    assert found.needed[("policy", "norm_bound")] == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["certified-linear", "linear-embedding"])
def test_with_the_code_a_forgery_of_each_kind_that_they_share_is_refused(name):
    found = forger.forge(short(name), each=1, values=1)
    assert found.tried > 80
    assert through(found) == {}


@pytest.mark.slow
@pytest.mark.parametrize("where", ["here", "elsewhere"])
def test_with_the_code_every_forgery_is_refused(document, where, capsys):
    subject = document if where == "here" else forger.as_if_elsewhere(document)
    found = forger.forge(subject, each=10**6)
    with capsys.disabled():
        print(
            f"\n{document['policy']['name']}, {where}: {found.tried} forgeries; refused by the code alone "
            f"{found.needed.total()}, not covered {found.passed.total()}"
        )
    assert found.tried > 2000
    assert through(found) == {}


@pytest.mark.slow
def test_what_is_not_covered_is_no_more_than_what_was_seen_to_pass():
    seen: set = set()
    for name, options in SUBJECTS.items():
        made = certificate_document(study_of(name, most=4, **options), "paint")
        for subject in (made, forger.as_if_elsewhere(made)):
            seen |= set(forger.forge(subject, each=2).passed)
    assert set(forger.NOT_COVERED) == seen


def test_a_code_that_left_out_delta_would_be_noticed(monkeypatch):
    """The saboteur."""
    whole = certificate.code_of

    def forgetful(spec, arms, **how):
        return whole({name: value for name, value in spec.items() if name != "delta"}, arms, **how)

    monkeypatch.setattr(certificate, "code_of", forgetful)
    made = certificate_document(study_of("certified-linear", most=2, norm_bound=2.0))
    only_delta(monkeypatch)
    assert ("policy", "delta") in through(forger.forge(made, each=1))


def test_the_same_without_the_saboteur(monkeypatch):
    made = certificate_document(study_of("certified-linear", most=2, norm_bound=2.0))
    only_delta(monkeypatch)
    found = forger.forge(made, each=1)
    assert through(found) == {}
    assert found.needed[("policy", "delta")] > 0


def only_delta(monkeypatch) -> None:
    monkeypatch.setattr(flips, "some_of_each_kind", lambda document, each: [("policy", "delta")])


# --- what is asked, one by one, with the commands


def cli(*words: str):
    return CliRunner(env={"COLUMNS": "200", "TERM": "dumb"}).invoke(app, list(words))


def asked(document: dict) -> list[flips.Path]:
    """Where what is asked stands: epsilon, delta, noise, every option, every candidate."""
    found = [*ASKED, *((("policy", name)) for name in document["policy"])]
    found += [("arms", "ids", arm) for arm in range(document["arms"]["number"])]
    found += [("arms", "features", arm, 0) for arm in range(document["arms"]["number"])]
    return [*dict.fromkeys(found), ("arms", "columns"), ("arms", "preparation")]


def promises(document: dict, values: int = 10**6) -> Iterator[tuple[flips.Path, dict]]:
    """Certificates of another promise, policy or candidate, as an honest writer would write them.

    Args:
        document: the true one.
        values: how many others of each place, at most.
    """
    for path in asked(document):
        true, made = flips.at(document, path), 0
        for value in forger.others(path, true):
            if made == values:
                break
            anew = forger.computed_anew(forger.altered(document, path, value), plans=True)
            if anew is not None and value != true and any(anew[name] != document[name] for name in FACTS):
                made += 1
                yield path, anew


@pytest.fixture(scope="module")
def other_promises(brief) -> list[tuple[flips.Path, dict]]:
    """One of each place."""
    return list(promises(brief, values=1))


def refused(document: dict, others: Iterable[tuple[flips.Path, dict]]) -> tuple[int, set[flips.Path]]:
    """(how many certificates the code refuses, places of those that only it refuses)."""
    code, tried, held = document["registration"], 0, set()
    for path, anew in others:
        tried += 1
        result = verify_certificate(anew, registered=code)
        wrong = [line.what for line in result.lines if not line.holds]
        assert "the registration" in wrong, path
        assert result.registration == anew["registration"] != code
        if len(wrong) == 1:
            held.add(path)
    print(f"{tried} other promises of {document['policy']['name']}; of {len(held)} kinds only the code refuses some")
    return tried, held


@pytest.mark.cases(1)
def test_another_promise_is_refused_with_the_code(brief, other_promises):
    tried, held = refused(brief, other_promises)
    assert tried > 15
    assert {("arms", "ids", 0), ("minimize",)} <= held  # so the code is needed


@pytest.mark.slow
def test_every_other_promise_is_refused_with_the_code(document):
    tried, held = refused(document, promises(document))
    assert tried > 30
    assert {("arms", "ids", 0), ("minimize",), ("policy", "tolerance")} <= held


def cannot_tell(document: dict, others: Iterable[tuple[flips.Path, dict]], file: Path) -> set[flips.Path]:
    """Places of which a forgery was shown to the commands, which cannot tell without the code."""
    shown: set[flips.Path] = set()
    for path, anew in others:
        if path in shown or (path[0] == "arms" and path != ("arms", "ids", 1)):
            continue
        shown.add(path)
        file.write_text(json.dumps(anew), encoding="utf-8")
        plain = cli("verify", str(file))
        assert "cannot tell whether epsilon, delta, noise and policy were fixed before the first result" in plain.stdout
        assert f"This file amounts to {anew['registration']}." in plain.stdout
        assert cli("verify", str(file), "--registered", document["registration"]).exit_code == 3
    return shown


@pytest.mark.cases(2)
def test_without_the_code_verify_says_that_it_cannot_tell(brief, other_promises, tmp_path):
    named = [(path, anew) for path, anew in other_promises if path in (*ASKED, ("arms", "ids", 1))]
    assert cannot_tell(brief, named, tmp_path / "forged.json") == {*ASKED, ("arms", "ids", 1)}


@pytest.mark.slow
def test_without_the_code_verify_says_of_every_option_that_it_cannot_tell(document, tmp_path):
    assert {*ASKED, ("arms", "ids", 1)} <= cannot_tell(document, promises(document), tmp_path / "forged.json")


@pytest.mark.parametrize(("name", "delta"), [("certified-linear", 0.099), ("linear-embedding", 0.05)])
def test_a_finished_study_cannot_be_made_to_promise_a_smaller_error_probability(name, delta):
    """Asked with delta .1, certified, and then said to have been asked with less: only the code tells."""
    made = certificate_document(study_of(name, most=40, norm_bound=2.0))
    anew = forger.computed_anew(flips.replaced(made, ("policy", "delta"), delta), plans=True)
    assert anew["verdict"] == made["verdict"] == "certified"
    assert anew["delta"] == delta
    assert verify_certificate(anew).holds
    result = verify_certificate(anew, registered=made["registration"])
    (wrong,) = [line for line in result.lines if not line.holds]
    assert wrong.what == "the registration"
    assert made["registration"] in wrong.words
    assert anew["registration"] in wrong.words
