"""A study over HTTP is the study in a database: one line of a program changes, and nothing of what comes of it."""

from dataclasses import replace

import numpy as np
import pytest
from servers import serving

import surepick as sp
from surepick.certificates.document import certificate_document
from surepick.core.records import encode
from surepick.studies.database import open_stored_study
from surepick_server.client import RemoteStudy

FEATURES = np.random.default_rng(5).normal(size=(6, 2)) / 3
IDS = tuple("abcdef")
MEANS = dict(zip(IDS, (0.91, 0.3, 0.52, 0.1, 0.45, 1 / 3), strict=True))
ITEMS = [f"q{number}" for number in range(40)]


def arms(**more):
    return sp.Arms(FEATURES, IDS, columns=("x", "-y"), **more)


def draws(ids):
    """The same for the same ids in the same order."""
    rng = np.random.default_rng(len(ids))
    return [MEANS[name] + rng.normal(0, 0.05) for name in ids]


def answers(ids, items):
    return [float(hash_of(name, item) < MEANS[name]) for name, item in zip(ids, items, strict=True)]


def hash_of(name, item):
    return (IDS.index(name) * 7 + ITEMS.index(item) * 13) % 40 / 40


def in_blocks(ids, blocks):
    return [MEANS[name] + 0.3 * len(block) for name, block in zip(ids, blocks, strict=True)]


def with_heat(ids):
    return [[MEANS[name], 60.0 + 10.0 * IDS.index(name)] for name in ids]


USUAL = {"epsilon": 0.4, "delta": 0.05, "noise": "subgaussian:0.1"}
STUDIES = {  # name -> (policy, measure, more)
    "independent": (("certified-independent", arms(), {}), draws, {}),
    "linear": (("certified-linear", arms(preparation=("standardize",)), {"norm_bound": 3.0}), draws, {}),
    "costs": (("certified-linear", arms(costs=[0.1, 0.2, 0.7, 0.1, 1 / 3, 3.0]), {"norm_bound": 3.0}), draws, {}),
    "above": (("certified-independent", arms(), {"question": "above", "threshold": 0.4}), draws, {}),
    "segments": (("certified-independent", arms(segments=["n", "s"] * 3), {"question": "top", "m": 1}), draws, {}),
    "minimize": (("certified-independent", sp.Arms(ids=IDS), {}), draws, {"minimize": True}),
    "parts": (("certified-independent", sp.Arms(ids=IDS), {}), draws, {"judge": "as they come"}),
    "blocks": (
        ("certified-independent", sp.Arms(ids=IDS), {"blocks": "plate", "block_size": 6, "once_a_block": True}),
        in_blocks,
        {},
    ),
    "constraints": (("certified-independent", sp.Arms(ids=IDS), {"constraints": ["heat<=85"]}), with_heat, {}),
    "items": (("certified-items", sp.Arms(ids=IDS), {"items": ITEMS, "seed": 3, "noise": "bernoulli"}), answers, {}),
}


def created(url, kind):
    (name, candidates, options), _, more = STUDIES[kind]
    policy = sp.make_policy(name, candidates, **(USUAL | options))
    return sp.create_study(url, "paint", candidates, policy, study_id="the same", **more)


def played(study, measure):
    """All plans of a study that is measured to its end."""
    plans = []
    while (batch := study.ask()) is not None:
        plans.append(encode(batch))
        beside = [batch.item_ids] if batch.items is not None else [batch.blocks] if batch.blocks else []
        rewards = measure(batch.pulls(), *beside)
        receipt = study.tell(batch, rewards)
        assert (receipt.plan, receipt.counted, receipt.closed) == (batch.number, batch.total, True)
        assert len(plans) < 200
    return plans


OFTEN = ("costs", "segments", "minimize", "parts", "blocks", "constraints", "items")  # the others go with them


@pytest.mark.parametrize("kind", [pytest.param(one, marks=() if one in OFTEN else pytest.mark.slow) for one in STUDIES])
def test_plans_answers_and_certificates_are_those_of_a_database(tmp_path, server, sqlite_url, kind):
    there, here = created(str(server.base_url), kind), created(f"sqlite:///{tmp_path}/here.db", kind)
    assert isinstance(there, RemoteStudy)
    assert not isinstance(here, RemoteStudy)
    assert there.registration == here.registration
    assert played(there, STUDIES[kind][1]) == played(here, STUDIES[kind][1])
    mine = certificate_document(here, "paint")
    assert certificate_document(there, "paint") == mine
    assert certificate_document(open_stored_study(sqlite_url, "paint"), "paint")["sha256"] == mine["sha256"]
    for study in (there, sp.open_study(str(server.base_url), "paint")):
        assert encode(study.certificate()) == encode(here.certificate())
        assert encode(study.trace) == encode(here.trace)
        assert encode(study.arms) == encode(here.arms)
        assert study.policy == here.policy
        assert (study.ids, study.noise, study.minimize) == (here.ids, here.noise, here.minimize)
        assert (study.recommend(), study.stopped, study.early_end()) == (here.recommend(), True, None)
        assert (study.constraints, study.blocking) == (here.constraints, here.blocking)
        assert encode(study.prices) == encode(here.prices)
        assert str(study.progress()) == str(here.progress())
        assert study.missing.tolist() == [0] * 6


