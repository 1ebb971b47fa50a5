"""Studies whose results name their blocks: told, refused, kept in databases, certified and verified."""

import numpy as np
import pytest
from databases import first_on
from together import of_each

import surepick as sp
from surepick.certificates.document import certificate_document
from surepick.certificates.verify import verify_certificate
from surepick.errors import InvalidInput

MEANS = np.array([0.0, 1.0, 0.3, 0.1])


def policy_of(**options):
    arms = sp.Arms(ids=list("abcd"))
    asked = {"epsilon": 0.4, "delta": 0.1, "noise": "subgaussian:0.5", "blocks": "day", **options}
    return sp.make_policy("certified-independent", arms, **asked)


def measured(study, shift: float, *, until: int = 100, minimize: bool = False) -> None:
    """Measure and tell until the study stops; all results of a block are off by the same large amount."""
    rng, number = np.random.default_rng(8), 0
    while (batch := study.ask()) is not None and number < until:
        number += 1
        off = {name: shift * (place % 7 - 3) for place, name in enumerate(dict.fromkeys(batch.blocks))}
        rows = zip(batch.pulls(), batch.blocks, strict=True)
        rewards = [MEANS["abcd".index(name)] + off[block] + 0.5 * rng.standard_normal() for name, block in rows]
        study.tell(batch, -np.array(rewards) if minimize else rewards)


def stored(url: str, policy, name: str = "lab", **options):
    from surepick.studies.database import create_stored_study

    return create_stored_study(url, name, policy, **options)


def test_a_batch_proposes_a_block_for_each_pull_and_is_told_with_them():
    study = sp.Study(policy_of(block_size=3))
    batch = study.ask()
    assert len(batch.blocks) == batch.total
    assert max(batch.blocks.count(name) for name in batch.blocks) <= 3
    measured(study, 100.0)
    assert study.certificate().verdict == "certified"
    assert study.recommend() == "b"
    assert any("same day" in sentence for sentence in study.certificate().assumptions)


def test_shifted_blocks_lead_to_the_same_plans_and_the_same_answer():
    still, shifted = sp.Study(policy_of(block_size=3)), sp.Study(policy_of(block_size=3))
    measured(still, 0.0)
    measured(shifted, 50.0)
    assert [one.plan.counts.tolist() for one in still.log.plans()] == [
        one.plan.counts.tolist() for one in shifted.log.plans()
    ]
    assert still.recommend() == shifted.recommend()


def test_results_may_name_blocks_of_their_own_in_any_order():
    study = sp.Study(policy_of())
    batch = study.ask()
    ids = batch.pulls()
    study.tell(ids[:2], [0.1, 0.2], blocks=["monday", " monday "])
    receipt = study.tell(ids[2:], [0.3] * len(ids[2:]), blocks=["tuesday"] * len(ids[2:]))
    assert receipt.closed
    seen = study.log.last_decision().seen
    assert seen.blocks.number == 2
    assert seen.blocks.counts.sum() == seen.total


@of_each(
    ("told", "said"),
    [
        ({}, "names its day"),
        ({"blocks": ["x"]}, "1 blocks for 2 results"),
        ({"blocks": ["x", None]}, "result 2 has no day"),
        ({"blocks": "xy"}, "give a sequence"),
    ],
)
def test_a_result_without_its_block_is_refused(told, said):
    study = sp.Study(policy_of())
    study.ask()
    with pytest.raises(InvalidInput, match=said):
        study.tell(["a", "b"], [0.1, 0.2], **told)
    assert study.missing.sum() == study.ask().total


def test_a_block_in_a_study_without_blocks_is_refused():
    study = sp.Study(policy_of(blocks=None))
    study.ask()
    with pytest.raises(InvalidInput, match="has no blocks"):
        study.tell(["a"], [0.1], blocks=["x"])
    assert study.ask().blocks == ()


