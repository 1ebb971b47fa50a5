"""Whatever order the results come in, and wherever they are cut into parts: the certificate follows and verifies."""

import sys

import numpy as np
from budgets import budget
from hypothesis import HealthCheck, given, settings, strategies as st
from judged_parts import OPTIONS, small_study, tell_keys

from surepick.certificates.document import certificate_document
from surepick.certificates.verify import verify_certificate
from surepick.core.observations import Observations

MOST_STEPS = 60


@settings(max_examples=budget(15, fewest=2), suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(sorted(OPTIONS)), st.integers(0, 2**32 - 1))
def test_any_order_and_any_parts(name, seed):
    rng, study = np.random.default_rng(seed), small_study(name)
    out: list[tuple[str, str]] = []
    told = 0
    for step in range(MOST_STEPS):
        part = study.lease(int(rng.integers(1, 6)), worker=f"worker {step}")
        if part is None:
            break
        out += part.keys()
        order = rng.permutation(len(out))
        number = int(rng.integers(0, len(out) + 1))
        came, out = [out[row] for row in order[:number]], [out[row] for row in order[number:]]
        if came:
            receipt = tell_keys(study, came)
            told += receipt.counted
            assert receipt.counted + receipt.late == len(came)
            assert receipt.late == 0
        if rng.random() < 0.6:
            study.interim()
    study.interim()
    assert study.certificate().pulls == told
    document = certificate_document(study, "parts")
    found = verify_certificate(document, registered=study.registration)
    assert found.holds, str(found)


@settings(max_examples=budget(30, fewest=3))
@given(st.sampled_from(sorted(OPTIONS)), st.integers(0, 2**32 - 1))
def test_any_part_of_any_batch_leaves_a_finite_state(name, seed):
    """Also one that sees no direction of what is tested, and one of arms that nobody asked for now."""
    rng, policy = np.random.default_rng(seed), small_study(name).policy
    state = policy.init()
    for _ in range(30):
        plan = policy.ask(state)
        counts = rng.integers(0, 3, 3) * (rng.random(3) < 0.5)
        sums = counts * rng.normal(0.3, 0.5, 3)
        state = policy.tell(state, plan, Observations(counts, sums, sums**2 / np.maximum(counts, 1) + counts)).state
        if policy.claim(state).finished:
            break
        if state.begun:
            assert np.all(np.isfinite(state.processes.log_values))
            assert np.all(np.abs(state.processes.log_values) < sys.float_info.max**0.25)
