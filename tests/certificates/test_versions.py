"""Certificates of every version are verified, and none of a later one.

The fixtures of this version's format are written anew by

    PYTHONPATH=tests/helpers python tests/certificates/test_versions.py
"""

import json

import certificate_flips as flips
import numpy as np
import pytest
from block_studies import study_in_blocks
from certified_files import FIXTURES, POLICIES, resealed, study_of
from item_studies import study_of_items
from judged_parts import study_in_parts
from withdrawn_studies import begun, finish

import surepick as sp
from surepick.certificates import versions
from surepick.certificates.document import certificate_document
from surepick.certificates.verify import verify_certificate


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
    found = {json.loads(path.read_text(encoding="utf-8"))["version"] for path in FIXTURES.glob("*.json")}
    assert found == set(range(1, versions.VERSION + 1))


def test_an_estimate_below_its_bound_is_read_as_it_was_written_once():
    """A lead and a negative width, with the bound as their difference; any other difference is found."""
    stored = json.loads((FIXTURES / "v4_estimate_below_its_bound.json").read_text(encoding="utf-8"))
    row = int(np.nanargmin(np.array(stored["intervals"]["widths"], float)))
    lead, width = (stored["intervals"][name][row] for name in ("leads", "widths"))
    assert width < 0.0
    for changed in ({"leads": lead - 0.01}, {"leads": lead + 0.01}, {"widths": width - 0.01}, {"margins": 0.7}):
        ((name, value),) = changed.items()
        assert not verify_certificate(resealed(flips.replaced(stored, ("intervals", name, row), value))).holds


def test_a_newer_version_is_refused(linear):
    result = verify_certificate(resealed({**linear, "version": versions.VERSION + 1}))
    assert not result.holds
    assert "newer surepick" in str(result)


def rewrite() -> None:
    """Write the fixtures of this version anew; those of earlier versions are never touched."""
    FIXTURES.mkdir(exist_ok=True)
    for name, options in POLICIES.items():
        study = study_of(name, most=12, minimize=name == "linear-embedding", **options)
        _write(study, f"v{versions.OF_CLOSED_ROUNDS}_{name}.json")
    _write(study_in_parts("certified-independent"), f"v{versions.IN_PARTS}_parts.json")
    priced = study_of("certified-linear", costs=(1.0, 2.5, 0.1, 4.0, 0.3), norm_bound=2.0, batch_cost=0.5)
    _write(priced, f"v{versions.WITH_COSTS}_costs.json")
    _write(study_of_items(), f"v{versions.OF_ITEMS}_items.json")
    _write(study_in_blocks(), f"v{versions.IN_BLOCKS}_blocks.json")
    _write(study_of("certified-linear", norm_bound=2.0, question="top", m=2), f"v{versions.WITH_LISTS}_lists.json")
    gone = begun()
    finish(gone)
    _write(gone, f"v{versions.WITH_WITHDRAWALS}_withdrawals.json")
    _write(constrained_study(), f"v{versions.WITH_QUANTITIES}_constraints.json")


def constrained_study() -> sp.Study:
    """A study with a noisy bound and an exact one; a sixth of the noisy values is missing."""
    arms = sp.Arms(ids=[*"abcde"])
    bounds = ["heat<=0.5,tolerance=0.4,noise=subgaussian:0.3", "size>=2"]
    asked = {"epsilon": 0.4, "delta": 0.1, "noise": sp.Bounded(-2.0, 2.0), "constraints": bounds}
    study, rng = sp.Study(sp.make_policy("certified-independent", arms, **asked)), np.random.default_rng(6)
    while (plan := study.ask()) is not None:
        rows = [
            (
                np.clip(rng.normal(0.3 * place, 0.3), -2.0, 2.0),
                np.nan if rng.random() < 1 / 6 else rng.normal(0.3 * place - 0.3, 0.3),
                4.0 - place,
            )
            for place in map("abcde".index, plan.pulls())
        ]
        study.tell(plan, rows)
    return study


def _write(study: sp.Study, name: str) -> None:
    (FIXTURES / name).write_text(json.dumps(certificate_document(study, "fixture"), separators=(",", ":")) + "\n")


if __name__ == "__main__":
    rewrite()
