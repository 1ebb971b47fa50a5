"""Whatever was given up on the way, a study has a certificate that verifies, and a report."""

from dataclasses import dataclass

import numpy as np
import pytest
from command_line import surepick
from named_policies import NAMES, OPTIONS

import surepick as sp
from surepick.certificates.document import write_certificate
from surepick.certificates.verify import verify_certificate
from surepick.core.random_streams import stream
from surepick.errors import InvalidInput
from surepick.forecasts import simulated_studies
from surepick.reports.study import page
from surepick.reports.study.page import write_report

FEATURES = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.6], [-0.4, 0.3]])
IDS = ("a", "b", "c", "d")
MEANS = {"a": 0.9, "b": 0.2, "c": 0.66, "d": -0.3}
MOST = 3  # plans
REASONS = ("independent-of-value", "a lost parcel")


@dataclass(frozen=True)
class Kind:
    """A policy as `make_policy` takes it."""

    name: str
    options: dict[str, object]
    noise: str = "subgaussian:0.5"
    block: str | None = None

    def policy(self):
        chosen = OPTIONS.get(self.name, {}) | self.options
        arms = sp.Arms(FEATURES, IDS, columns=["x", "y"])
        return sp.make_policy(self.name, arms, epsilon=0.4, delta=0.1, noise=self.noise, **chosen)


INDEPENDENT, LINEAR = "certified-independent", "certified-linear"
KINDS = {
    **{name: Kind(name, {"budget": 100} if name == "sequential-halving" else {}) for name in NAMES},
    "normal": Kind(INDEPENDENT, {}, "normal"),
    "normal, linear": Kind(LINEAR, {}, "normal"),
    "bernoulli": Kind(INDEPENDENT, {}, "bernoulli"),
    "readings, linear": Kind(LINEAR, {"evidence": "readings"}),
    "later": Kind(INDEPENDENT, {"later": ["d"]}),
    "later, linear": Kind(LINEAR, {"later": ["d"]}),
    "blocks": Kind(INDEPENDENT, {"blocks": "day"}, block="monday"),
    "blocks, linear": Kind(LINEAR, {"blocks": "day"}, block="monday"),
    "paired": Kind(INDEPENDENT, {"blocks": "day"}, "normal", block="monday"),
    "items": Kind("certified-items", {"items": 40, "seed": 3}, "bernoulli"),
    "above": Kind(INDEPENDENT, {"question": "above", "threshold": 0.5}),
    "above, control": Kind(LINEAR, {"question": "above", "control": "b"}),
    "top": Kind(INDEPENDENT, {"question": "top", "m": 2}),
    "all-good": Kind(LINEAR, {"question": "all-good"}),
    "one-of": Kind(INDEPENDENT, {"question": "one-of", "share": 0.5, "sample_seed": 1}),
    "feasible": Kind(INDEPENDENT, {"question": "feasible", "constraints": ["heat<=2"]}),
}


def give_up(study, reason: str) -> bool:
    """Whether a round was there to give up."""
    if study.ask() is None:
        return False
    study.abandon(reason)
    return True


def measure(study, kind: Kind) -> bool:
    """Whether a round was there to measure."""
    batch = study.ask()
    if batch is None:
        return False
    rng = stream(batch.number, "given up")
    ids = [*batch.pulls()]
    rewards = [MEANS[name] + 0.3 * rng.standard_normal() for name in ids]
    if kind.noise == "bernoulli":
        rewards = [float(rng.random() < (MEANS[name] + 1) / 2) for name in ids]
    if kind.options.get("question") == "feasible":
        rewards = np.column_stack([rewards, np.ones(len(ids))])
    study.tell(batch, rewards)
    return True


def first_round(study, kind: Kind) -> None:
    give_up(study, REASONS[0])
    for _ in range(MOST):
        measure(study, kind)


def first_round_alone(study, kind: Kind) -> None:
    give_up(study, REASONS[1])


def every_round(study, kind: Kind) -> None:
    for number in range(MOST):
        give_up(study, REASONS[number % 2])


def between(study, kind: Kind) -> None:
    give_up(study, REASONS[0])
    measure(study, kind)
    give_up(study, REASONS[1])


def withdrawn(reason: str, *, rounds: int = 0):
    def all_but_one(study, kind: Kind) -> None:
        for _ in range(rounds):
            give_up(study, reason)
        for name in ("a", "b", "c", "d"):
            try:
                study.withdraw([name], reason)
            except (InvalidInput, sp.errors.OutOfTurn):
                continue
            give_up(study, reason)
        measure(study, kind)

    return all_but_one


def closed(study, kind: Kind) -> None:
    study.ask()
    study.close("the money is spent")


def given_up_and_closed(study, kind: Kind) -> None:
    give_up(study, REASONS[0])
    study.ask()
    study.close("the money is spent")


def nothing(study, kind: Kind) -> None:
    study.ask()


