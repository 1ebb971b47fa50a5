"""Measuring beside each other: by workers or coroutines, nothing is lost when one raises, and a worker may die."""

import asyncio
import math
import os
import threading
from functools import partial

import numpy as np
import pytest

import surepick as sp
from surepick.studies.parallel import Workers

MEANS = {"a": 0.9, "b": 0.5, "c": 0.3, "d": 0.1}
ASKED = {"epsilon": 0.2, "delta": 0.05, "noise": "subgaussian:0.1"}


def measure(ids):
    return [MEANS[one] for one in ids]


class Counted:
    """How many calls are under way at a time, and how many ids each has."""

    def __init__(self, raises: int | None = None, together: int | None = None) -> None:
        self.together = None if together is None else threading.Barrier(together, timeout=60.0)
        self.lock, self.now, self.most, self.sizes, self.raises = threading.Lock(), 0, 0, [], raises

    def __call__(self, ids):
        with self.lock:
            self.now += 1
            self.most, number = max(self.most, self.now), len(self.sizes)
            self.sizes.append(len(ids))
        if self.together is not None and number < self.together.parties:
            self.together.wait()  # ends once so many are under way
        with self.lock:
            self.now -= 1
        if number == self.raises:
            raise RuntimeError("the reactor is off")
        return measure(ids)


def study_of(**options) -> sp.Study:
    arms = sp.Arms(ids=list(MEANS))
    return sp.Study(arms, sp.make_policy("certified-independent", arms, **ASKED, **options))


@pytest.mark.parametrize("jobs", [2, 4])
def test_a_batch_is_divided_among_workers(jobs):
    counted = Counted(together=jobs)
    found = study_of(batch_size=16).run(counted, n_jobs=jobs)
    assert found.best_arm == "a"
    assert counted.sizes[:jobs] == [16 // jobs] * jobs
    assert counted.most == jobs


def test_parts_may_be_smaller_than_a_share():
    counted = Counted()
    study_of(batch_size=16).run(counted, n_jobs=2, at_once=3)
    assert sorted(counted.sizes[:6]) == [1, 3, 3, 3, 3, 3]
    assert counted.most <= 2


def test_one_worker_measures_as_ever():
    counted, plain = Counted(), Counted()
    assert study_of().run(counted, n_jobs=1).certificate == study_of().run(plain).certificate
    assert counted.sizes == plain.sizes


@pytest.mark.parametrize("raises", [0, 2])
def test_nothing_is_lost_when_one_raises(raises):
    study = study_of(batch_size=16)
    with pytest.raises(RuntimeError, match="the reactor is off"):
        study.run(Counted(raises), n_jobs=4)
    assert study.missing.sum() == 4  # the other three parts are in
    assert study.run(measure, n_jobs=4).best_arm == "a"


def test_what_fails_is_asked_again_and_then_left_out():
    tried = []

    def sometimes(ids):
        tried.append(list(ids))
        return [np.nan if one == "d" else MEANS[one] for one in ids]

    found = study_of(batch_size=16).run(sometimes, n_jobs=4)
    assert found.best_arm == "a"
    assert "left out: 'd'" in found.certificate.reason


def test_a_thousand_coroutines_at_once():
    under_way, most = 0, 0

    async def waits(ids):
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.05)
        under_way -= 1
        return measure(ids)

    found = study_of(batch_size=1000).run(waits, n_jobs=1000, max_pulls=math.inf)
    assert (found.best_arm, found.verdict) == ("a", "certified")
    assert most == 1000


def test_nothing_is_lost_when_a_coroutine_raises():
    numbers = iter(range(10_000))

    async def waits(ids):
        if next(numbers) == 2:
            raise RuntimeError("the reactor is off")
        return measure(ids)

    study = study_of(batch_size=16)
    with pytest.raises(RuntimeError, match="the reactor is off"):
        study.run(waits, n_jobs=4)
    assert study.missing.sum() == 4
    assert study.run(waits, n_jobs=4).best_arm == "a"


def test_a_program_with_an_event_loop_goes_on_meanwhile():
    loops = set()

    async def waits(ids):
        loops.add(asyncio.get_running_loop())
        await asyncio.sleep(0)
        return measure(ids)

    async def program():
        ticks = 0

        async def ticking():
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0)

        beside = asyncio.create_task(ticking())
        found = [await sp.find_best_async(list(MEANS), one, n_jobs=2, **ASKED) for one in (waits, measure)]
        beside.cancel()
        return found, ticks, loops == {asyncio.get_running_loop()}

    found, ticks, in_its_loop = asyncio.run(program())
    assert [one.best_arm for one in found] == ["a", "a"]
    assert ticks > 1
    assert in_its_loop


def died_once(mark, ids):
    if not mark.exists():
        mark.touch()
        os._exit(1)
    return measure(ids)


def test_a_worker_that_dies_is_asked_again(tmp_path):
    from joblib import parallel_config

    with parallel_config(backend="loky"):
        calls = [partial(died_once, tmp_path / "mark", ["a"])] * 4
        came = {number: given for number, given, raised in Workers(2).outcomes(calls) if raised is None}
    assert came == {number: [0.9] for number in range(4)}


@pytest.mark.parametrize("wrong", [0, 1.5, "two"])
def test_what_is_no_number_of_workers_is_refused(wrong):
    with pytest.raises(sp.InvalidInput, match="n_jobs"):
        sp.find_best(list(MEANS), measure, n_jobs=wrong, **ASKED)


def test_all_calls_of_a_study_have_one_event_loop():
    loops = set()

    async def waits(ids):
        loops.add(asyncio.get_running_loop())
        return measure(ids)

    for jobs in (1, 4):
        loops.clear()
        study_of(batch_size=16).run(waits, n_jobs=jobs)
        assert len(loops) == 1


def test_whoever_cancels_is_asked_for_nothing_more():
    calls = []

    async def waits(ids):
        calls.append(ids)
        await asyncio.sleep(0.02)
        return [0.5 for _ in ids]

    async def program():
        asked = {"epsilon": 1e-4, "delta": 0.05, "noise": "subgaussian:0.1", "max_pulls": math.inf}
        task = asyncio.create_task(sp.find_best_async(list(MEANS), waits, **asked))
        while len(calls) < 3:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        seen = len(calls)
        await asyncio.sleep(0.3)
        return len(calls) - seen

    assert asyncio.run(program()) <= 1


def test_a_part_that_is_too_short_loses_no_other_part():
    def bad(ids):
        if "d" in ids:
            return [np.nan] * len(ids) if set(ids) == {"d"} else None
        return measure(ids)

    study = study_of(batch_size=40)
    with pytest.raises(sp.SurepickError):
        study.run(bad, n_jobs=12, at_once=4)
    assert study.missing[:2].sum() == 0