def test_a_candidate_twice_in_a_block_is_refused_only_where_that_was_asked():
    often, once = sp.Study(policy_of()), sp.Study(policy_of(once_a_block=True))
    for study in (often, once):
        study.ask()
    assert often.tell(["a", "a"], [0.1, 0.2], blocks=["x", "x"]).counted == 2
    with pytest.raises(InvalidInput, match="measured twice in 'x'"):
        once.tell(["a", "a"], [0.1, 0.2], blocks=["x", "x"])
    assert once.tell(["a"], [0.1], ["k"], blocks=["x"]).counted == 1
    assert once.tell(["a"], [0.1], ["k"], blocks=["x"]).repeated == 1
    with pytest.raises(InvalidInput, match="measured twice in 'x'"):
        once.tell(["a"], [0.3], blocks=["x"])


def test_a_block_of_an_earlier_plan_and_another_worker_is_remembered(stored_at):
    study = stored(stored_at, policy_of(once_a_block=True))
    batch = study.ask()
    names = ['day "1"', "DAY 1%", "day_1", "dax1"]
    assert study.tell(batch.pulls(), [0.1] * batch.total, blocks=(names * batch.total)[: batch.total]).closed
    study.ask()
    told = dict(zip(batch.pulls(), names, strict=False))
    for name in ("a", "b"):
        with pytest.raises(InvalidInput, match="measured twice"):
            study.tell([name], [0.3], blocks=[told[name]], worker="ben")
    assert study.log.in_blocks(["Day 1%", "day11", "anna"]) == set()
    assert study.log.in_blocks(names) == {(told[name], "abcd".index(name), 1) for name in told}


@pytest.mark.parametrize("database", [False, True])
def test_what_is_told_asks_for_its_own_blocks_only(database, sqlite_url, monkeypatch):
    policy = policy_of(once_a_block=True, batch_size=8)
    study, asked = stored(sqlite_url, policy) if database else sp.Study(policy), []
    ask = type(study.log).in_blocks
    monkeypatch.setattr(type(study.log), "in_blocks", lambda log, blocks: asked.append(blocks) or ask(log, blocks))
    monkeypatch.setattr(type(study.log), "history", lambda *_: pytest.fail("the whole history was read"))
    for _ in range(3):
        batch = study.ask()
        study.tell(batch, [0.1] * batch.total)
        assert set(asked[-1]) == set(batch.blocks)


def test_what_a_refused_turn_stored_is_forgotten():
    study = sp.Study(policy_of(once_a_block=True))
    study.ask()
    log, rows = study.log, study._ledger.singles(["a"], [0.1], None, None, ["x"])

    def told_and_refused() -> None:
        with log.turn():
            log.add_results(1, rows, status="counted", at=0.0)
            assert log.in_blocks(["x"]) == {("x", 0, 1)}
            raise InvalidInput("no")

    with pytest.raises(InvalidInput, match="no"):
        told_and_refused()
    assert log.in_blocks(["x"]) == set()


def test_a_key_told_again_with_another_block_is_refused():
    study = sp.Study(policy_of())
    study.ask()
    study.tell(["a"], [0.1], ["k"], blocks=["x"])
    with pytest.raises(InvalidInput, match="of the block 'x'"):
        study.tell(["a"], [0.1], ["k"], blocks=["y"])


def test_results_kept_apart_need_no_block():
    study = sp.Study(policy_of())
    assert study.tell_prior(["a"], [0.5]).prior == 1


def test_simulated_blocks_have_effects_that_change_nothing_but_rounding():
    arms = sp.Arms(ids=list("abcd"))
    world = sp.environments.Environment(arms=arms, means=MEANS, noise=sp.SubGaussian(0.5))
    runs = [
        sp.simulate(policy_of(block_size=3), sp.environments.with_block_effects(world, scale), seed=4)
        for scale in (0.0, 5.0)
    ]
    assert runs[0].verdict == "certified"
    assert [row.pulls for row in runs[0].rounds] == [row.pulls for row in runs[1].rounds]
    assert runs[0].best_arm == runs[1].best_arm == "b"