def of_the_manual(url, policy):
    """The program of docs/studies.md."""
    sp.create_study(url, "headlines", policy)
    study = sp.open_study(url, "headlines")
    part = study.lease(max_pulls=3, worker="lab-2", duration="8h")
    receipt = study.tell(part, [1] * part.total)
    rest = study.free_part()
    progress = str(replace(study.progress(), now=0.0, opened_at=0.0))  # at no pace, as that is of a clock
    return part.keys(), part.lease.worker, receipt, rest.table(), progress, study.certificate().verdict


def test_the_program_of_the_manual_with_one_line_changed(stored_at, tmp_path):
    policy = sp.make_policy("certified-independent", sp.Arms(ids=["A", "B", "C", "D"]), **USUAL)
    with serving(stored_at) as client:
        over_http = of_the_manual(str(client.base_url), policy)
    in_a_file = of_the_manual(f"sqlite:///{tmp_path}/python.db", policy)
    assert over_http == in_a_file
    assert over_http[2].counted == 3


def test_a_loop_runs_to_its_end(stored_at):
    policy = sp.make_policy("certified-independent", sp.Arms(ids=IDS), **USUAL)
    with serving(stored_at) as client:
        study = sp.create_study(str(client.base_url), "paint", policy)
        stopped = study.run(draws, max_pulls=5, at_once=2)
        assert (stopped.verdict, stopped.ended_by) == ("budget-exhausted", "pulls")
        result = study.run(draws, at_once=2)
    assert (result.best_arm, result.verdict, result.study) == ("a", "certified", study)


def test_what_else_can_be_reported(tmp_path, server):
    """Totals, priors, failures, keys that were reported, releases, withdrawals, and an early end: as in a database."""
    found = []
    for url in (str(server.base_url), f"sqlite:///{tmp_path}/here.db"):
        policy = sp.make_policy("certified-independent", sp.Arms(ids=IDS), later=["f"], **USUAL)
        study = sp.create_study(url, "paint", policy, surplus="count")
        part = study.lease(4, worker="ann", duration=3600)
        said = [
            study.fail(["a"], [part.keys()[0][1]], worker="ann"),
            study.tell(["b"], [0.5], [part.keys()[1][1]], failed=[("c", part.keys()[2][1])], worker="ann"),
            study.recorded(["a", "b", "d"], [key for _, key in part.keys()[:2]] + [part.keys()[3][1]]),
            study.tell(["b"], [0.5], [part.keys()[1][1]], worker="ann"),
            study.release("ann"),
            study.tell_totals(["a", "c"], [1, 1], [0.9, 0.5], [0.81, 0.25], ["s1", "s2"]),
            study.tell_totals(["d"], [2], [0.2], plan=1),
            study.tell_prior(["e", "f"], [0.1, 0.2], ["old-1", "old-2"]),
            study.add(["f"]),
            study.missing.tolist(),
            study.abandon("independent-of-value", ["e"]),
            study.ask().table(),  # a server makes the next plan at once
            str(study.progress()),
            study.withdraw(["d"], "sold out"),
            study.judging,
            study.close("enough"),
            study.stopped,
        ]
        end = study.early_end()
        withdrawn = [(one.arm, one.reason) for one in end.withdrawn]
        found.append([said, (end.reason, end.missing, withdrawn), study.recommend(), encode(study.trace)])
    assert found[0] == found[1]
    assert found[0][0][1].failed == 1


def test_documents_are_those_of_the_database(tmp_path, server, sqlite_url):
    study = created(str(server.base_url), "blocks")
    study.run(in_blocks)
    kept = open_stored_study(sqlite_url, "paint")
    from surepick.studies.audit import export_results

    for one, name in ((study, "there"), (kept, "here")):
        sp.write_certificate(one, tmp_path / f"{name}.json")
        sp.write_certificate(one, tmp_path / f"{name}-named.json", name="paint")
        sp.write_report(one, tmp_path / f"{name}.html", forecast_up_to=0)
        for suffix in ("csv", "jsonl", "parquet"):
            assert export_results(one, tmp_path / f"{name}.{suffix}") == study.progress().pulls
    for suffix in (".json", "-named.json", ".csv", ".jsonl", ".parquet", ".html"):
        assert (tmp_path / f"there{suffix}").read_bytes() == (tmp_path / f"here{suffix}").read_bytes(), suffix
    assert sp.verify_certificate(tmp_path / "there.json").holds


def test_what_only_the_database_has_is_not_there(server):
    study = created(str(server.base_url), "independent")
    for name in ("log", "replay"):
        with pytest.raises(AttributeError, match="the log of this study is on its server"):
            getattr(study, name)
