"""How the error probability delta is spent over rounds, pairs of arms and looks.

In round k the widths use the log term

    L_k = log(looks * M_k / delta_k)

with delta_k from a schedule and M_k from a union. What must be paid for is |S_k| - 1 one-sided events a look: that the
best arm x* is underestimated against another arm of S_k by more than the width (proved in docs/elimination.md). A
schedule and a union together spend at most

    spent <= sum_k delta_k * max_m (m - 1) / M(m)

whatever the data; the certificate is a theorem when that is at most delta.
"""

from __future__ import annotations

import math

SCHEDULES = ("convergent", "paper", "uniform")
UNIONS = ("best-pairs", "paper", "all", "rage")


def round_delta(schedule: str, delta: float, round_number: int, num_rounds: int) -> float:
    """delta_k, the error probability of round k.

        convergent  delta / (k (k + 1))     sums to delta over all rounds
        paper       delta / k^2             sums to 1.64 delta
        uniform     delta / n               sums to delta over the n rounds planned

    Source: Algorithm 1, line 3.
    Differs from the paper: the default is "convergent". With delta / k^2 the product of (1 - delta_k) is
    sin(pi sqrt(delta)) / (pi sqrt(delta)), .9198 at delta = .05, not the sin(pi delta) / (pi delta) of its proof.
    """
    k = round_number
    if schedule == "convergent":
        return delta / (k * (k + 1))
    if schedule == "paper":
        return delta / k**2
    return delta / num_rounds


def union_size(union: str, num_active: int, num_arms: int) -> float:
    """M_k, by how many events delta_k is divided.

        best-pairs  |S_k| - 1     the pairs of the best arm, in one direction
        paper       |S_k|^2       all pairs, both directions
        all         |X|^2         as in the published code
        rage        2 |X|^2       as in Fiez et al. (2019)

    Source: Algorithm 1, lines 6 and 10.  Differs from the paper: the default is "best-pairs".
    """
    if union == "best-pairs":
        return float(max(num_active - 1, 1))
    if union == "paper":
        return float(num_active**2)
    return float(num_arms**2) * (2.0 if union == "rage" else 1.0)


def largest_spending(schedule: str, union: str, delta: float, num_arms: int) -> float:
    """The most that rounds, looks and pairs together can spend, whatever the data.

    Each look spends at most (|S| - 1) exp(-L_k) = (|S| - 1) delta_k / (looks M_k).
    """
    total = math.pi**2 / 6.0 if schedule == "paper" else 1.0
    share = {
        "best-pairs": 1.0,
        "paper": max((m - 1) / m**2 for m in (2, 3)),
        "all": (num_arms - 1) / num_arms**2,
        "rage": (num_arms - 1) / (2 * num_arms**2),
    }[union]
    return delta * total * share
