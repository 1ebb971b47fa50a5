"""Studies that are judged as results come: what is in a part depends on values that are not judged yet, or not."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

import surepick as sp
from surepick.core.observations import Observations
from surepick.policies.base import Policy, stopped
from surepick.policies.sequential.state import SequentialState
from surepick.studies.logs.base import AS_THEY_COME
from surepick.studies.logs.memory import MemoryLog

Arrives = Callable[[np.ndarray, np.ndarray, SequentialState, np.random.Generator], np.ndarray]
BEST = 0  # the best arm of all truths here
MOST_PARTS = 2_000
EXPECTED = -0.5  # what the saboteur takes for a good result


def at_random(arms: np.ndarray, rewards: np.ndarray, state: SequentialState, rng: np.random.Generator) -> np.ndarray:
    """Each arm's measurements take a time of their own, another one in each part."""
    return rng.random(len(arms)) < rng.uniform(0.1, 1.0, len(state.beaten))[arms]


def a_few(arms: np.ndarray, rewards: np.ndarray, state: SequentialState, rng: np.random.Generator) -> np.ndarray:
    """Two results at a time, whichever."""
    return np.isin(np.arange(len(arms)), rng.permutation(len(arms))[:2])


def by_what_was_judged(
    arms: np.ndarray, rewards: np.ndarray, state: SequentialState, rng: np.random.Generator
) -> np.ndarray:
    """The best arm's results are slow while it does not lead, and a bad leader's are fast: allowed, and hostile."""
    rates = np.full(len(state.beaten), 0.5)
    rates[BEST], rates[state.leader] = 0.1, 0.9
    return rng.random(len(arms)) < rates[arms]


def by_value(arms: np.ndarray, rewards: np.ndarray, state: SequentialState, rng: np.random.Generator) -> np.ndarray:
    """The saboteur: a good result of the best arm, or a bad one of another, is doubted, and not reported yet."""
    return (rewards > EXPECTED) != (arms == BEST)


HONEST = {"at random": at_random, "a few": a_few, "by what was judged": by_what_was_judged}


def answer_in_parts(policy: Policy[Any], means: np.ndarray, sigma: float, arrives: Arrives, seed: int) -> int | None:
    """The answer of a study with normal rewards, all of whose parts are judged; None if it does not end.

    What is out stays out until it comes, whatever was planned since.
    """
    rng, state = np.random.default_rng([seed, 20_264]), policy.init()
    arms, rewards = np.empty(0, np.int64), np.empty(0)
    for _ in range(MOST_PARTS):
        sent = np.repeat(np.arange(len(means)), (plan := policy.ask(state)).counts)
        arms = np.append(arms, sent)
        rewards = np.append(rewards, means[sent] + sigma * rng.standard_normal(len(sent)))
        came = arrives(arms, rewards, state, rng)
        if not came.any():
            continue  # the leases run out, and the plan is offered again
        totals = (np.bincount(arms[came], weights, len(means)) for weights in (rewards[came], rewards[came] ** 2))
        seen = Observations(np.bincount(arms[came], minlength=len(means)), *totals)
        state = policy.tell(state, plan, seen).state
        if stopped(policy, state):
            return int(policy.claim(state).leader)
        arms, rewards = arms[~came], rewards[~came]
    return None


def wrong_answers(policy: Policy[Any], means: np.ndarray, sigma: float, arrives: Arrives, runs: int) -> int:
    """How many of these studies end with an arm that is worse than the best by more than epsilon."""
    from bounds import until_clear  # with scipy.stats, which the processes of `part_sessions` do without

    answers = (answer_in_parts(policy, means, sigma, arrives, seed) for seed in range(runs))
    bad = means < means.max() - policy.problem.epsilon
    wrong = (answer is not None and bool(bad[answer]) for answer in answers)
    return until_clear(wrong, runs, policy.problem.delta)


# studies with a log

IDS = ("a", "b", "c")
FEATURES = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.6]])
TRUTH = dict(zip(IDS, (1.1, 0.3, 0.2), strict=True))
OPTIONS: dict[str, dict[str, Any]] = {"certified-independent": {}, "certified-linear": {"norm_bound": 2.0}}


def small_policy(name: str = "certified-independent", *, epsilon: float = 0.4) -> Policy[Any]:
    """A policy for three arms."""
    arms = sp.Arms(FEATURES, IDS)
    noise = sp.SubGaussian(0.5)
    options = {"evidence": "carried", **OPTIONS[name]}
    return sp.make_policy(name, arms, epsilon=epsilon, delta=0.1, noise=noise, **options)


def small_study(name: str = "certified-independent", *, log: MemoryLog | None = None, **changed: Any) -> sp.Study:
    return sp.Study(small_policy(name, **changed), judge=AS_THEY_COME, log=log)


def reward_of(key: str) -> float:
    """The reward under a key of a leased pull: always the same."""
    rng = np.random.default_rng([20_265, *key.encode()])
    return TRUTH[key.partition("@")[2]] + 0.5 * rng.standard_normal()


def tell_keys(study: sp.Study, keys: Iterable[tuple[str, str]]) -> Any:
    rows = list(keys)
    return study.tell([arm for arm, _ in rows], [reward_of(key) for _, key in rows], [key for _, key in rows])


def study_in_parts(name: str, plans: int = 4) -> sp.Study:
    """A study of so many plans, in which results came with a later plan than theirs."""
    study, out = small_study(name, epsilon=0.2), list[tuple[str, str]]()
    for number in range(plans):
        part = study.lease(worker=f"worker {number}")
        if part is None:
            break
        tell_keys(study, [*out, *part.keys()[::2]])
        out = part.keys()[1::2]
        study.interim()
    return study
