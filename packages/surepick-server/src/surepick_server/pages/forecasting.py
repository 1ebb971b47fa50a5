"""What a study will take, simulated: for clear differences, for usual ones, for candidates that are nearly equal."""

import math
import time
from typing import Any

import numpy as np

from surepick.core.arms import Arms
from surepick.core.records import FloatArray, record
from surepick.core.special_functions import special
from surepick.environments import Environment
from surepick.errors import SurepickError
from surepick.linalg.rows import one_thread
from surepick.noise import Noise, SubGaussian, known_scale, largest_scale
from surepick.policies.base import Policy
from surepick.policies.uniform import uniform_pulls_for
from surepick.simulation import simulate_many

STUDIES, AT_ONCE = 20, 4
MOST_SECONDS = 1.0  # of each row, after which no more studies are begun
MOST_UNIFORM = 4  # times measuring all equally often: there a simulated study is ended
MOST_BATCHES = 400  # or there
SPREAD = 3.0  # times the scatter: how far means spread, as a rule
AHEAD = 2.0  # tolerances: how far ahead of the second the best is where differences are clear
TICKS = 4


@record
class Scenario:
    """What the study takes if the candidates differ so."""

    name: str
    words: str  # how they differ
    studies: int  # that were simulated
    pulls: tuple[float, float, float]  # measurements: 5 %, 50 % and 95 % of the studies
    rounds: tuple[float, float, float]
    more: bool = False  # some were ended before they were over


@record
class Outlook:
    """A forecast."""

    rows: tuple[Scenario, ...]
    uniform: int | None  # measuring all equally often, for the same promise
    notes: tuple[str, ...] = ()

    @property
    def usual(self) -> Scenario:
        """The row of usual candidates."""
        return self.rows[1]

    @property
    def shown_uniform(self) -> int | None:
        """Measuring all equally often, where that is dearer than what nearly equal candidates take."""
        dear = self.uniform is not None and self.uniform > self.rows[2].pulls[1]
        return self.uniform if dear else None

    @property
    def highest(self) -> float:
        """Where the scale ends."""
        return max(*(row.pulls[2] for row in self.rows), self.shown_uniform or 0, 1.0)

    @property
    def logarithmic(self) -> bool:
        """Nearly equal candidates take so many that the others would not be seen."""
        return self.rows[2].pulls[1] > 8.0 * self.usual.pulls[1]

    def place(self, pulls: float) -> float:
        """Where a number of measurements stands, in per cent of the width."""
        if self.logarithmic:
            least = max(min(row.pulls[0] for row in self.rows) / 2.0, 1.0)
            share = math.log(max(pulls, least) / least) / max(math.log(self.highest / least), 1e-9)
        else:
            share = pulls / self.highest
        return 3.0 + 94.0 * min(share, 1.0)

    @property
    def ticks(self) -> tuple[int, ...]:
        """Where the scale is labelled."""
        if self.logarithmic:
            least = max(min(row.pulls[0] for row in self.rows) / 2.0, 1.0)
            powers = range(math.ceil(math.log10(least)), math.floor(math.log10(self.highest)) + 1)
            return tuple(10**power for power in powers)[:TICKS]
        step = 10.0 ** math.floor(math.log10(self.highest / 2.0)) if self.highest >= 2.0 else 1.0
        step *= next((one for one in (1, 2, 5, 10) if self.highest / (step * one) <= TICKS), 10)
        return tuple(int(step * place) for place in range(int(self.highest / step) + 1))


def outlook_of(
    policy: Policy[Any], arms: Arms, *, minimize: bool, scale: float | None, batch: int | None = None
) -> Outlook:
    """What a study by this policy takes.

    Args:
        policy: the algorithm.
        arms: the candidates.
        minimize: small is good.
        scale: a guess of the scatter, where nobody declares it; None: the tolerance.
        batch: measurements at once; None: the policy chooses.

    Raises:
        InvalidInput: as `simulate_many`.
    """
    problem = policy.problem
    declared = known_scale(problem.noise)
    scatter = float(largest_scale(problem.noise)) if declared else (scale or problem.epsilon)
    noise: Noise = problem.noise if declared else SubGaussian(scatter)
    epsilon = problem.epsilon
    levels = np.asarray(special.ndtri((np.arange(arms.num_arms) + 0.5) / arms.num_arms), np.float64)
    usual = SPREAD * scatter * levels
    clear, equal = usual.copy(), 0.5 * epsilon * np.linspace(0.0, 1.0, arms.num_arms)
    if arms.num_arms > 1:
        clear[-1] = max(clear[-1], clear[-2] + AHEAD * epsilon)
    uniform = _uniform(policy, scatter)
    most = MOST_UNIFORM * (uniform or 100_000) + 20 * arms.num_arms
    most = most if batch is None else min(most, MOST_BATCHES * batch)
    rows = []
    for name, words, means in (
        ("Clear differences", "The best is two tolerances ahead.", clear),
        ("Usual", "Means spread by three times the scatter.", usual),
        ("Nearly equal", "All lie within half the tolerance.", equal),
    ):
        rows.append(_simulated(name, words, policy, _measured(arms, means, noise, minimize=minimize), most))
    notes = [] if declared else [f"Nobody knows the scatter: {scatter:g} was taken for it. The study finds it out."]
    if min(row.studies for row in rows) < STUDIES:
        notes.append(f"From {min(row.studies for row in rows)} simulated studies or more a row; each takes long.")
    return Outlook(tuple(rows), uniform, tuple(notes))


def _measured(arms: Arms, means: FloatArray, noise: Noise, *, minimize: bool) -> Environment:
    """Candidates with these means, as far as the rewards' range allows them; the last is the best."""
    if noise.support is not None:
        low, high = noise.support
        centred = means - (means[0] + means[-1]) / 2.0
        room = 0.45 * (high - low) / max(float(np.abs(centred).max()), 1e-12)
        means = centred * min(1.0, room) * (-1.0 if minimize else 1.0) + (low + high) / 2.0
    elif minimize:
        means = -means
    return Environment(arms=arms, means=means, noise=noise, minimize=minimize)


def _simulated(name: str, words: str, policy: Policy[Any], environment: Environment, most: int) -> Scenario:
    """Studies of these candidates, as many as there is time for."""
    pulls, rounds, cut = list[float](), list[float](), False
    began = time.thread_time()
    with one_thread():
        while len(pulls) < STUDIES and (not pulls or time.thread_time() - began < MOST_SECONDS):
            seeds = range(len(pulls), min(len(pulls) + (AT_ONCE if pulls else 1), STUDIES))
            found = simulate_many(policy, environment, seeds=seeds, max_pulls=most)
            pulls += found.pulls.tolist()
            rounds += found.rounds.tolist()
            cut = cut or "budget-exhausted" in found.verdicts
    shares = [5.0, 50.0, 95.0]
    low, middle, high = (float(np.percentile(pulls, one)) for one in shares)
    first, half, last = (float(np.percentile(rounds, one)) for one in shares)
    return Scenario(name, words, len(pulls), (low, middle, high), (first, half, last), cut)


def _uniform(policy: Policy[Any], scatter: float) -> int | None:
    try:
        return int(uniform_pulls_for(policy.problem, scatter))
    except SurepickError:
        return None
