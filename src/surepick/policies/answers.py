"""What an answer may claim: verdicts and assumptions in words, and the settings under which none has a meaning."""

from __future__ import annotations

from surepick.errors import InvalidInput
from surepick.noise import Noise, PilotGaussian, largest_scale
from surepick.settings import as_number, check_size, positive_number
from surepick.text import quoted

MOST_GROWTH = 1000.0
GROWTH = f"by what share a batch adds pulls; at most {MOST_GROWTH:g}."


def known_gap_bound(noise: Noise, gap_bound: float | None) -> float | None:
    """An upper bound on the largest gap to rely upon: the declared one and high - low of bounded rewards, or None."""
    if gap_bound is not None:
        positive_number("gap_bound", gap_bound, "the largest possible gap between two arms.")
    if noise.support is None:
        return gap_bound
    spread = noise.support[1] - noise.support[0]
    return spread if gap_bound is None else min(gap_bound, spread)


def answer_without_pulls(num_arms: int, epsilon: float, gap_bound: float | None) -> tuple[str, float | None]:
    """(why no pull is needed, certified shortfall): one arm, or no two arms can differ by more than epsilon.

    Returns:
        ("single", 0), ("given", gap_bound), or ("", gap_bound) when pulls are needed.
    """
    if num_arms == 1:
        return "single", 0.0
    return ("given" if gap_bound is not None and gap_bound <= epsilon else ""), gap_bound


def verdict(
    *, finished: str, pulls: int, gap: float | None, epsilon: float, delta: float, spent: float
) -> tuple[str, str]:
    """(verdict, reason in words).

    Args:
        finished: why the algorithm stopped, "" while it runs.
        gap: the certified shortfall of the leader, None if nothing can be said.
        spent: the most that the algorithm's widths can spend of the error probability, whatever the data.
    """
    if not finished:
        return "not-yet", "The measurements so far do not single out a candidate that is good enough; more are needed."
    if finished == "given":
        reason = (
            f"No two arms differ by more than {gap:g} by assumption, and epsilon is {epsilon:g}: every arm is "
            "epsilon-best, so nothing had to be measured."
        )
    elif finished == "single":
        reason = "There is only one arm: nothing was measured." if pulls == 0 else "All others were ruled out."
    elif gap is None or gap > epsilon:
        return "not-yet", (
            "The planned rounds are over, but the realised widths do not certify the leader: measurements are "
            "missing, or the settings forbid another round."
        )
    else:
        reason = f"No other candidate can be better by more than {gap:.4g}."
    if pulls > 0 and spent > delta * (1.0 + 1e-12):
        return "heuristic", (
            f"The schedule and union chosen can spend an error probability of {spent:.4g}, more than "
            f"delta = {delta:g}. {reason}"
        )
    return "certified", reason


def assumptions_for(
    finished: str, num_arms: int, gap_bound: float | None, noise: Noise, assumptions: tuple[str, ...]
) -> tuple[str, ...]:
    """The sentences that an answer reached in this way rests on."""
    if num_arms == 1:
        return ()
    if finished == "given":
        return (f"No two arms differ by more than {gap_bound:g} in mean reward.",)
    return (*assumptions, noise_assumption(noise))


def check_common(*, epsilon: float, delta: float, slack: float, gap_bound: float | None) -> None:
    """Refuse settings under which no certificate has a meaning.

    Raises:
        InvalidInput: epsilon <= 0, delta outside (0, 1), slack outside (0, 1], gap_bound <= 0, or no numbers at all.
    """
    positive_number(
        "epsilon",
        epsilon,
        "how much worse than the best arm the answer may be, in reward units. With 0, equal arms would be measured for "
        "ever.",
    )
    check_size("epsilon", epsilon)
    if not 0 < as_number("delta", delta) < 1:
        raise InvalidInput(
            f"delta is {quoted(delta)}; it must lie strictly between 0 and 1: the probability of a wrong answer."
        )
    if not 0 < as_number("slack", slack) <= 1:
        raise InvalidInput(f"slack is {quoted(slack)}; it must lie in (0, 1]: what rounding to whole pulls may cost.")
    if gap_bound is not None:
        positive_number("gap_bound", gap_bound, "the largest possible gap between two arms.")


def check_growth(growth: object) -> None:
    """Refuse batches that grow beyond what anybody could measure.

    Raises:
        InvalidInput: growth is not a number, or above 1000.
    """
    if as_number("growth", growth) > MOST_GROWTH:
        raise InvalidInput(
            f"growth is {quoted(growth)}; it must be at most {MOST_GROWTH:g}: by what share a batch adds pulls."
        )


def noise_assumption(noise: Noise) -> str:
    """The sentence about the rewards that every certificate rests on."""
    if isinstance(noise, PilotGaussian):
        return noise.assumption
    independent = (
        "Given what was measured before, each measurement is an independent draw around the mean of its candidate"
    )
    if noise.support is not None:
        return f"{independent}, between {noise.support[0]:g} and {noise.support[1]:g}."
    return f"{independent}, with sub-Gaussian noise of scale at most {largest_scale(noise):g}."
