"""`surepick read` and `surepick verify --assume`: somebody else's assumptions, on the log and on the file alone."""

import json

import numpy as np
import pytest
from command_line import surepick

import surepick as sp
from surepick.errors import InvalidInput

MEANS = {f"r{number}": 50.0 + 2.0 * number for number in range(8)}
TEXTS = ("linear:norm=9", "linear + off by 0.3", "nothing", "linear:norm=9 and scatter<=1.5")


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """(address of a database with a study, its certificate, the study)."""
    folder = tmp_path_factory.mktemp("read")
    url = f"sqlite:///{folder / 'studies.db'}"
    rng = np.random.default_rng(0)
    features = np.column_stack([np.arange(8) - 3.5, np.ones(8)])
    arms = sp.Arms(features, ids=list(MEANS))
    policy = sp.make_policy("certified-linear", arms, epsilon=3.0, delta=0.05, noise="subgaussian:2", norm_bound=80.0)
    study = sp.create_study(url, "heat", arms, policy)
    study.run(lambda ids: [MEANS[one] + 2.0 * rng.normal() for one in ids], progress=False)
    file = folder / "certificate.json"
    sp.write_certificate(study, file)
    return url, file, study


@pytest.fixture(scope="module")
def known(kept):
    """What the study itself says under the assumptions."""
    return kept[-1].readings(*TEXTS)


def test_read_says_a_sentence_and_a_row_for_each_assumption(kept, known):
    url, *_ = kept
    code, out, err = surepick("read", url, "heat", *(word for one in TEXTS for word in ("--assume", one)), columns=160)
    assert (code, err) == (0, "")
    for one in known:
        assert str(one) in out
        assert f"\n {one.kind}  " in out
    assert "Each line is one claim, whose numbers hold together" in out


def test_without_an_assumption_those_are_read_that_suit_the_study(kept):
    url, _, study = kept
    code, out, _ = surepick("read", url, "heat", "--format", "json")
    found = json.loads(out)["readings"]
    assert code == 0
    usual = study.readings()
    assert [one["assumption"] for one in found] == [str(one.assumption) for one in usual]
    assert found[0]["stands"] is True
    assert found[0]["gap"] == pytest.approx(study.certificate().certified_gap, rel=1e-6)
    assert found[0]["words"] == str(usual[0])


def test_a_certificate_is_read_offline_as_the_study_itself(kept, known):
    _, file, _ = kept
    again = sp.verify_certificate(file, assume=TEXTS)
    assert again.holds
    assert again.readings == known
    assert str(again).endswith(str(again.readings[-1]))
    code, out, _ = surepick("verify", file, "--assume", TEXTS[0], "--format", "json")
    (found,) = json.loads(out)["readings"]
    assert code == 0
    assert found["gap"] == again.readings[0].gap
    code, out, _ = surepick("verify", file, "--assume", TEXTS[0], columns=160)
    assert str(again.readings[0]) in out
    assert "readings" not in json.loads(surepick("verify", file, "--format", "json")[1])


def test_a_certificate_that_was_altered_is_not_read(kept, tmp_path):
    _, file, _ = kept
    altered = tmp_path / "altered.json"
    altered.write_text(file.read_text().replace('"epsilon": 3.0', '"epsilon": 9.0'))
    found = sp.verify_certificate(altered, assume=["nothing"])
    assert not found.holds
    assert found.readings == ()


@pytest.mark.parametrize("command", ["read", "verify"])
def test_an_assumption_that_is_none_is_refused_in_a_sentence(kept, command):
    url, file, _ = kept
    target = (url, "heat") if command == "read" else (file,)
    with pytest.raises(InvalidInput, match=r"'lineer' is not understood\. Did you mean 'linear'"):
        surepick(command, *target, "--assume", "lineer")
