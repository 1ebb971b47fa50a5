"""Shares of wrong answers against delta, with exact intervals: does a policy err more often than it says?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from surepick.bench.figures.panels import draw_error_rates, filled_looks
from surepick.bench.figures.replicates import FILLED, OWN_STOP, Replicates, always_certified, certified, missing
from surepick.reports.figure_page import Looks, open_page, say

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INTERVAL = (
    "Bar: exact 95 % interval (Clopper-Pearson), each by itself: even a policy that errs exactly at the rate delta "
    "lies wholly above it in up to one case of 40."
)


def error_figure(rows: Replicates, styles: Looks, *, title: str) -> Figure:
    """One panel an environment: the share of wrong answers of each policy at each delta, and the line error = delta.

    Args:
        rows: replicates of one experiment and epsilon, with any number of deltas.
        styles: the looks of the policies.
        title: above the figure.
    """
    judged = rows.where(rows.own_stop & ~np.isnan(rows.success))
    drawn = filled_looks(styles, judged.policies, always_certified(judged))
    deltas = np.unique(rows.delta).tolist()
    places = rows.environments
    width = max(3.4, 0.6 + 0.22 * len(drawn) * len(deltas))
    page = open_page(len(places), columns=max(1, min(3, int(13.0 / width))), width=width, height=3.6, room=2.8)
    page.name_series(drawn, certified(judged), line=False)
    page.name_mark("error = delta", color="black", linestyle="--")
    exceeding = []
    for axes, place in zip(page.axes, places, strict=True):
        answers = answers_of(judged.where(judged.environment == place))
        exceeding += [f"{policy} ({place})" for policy in draw_error_rates(axes, answers, drawn, deltas=deltas)]
        axes.set_title(place, fontsize="medium")
        axes.set_xlabel("delta")
        axes.set_ylabel("wrong answers at the own stop")
        if not answers:
            say(axes, "no run ended at its own stop")
    page.notes.extend((INTERVAL, FILLED))
    if exceeding:
        page.notes.append(f"Wholly above delta (ringed): {', '.join(exceeding)}.")
    page.notes.extend(missing(rows, OWN_STOP))
    return page.finish(title)


def answers_of(rows: Replicates) -> dict[tuple[str, float], tuple[int, int]]:
    """(policy, delta) -> (wrong answers, answers), of rows that are all answers."""
    found = {}
    for policy in rows.policies:
        for delta in np.unique(rows.delta[rows.policy == policy]).tolist():
            success = rows.success[(rows.policy == policy) & (rows.delta == delta)]
            found[policy, delta] = (int((success == 0.0).sum()), len(success))
    return found
