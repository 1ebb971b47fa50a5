"""Answers of studies as people read them, and as JSON."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from surepick.cli.options import Goal
from surepick.cli.output import Text, known, picked, print_table, say, terminal_width
from surepick.core.arms import Arms
from surepick.core.certificate import MOST_NAMED, Certificate, Listed, named
from surepick.core.records import FloatArray, encode
from surepick.drawings import sentences, terminal
from surepick.drawings.records import Candidates
from surepick.environments.environment import Environment
from surepick.environments.rewards import RecordedRewards
from surepick.errors import InvalidInput
from surepick.noise import Noise, SubGaussian, informative, known_scale, largest_scale
from surepick.policies.base import Policy, Problem
from surepick.simulation import Run
from surepick.studies.progress import Progress
from surepick.studies.replay import judged_plans
from surepick.studies.study import Study

if TYPE_CHECKING:
    from surepick.assumptions import Reading

ASCII = str.maketrans("█░", "#.")
OTHER_DELTAS = (0.01, 0.05, 0.1, 0.2)  # at which a gap is shown as well
FEWEST_ARMS = 16  # of which it is said what a class of means would save
KIND_STYLES = {"best": "bold blue", "possible": "yellow", "out": "dim"}
VERDICT_STYLES = {"certified": "bold green", "heuristic": "bold yellow"}


def certificate_json(answer: Certificate, progress: Progress) -> dict[str, Any]:
    """The certificate as the published JSON fields; `active` is how many candidates are left."""
    fields = picked(answer, "best_arm", "epsilon", "delta", "pulls", *known(answer, "cost", "lists"), "verdict")
    fields |= picked(answer, "reason", "certified_gap") | picked(progress, "confidence", "ruled_out")
    fields |= picked(answer, "minimize", "assumptions")
    shown = ("round", "dim", "value", "lower_bound", "misspecification", "pulls", "total_pulls")
    rounds = [
        picked(row, *shown) | {"active": len(row.active)} | picked(row, "certified_gap", "alarms")
        for row in answer.rounds
    ]
    return dict(encode(fields | {"rounds": rounds}))


def run_json(run: Run) -> dict[str, Any]:
    """A rehearsal: the certificate, and what only the truth can say."""
    answer = certificate_json(run.certificate, run.study.progress())
    return answer | picked(run, "success", "oracle_pulls", "true_gap", "seconds")


def print_answer(answer: Certificate, policy: Policy[Any], study: Study | None = None) -> None:
    """The candidates by mean, the verdict, and under which classes of means the answer of the study stands."""
    if study is not None and study.elsewhere is None:
        print_picture(study.candidates())
    print_certificate(answer, policy.problem)
    if study is not None and policy.traits.uses_features and policy.traits.weigh is not None:
        from surepick.studies.readings import shown_readings  # noqa: PLC0415 (few studies are read)

        print_claims(shown_readings(study))
    if study is not None and policy.traits.budget is not None:
        gaps = [(delta, study.gap_at(delta)) for delta in OTHER_DELTAS if delta != policy.problem.delta]
        said = ", ".join(f"{gap:.4g} at {delta:g}" for delta, gap in gaps if gap is not None)
        if said:
            say(f"Worse than the best by at most so much at other error probabilities, chosen beforehand: {said}.")


def print_picture(found: Candidates) -> None:
    """The candidates by mean, the gap and the field round by round, in 60 columns; nothing before the first round."""
    if not found.trace.rounds:
        return
    signs = terminal.signs_for(sys.stdout.encoding)
    say((sentences.terminal_heading(found), "dim"))
    for line in terminal.means_lines(found, width=terminal_width(), signs=signs):
        say((line.text, KIND_STYLES.get(line.kind, "")))
    rounds = terminal.trace_lines(found.trace, found.decimals, signs=signs, eliminates=not found.listed)
    for text in ("", *(line.text for line in rounds), *([""] if rounds else [])):
        say(text)


def print_certificate(answer: Certificate, problem: Problem) -> None:
    """The verdict in words that need no statistics; a bound that the range of the rewards gives anyway is left out."""
    answer = replace(answer, certified_gap=informative(answer.certified_gap, problem.noise))
    style = VERDICT_STYLES.get(answer.verdict)
    if answer.lists is not None:
        print_lists(answer, answer.lists, problem)
        for line in str(answer).splitlines()[2:]:
            say(line)
        return
    if answer.pulls == 0 and style is None:
        say("No round is complete, so there is no answer yet.   ", (answer.verdict, "bold red"))
        say(answer.reason)
        return
    headline = "Best guess so far, nothing proved" if style is None else "Recommended"
    first, *rest = str(answer).splitlines()
    say(f"{headline}: ", (first.removesuffix(answer.stated), "bold"), (answer.stated, style or "bold red"))
    for line in rest:
        say(line)


def print_lists(answer: Certificate, lists: Listed, problem: Problem) -> None:
    """The answer to a question, list by list."""
    assert problem.question is not None
    names = problem.question.called(problem.epsilon)
    say((lists.question, "bold"), "   ", (answer.stated, VERDICT_STYLES.get(answer.verdict, "bold red")))
    shown = [(f"first list, {names.first}", lists.inside)]
    if names.second:
        shown += [(f"second list, {names.second}", lists.outside), ("undecided", lists.undecided)]
    for title, ids in shown:
        say(f"  {title} ({len(ids):,}): ", (named(ids), "bold"))
    segments = lists.segments or ()
    for one in segments[:MOST_NAMED]:
        left = f", {len(one.undecided):,} undecided" if one.undecided else ""
        say(f"  segment {one.name}: ", (named(one.inside), "bold"), left)
    if len(segments) > MOST_NAMED:
        say(f"  and {len(segments) - MOST_NAMED:,} more segments, which --format json has")


def print_registration(code: str | None) -> None:
    """The registration code, under an answer."""
    say("Registration code: ", "none: the policy has parts without a name" if code is None else code)


def print_truth(run: Run, environment: Environment, epsilon: float) -> None:
    """Whether the answer is right, which a rehearsal knows and a real study does not."""
    best = environment.best
    if run.certificate.lists is not None:
        far = "" if run.ended_by == "policy" else " so far"
        say(f"The truth is known here: {'no candidate is' if run.right else 'a candidate is'} on a wrong list{far}.")
        return
    if environment.is_epsilon_best(run.arm, epsilon):
        judged = "The answer is right."
    elif run.verdict == "certified":
        judged = "The answer is WRONG: bad luck, or more likely one of the assumptions above is false here."
    else:
        judged = "The answer is WRONG, and it was not certified."
    say(
        f"The truth is known here: the best is {environment.arms.ids[best]} with mean {environment.means[best]:.6g}; "
        f"{run.best_arm} has mean {environment.means[run.arm]:.6g}, {run.true_gap:.4g} worse. {judged}"
    )


def print_readings(readings: Sequence[Reading], *sentences: str) -> None:
    """Sentences, and what readings say as a table, a row each."""
    from surepick.assumptions import shown  # noqa: PLC0415 (most answers are read under no class)

    for one in sentences:
        say(one)
    rows = [list[str | Text](shown.row_of(one)) for one in readings]
    for row in rows:  # the number that alone warns of candidates that are unlike all others
        row[shown.OFF] = Text(str(row[shown.OFF]), "bold")
    print_table(shown.HEADERS, rows, left=shown.LEFT)
    say(shown.TOGETHER)


def print_claims(readings: Sequence[Reading]) -> None:
    """What an answer under a class rests on, in a few lines; nothing without readings."""
    if not readings:
        return
    from surepick.assumptions.shown import ALONE, bars_of  # noqa: PLC0415

    print_readings(readings, readings[0].survives)
    for number, bar in enumerate(bars_of(readings[0])):
        if number == 0:
            say(ALONE)
        plain = "utf" not in (sys.stdout.encoding or "").lower()
        say(str(bar).translate(ASCII) if plain else str(bar))


def print_saving(read: Callable[[], Arms], number: int, noise: Noise, goal: Goal, study: Study | None = None) -> None:
    """What naming a class of means would save, to somebody who named none; by the results of a study, if there is one.
    `read` gives the arms with features, and there are so many."""
    if not isinstance(noise, SubGaussian) or number < FEWEST_ARMS:
        return
    from surepick.forecasts.saving import saving  # noqa: PLC0415 (simulations, with features)
    from surepick.studies.readings import all_results  # noqa: PLC0415

    looks = () if study is None else judged_plans(study.log, number, minimize=study.minimize)
    seen = all_results(looks, number) if looks else None
    with suppress(InvalidInput), warnings.catch_warnings():  # columns that are no features
        warnings.simplefilter("ignore", UserWarning)
        if found := saving(read(), epsilon=goal.epsilon, delta=goal.delta, noise=noise, seen=seen):
            say(str(found))


# --- What is said to somebody who gave no tolerance: how far measurements lie apart, and what some tolerances cost.

LARGEST = 1e100  # scale
UNKNOWN = 3.0  # measurements of each candidate that a scale takes
ASK = (
    "say with --epsilon how much worse than the best the answer may be, in the unit of the measurements; there is no "
    "usual value."
)


def advice_from(environment: Environment, *, declared: bool = True) -> Callable[[float], str]:
    """What to say where measurements are there."""
    repeats, low, high = mean_spread(environment)
    known = declared and known_scale(environment.noise)
    sigma = largest_scale(environment.noise) if known else repeats or 0.0
    means = -environment.means if environment.minimize else environment.means
    sizes = [one for one in ((high - low) / 10.0, sigma / 2.0) if one > 0.0]
    apart = "No candidate was measured twice"
    if repeats is not None:
        apart = f"Repeats of a candidate typically vary by {repeats:.3g} (standard deviation)"
    seen = f" {apart}; the averages of candidates go from {low:.4g} to {high:.4g}."

    def advice(delta: float) -> str:
        return ASK + seen + _prices(means, sigma, sizes[0] if sizes else 0.0, delta, least=1.0 if known else UNKNOWN)

    return advice


def advice_for(num_arms: int, noise: Noise) -> Callable[[float], str]:
    """What to say where nothing was measured."""
    sigma = largest_scale(noise) if known_scale(noise) else 0.0

    def advice(delta: float) -> str:
        if not sigma:
            return f"{ASK} What difference would change a decision? surepick forecast says what a tolerance costs."
        return ASK + _prices(np.zeros(num_arms), sigma, sigma / 2.0, delta, ", if all candidates are equally good")

    return advice


def _prices(means: FloatArray, sigma: float, size: float, delta: float, when: str = "", *, least: float = 1.0) -> str:
    chosen = tolerances_near(size)
    if not (chosen and 0.0 < delta < 1.0 and 0.0 < sigma < LARGEST):
        return ""
    prices = [f"{one:g} takes {rough_pulls(means, sigma, one, delta, least=least):,}" for one in chosen]
    said = f"--epsilon {prices[0]} measurements, {', '.join(prices[1:])}"
    return f" Very roughly{when} (surepick forecast knows better): {said}."


LADDER = (1.0, 2.0, 5.0)


def mean_spread(environment: Environment) -> tuple[float | None, float, float]:
    """(typical standard deviation of the repeats of a candidate, None without any, the smallest average, the largest);
    where nothing was recorded the scale of the noise stands for the repeats."""
    law, means = environment.law, environment.means
    low, high = float(means.min()), float(means.max())
    if not isinstance(law, RecordedRewards):
        return float(np.median(environment.noise.sigma)), low, high
    again = law.repeats > 1
    if not again.any():
        return None, low, high
    variances = law.variances[again] * law.repeats[again] / (law.repeats[again] - 1)
    return float(np.sqrt(np.median(variances))), low, high


def tolerances_near(size: float) -> tuple[float, ...]:
    """Three round numbers about a size: that below it, the nearest one (by ratio), and that above; () of no size."""
    if not (math.isfinite(size) and 1e-300 < size < 1e300):
        return ()
    power = math.floor(math.log10(size))
    steps = [step * 10.0**each for each in range(power - 1, power + 2) for step in LADDER]
    nearest = min(range(1, len(steps) - 1), key=lambda place: abs(math.log(steps[place] / size)))
    return tuple(float(f"{step:.1g}") for step in steps[nearest - 1 : nearest + 2])


def rough_pulls(means: FloatArray, sigma: float, epsilon: float, delta: float, *, least: float = 1.0) -> int:
    """Measurements that an epsilon-best answer may take, within a factor of two or so; ours, tried out in tests/cli.

    sum_i max(least, 4 sigma^2 log((K - 1) / delta) / (gap_i + epsilon)^2)
    """
    if len(means) < 2:
        return 0
    gaps = means.max() - means
    gaps[np.argmax(means)] = np.sort(gaps)[1]  # the best one is measured as often as its closest rival
    each = 4.0 * sigma**2 * math.log((len(means) - 1) / delta) / (gaps + epsilon) ** 2
    return int(float(f"{min(float(np.sum(np.maximum(each, least))), 1e18):.2g}"))
