"""Questions keep what they promise where errors are as likely as they can be, and what their proofs forbid is seen.

Means stand on the wrong side of the border by a hair. In half of the cells the policy is on its own; in the others an
adversary who sees the past chooses the pulls, the guesses that bets rest on, and when to stop. A study is cut after so
many batches; what is on a wrong list by then counts.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pytest
from bounds import failures_allowed, shares_allowed, until_clear
from budgets import STUDIES, at_each_delta
from question_studies import (
    KNOWN,
    Adversary,
    End,
    World,
    all_look_above,
    at_the_border,
    cut_by_a_hair,
    first_list_filled,
    good_look_bad,
    good_ones_at_will,
    on_both_borders,
    one_swapped,
    partly_bad,
    played,
    played_out,
    steadily,
)

import surepick as sp
from surepick.estimators.e_values import EProcesses
from surepick.estimators.posterior import Posterior
from surepick.policies.base import Problem
from surepick.policies.questions.elimination import CertifiedLists
from surepick.policies.questions.outlook import Ground
from surepick.questions import Above, TopM, above, protocol
from surepick.questions.protocol import Lists, View

DELTAS = [0.05, 0.3]
Lead = Callable[[CertifiedLists, World], Adversary]


@dataclass(frozen=True)
class Cell:
    """A question of a world; who leads the studies, None: the policy; and after how many batches they are cut."""

    world: World
    question: str
    asked: dict[str, object]
    lead: Lead | None = None
    horizon: int = 60

    def ends(self, runs: int, delta: float) -> Iterator[End]:
        policy = self.world.policy(self.question, delta, **self.asked)
        adversary = None if self.lead is None else self.lead(policy, self.world)
        return (played(policy, self.world, seed, adversary, self.horizon) for seed in range(runs))

    def wrong(self, runs: int, delta: float) -> int:
        return until_clear((end.wrong for end in self.ends(runs, delta)), runs, delta)

    def shares(self, runs: int, delta: float) -> np.ndarray:
        """Mean wrong shares of the first list, of the second, of both together."""
        return np.mean([end.shares for end in self.ends(runs, delta)], axis=0)


def looking_above(policy: CertifiedLists, world: World) -> Adversary:
    return all_look_above(world, pulls=1, guess=0.5)


def bad_ones_first(policy: CertifiedLists, world: World) -> Adversary:
    return first_list_filled(world, pulls=3)


def swapping(policy: CertifiedLists, world: World) -> Adversary:
    return one_swapped(policy, world, best=2, pulls=1)


def good_as_bad(policy: CertifiedLists, world: World) -> Adversary:
    return good_look_bad(policy, world, good=16, pulls=6)


def a_bad_one_looks_best(policy: CertifiedLists, world: World) -> Adversary:
    scores = np.where(np.arange(len(world.means)) == 2, 1e-6, 0.0)
    return Adversary(lambda state: np.full(len(scores), KNOWN), steadily(scores), doubt=world.epsilon)


TAU, CONTROL = {"threshold": 0.0}, {"control": "20"}
DISCOVERY = {**TAU, "errors": "discovery"}
FAMILY = {
    "above 0, led": Cell(at_the_border(sigma=2.0), "above", TAU, looking_above, 40),
    "above 0 by .5, led": Cell(at_the_border(sigma=2.0), "above", {"threshold": -0.5, "by": 0.5}, looking_above, 40),
    "above .5, rewards 0 or 1": Cell(at_the_border(sigma=None, both=True), "above", {"threshold": 0.5}),
    "above a control, led": Cell(at_the_border(sigma=2.0, control=True), "above", CONTROL, looking_above, 40),
    "above a control": Cell(at_the_border(sigma=1.0, control=True, both=True), "above", CONTROL),
    "2 best of 8, led": Cell(cut_by_a_hair(8, 2, sigma=2.0), "top", {"m": 2}, swapping, 30),
    "best of 3": Cell(cut_by_a_hair(3, 1, sigma=2.0), "top", {"m": 1}),
    "best of 3, rewards 0 or 1": Cell(cut_by_a_hair(3, 1, sigma=None), "top", {"m": 1}),
    "all good of 3": Cell(on_both_borders(1, 1, sigma=1.0), "all-good", {}),
    "all good of 20, led": Cell(on_both_borders(16, 3, sigma=2.0), "all-good", {}, good_as_bad, 30),
}
ONLY_FEW = ("above 0 by .5, led", "above a control", "best of 3")
SHARES = {
    "20 of 21 bad, led": Cell(partly_bad(20, 0), "above", DISCOVERY, bad_ones_first, 40),
    "10 of 21 bad, led": Cell(partly_bad(10, 10), "above", DISCOVERY, bad_ones_first, 40),
    "rewards 0 or 1": Cell(at_the_border(sigma=None, both=True), "above", {"threshold": 0.5, "errors": "discovery"}),
}


def shares_of_nulls(cell: Cell, delta: float) -> np.ndarray:
    """What line 5 allows on the first list, the second, and both: delta times the share of arms that can be wrong."""
    policy = cell.world.policy(cell.question, delta, **cell.asked)
    centre, means = float(policy.problem.question.threshold), cell.world.means  # type: ignore[union-attr,arg-type]
    low, high = (np.mean(side) for side in (means < centre - 0.9 * cell.world.epsilon, means > centre))
    if cell.lead is not None:
        high = 0.0  # far above, or never measured
    return delta * np.array([low, high, low + high])


def sizes(names) -> list:
    """(name, runs, delta): few of each, and 5,000 of those that are played at full size."""
    few = [(name, 20, 0.05) for name in names]
    whole = [(name, STUDIES, delta) for name in names if name not in ONLY_FEW for delta in DELTAS]
    return [*few, *(pytest.param(*each, marks=pytest.mark.slow) for each in whole)]


# --- family-wise


@pytest.mark.cases(4)  # every question, half of them led
@pytest.mark.parametrize(("name", "runs", "delta"), sizes(FAMILY))
def test_no_arm_at_all_is_on_a_wrong_list_except_with_probability_delta(name, runs, delta):
    wrong, allowed = FAMILY[name].wrong(runs, delta), failures_allowed(runs, delta)
    print(f"\n{name}, delta {delta}: {wrong} wrong of {runs}, {allowed} allowed")
    assert wrong <= allowed


def one_null(nulls: int, delta: float) -> float:
    """The saboteur: nobody shares delta."""
    return float(np.log(1.0 / delta))


@pytest.mark.cases(2)
@pytest.mark.parametrize("name", ["above 0, led", "above a control, led", "2 best of 8, led", "all good of 20, led"])
def test_a_threshold_for_one_null_is_caught(name, monkeypatch):
    monkeypatch.setattr(protocol, "bet_threshold", one_null)
    assert FAMILY[name].wrong(30, 0.3) > failures_allowed(30, 0.3)


def without_bad_batches(wager):
    """The saboteur: no bet where the batch would lower the evidence."""

    def spoilt(*fixed):
        honest = wager(*fixed)
        return lambda *told: np.maximum(honest(*told), 0.0)

    return spoilt


@pytest.mark.cases(3)
@pytest.mark.parametrize("name", ["above 0, led", "above a control, led", "2 best of 8, led", "all good of 20, led"])
def test_bets_that_look_at_the_batch_are_caught(name, monkeypatch):
    monkeypatch.setattr(Ground, "wager", without_bad_batches(Ground.wager))
    assert FAMILY[name].wrong(15, 0.05) > failures_allowed(15, 0.05)


def test_a_list_on_which_one_more_may_be_better_is_caught(monkeypatch):
    """Then m true nulls may stand against an arm of the list."""
    decided = TopM.decided
    cell = Cell(cut_by_a_hair(8, 2, sigma=2.0), "top", {"m": 2}, a_bad_one_looks_best, 5)
    assert cell.wrong(20, 0.05) <= failures_allowed(20, 0.05)
    monkeypatch.setattr(TopM, "decided", lambda self, view: decided(TopM(self.m + 1), view))
    assert cell.wrong(20, 0.05) > failures_allowed(20, 0.05)


@at_each_delta
def test_a_margin_with_by_on_the_wrong_side_is_caught(delta, monkeypatch):
    margin = Above._margin
    monkeypatch.setattr(Above, "_margin", lambda self, view, *, high: margin(self, view, high=not high))
    assert FAMILY["above 0 by .5, led"].wrong(20, delta) > failures_allowed(20, delta)


@pytest.mark.cases(2)
@pytest.mark.parametrize("name", ["above 0, led", "2 best of 8, led", "all good of 20, led"])
def test_half_the_noise_is_caught(name, monkeypatch):
    pulled = World.pulled

    def twice_as_noisy(world, counts, rng):
        return pulled(replace(world, sigma=2.0 * world.sigma), counts, rng)

    monkeypatch.setattr(World, "pulled", twice_as_noisy)
    assert FAMILY[name].wrong(20, 0.05) > failures_allowed(20, 0.05)


# --- shares of errors


@pytest.mark.parametrize(("name", "runs", "delta"), sizes(SHARES))
def test_the_mean_wrong_share_of_each_list_and_of_both_is_what_line_5_says(name, runs, delta):
    found, most = SHARES[name].shares(runs, delta), shares_of_nulls(SHARES[name], delta)
    allowed = [shares_allowed(runs, rate) for rate in most]
    print(f"\n{name}, delta {delta}: shares {np.round(found, 4)}, at most {np.round(most, 4)}; {np.round(allowed, 4)}")
    assert np.all(found <= allowed)


@at_each_delta
def test_a_list_that_does_not_count_all_that_were_asked_about_is_caught(delta, monkeypatch):
    honest = above.discoveries
    monkeypatch.setattr(above, "discoveries", lambda values, allowed, total, delta: honest(values, allowed, 1, delta))
    cell = SHARES["20 of 21 bad, led"]
    assert cell.shares(40, delta)[0] > shares_allowed(40, delta)


def by_peaks(decided):
    """The saboteur: the largest value of each process in the place of its present one."""

    def spoilt(self, view):
        sheets = tuple(EProcesses(one.name, one.peaks, one.peaks) for one in view.evidence)
        return decided(self, replace(view, evidence=sheets))

    return spoilt


def mean_share_of_walks(runs: int, delta: float, bad: int = 5, good: int = 55) -> float:
    """The first list of studies in which bad arms are measured to their end, and then just as many good ones as make
    the wrong share largest if the largest values count."""
    total, shares = bad + good, []
    asked, problem = Above(0.0, errors="discovery"), Problem(total, 1.0, delta, sp.SubGaussian(1.0))
    for last, highest in zip(*played_out(runs, bad, seed=0), strict=True):
        number = good_ones_at_will(highest, good, total, delta)
        sure = np.where(np.arange(good) < number, 99.0, 0.0)
        higher = EProcesses("above", np.append(last, sure), np.append(highest, sure))
        posterior = Posterior(np.zeros(total), lambda _: np.ones(total))
        view = View(problem, delta, (higher,), Lists.empty(total), posterior)
        inside = asked.decided(view).inside
        shares.append(inside[:bad].sum() / max(inside.sum(), 1))
    return float(np.mean(shares))


def test_the_largest_values_of_the_processes_are_caught(monkeypatch):
    delta, runs = 0.3, 1_000
    allowed = shares_allowed(runs, delta * 5 / 60)
    assert mean_share_of_walks(runs, delta) <= allowed
    monkeypatch.setattr(Above, "decided", by_peaks(Above.decided))
    assert mean_share_of_walks(runs, delta) > allowed
