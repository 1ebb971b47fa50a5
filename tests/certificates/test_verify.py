"""`verify`, and the commands that write what it reads."""

import json

import certificate_flips as flips
import numpy as np
import pytest
from certified_files import cli, resealed

import surepick as sp
from surepick.certificates.document import certificate_document
from surepick.certificates.verify import verify_certificate


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
    text = page.read_text(encoding="utf-8")
    assert document["sha256"] in text
    assert "Report of a study · cups.csv" in text
    assert isinstance(cli("run", *words, "--report", "r.txt").exception, sp.InvalidInput)
