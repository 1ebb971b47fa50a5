"""The peers for questions whose answer is lists, by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from surepick.policies.entry import Entry
from surepick.policies.parts import nothing
from surepick.questions import OF_MANY

QUESTION_BASELINES: Mapping[str, Entry] = MappingProxyType(
    {
        "lucb-top": Entry(
            "baselines.lucb_top.LUCBTop",
            nothing,
            "LUCB for the m best (Kalyanakrishnan et al. 2012): the two most doubtful arms at the cut are pulled",
            paper={"growth": 0.0},
            questions=("top",),
        ),
        "st2": Entry(
            "baselines.st2.ST2",
            nothing,
            "(ST)^2 (Mason et al. 2020): all within epsilon of the best; the best arm and the most doubtful are pulled",
            paper={"growth": 0.0},
            questions=("all-good",),
        ),
        "apt": Entry(
            "baselines.apt.APT",
            nothing,
            "APT (Locatelli et al. 2016): which are above a threshold; those nearest to it are pulled",
            paper={"growth": 0.0},
            questions=("above",),
        ),
        "uniform-lists": Entry(
            "baselines.uniform_lists.UniformLists",
            nothing,
            "any question whose answer is lists: every arm is pulled equally often",
            questions=OF_MANY,
        ),
    }
)
