"""States of certified elimination with carried-on evidence: what a database keeps of them."""

from itertools import pairwise

import numpy as np
import pytest

import surepick as sp
from surepick.core.random_streams import stream
from surepick.core.records import from_json, to_json
from surepick.designs import problem as problems
from surepick.estimators import LeastSquaresEstimate
from surepick.estimators.running_processes import VectorProcesses
from surepick.policies.sequential import state as states_of

KINDS = {"certified-independent": {}, "certified-linear": {"norm_bound": 2.0}}


def states(name):
    """(policy, its states after each batch) of a study of eight arms with normal rewards."""
    rng = stream(5, "carried state", name)
    arms = sp.Arms(rng.normal(size=(8, 2)))
    means = arms.features @ [1.0, -0.5]
    policy = sp.make_policy(
        name, arms, evidence="carried", epsilon=0.5, delta=0.05, noise=sp.SubGaussian(1.0), **KINDS[name]
    )
    state, found = policy.init(), []
    while not policy.claim(state).finished and len(found) < 12:
        plan = policy.ask(state)
        sums = plan.counts * means + np.sqrt(plan.counts) * rng.normal(size=8)
        state = policy.tell(state, plan, sp.Observations(plan.counts, sums)).state
        found.append(state)
    return policy, found


@pytest.mark.parametrize("name", KINDS)
def test_a_stored_state_goes_on_as_if_it_had_never_been_away(name):
    policy, found = states(name)
    assert len(found) >= 4
    for state in found:
        text = to_json(state, sparse=True)
        back = from_json(states_of.SequentialState, text)
        assert to_json(back, sparse=True) == text
        assert back.begun == state.begun
        assert (type(back.means), type(back.vectors)) == (type(state.means), type(state.vectors))
        assert policy.claim(back).gap == policy.claim(state).gap
        if not policy.claim(state).finished:
            assert policy.ask(back) == policy.ask(state)


def test_where_nothing_is_known_the_gap_is_none_and_the_interval_infinite():
    policy, found = states("certified-independent")
    first = found[0]
    assert policy.claim(first).gap is None
    again = from_json(states_of.SequentialState, to_json(first, sparse=True))
    assert policy.claim(again).gap is None
    state = policy.init()
    plan = policy.ask(state)
    known = policy.tell(state, plan, first.seen).deciding(None)
    assert np.isinf(known.widths).all()


def test_a_gap_falls_while_the_leader_stays():
    policy, found = states("certified-linear")
    gaps = [(state.leader, policy.claim(state).gap) for state in found]
    kept = [(before, after) for (one, before), (other, after) in pairwise(gaps) if one == other and before is not None]
    assert len(kept) >= 3
    assert all(after <= before for before, after in kept)
    assert any(after < before for before, after in kept)


def studied(num_arms, dim, monkeypatch, watched=()):
    """(states, calls of each watched (object, name)) of a study of normal features, to its end."""
    rng = stream(2, "carried size", num_arms, dim)
    features, theta = rng.normal(size=(num_arms, dim)), rng.normal(size=dim)
    means, calls = features @ theta / np.sqrt(theta @ theta), {}
    for owner, name in watched:
        called = getattr(owner, name)

        def counted(*given, called=called, name=name, **named):
            calls[name] = calls.get(name, 0) + 1
            return called(*given, **named)

        monkeypatch.setattr(owner, name, counted)
    arms, noise = sp.Arms(features), sp.SubGaussian(0.5)
    policy = sp.make_policy("certified-linear", arms, epsilon=0.1, delta=0.05, noise=noise, norm_bound=1.0)
    state, found = policy.init(), []
    while not policy.claim(state).finished:
        plan = policy.ask(state)
        sums = plan.counts * means + 0.5 * np.sqrt(plan.counts) * rng.normal(size=num_arms)
        state = policy.tell(state, plan, sp.Observations(plan.counts, sums)).state
        found.append(state)
    return found, calls


def test_a_stored_state_of_many_arms_costs_eleven_characters_a_number_that_differs(monkeypatch):
    num_arms, dim = 6_000, 20
    found, _ = studied(num_arms, dim, monkeypatch)
    sizes = [len(to_json(state, sparse=True)) for state in found]
    bare = [size for size, state in zip(sizes, found, strict=True) if not state.vectors.begun]
    assert max(bare) < 11 * states_of.MOST_TESTED * num_arms  # no flow is held, and none costs anything
    assert max(sizes) < 11 * (dim + states_of.MOST_TESTED + 4) * num_arms
    back = from_json(states_of.SequentialState, to_json(found[-1], sparse=True))
    assert back == found[-1]


def test_what_is_as_large_as_the_arms_is_formed_once(monkeypatch):
    watched = [(problems, "whitened"), (VectorProcesses, "upper_bounds"), (LeastSquaresEstimate, "distances")]
    found, calls = studied(400, 5, monkeypatch, watched)
    assert len(found) >= 6
    assert calls["whitened"] <= 4  # the first design, stars, flows; not each design
    assert calls["upper_bounds"] <= 2 * len(found)  # of the leader and the candidate; not for each goal again
    assert calls["distances"] <= 2 * len(found)