WAYS = {
    "nothing yet": nothing,
    "first round given up": first_round,
    "first round given up, and no more": first_round_alone,
    "every round given up": every_round,
    "a result between": between,
    "withdrawn all but one": withdrawn(REASONS[0]),
    "withdrawn all but one for another reason": withdrawn(REASONS[1]),
    "withdrawn after a round without results": withdrawn(REASONS[0], rounds=1),
    "closed before any result": closed,
    "given up and closed": given_up_and_closed,
}


FORESEEN: dict[str, object] = {}  # of each policy, for what a study has seen does not enter a forecast


@pytest.fixture(autouse=True)
def forecasts_are_made_once(monkeypatch):
    honest = page.foreseen

    def shared(policy, *, most_arms: int):
        key = f"{policy.spec} {most_arms}"
        if key not in FORESEEN:
            FORESEEN[key] = honest(policy, most_arms=most_arms)
        return FORESEEN[key]

    monkeypatch.setattr(page, "foreseen", shared)
    monkeypatch.setattr(simulated_studies, "EQUAL_STUDIES", 1)  # a forecast has to be there, not to be good


def check(study, folder) -> None:
    """The certificate is the same by all ways to it, and verifies; the report can be written."""
    answer = study.certificate()
    path = write_certificate(study, folder / "certificate.json", name="x")
    result = verify_certificate(path)
    assert result.holds, str(result)
    assert result.verdict == answer.verdict
    write_report(study, folder / "report.html", name="x")
    assert "</html>" in (folder / "report.html").read_text("utf-8")
    assert answer.best_arm in answer._repr_html_()


EACH_WAY = (INDEPENDENT,)
SOME_WAYS = {  # of policies with rules of their own
    "paired": ("every round given up", "withdrawn all but one", "closed before any result"),
    "items": ("nothing yet", "a result between", "withdrawn after a round without results", "given up and closed"),
}
EACH_KIND = ("first round given up",)


# Their certificates and reports are those of linear-embedding, certified-linear and xy-static with other numbers,
# or what such a one and the same kind without features have.
OF_ONE_KIND = (
    *("kernel-embedding", "fixed-kernel", "certified-kernel", "xy-adaptive", "means-neural-rule"),
    *("fixed-linear", "normal, linear", "readings, linear", "later, linear"),
)


STORED_ALIKE = {  # by their names, or as the same kind without features; the others have more to store
    *(set(NAMES) - {INDEPENDENT, LINEAR, "sequential-halving"}),
    *("normal, linear", "readings, linear", "later, linear", "blocks, linear", "blocks", "bernoulli"),
    *("above", "top", "all-good"),
}
ON_A_LINE = set(KINDS) - STORED_ALIKE - {INDEPENDENT, "certified-neural"}
FEW_WAYS = ("nothing yet", "every round given up", "withdrawn all but one for another reason", "given up and closed")


def cases():
    """Every kind in every way; most are for the long proofs, and what the command line plays is not played here."""
    for name in KINDS:
        ways = () if name in ON_A_LINE else EACH_KIND
        for way in WAYS:
            here = name in EACH_WAY or way in ways or way in SOME_WAYS.get(name, ())
            quick = here and name not in OF_ONE_KIND
            yield pytest.param(name, way, marks=[] if quick else pytest.mark.slow)


@pytest.mark.parametrize(("name", "way"), list(cases()))
def test_it_has_its_certificate_and_report_in_memory(name, way, tmp_path):
    kind = KINDS[name]
    study = sp.Study(kind.policy())
    WAYS[way](study, kind)
    check(study, tmp_path)


def on_a_line():
    """Every way of one policy, and one way of every kind; of those that are stored alike one in `make test`."""
    for way in WAYS:
        yield pytest.param(INDEPENDENT, way, marks=[] if way in FEW_WAYS else [pytest.mark.slow])
    for name in KINDS:
        if name not in (INDEPENDENT, "certified-neural"):
            marks = [] if name in ON_A_LINE else [pytest.mark.slow]
            yield pytest.param(name, "first round given up", marks=marks)


@pytest.mark.parametrize(("name", "way"), list(on_a_line()))
def test_it_has_them_on_the_command_line(name, way, sqlite_url, tmp_path):
    kind = KINDS[name]
    study = sp.create_study(sqlite_url, "x", kind.policy())
    WAYS[way](study, kind)
    file, page = tmp_path / "c.json", tmp_path / "r.html"
    shown, *_ = surepick("certificate", sqlite_url, "x", "--out", file)
    assert shown == (0 if study.certificate().verdict == "certified" else 3)
    verified, out, _ = surepick("verify", file)
    assert verified == 0, out
    assert surepick("report", sqlite_url, "x", "--out", page)[0] == 0
    assert surepick("status", sqlite_url, "x")[0] == 0


def test_a_server_shows_them(sqlite_url):
    pytest.importorskip("fastapi")
    from servers import serving, token_for

    with serving(sqlite_url) as client:
        study = sp.create_study(sqlite_url, "x", KINDS[INDEPENDENT].policy())
        first_round(study, KINDS[INDEPENDENT])
        headers = token_for(client, "ann", "owner")
        for path in ("certificate", "report", "history", "answer"):
            answer = client.get(f"/api/v1/studies/x/{path}", headers=headers)
            assert answer.status_code == 200, answer.text
