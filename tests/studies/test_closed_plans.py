"""A plan that closes never leaves a study unusable: what its policy would refuse is refused on entry, else named."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager

import numpy as np
import pytest
from budgets import budget
from servers import serving

import surepick as sp
from surepick.certificates.document import certificate_document
from surepick.core.observations import Quantity
from surepick.policies.items import CertifiedItems
from surepick.policies.paired.elimination import PairedElimination
from surepick.studies.logs.memory import MemoryLog

IDS = ("a", "b", "c")
PLAIN, SHAPED = sp.Arms(ids=IDS), sp.Arms([[1.0, 0.0], [0.0, 1.0], [0.6, 0.6]], IDS)
ASKED = {"epsilon": 0.3, "delta": 0.1, "noise": "subgaussian:0.5"}
KINDS = {
    "independent": ("certified-independent", PLAIN, {}),
    "linear": ("certified-linear", SHAPED, {"norm_bound": 2.0}),
    "kernel": ("certified-kernel", SHAPED, {"norm_bound": 4.0, "gamma": 0.5}),
    "readings": ("certified-linear", SHAPED, {"norm_bound": 2.0, "evidence": "readings"}),
    "normal": ("certified-independent", PLAIN, {"noise": "normal"}),
    "bounded": ("certified-independent", PLAIN, {"noise": "bounded:0:1"}),
    "bernoulli": ("certified-independent", PLAIN, {"noise": "bernoulli"}),
    "blocks": ("certified-independent", PLAIN, {"blocks": "day", "block_size": 4}),
    "once a block": ("certified-independent", PLAIN, {"blocks": "day", "once_a_block": True}),
    "paired": ("certified-independent", PLAIN, {"blocks": "day", "evidence": "paired", "noise": "normal"}),
    "streams": ("certified-independent", PLAIN, {"streams": "seed", "noise": "normal"}),
    "constraints": ("certified-independent", PLAIN, {"constraints": ["heat<=85"]}),
    "the two best": ("certified-independent", PLAIN, {"question": "top", "m": 2}),
    "elimination": ("linear-embedding", SHAPED, {"norm_bound": 2.0}),
    "rage": ("rage", SHAPED, {}),
    "lucb": ("lucb", PLAIN, {}),
    "sequential-halving": ("sequential-halving", PLAIN, {"budget": 40}),
    "items": ("certified-items", PLAIN, {"items": [f"q{n}" for n in range(30)], "noise": "bernoulli", "seed": 7}),
    "items of degrees": ("certified-items", PLAIN, {"items": list("uvwxyz"), "noise": "bounded:0:1", "seed": 7}),
}

IN_A_DATABASE, OVER_HTTP = ("blocks", "items"), ("independent", "constraints", "streams", "items")


def policy_of(kind: str) -> sp.Policy:
    name, arms, options = KINDS[kind]
    return sp.make_policy(name, arms, **{**ASKED, **options})


@contextmanager
def study_in(place: str, kind: str, tmp_path):
    url = f"sqlite:///{tmp_path / 'studies.db'}"
    with ExitStack() as stack:
        if place == "memory":
            yield sp.Study(policy_of(kind))
        elif place == "sqlite":
            yield sp.create_study(url, "x", policy_of(kind))
        else:
            server = stack.enter_context(serving(url))
            yield sp.create_study(str(server.base_url), "x", policy_of(kind))


def values(batch, value, kind):
    """A value for each pull of a batch, as the study takes it."""
    if kind == "constraints":
        return np.column_stack([np.full(batch.total, value), np.full(batch.total, 60.0)])
    return np.full(batch.total, value)


def refusals(study, batch, kind):
    """Calls that a policy could not judge, or that would count twice; each as (what, call)."""
    name, item = batch.pulls()[0], next(iter(batch.item_ids), None)
    one = values(batch, 1.0, kind)[:1]
    blocks = {"blocks": ["x"]} if batch.blocks else {}
    key = next(iter(batch.keys()), (None, None))[1] if batch.items is not None else None
    quantity = {"quantities": [Quantity(np.ones(1), np.ones(1), np.ones(1))]} if kind == "constraints" else {}

    def totals(pulls, total, squares, names=(name,)):
        return lambda: study.tell_totals(names, [pulls], [total], squares, **blocks, **quantity)

    yield "a reward that is none", lambda: study.tell([name], one * np.nan, **blocks)
    yield "a reward too large", lambda: study.tell([name], one * 1e60, **blocks)
    yield "totals of too much", totals(1, 1e60, [1e120])
    yield "a half of a pull", totals(0.5, 1.0, [1.0])
    yield "less than no pull", totals(-1, 1.0, [1.0])
    yield "squares of nothing", totals(2, 5.0, [0.1])
    yield "an arm that is none", lambda: study.tell(["nobody"], one, **blocks)
    yield "a key of another", lambda: study.tell([name], one, ["p1.0@nobody"], **blocks)
    yield "an item of another", lambda: study.tell([name], one, ["item0@nobody"], **blocks)
    yield "more blocks than results", lambda: study.tell([name], one, blocks=["x", "y"])
    if batch.items is not None:
        yield "an answer without an item", lambda: study.tell([name], one)
        yield "several answers at once", totals(2, 1.0, [1.0])
        yield "an item that was not asked", lambda: study.tell([name], one, ["item999@" + name])
        yield "an item in blocks", lambda: study.tell([name], one, items=[item], blocks=["x"])
        for spelled in (f"{key.partition('@')[0]}@zzz", f"{key.partition('@')[0]}@", f"{key}\u200b", key.upper()):
            yield f"the key {spelled}", lambda spelled=spelled: study.tell([name], one, [spelled])
            yield f"the key {spelled}, failed", lambda spelled=spelled: study.fail([name], [spelled])
        yield "a score above 1", lambda: study.tell([name], [1.5], items=[item])
        yield "one answer, two values", lambda: study.tell([name] * 2, [1.0, 0.0], items=[item] * 2)
    elif blocks:
        yield "no block", lambda: study.tell([name], one)
        yield "a block that is none", lambda: study.tell([name], one, blocks=[None])
        if kind in ("once a block", "paired", "streams"):
            twice = [("7", "7.0"), ("7", "07"), (7, 7.0), ("a b", "a\u00a0b"), ("x", "x\u200b"), ("1000", "1e3")]
            for pair in twice:
                yield f"twice in {pair}", lambda pair=pair: study.tell([name] * 2, np.repeat(one, 2, 0), blocks=pair)
            yield "totals in a block", totals(2, 1.0, [1.0])
    elif kind in ("bounded", "bernoulli"):
        yield "above the bounds", lambda: study.tell([name], [1.5])
        yield "totals above the bounds", totals(2, 2.5, [4.0])
    if kind == "constraints":
        yield "no heat", lambda: study.tell([name], [1.0])
        yield "totals without heat", lambda: study.tell_totals([name], [1], [1.0], [1.0])
        yield "endless heat", lambda: study.tell([name], [[1.0, np.inf]])


def counted(study) -> int:
    progress = study.progress()
    return progress.pulls + progress.told


def check_usable(study, kind) -> None:
    """The round can be finished, and everything that is done with a study goes on working."""
    study.certificate()
    if (batch := study.free_part()) is not None and batch.total:
        assert study.tell(batch, values(batch, 1.0, kind), accept_unusual=True).counted == batch.total
    assert not study.progress().refused
    study.recommend()
    if (batch := study.ask()) is not None:
        study.abandon("independent-of-value", batch.pulls()[:1])
        study.abandon("independent-of-value") if study.missing.any() and study.ask() == batch else None
        study.ask()
        assert not study.progress().refused
    study.close("enough")
    assert study.ask() is None
    assert study.certificate().best_arm in IDS
    assert certificate_document(study) if isinstance(study, sp.Study) else True


PLACES = [  # a server's studies are in a database; what is sent and stored alike is so in the proofs
    pytest.param(kind, place, marks=() if kind in kinds else pytest.mark.slow)
    for kind in KINDS
    for place, kinds in {"memory": KINDS, "sqlite": IN_A_DATABASE, "http": OVER_HTTP}.items()
]


@pytest.mark.cases(15)
@pytest.mark.parametrize(("kind", "place"), PLACES)
def test_every_refusal_comes_before_anything_is_stored(kind, place, tmp_path):
    with study_in(place, kind, tmp_path) as study:
        batch = study.ask()
        for what, call in refusals(study, batch, kind):
            with pytest.raises((sp.InvalidInput, sp.OutOfTurn)) as refused:
                call()
            assert len(str(refused.value)) <= 500, what
            assert counted(study) == 0, what
        assert study.ask() == batch
        check_usable(study, kind)


EXTREMES = (5e-324, 1e50, -0.0, 1.0, 0.0, 1e-300, -1e50, 1e15)  # the first two in `make test`


@pytest.mark.cases(10)
@pytest.mark.parametrize("kind", KINDS)
def test_values_at_the_edge_of_what_is_taken_can_be_judged(kind):
    for value in EXTREMES[: budget(len(EXTREMES), fewest=2)]:
        study = sp.Study(policy_of(kind))
        for sign in (1.0, -1.0):
            batch = study.ask()
            if batch is None:
                break
            told = values(batch, value, kind)
            if told.ndim == 1:
                told[::2] *= sign
            try:
                study.tell(batch, told)
            except sp.InvalidInput:
                assert counted(study) == (0 if sign == 1.0 else study.progress().pulls)
        check_usable(study, kind)


ERRORS = (sp.InvalidInput("of no use."), ZeroDivisionError("by zero"), ValueError("empty"))
ONE_ERROR = {"sqlite": ERRORS[1], "http": ERRORS[0]}  # all of them in memory


@pytest.mark.parametrize(
    ("place", "error"),
    [
        pytest.param(place, error, marks=() if ONE_ERROR.get(place, error) is error else pytest.mark.slow)
        for place in ("memory", "sqlite", "http")
        for error in ERRORS
    ],
)
def test_a_plan_that_cannot_be_judged_is_named_and_the_study_can_be_closed(monkeypatch, place, error, tmp_path):
    """The second line: a policy that refuses results although they were taken."""
    kinds = (CertifiedItems, "items") if place != "memory" else (PairedElimination, "paired")
    with study_in(place, kinds[1], tmp_path) as study:
        first = study.ask()
        study.tell(first, values(first, 1.0, kinds[1]))
        before = study.certificate()
        if (batch := study.ask()) is None:
            pytest.skip("it was certified at once")
        right = kinds[0].tell

        def refusing(*_):
            raise error

        monkeypatch.setattr(kinds[0], "tell", refusing)
        assert study.tell(batch, values(batch, 1.0, kinds[1])).closed
        for _ in range(2):
            with pytest.raises(sp.OutOfTurn, match=r"plan 2 is complete, and its results cannot be judged: .*close"):
                study.ask()
            with pytest.raises(sp.OutOfTurn, match="cannot be judged"):
                study.abandon("independent-of-value")
            assert str(error) in study.progress().refused
            assert "cannot be judged" in str(study.progress())
            assert study.certificate() == before
            assert study.recommend() == before.best_arm
        monkeypatch.setattr(kinds[0], "tell", right)
        study.ask()  # with the policy mended the study goes on
        assert not study.progress().refused
        monkeypatch.setattr(kinds[0], "tell", refusing)
        study.close("a defect")
        assert study.ask() is None
        assert "closed" in study.certificate().reason


def test_a_plan_that_cannot_be_judged_stays_so_over_a_close(monkeypatch):
    study = sp.Study(policy_of("items"), log=MemoryLog())
    batch = study.ask()

    def refusing(*_):
        raise sp.InvalidInput("of no use.")

    monkeypatch.setattr(CertifiedItems, "tell", refusing)
    study.tell(batch, [1.0] * batch.total)
    study.close("a defect")
    answer = study.certificate()
    assert (answer.verdict, answer.pulls) == ("not-certified", 0) or answer.pulls == 0
    assert "a defect" in answer.reason
    assert certificate_document(study)["rounds"] == []
