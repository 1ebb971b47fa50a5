"""Segments in studies: stored with the candidates, in the certificate, and on the command line."""

import json
from copy import deepcopy

import numpy as np
import pytest
from certified_files import resealed
from databases import first_on
from study_commands import surepick

import surepick as sp
from surepick.certificates.document import certificate_document
from surepick.certificates.verify import verify_certificate
from surepick.environments import Environment
from surepick.studies.database import resume_stored_study
from surepick.studies.logs.hash_chain import hash_of_arms
from surepick.studies.registration import registration_code

MEANS = np.array([0.9, 0.1, 0.5, -0.4, 0.4])
SEGMENTS = ("north", "north", "south", "south", "north")
ASKED = {"epsilon": 0.2, "delta": 0.1, "noise": "subgaussian:0.3"}


def policy_of(segments=SEGMENTS, **options):
    return sp.make_policy("certified-independent", sp.Arms(ids=[*"abcde"], segments=segments), **ASKED, **options)


@pytest.fixture(scope="module")
def study() -> sp.Study:
    policy = policy_of()
    world = Environment(arms=policy.problem.arms, means=MEANS, noise=sp.SubGaussian(0.3))
    return sp.simulate(policy, world, seed=3).study


@first_on("sqlite")
def test_segments_are_stored_with_the_candidates(database_url):
    policy, rng = policy_of(), np.random.default_rng(1)
    sp.create_study(database_url, "regions", policy)
    while (batch := resume_stored_study(database_url, "regions").ask()) is not None:
        rewards = [MEANS["abcde".index(one)] + 0.3 * rng.standard_normal() for one in batch.pulls()]
        resume_stored_study(database_url, "regions").tell(batch, rewards)
    stored = sp.open_study(database_url, "regions")
    assert stored.policy == policy
    assert stored.policy.problem.arms == policy.problem.arms
    answer = stored.certificate()
    assert [(one.name, one.inside) for one in answer.lists.segments] == [("north", ("a",)), ("south", ("c",))]
    assert verify_certificate(certificate_document(stored)).holds


def test_segments_are_part_of_the_hash_and_of_the_code():
    one, other, none = policy_of(), policy_of(SEGMENTS[::-1]), policy_of(None, question="top", m=1)
    assert len({hash_of_arms(each.problem.arms) for each in (one, other, none)}) == 3
    assert len({registration_code(each.problem.arms, each, study_id="x") for each in (one, other, none)}) == 3


def test_a_certificate_has_the_answer_by_segment_and_all_of_it_holds(study):
    document = certificate_document(study)
    assert [one["name"] for one in document["lists"]["segments"]] == ["north", "south"]
    assert document["arms"]["segments"] == list(SEGMENTS)
    assert verify_certificate(document).holds
    plain = certificate_document(sp.Study(policy_of(None, question="top", m=1)))
    assert plain["lists"]["segments"] is None
    assert "segments" not in json.dumps({**plain, "lists": None})


@pytest.mark.parametrize(
    "forge",
    [
        lambda file: file["arms"]["segments"].__setitem__(0, "south"),
        lambda file: file["arms"].pop("segments"),
        lambda file: file["arms"].update(segments=None),
        lambda file: file["arms"]["segments"].pop(),
        lambda file: file["arms"].update(segments=[1] * 5),
        lambda file: file["lists"].pop("segments"),
        lambda file: file["lists"]["segments"].reverse(),
        lambda file: file["lists"]["segments"][0].update(name="west"),
        lambda file: file["lists"]["segments"][0]["inside"].append("b"),
    ],
)
def test_forged_segments_are_found(study, forge):
    document = deepcopy(certificate_document(study))
    forge(document)
    assert not verify_certificate(resealed(document)).holds


def test_segments_on_the_command_line(stored_at, write, tmp_path):
    rows = [f"{name},{region},{mean}" for name, region, mean in zip("abcde", SEGMENTS, MEANS, strict=True)]
    table = write("\n".join(["id,region,reward", *rows]))
    wanted = ("--segments", "region", "--epsilon", "0.2", "--noise", "subgaussian:0.3")
    file, page = tmp_path / "answer.json", tmp_path / "report.html"
    code, output, errors = surepick(
        "run", table, "--id", "id", "--reward", "reward", *wanted, "--certificate", file, "--report", page
    )
    assert code == 0, output + errors
    assert "Which candidate is the best of each segment?   certified" in output
    assert "  segment north: a\n  segment south: c\n" in output
    code, output, _ = surepick("verify", file)
    assert (code, "All of it holds: north: a; south: c, certified" in output) == (0, True)
    assert "<li>south: c</li>" in page.read_text(encoding="utf-8")
    arms = write("\n".join(["id,region", *(row.rsplit(",", 1)[0] for row in rows)]), "arms.csv")
    code, output, errors = surepick("create", stored_at, "regions", "--arms", arms, "--id", "id", *wanted)
    assert code == 0, output + errors
    assert "Asked: Which candidate is the best of each segment?" in output
    study = resume_stored_study(stored_at, "regions")
    pulls = study.ask().pulls()
    study.tell(study.ask(), [MEANS["abcde".index(one)] for one in pulls])
    for command in ("recommend", "certificate"):
        _, output, _ = surepick(command, stored_at, "regions")
        assert "segment north: none, 3 undecided" in output
    code, output, errors = surepick("forecast", arms, "--id", "id", *wanted)
    assert code == 0, output + errors
    assert "best of each segment" in output
    with pytest.raises(sp.InvalidInput, match="lucb answers for the whole list"):
        surepick("create", stored_at, "two", "--arms", arms, "--id", "id", *wanted, "--policy", "lucb")
