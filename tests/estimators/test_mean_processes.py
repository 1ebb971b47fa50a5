"""What processes of arms without vectors say of a pair, against brute force."""

import numpy as np
import pytest
from hypothesis import example, given, strategies as st

from surepick.core.observations import Observations
from surepick.estimators import noise_mgf_after
from surepick.estimators.running_processes import UNKNOWN, Flow, MeanProcesses
from surepick.noise import SubGaussian

NUM_ARMS = 5
AMOUNTS = np.geomspace(1e-3, 1e5, 801)
flows = st.lists(st.sampled_from([-3.0, -0.5, 0.0, 0.0, 0.7, 2.0]), min_size=NUM_ARMS, max_size=NUM_ARMS)
taken = st.lists(st.sampled_from([0.0, 0.5, 2.0, 7.0]), min_size=NUM_ARMS, max_size=NUM_ARMS)
values = st.lists(st.floats(-6.0, 6.0), min_size=NUM_ARMS, max_size=NUM_ARMS)
spans = st.sampled_from([(0.0, 1.0), (-1.0, 0.0), (-2.0, 5.0), (3.0, 4.0)])


def processes(log_values, own, to_first, to_second):
    held = (Flow(0, np.array(to_first)), Flow(1, np.array(to_second)))
    return MeanProcesses(np.array(log_values), np.ones(NUM_ARMS, int), np.array(own), held)


def by_brute_force(of, arm, candidate, threshold, span):
    """min over a grid of T of (threshold - log value + the largest sum of D h) / T, D kept for every arm."""
    flow = np.zeros((len(AMOUNTS), NUM_ARMS))
    for one in of.given:
        flow[:, one.arm] += one.flows[arm]
    flow[:, arm] -= of.taken[arm]
    flow[:, candidate] -= AMOUNTS
    flow[:, arm] += AMOUNTS
    both = [np.maximum(flow * low, flow * high).sum(axis=1) for low, high in (span, (-span[1], -span[0]))]
    return float(np.min((threshold - of.log_values[arm] + np.maximum(*both)) / AMOUNTS))


@example([0.0, 0.0, 0.0, 0.0, 5.50390625], [0.0] * 5, [-3.0, -3.0, -3.0, -3.0, -0.5], [-3.0] * 4 + [0.0], (-2.0, 5.0))
@given(values, taken, flows, flows, spans)
def test_bounds_with_a_range_are_the_smallest_over_all_amounts(log_values, own, to_first, to_second, span):
    of = processes(log_values, own, to_first, to_second)
    bounds = of.upper_bounds(0, 3.0, span)
    assert bounds[0] == 0.0
    for arm in range(2, NUM_ARMS):
        searched = by_brute_force(of, arm, 0, 3.0, span)
        assert bounds[arm] <= searched + 1e-3
        if bounds[arm] > -UNKNOWN:
            assert bounds[arm] >= min(searched, *_at(of, arm, np.array([of.taken[arm], to_first[arm]]), span)) - 2e-3
        else:  # the smallest may lie at amounts far below the grid's: there it falls without end
            assert min(searched, _at(of, arm, np.array([1e-9]), span)[1]) < 0.0


def _at(of, arm, amounts, span):
    """The same at some amounts, and the limit."""
    found = [span[1] - span[0]]
    for amount in amounts[amounts > 0.0]:
        flow = np.zeros(NUM_ARMS)
        for one in of.given:
            flow[one.arm] += one.flows[arm]
        flow[arm] += amount - of.taken[arm]
        flow[0] -= amount
        both = [np.maximum(flow * low, flow * high).sum() for low, high in (span, (-span[1], -span[0]))]
        found.append((3.0 - of.log_values[arm] + max(both)) / amount)
    return found


@given(values, taken, flows, spans, st.integers(0, 2**32 - 1))
def test_no_means_within_the_range_contradict_what_is_said(log_values, own, to_first, span, seed):
    """If h_j - h_c is larger than U then log M_j, which holds the means, is beyond the threshold."""
    of = processes(log_values, own, to_first, np.zeros(NUM_ARMS))
    bounds = of.upper_bounds(0, 1.0, span)
    means = np.random.default_rng(seed).uniform(*span, size=NUM_ARMS)
    for arm in range(2, NUM_ARMS):
        if means[arm] - means[0] > bounds[arm]:
            log_process = of.log_values[arm] + of.taken[arm] * means[arm] - to_first[arm] * means[0]
            assert log_process >= 1.0 - 1e-6


@given(values, taken)
def test_matched_flows_need_no_range(log_values, own):
    of = processes(log_values, own, own, np.zeros(NUM_ARMS))
    without, within = of.upper_bounds(0, 3.0), of.upper_bounds(0, 3.0, (0.0, 1.0))
    known = (np.array(own) > 0.0) & (np.arange(NUM_ARMS) > 1)
    assert np.all(within[known] <= without[known])
    told = known & (within > -UNKNOWN)  # elsewhere the process is beyond the threshold by itself
    assert np.array_equal(np.minimum(without[told], 1.0), within[told])
    assert np.all(without[2:][~known[2:]] == UNKNOWN)


def test_a_flow_does_not_change_without_a_pull():
    seen = Observations(np.array([1, 0, 0, 0, 0]), np.zeros(NUM_ARMS))
    noise_mgf = noise_mgf_after(SubGaussian(1.0), seen)
    with pytest.raises(ValueError, match="not pulled"):
        MeanProcesses.started(NUM_ARMS, 0.0).after(np.array([2]), np.array([1.0]), {}, seen, noise_mgf)
