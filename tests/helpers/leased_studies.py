"""A study of three arms whose pulls are leased, and a clock that is set by hand."""

import numpy as np

import surepick as sp
from surepick.studies.logs.memory import MemoryLog

IDS = ("a", "b", "c")


MEANS = {"a": 1.5, "b": 0.25, "c": 0.0}


HOUR = 3600.0


SECRET = 987.654321  # a reward that no message may show


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1.75e9

    def __call__(self) -> float:
        return self.now

    def advance(self, hours: float) -> None:
        self.now += hours * HOUR


def make_study(clock: Clock, *, sigma: float = 3.0, name: str = "certified-independent") -> sp.Study:
    """The first plan asks for three pulls of each of three arms."""
    arms = sp.Arms(ids=IDS)
    alike = {"batch_size": 9} if name.startswith("certified-") else {}
    policy = sp.make_policy(name, arms, epsilon=1.0, delta=0.05, noise=sp.SubGaussian(sigma), **alike)
    return sp.Study(arms, policy, log=MemoryLog(clock))


def tell_keys(study: sp.Study, keys, worker=None):
    """Tell the pulls of [(id, key)] with their arms' means."""
    return study.tell(
        [arm for arm, _ in keys], [MEANS[arm] for arm, _ in keys], [key for _, key in keys], worker=worker
    )


def tell_rest(study: sp.Study) -> None:
    """Tell all that is missing, without keys."""
    missing = study.missing
    study.tell_totals(study.ids, missing, missing * list(MEANS.values()), missing * np.square(list(MEANS.values())))


def finish(study: sp.Study) -> sp.Certificate:
    while study.ask() is not None:
        tell_rest(study)
    return study.certificate()
