"""Studies of streams that systems share: asked, measured by functions and programs, kept, certified and verified."""

import inspect
import sys

import numpy as np
import pytest
from command_line import surepick

import surepick as sp
from surepick.certificates.verify import verify_certificate
from surepick.errors import InvalidInput
from surepick.studies.database import create_stored_study, open_stored_study

MEANS = np.array([0.0, 1.0, 0.3, 0.1])


def drawn(name: str, stream: str) -> float:
    """What the program prints, whose process imports nothing large."""
    from random import Random

    common, own = Random(stream).gauss(), Random(name + stream).gauss()
    return {"a": 0.0, "b": 1.0, "c": 0.3, "d": 0.1}[name] + common + 0.3 * own


PROGRAM = f"""
import sys
{inspect.getsource(drawn)}
pairs = [sys.argv[1:]] if len(sys.argv) > 1 else [line.rstrip("\\n").split("\\t") for line in sys.stdin]
for name, stream in pairs:
    print(drawn(name, stream))
"""


def policy_of(kind: str = "streams", **options):
    asked = {"epsilon": 0.4, "delta": 0.1, "noise": sp.Normal(), kind: "run", **options}
    return sp.make_policy("certified-independent", sp.Arms(ids=list("abcd")), **asked)


def observed(names, streams, shift: float = 0.0):
    """One number for each name and stream: most of the noise is the stream's."""
    rewards = []
    for name, stream in zip(names, streams, strict=True):
        key = [ord(letter) for letter in stream]
        common, own = np.random.default_rng(key).normal(), np.random.default_rng([ord(name), *key]).normal()
        rewards.append(MEANS["abcd".index(name)] + common + 0.3 * own + shift * (sum(key) % 7))
    return rewards


@pytest.mark.parametrize("kind", ["streams", "blocks"])
def test_a_function_of_two_arguments_gets_all_names_of_a_batch_at_once(kind):
    study, sizes = sp.Study(policy_of(kind)), []

    def measure(ids, streams):
        sizes.append(len(set(streams)))
        assert len(set(zip(ids, streams, strict=True))) == len(ids)
        return observed(ids, streams, 50.0 if kind == "blocks" else 0.0)

    found = study.run(measure, progress=False)
    assert (found.best_arm, found.verdict) == ("b", "certified")
    assert sizes[0] == 5
    assert len(sizes) == len(study.trace)


def test_a_function_of_one_argument_is_called_once_a_block():
    study, rng = sp.Study(policy_of("blocks")), np.random.default_rng(3)

    def measure(ids):
        assert len(set(ids)) == len(ids)
        off = rng.normal(0.0, 50.0)
        return [MEANS["abcd".index(name)] + off + 0.3 * rng.standard_normal() for name in ids]

    assert study.run(measure, progress=False).best_arm == "b"


FIRST = (("streams", False, "postgresql"), ("blocks", True, "sqlite"))


@pytest.mark.parametrize(
    ("kind", "minimize", "database_url"),
    [
        pytest.param(kind, minimize, where, marks=() if (kind, minimize, where) in FIRST else pytest.mark.slow)
        for kind in ("streams", "blocks")
        for minimize in (False, True)
        for where in ("sqlite", "postgresql")
    ],
    indirect=["database_url"],
)
def test_a_study_in_a_database_is_replayed_and_its_certificate_verified(database_url, kind, minimize, tmp_path):
    study = create_stored_study(database_url, "line", policy_of(kind), minimize=minimize)
    while (batch := study.ask()) is not None:
        rewards = np.array(observed(batch.pulls(), batch.blocks))
        study.tell(batch, -rewards if minimize else rewards)
    again = open_stored_study(database_url, "line")
    assert again.certificate() == study.certificate()
    assert (again.certificate().verdict, again.recommend()) == ("certified", "b")
    assert verify_certificate(sp.write_certificate(again, tmp_path / "line.json")).holds


