"""Results that are mistyped and corrected after their round was closed cost neither delta nor many measurements.

`docs/certified-elimination.md`, line 37. The saboteurs choose weights after the correction, with the batch in view, or
leave slips as they are.
"""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from bounds import counted, failures_allowed, trials_to_notice
from carried_studies import without_bad_batches
from corrected_studies import DELTA, Mistyped, Slip, judged, settled_wrongly

import surepick as sp
from surepick.core.observations import Observations
from surepick.core.plans import Plan
from surepick.estimators.margin_mixtures import margin_grid, margin_weights
from surepick.estimators.running_processes import MeanProcesses
from surepick.studies.logs.base import Correction, Deviations
from surepick.studies.replay import Closed

RIVALS = [(1_500, 60), pytest.param(10_000, 60, marks=pytest.mark.slow)]
of_rivals = pytest.mark.parametrize(("runs", "looks"), RIVALS)


def said(what: str, wrong: int, runs: int, delta: float = DELTA) -> int:
    print(f"\n{what}: {wrong} wrong of {runs}, {failures_allowed(runs, delta)} allowed")
    return wrong


# independent rivals of one candidate, all better by just over epsilon


@of_rivals
@pytest.mark.parametrize("factor", [10.0, -10.0])
def test_slips_that_are_corrected_keep_delta(runs, looks, factor):
    wrong = said(f"mistyped by {factor:g}", settled_wrongly(runs, looks, factor=factor), runs)
    assert wrong <= failures_allowed(runs, DELTA)


@of_rivals
def test_weights_chosen_after_the_correction_are_noticed(runs, looks, monkeypatch):
    """The saboteur: whoever corrects sees the batches, and bets on those that came out well."""
    honest = MeanProcesses.after

    def in_hindsight(policy, state, closed):
        with monkeypatch.context() as spoilt:
            spoilt.setattr(MeanProcesses, "after", without_bad_batches(honest) if closed.past else honest)
            return judged(policy, state, closed)

    wrong = said("weights in hindsight", settled_wrongly(runs, looks, judge=in_hindsight), runs)
    assert wrong > failures_allowed(runs, DELTA)


def uncorrected(policy, state, closed):
    """As if nothing had been corrected."""
    return judged(policy, state, replace(closed, past=(), deviations=Deviations()))


@of_rivals
def test_slips_that_stay_are_noticed(runs, looks):
    """The saboteur: slips of the other sign make rivals look worse."""
    wrong = said("not corrected", settled_wrongly(runs, looks, judge=uncorrected, factor=-10.0), runs)
    assert wrong > failures_allowed(runs, DELTA)


# studies that steer themselves


@counted(DELTA)
def wrong_answers(name: str, runs: int, **options):
    """Studies that end with an arm that is worse than epsilon, all slips corrected."""
    arms = sp.Arms([[1.0, 0.0], [0.0, 1.0], [0.7, 0.7]], ids=["a", "b", "c"])
    policy = sp.make_policy(name, arms, epsilon=1.0, delta=DELTA, noise="subgaussian:1", **options)
    for seed in range(runs):
        means = np.roll([2.002, 1.0, 1.0] if name == "certified-independent" else [1.0, 2.002, 2.1], 0)
        study = Mistyped(policy, means, 1.0, np.random.default_rng([seed, 38]))
        certified, arm = study.play()
        yield certified and means[arm] < means.max() - 1.0


STUDIES = {"carried": ("certified-independent", {}), "features": ("certified-linear", {"norm_bound": 3.0})}


@pytest.mark.parametrize(
    ("evidence", "runs"),
    [
        *((evidence, trials_to_notice(DELTA, 0.7)) for evidence in STUDIES),
        *(
            pytest.param(evidence, 10_000 if evidence == "carried" else 1_000, marks=pytest.mark.slow)
            for evidence in STUDIES
        ),
    ],
)
def test_studies_with_corrected_slips_keep_delta(evidence, runs):
    name, options = STUDIES[evidence]
    assert said(evidence, wrong_answers(name, runs, **options), runs) <= failures_allowed(runs, DELTA)


# the exact law: every outcome of three batches, typed and read


def outcomes(counts):
    """(log probability, sums) of fair coins."""
    for highs in itertools.product(*(range(count + 1) for count in counts)):
        yield math.prod(math.comb(n, k) * 0.5**n for n, k in zip(counts, highs, strict=True)), np.array(highs, float)


