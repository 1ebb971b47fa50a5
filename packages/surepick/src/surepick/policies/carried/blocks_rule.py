"""How to bet where blocks share an effect: weights sum to 0 within each block, so that it cancels.

The process of arm j holds T_j on its own pulls, and its flows F_j(c) on those of candidates sum to T_j at any time. A
batch for c moves the flows on former candidates to c, and adds a bet. With the levels l of `BlockEquations`

    l_j = -kappa m,   flows on former candidates as wanted,   T = T_j - (L l)_j

is the best bet on a margin m: it gains T m and costs l' L l / 2. A control that blocks share takes part with flow 0: it
tells the effects of blocks apart in which the candidate or the arm is missing.
"""

import numpy as np

from surepick.core.observations import BlockTotals
from surepick.core.records import BoolArray, FloatArray, IntArray
from surepick.estimators.running_processes import MeanProcesses
from surepick.policies import tuning
from surepick.policies.blocking import BlockEquations, equations
from surepick.policies.carried.state import OpenComparisons


def update_blocks(
    processes: MeanProcesses,
    goal: OpenComparisons,
    margins: FloatArray,  # guesses of the rivals' margins, (m,)
    seen: BlockTotals,
    share: float,
    control: int | None,
) -> MeanProcesses:
    """The processes after a batch for a candidate."""
    others = _sharing(seen, goal.candidate, [*processes.others_than(goal.candidate), control])
    plain = ~np.isin(goal.rivals, others)
    after = _told(processes, goal, plain, margins, seen, share, others)
    for place in np.flatnonzero(~plain).tolist():  # the process of an arm that is among the others: without it there
        rest = [arm for arm in others if arm != goal.rivals[place]]
        after = _told(after, goal, np.arange(len(plain)) == place, margins, seen, share, rest)
    return after


def _sharing(seen: BlockTotals, candidate: int, arms: list[int | None]) -> list[int]:
    """Those of the arms, each once, that are in a block with the candidate."""
    there = np.isin(seen.blocks, seen.blocks[seen.arms == candidate])
    beside = set(seen.arms[there].tolist()) - {candidate}
    return [arm for arm in dict.fromkeys(arms) if arm in beside and arm is not None]


def _told(
    processes: MeanProcesses,
    goal: OpenComparisons,
    chosen: BoolArray,
    margins: FloatArray,
    seen: BlockTotals,
    share: float,
    others: list[int],
) -> MeanProcesses:
    """The processes of the chosen rivals, all with the same other arms, after the batch."""
    rivals, margins = goal.rivals[chosen], margins[chosen]
    if len(rivals) == 0:
        return processes
    found = equations(seen, goal.noise_scales, goal.candidate, rivals, others)
    taken, given = processes.taken[rivals], [processes.given_to(arm)[rivals] for arm in others]
    flows = np.array(given).reshape(len(others), len(rivals)).T  # F_j of the other arms, shape (m, p - 1)
    bets = tuning.HEURISTIC_KAPPA * margins
    closing = _levels(found, bets, -flows)
    ends = taken - found.flows(closing)[:, 0]
    lead = goal.epsilon + goal.scores[goal.candidate] - goal.scores[rivals]
    promised = _held(processes, goal, rivals) + ends * lead - found.cost(closing)
    cheap = found.cost(_levels(found, 0.0 * bets, -flows)) <= tuning.HEURISTIC_CLOSING
    closes = cheap | (promised >= goal.threshold) | (share >= 1.0)
    levels = np.where(closes[:, None], closing, _levels(found, bets, -share * flows))
    after = taken - found.flows(levels)[:, 0]
    sure = after >= 0.0
    levels = np.where(sure[:, None], levels, 0.0)
    kept = np.where(sure, np.where(closes, 0.0, 1.0 - share), 1.0)
    gained = np.einsum("mp,mp->m", levels, found.totals) - found.cost(levels)
    left = dict(zip(others, (kept[:, None] * flows).T, strict=True))
    return _with(processes, goal.candidate, rivals, np.where(sure, after, taken), left, gained)


def _held(processes: MeanProcesses, goal: OpenComparisons, rivals: IntArray) -> FloatArray:
    """The evidence of each rival as the guesses have it, but for what T is worth, shape (m,)."""
    centre = goal.candidate
    held = processes.log_values[rivals] - processes.given_to(centre)[rivals] * goal.scores[centre]
    for arm, flow in processes.others_than(centre).items():
        held = held - flow[rivals] * goal.scores[arm]
    return np.asarray(held + processes.taken[rivals] * goal.scores[rivals])


def _with(
    processes: MeanProcesses,
    candidate: int,
    rivals: IntArray,
    taken: FloatArray,
    left: dict[int, FloatArray],
    gained: FloatArray,
) -> MeanProcesses:
    """The processes with these T, these flows on other arms, and the rest of T on the candidate."""
    others = {arm: np.array(flow[rivals]) for arm, flow in processes.others_than(candidate).items()} | left
    rest = sum((flow for flow in others.values() if flow.any()), np.zeros(len(rivals)))
    given = {**others, candidate: np.where(rest == 0.0, taken, taken - rest)}
    return processes.with_flows(rivals, taken, given, gained)


def _levels(found: BlockEquations, bets: FloatArray, wanted: FloatArray) -> FloatArray:
    """l with l_j = -bet and with the wanted changes of the flows on the other arms, shape (m, p)."""
    own = -bets[:, None]
    if wanted.shape[1] == 0:
        return own
    short = wanted - found.matrix[:, 1:, 0] * own
    rest = np.linalg.solve(found.matrix[:, 1:, 1:], short[:, :, None])[:, :, 0]
    return np.concatenate([own, rest], axis=1)