def test_what_a_lease_has_left_keeps_its_streams(database_url):
    study = create_stored_study(database_url, "line", policy_of())
    first, second = (study.lease(10, worker=name) for name in ("ann", "ben"))
    assert {*first.blocks, *second.blocks} == {f"b1.{number}" for number in range(1, 6)}
    both = [*zip(first.pulls(), first.blocks, strict=True), *zip(second.pulls(), second.blocks, strict=True)]
    assert len(set(both)) == len(both) == 20
    rows = list(zip(first.pulls(), first.keys(), first.blocks, strict=True))
    (name, (_, key), stream), *rest = rows[::-1]
    study.tell([name], observed([name], [stream]), [key], worker="ann", blocks=[stream])
    left = study.lease(10, worker="ann")
    kept = {key: stream for (_, key), stream in zip(left.keys(), left.blocks, strict=True)}
    assert kept == {key: stream for _, (_, key), stream in rest}


def test_leases_of_single_pulls_are_pairs_all_the_same(stored_at):
    study = create_stored_study(stored_at, "line", policy_of())
    while (batch := study.lease(1, worker="ann")) is not None and batch.total:
        _, keys = zip(*batch.keys(), strict=True)
        study.tell(batch.pulls(), observed(batch.pulls(), batch.blocks), keys, worker="ann", blocks=batch.blocks)
    assert (study.certificate().verdict, study.recommend()) == ("certified", "b")


def test_a_stream_of_an_earlier_round_is_refused(stored_at):
    study = create_stored_study(stored_at, "line", policy_of())
    first = study.ask()
    names = [f"{name}{number}" for name in "abcd" for number in range(5)]
    study.tell(first.pulls(), observed(first.pulls(), names), blocks=names)
    second = study.ask()
    with pytest.raises(InvalidInput, match="'a1' has results of round 1"):
        study.tell(["b"], [0.0], blocks=["a1"])
    assert second.counts[1] > 0
    with pytest.raises(InvalidInput, match="measured twice"):
        study.tell(["a", "a"], [0.0, 0.1], blocks=["new", "new"])


@pytest.mark.parametrize(
    ("how", "database_url"),
    [
        (("--measure", " {id} {block}"), "sqlite"),
        (("--measure-batch", ""), "postgresql"),
        pytest.param(("--measure", " {id} {block}"), "postgresql", marks=pytest.mark.slow),
        pytest.param(("--measure-batch", ""), "sqlite", marks=pytest.mark.slow),
    ],
    indirect=["database_url"],
)
def test_programs_are_told_the_stream(database_url, how, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    create_stored_study(database_url, "line", policy_of())
    command = f"{sys.executable} -ISE {program}{how[1]}"
    most = ("--batch", 9, "--max-pulls", 20)  # the first plan: five of each
    assert surepick("run-study", database_url, "line", how[0], command, *most)[0] == 3
    study = open_stored_study(database_url, "line")
    assert study.recommend() == "b"
    rows = [
        (study.ids[arm], block, total)
        for stored in study.log.history(99)
        for arm, block, total in zip(
            stored.results.arms.tolist(), stored.results.blocks, stored.results.sums.tolist(), strict=True
        )
    ]
    assert len({(name, block) for name, block, _ in rows}) == len(rows)
    for name, block, reward in rows:
        assert reward == pytest.approx(drawn(name, block))
    both = {block for name, block, _ in rows if name == "b"} & {block for name, block, _ in rows if name == "c"}
    assert len(both) >= 5


def test_a_program_that_is_not_told_the_stream_is_refused(stored_at):
    create_stored_study(stored_at, "line", policy_of())
    with pytest.raises(InvalidInput, match=r"Write \{block\}"):
        surepick("run-study", stored_at, "line", "--measure", "echo {id}")


def test_a_template_with_pulls_and_block_is_refused(stored_at):
    create_stored_study(stored_at, "line", policy_of())
    with pytest.raises(InvalidInput, match=r"Leave \{pulls\} out"):
        surepick("run-study", stored_at, "line", "--measure", "echo {id} {pulls} {block}")
