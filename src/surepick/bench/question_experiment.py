"""Questions whose answer is lists: ours beside the peers, each at its own stop.

All peers keep delta for every arm at once, whatever errors="discovery" asks. Peers whose intervals can be tuned stand
there twice: as they come, and tuned to the half-width at which the instance is decided. For that one has to know the
truth, as no user does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from surepick.bench.policy_specs import default
from surepick.bench.spec import Cell, EnvironmentSpec, Experiment, PolicySpec
from surepick.core.arrays import record

NAME = "questions"
OURS, TUNED = "certified-", ", tuned"
DELTA, MOST_PULLS, MOST_SECONDS = 0.05, 10_000_000, 300.0
SHIFT, OFF = 0.4, 4e-10  # in standard deviations; a little more, so that an arm on the other list is on a wrong one
MEDIAN_MODEL = "Claude-3-Haiku"  # of livecodebench's test output prediction
FALLING = (0.5, *(0.5 - place / 40.0 for place in range(2, 16)))


@record
class Asked:
    """A question about an environment.

    Args:
        place: the environment.
        question: as `make_policy` takes it.
        epsilon: in reward units.
        width: the half-width at which intervals decide it, for peers that can be tuned.
        linear: norm bound of the rewards; None: they are not taken for linear in the features.
    """

    place: EnvironmentSpec
    question: dict[str, Any]
    epsilon: float
    width: float
    linear: float | None = None


def _place(label: str, name: str, **options: Any) -> EnvironmentSpec:
    return EnvironmentSpec(label, name, options, "independent")


def _above() -> Iterator[Asked]:
    """100 arms, some better by .4 standard deviations; wanted are those better by .2."""
    for better in (5, 20, 50):
        same = {"num_arms": 100, "better": better, "shift": SHIFT + OFF, "rest": -OFF}
        wanted = {"name": "above", "by": 0.5 * SHIFT, "errors": "family"}
        known = _place(f"{better} of 100 above 0", "some-better", **same)
        yield Asked(known, {**wanted, "threshold": 0.0}, 0.5 * SHIFT, SHIFT)
        measured = _place(f"{better} of 100 above a control", "some-better", **same, control=True)
        yield Asked(measured, {**wanted, "control": "control"}, 0.5 * SHIFT, 0.5 * SHIFT)
    models = _place("models above the median one", "livecodebench")
    yield Asked(models, {"name": "above", "control": MEDIAN_MODEL, "errors": "family"}, 0.05, 0.05)


def _tops() -> Iterator[Asked]:
    """Half-widths: half of (epsilon + the gap at the cut)."""
    sevens = _place("6 sevens of 60 digits", "digits", per_digit=6)
    yield Asked(sevens, {"name": "top", "m": 6}, 0.1, 0.15, linear=2.0)
    yield Asked(_place("10 of 600 barrels", "crossed-barrel"), {"name": "top", "m": 10}, 10.0, 5.0)
    yield Asked(
        _place("falling Bernoulli means", "given-means", means=list(FALLING)), {"name": "top", "m": 3}, 0.04, 0.0325
    )
    ranks = _place(
        "normal means 0 to -9, sigma 6", "given-means", means=[-float(rank) for rank in range(10)], sigma=6.0
    )
    yield Asked(ranks, {"name": "top", "m": 3}, 0.5, 0.75)
    slippage = _place("slippage, 10 of 100 by .1", "some-better", num_arms=100, better=10, shift=0.1 + OFF, sigma=0.5)
    yield Asked(slippage, {"name": "top", "m": 10}, 0.1, 0.1)


def _all_good() -> Iterator[Asked]:
    sevens = _place("all sevens of 60 digits", "digits", per_digit=6)
    yield Asked(sevens, {"name": "all-good"}, 0.1, 0.1, linear=2.0)


def _policies(asked: Asked) -> Iterator[PolicySpec]:
    """Ours, with features too where rewards are linear in them; then the peers that answer the question."""
    question: dict[str, Any] = {"question": asked.question}
    kind = asked.question["name"]
    yield default("certified-independent", **question)
    if kind == "above":
        discovery = {**asked.question, "errors": "discovery"}
        yield default("certified-independent", label="certified-independent discovery", question=discovery)
    if asked.linear is not None:
        yield default("certified-linear", norm_bound=asked.linear, **question)
    if kind == "top":
        yield default("lucb-top", **question)
        yield from _tuned("lucb-top", asked, label="lucb-top mixture", boundary="mixture")
    if kind == "all-good":
        yield from _tuned("st2", asked)
    if "threshold" in asked.question:
        yield from _tuned("apt", asked)
    yield default("uniform-lists", **question)
    yield from _tuned("uniform-lists", asked, label="uniform-lists undecided", pulled="undecided")


def _tuned(name: str, asked: Asked, *, label: str | None = None, **options: Any) -> Iterator[PolicySpec]:
    """A peer as it comes, and with intervals that are tightest where this instance is decided."""
    question, called = {"question": asked.question}, label or name
    yield default(name, label=called, **question, **options)
    yield default(name, label=f"{called}{TUNED}", **question, accuracy=asked.width, **options)


QUESTIONS = Experiment(
    NAME,
    "questions whose answer is lists: above a threshold or a control, the m best, all that are good",
    tuple(
        Cell(NAME, asked.place, policy, asked.epsilon, DELTA, max_pulls=MOST_PULLS, max_seconds=MOST_SECONDS)
        for asked in (*_above(), *_tops(), *_all_good())
        for policy in _policies(asked)
    ),
    note="tuned: the intervals are tightest where the instance is decided, which only the truth tells. Right: nobody "
    "is on a wrong list; of discovery, which does not promise that, the wrong share counts.",
)


def ratio_lines(spent: Mapping[tuple[str, str], float]) -> list[str]:
    """For each environment and each policy of ours a line: its pulls over those of the best peer, and of the best one
    that is tuned.

    Args:
        spent: (environment, policy) -> mean pulls until its own stop; all stops are proved.
    """
    lines = []
    for place in dict.fromkeys(place for place, _ in spent):
        here = {policy: pulls for (where, policy), pulls in spent.items() if where == place}
        peers = [policy for policy in here if not policy.startswith(OURS)]
        fair = [policy for policy in peers if not policy.endswith(TUNED)]
        best = [min(group, key=here.__getitem__) for group in (fair, peers) if group]
        for ours in [policy for policy in here if policy.startswith(OURS) and best]:
            ratios = [f"{here[ours] / here[peer]:.2f} times the pulls of {peer}" for peer in dict.fromkeys(best)]
            lines.append(f"{place}: {ours} takes {' and '.join(ratios)}.")
    return lines