def test_one_call_of_measure_is_one_block():
    study, calls = sp.Study(policy_of(block_size=3)), []
    rng = np.random.default_rng(3)

    def measure(ids):
        calls.append(len(ids))
        off = rng.normal(0.0, 50.0)
        return [MEANS["abcd".index(name)] + off + 0.5 * rng.standard_normal() for name in ids]

    assert study.run(measure, progress=False).best_arm == "b"
    assert max(calls) <= 3


@first_on("postgresql")
@pytest.mark.parametrize("minimize", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_study_in_a_database_is_replayed_and_its_certificate_verified(database_url, minimize, tmp_path):
    from surepick.studies.database import open_stored_study

    study = stored(database_url, policy_of(block_size=3, control="d"), minimize=minimize)
    measured(study, 20.0, minimize=minimize)
    again = open_stored_study(database_url, "lab")
    assert again.certificate() == study.certificate()
    assert again.certificate().verdict == "certified"
    target = sp.write_certificate(again, tmp_path / "lab.json")
    assert verify_certificate(target).holds


POINTS = np.array([[0.0, 0.1], [1.0, 0.0], [0.3, 0.4], [0.1, -0.3], [0.6, 0.2], [-0.2, 0.5]])


@first_on("sqlite")
@pytest.mark.parametrize("minimize", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_study_on_features_is_replayed_and_its_certificate_verified(database_url, minimize, tmp_path):
    from surepick.studies.database import open_stored_study

    arms, rng = sp.Arms(POINTS, ids=list("abcdef")), np.random.default_rng(8)
    asked = {"epsilon": 0.4, "delta": 0.1, "noise": "subgaussian:0.5", "norm_bound": 1.2, "blocks": "day"}
    study = stored(
        database_url, sp.make_policy("certified-linear", arms, **asked, block_size=4, control="d"), minimize=minimize
    )
    while (batch := study.ask()) is not None:
        off = {name: rng.normal(0.0, 50.0) for name in dict.fromkeys(batch.blocks)}
        rows = zip(batch.pulls(), batch.blocks, strict=True)
        rewards = [POINTS["abcdef".index(name)] @ [1.0, 0.0] + off[block] for name, block in rows]
        rewards += 0.5 * rng.standard_normal(len(rewards))
        study.tell(batch, -rewards if minimize else rewards)
    again = open_stored_study(database_url, "lab")
    assert again.certificate() == study.certificate()
    assert (again.certificate().verdict, again.recommend()) == ("certified", "b")
    assert any("same day" in sentence for sentence in again.certificate().assumptions)
    target = sp.write_certificate(again, tmp_path / "lab.json")
    assert verify_certificate(target).holds
    assert sp.write_report(again, tmp_path / "lab.html", forecast_up_to=0).stat().st_size > 0


def test_two_workers_lease_blocks_of_their_own(database_url):
    study = stored(database_url, policy_of(block_size=2, batch_size=8))
    first, second = (study.lease(4, worker=name) for name in ("anna", "ben"))
    assert not set(first.blocks) & set(second.blocks)
    study.tell(first, [0.1] * first.total)
    study.tell(second, [0.2] * second.total)
    assert study.log.last_decision().seen.blocks.number == 4
    study.log.check_rows()


def test_altered_blocks_are_found(tmp_path):
    import json

    study = sp.Study(policy_of(block_size=3))
    measured(study, 5.0)
    document = certificate_document(study, "lab")
    look = next(entry for entry in document["rounds"] if entry["looks"][0]["candidate"])["looks"][0]
    look["blocks"]["blocks"] = [0] * len(look["blocks"]["blocks"])
    path = tmp_path / "altered.json"
    path.write_text(json.dumps(document))
    assert not verify_certificate(path).holds