@pytest.mark.parametrize("kept", [True, False])
def test_the_mean_of_each_process_is_at_most_one(kept):
    """Coins; of arm 0 the first result is typed as its opposite, and plans follow from what was typed.

    Without `kept`, as the saboteur: the batch is bet on only if it came out well.
    """
    goal = {"epsilon": 0.3, "delta": 0.1, "noise": "bernoulli", "evidence": "carried"}
    policy = sp.make_policy("certified-independent", sp.Arms(ids=["a", "b"]), **goal)
    expected, means, honest = np.zeros(2), np.full(2, 0.5), MeanProcesses.after
    first = Plan(round=1, counts=np.array([2, 2]), dim=2)
    for chance, read in outcomes([2, 2]):
        typed = read + np.array([1.0 - 2.0 * (read[0] > 0), 0.0])  # a slip that depends on what was read
        counts = [1, 2] if typed[0] > typed[1] else [2, 1]
        second = Plan(round=2, counts=np.array(counts), dim=2, candidate=int(np.argmax(typed)), predicted_pulls=9.0)
        for more, later in outcomes(counts):
            past = Closed(1, first, Observations(first.counts, read, read))
            made = Deviations(corrected=(Correction(2, 0, 1, 0, float(typed[0]), float(read[0])),))
            last = Closed(2, second, Observations(second.counts, later, later), made, (past,))
            MeanProcesses.after = honest if kept else without_bad_batches(honest)
            try:
                state = judged(policy, policy.init(), last)
            finally:
                MeanProcesses.after = honest
            held = state.means
            given = sum((one.flows * means[one.arm] for one in held.given), np.zeros(2))
            expected += chance * more * np.exp(held.log_values + held.taken * means - given)
    assert np.all(expected <= 1.0 + 1e-12) == kept, expected


@pytest.mark.parametrize("honest", [True, False])
def test_the_mean_of_each_mixture_is_at_most_one(honest):
    """The same slips; without `honest`, as the saboteur, one is corrected only if that raises the process of an arm."""
    goal = {"epsilon": 0.1, "delta": 0.1, "noise": "bernoulli"}
    policy = sp.make_policy("certified-independent", sp.Arms(ids=["a", "b"]), **goal)
    weights = np.exp(margin_weights(len(margin_grid(policy.problem.noise, 0.1))))
    expected = np.zeros(2)
    for chance, read in outcomes([2, 2]):
        typed = read + np.array([1.0 - 2.0 * (read[0] > 0), 0.0])
        counts = [1, 2] if typed[0] > typed[1] else [2, 1]
        plans = [Plan(round=1, counts=np.array([2, 2]), dim=2), Plan(round=2, counts=np.array(counts), dim=2)]
        for more, later in outcomes(counts):
            found = []
            for told in (read, typed):
                past = Closed(1, plans[0], Observations(plans[0].counts, told, told))
                made = Deviations(corrected=(Correction(2, 0, 1, 0, float(typed[0]), float(told[0])),))
                last = Closed(2, plans[1], Observations(plans[1].counts, later, later), made, (past,))
                held = judged(policy, policy.init(), last).log_values
                found.append(np.array([np.exp(held[0, 1]) @ weights, np.exp(held[1, 0]) @ weights]))
            expected += chance * more * (found[0] if honest else np.maximum(*found))
    assert np.all(expected <= 1.0 + 1e-12) == honest, expected


# what it costs


def pulls_with(slip_in_round: int | None, wait: int, runs: int) -> float:
    """Mean measurements of studies in which 790 is typed for 66, and corrected so many plans later."""
    means = np.array([57.0, 61.0, 66.0, 70.0, 75.0, 79.0])
    arms = sp.Arms(ids=list("abcdef"))
    policy = sp.make_policy("certified-independent", arms, epsilon=5.0, delta=0.05, noise="subgaussian:3")
    spent = []
    for seed in range(runs):
        study = Slipped(policy, means, 3.0, np.random.default_rng([seed, 39]), chance=0.0, waits=(wait,))
        study.slipped = slip_in_round
        certified, arm = study.play()
        assert certified
        assert means[arm] >= 74.0
        spent.append(study.pulls)
    return float(np.mean(spent))


class Slipped(Mistyped):
    """One slip, of the first result of the third arm."""

    slipped: int | None = None

    def measured(self, plan):
        read = super().measured(plan)
        if self.slipped == len(self.plans) + 1 and len(read[2]):
            read[2][0] = 66.0
            self.slips.append(Slip(len(self.plans), 2, 0, self.waits[0]))
        return read


@pytest.mark.parametrize("runs", [12, pytest.param(400, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("wait", "most"), [(0, 1.1), (1, 1.5)])
def test_a_corrected_study_costs_little_more(wait, most, runs):
    without, corrected = pulls_with(None, 0, runs), pulls_with(1, wait, runs)
    print(f"\n{without:.1f} measurements without a slip, {corrected:.1f} with one corrected {wait} plans later")
    assert corrected <= most * without
