"""What the best of a list in files will cost: both steps of it, played on the list itself against truths made up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from surepick.blocks.rows import RowBlocks
from surepick.core.arms import Arms
from surepick.core.arrays import FloatArray, record
from surepick.core.random_streams import stream
from surepick.core.validation import positive_number, whole_number
from surepick.core.values import real_numbers
from surepick.environments import Environment
from surepick.errors import InvalidInput
from surepick.forecasts.result import ForecastOfRows
from surepick.noise import Noise, SubGaussian, known_scale, largest_scale, parse_noise
from surepick.policies.long_lists import after_selection
from surepick.policies.parts import fitting_policy
from surepick.policies.registry import built_policy
from surepick.simulation import simulate

USUAL_STUDIES = 20
DRAWN = (
    "Nothing was guessed of the rewards: their direction was drawn anew for each simulated study, with norm {norm:g}. "
    "Rewards that differ less take more: give a smaller norm=, or a guess."
)
NORMAL = "Made-up rewards are normal with the largest scale that the noise allows; others may take fewer."
CUT = "{cut} of {studies} simulated studies had not ended after {pulls:,} measurements: what they take is more."
WRONG = "The answer was wrong in {wrong} of {studies} simulated studies."


def forecast_of_rows(
    rows: RowBlocks,
    coefficients: ArrayLike | None = None,
    *,
    epsilon: float,
    delta: float = 0.05,
    noise: Noise | str,
    norm_bound: float | None = None,
    norm: float | None = None,
    seed: int = 0,
    rehearsals: int = USUAL_STUDIES,
    max_pulls: int = 10_000_000,
    **options: Any,
) -> ForecastOfRows:
    """What `find_best` will take on rows in blocks: measurements for the short list, its length, the rest.

    Both policies are those of `find_best`, and they see all rows: each simulated study goes through the files as the
    real one would. What is made up is the truth and the noise. The first looks and the design are shared.

    Args:
        rows: the candidates.
        coefficients: a guess of the linear reward's coefficients, shape (D,); None: a direction is drawn for each
            simulated study, uniformly among those that the selection sees.
        epsilon, delta, noise, norm_bound, options: as in `find_best`.
        norm: of the drawn ones, in reward units; None: the norm bound, the easiest case that it allows.
        seed: decides truths and noise.
        rehearsals: simulated studies.
        max_pulls: a simulated study ends before passing it.

    Raises:
        InvalidInput: as `find_best`; or the guess is not D finite numbers, has a larger norm than the norm bound, or is
            given beside `norm` or a kernel.

    Source: ours. Cost: what `find_best` computes before its first measurement, and for each simulated study the passes
        of a real one, 2 or 3, and its second step in memory.
    """
    whole_number("rehearsals", rehearsals, least=1, meaning="a mean needs at least one simulated study.")
    given = options if norm_bound is None else {"norm_bound": norm_bound, **options}
    assumed = parse_noise(noise) if isinstance(noise, str) else noise
    drawn = SubGaussian(largest_scale(assumed)) if known_scale(assumed) else assumed
    selection: Any = built_policy(fitting_policy(given), rows, epsilon=epsilon, delta=delta, noise=drawn, **given)
    guess = _checked(coefficients, selection, norm)
    length = selection.rules.norm_bound if norm is None else norm

    def means(arms: Arms, number: int) -> FloatArray:
        if guess is not None:
            return np.asarray(arms.features @ guess)
        direction = stream(seed, "forecast", "truth", number).standard_normal(selection.where.rank)
        return np.asarray(selection.where.of(arms.features) @ (direction * (length / np.linalg.norm(direction))))

    played = [_played(selection, means, drawn, number, seed=seed, max_pulls=max_pulls) for number in range(rehearsals)]
    totals, listed = np.array([one.total for one in played]), np.array([one.listed for one in played])
    cut, wrong = sum(one.cut for one in played), sum(one.wrong for one in played)
    warnings = [NORMAL] if guess is not None else [DRAWN.format(norm=length), NORMAL]
    warnings += [CUT.format(cut=cut, studies=rehearsals, pulls=max_pulls)] if cut else []
    warnings += [WRONG.format(wrong=wrong, studies=rehearsals)] if wrong > max(0.25, 3.0 * delta) * rehearsals else []
    return ForecastOfRows(
        num_rows=rows.num_rows,
        total=round(totals.mean()),
        lowest=int(totals.min()),
        highest=int(totals.max()),
        selection=round(np.mean([one.selection for one in played])),
        listed=round(np.median(listed)),
        shortest_list=int(listed.min()),
        longest_list=int(listed.max()),
        batches=round(np.median([one.batches for one in played])),
        rehearsals=rehearsals,
        guess=guess is not None,
        epsilon=epsilon,
        delta=delta,
        warnings=tuple(warnings),
    )


@record
class _Played:
    """One simulated study: what its first step took, and both; the candidates of the second; how it ended."""

    selection: int
    total: int
    listed: int
    batches: int
    cut: bool = False
    wrong: bool = False


def _played(
    selection: Any,
    means: Callable[[Arms, int], FloatArray],
    noise: Noise,
    number: int,
    *,
    seed: int,
    max_pulls: int,
) -> _Played:
    """Both steps against the truth of that number."""
    draws = int(stream(seed, "forecast", "noise", number).integers(2**62))
    world = Environment(arms=selection.arms, means=means(selection.arms, number), noise=noise)
    first = simulate(selection, world, seed=draws, max_pulls=max_pulls)
    state = first.study.state
    if not state.finished:
        return _Played(first.pulls, first.pulls, state.left, len(first.rounds), cut=True)
    second: Any = after_selection(built_policy, selection, state)
    arms = second.problem.arms
    world = Environment(arms=arms, means=means(arms, number), noise=noise)
    then = simulate(second, world, seed=draws + 1, max_pulls=max_pulls - first.pulls)
    ended = then.ended_by == "policy"
    total, batches = first.pulls + then.pulls, len(first.rounds) + len(then.rounds)
    return _Played(first.pulls, total, arms.num_arms, batches, cut=not ended, wrong=ended and not then.success)


def _checked(coefficients: ArrayLike | None, selection: Any, norm: float | None) -> FloatArray | None:
    """The guess as an array, shape (D,)."""
    if norm is not None:
        positive_number("norm", norm, "the norm of the rewards that are drawn.")
        if coefficients is not None:
            raise InvalidInput("norm is that of rewards that are drawn; with coefficients nothing is drawn.")
    bound, columns = selection.rules.norm_bound, selection.passes.rows.num_columns
    if norm is not None and norm > bound:
        raise InvalidInput(f"norm is {norm:g}, more than the norm bound {bound:g}.")
    if coefficients is None:
        return None
    if selection.rules.kernel is not None:
        raise InvalidInput("with a kernel rewards have no coefficients to guess; leave them out, and they are drawn.")
    guess = np.array(real_numbers("coefficients", coefficients))
    if guess.shape != (columns,) or not np.isfinite(guess).all():
        raise InvalidInput(
            f"the guess has shape {guess.shape}; give one finite coefficient for each of the {columns} columns."
        )
    if float(np.linalg.norm(guess)) > bound * (1.0 + 1e-9):
        raise InvalidInput(
            f"the guess has norm {np.linalg.norm(guess):.4g}, more than the norm bound {bound:g}: one is wrong."
        )
    return guess
