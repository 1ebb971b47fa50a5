"""News articles shown to users: arms from the Yahoo! R6A log, and from generated records of the same form."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from surepick.bench.datasets.distinct_sample import DistinctSample, feature_row
from surepick.bench.datasets.files import in_row_space
from surepick.bench.datasets.yahoo_lines import Features, YahooLog, YahooRecord, counted
from surepick.core.arms import Arms
from surepick.core.arrays import BoolArray, FloatArray, record
from surepick.core.random_streams import stream
from surepick.core.validation import as_number, whole_number
from surepick.environments.environment import Environment
from surepick.errors import InvalidInput
from surepick.noise import SubGaussian

CLICKED, NOT_CLICKED = 0.8, 0.3  # mean rewards
SHARE_REWARDING = 0.025  # 5 of 200
ROUNDING_LEFT_OUT = 1e-4  # rank tolerances: rank 25 ...
ROUNDING_KEPT = 1e-9  # ... and 35, the paper's
NUM_ARTICLES = 24  # in a pool of the log there are about as many
CONSTANT = 1  # the feature that is always 1, beside five memberships that sum to 1


@record
class YahooDraw:
    """Records drawn from a log, no two with equal features.

    Args:
        records: the drawn lines in random order.
        repeated: lines passed over in the draw because an earlier one had the same features.
        log: what the whole log holds, and which lines were skipped.
    """

    records: tuple[YahooRecord, ...]
    repeated: int
    log: YahooLog


def yahoo_r6a(
    path: str | Path,
    num_arms: int = 200,
    seed: int = 0,
    *,
    num_rewarding: int | None = None,
    rank_tolerance: float = ROUNDING_LEFT_OUT,
    strict: bool = False,
) -> Environment:
    """Lines of the real Yahoo! R6A log: a clicked line is worth .8, any other .3; noise N(0, 1).

    An arm is a line, its features the products of the user's and the displayed article's six, 36 in all. The five
    memberships of either sum to 1, the value of the constant, so that only 25 products are independent; but they are
    rounded to six decimals, and the rounding errors (about 1e-6) look like 10 further directions. The features are
    projected onto the singular vectors above `rank_tolerance`, which leaves them out.

    Args:
        path: a file, packed (`*.gz`) or plain, or a folder whose `*.gz` are read in the order of their names.
        num_arms: K, lines drawn without replacement, no two with equal features: where a click can follow or not
            follow the same features, the mean reward is no function of them.
        seed: decides which lines are drawn.
        num_rewarding: how many of the arms are clicked lines, 1 to K; None: round(.025 K), at least 1.
        rank_tolerance: singular values below this share of the largest are taken for rounding. 1e-4 is right for six
            decimals; at 1e-9 the rank is 35, as in the paper.
        strict: False skips faulty lines (`draw_yahoo` counts them by reason), True refuses the first one.

    Returns:
        K arms with ids "ARTICLE-#LINE" (the line counted through all files) and features of shape (K, rank).

    Raises:
        DatasetMissing: no file is there; the message holds the recipe.
        InvalidInput: a file cannot be read, too few different lines are clicked or not clicked, an argument is out of
            range, or, with strict, a line is not a record.

    Source: the paper's Yahoo experiment. Differs from the paper: the tolerance, and that features are distinct.
    Cost: one pass, about 70,000 lines a second (the first day's 4.6 million: a minute or two); memory for K records.
    """
    drawn = draw_yahoo(path, num_arms, seed, num_rewarding=num_rewarding, strict=strict)
    lines = drawn.records
    ids = [f"{line.article}-#{line.number}" for line in lines]
    clicked = np.array([line.clicked for line in lines])
    users, articles = [line.user for line in lines], [line.displayed for line in lines]
    return _environment(users, articles, clicked, ids, rank_tolerance)


def draw_yahoo(
    path: str | Path, num_arms: int = 200, seed: int = 0, *, num_rewarding: int | None = None, strict: bool = False
) -> YahooDraw:
    """The lines that `yahoo_r6a` makes its arms of, with their pools, and what was skipped or passed over.

    Every good line is given a random place; the clicked lines and the others are then taken in that order, lines with
    the features of one already taken being passed over. One pass does it, and the result is that of the whole log.

    Args:
        path, num_arms, seed, num_rewarding, strict: as in `yahoo_r6a`.

    Raises:
        DatasetMissing, InvalidInput: as in `yahoo_r6a`.
    """
    wanted = _checked_number(num_arms, num_rewarding)
    rng = stream(seed, "yahoo_r6a", num_arms)
    # as many spare ones as there are clicked arms, whose features may come again among the lines without a click
    clicked, others = DistinctSample(wanted), DistinctSample(num_arms)

    def offer(line: YahooRecord) -> None:
        (clicked if line.clicked else others).offer(float(rng.random()), line)

    log = counted(path, strict=strict, each=offer)
    rewarding, repeated = clicked.first(wanted)
    rest, passed_over = others.first(num_arms - wanted, {feature_row(line) for line in rewarding})
    if len(rewarding) < wanted or len(rest) < num_arms - wanted:
        raise InvalidInput(
            f"{path} gives {len(rewarding)} clicked and {len(rest)} other lines with distinct features, of "
            f"{log.records} records; {num_arms} arms need {wanted} and {num_arms - wanted}. {log.sentence} "
            "Ask for fewer arms, or give more of the log."
        )
    lines = rewarding + rest
    order = rng.permutation(len(lines))
    return YahooDraw(tuple(lines[place] for place in order), repeated + passed_over, log)


def yahoo_like(
    num_arms: int = 200,
    seed: int = 0,
    *,
    num_rewarding: int | None = None,
    rank_tolerance: float = ROUNDING_KEPT,
) -> Environment:
    """Generated records in the form of `yahoo_r6a`: no line of them is Yahoo's. Noise N(0, 1).

    Users and 24 articles have five memberships, drawn from Dirichlet laws (parameters .4 and 1) and rounded to six
    decimals as in the log, and the constant 1; each arm is a new user with one of the articles. Which arms are
    rewarding (mean .8, the others .3) is drawn regardless of the features, so it is no linear function of them.

    Args:
        num_arms, num_rewarding: as in `yahoo_r6a`.
        seed: decides everything that is random.
        rank_tolerance: as in `yahoo_r6a`, but 1e-9: rank 35, as in the paper, of which 10 directions are rounding
            errors. They help linear methods to fit rewards that are not linear; at 1e-4 the rank is 25, and RAGE
            loses a rewarding arm or never finishes more often.

    Returns:
        K arms with ids "generated-0", "generated-1", ...

    Raises:
        InvalidInput: an argument is out of range.

    Source: ours, after the paper's Yahoo experiment.
    """
    wanted = _checked_number(num_arms, num_rewarding)
    rng = stream(seed, "yahoo_like", num_arms)
    users, articles = _memberships(num_arms, 0.4, rng), _memberships(NUM_ARTICLES, 1.0, rng)
    shown = articles[rng.integers(NUM_ARTICLES, size=num_arms)]
    rewarding = np.zeros(num_arms, dtype=np.bool_)
    rewarding[rng.choice(num_arms, wanted, replace=False)] = True
    ids = [f"generated-{arm}" for arm in range(num_arms)]
    return _environment(users, shown, rewarding, ids, rank_tolerance)


def _memberships(count: int, concentration: float, rng: np.random.Generator) -> FloatArray:
    drawn = np.round(rng.dirichlet(np.full(5, concentration), size=count), 6)
    return np.insert(drawn, 0, CONSTANT, axis=1)


def _checked_number(num_arms: int, num_rewarding: int | None) -> int:
    whole_number("num_arms", num_arms, least=2, meaning="one arm is no choice.")
    wanted = max(1, round(SHARE_REWARDING * num_arms)) if num_rewarding is None else num_rewarding
    whole_number("num_rewarding", wanted, least=1, meaning="without a rewarding arm all are alike.")
    if wanted > num_arms:
        raise InvalidInput(f"num_rewarding is {wanted}, more than the {num_arms} arms that there are.")
    return wanted


def _environment(
    users: Sequence[Features] | FloatArray,
    articles: Sequence[Features] | FloatArray,
    rewarding: BoolArray,
    ids: list[str],
    rank_tolerance: float,
) -> Environment:
    if not 0.0 < as_number("rank_tolerance", rank_tolerance) < 1.0:
        raise InvalidInput(f"rank_tolerance is {rank_tolerance!r}; it is a share of the largest singular value, < 1.")
    products = np.einsum("ki,kj->kij", np.asarray(users), np.asarray(articles)).reshape(len(ids), -1)
    means = np.where(rewarding, CLICKED, NOT_CLICKED)
    return Environment(
        arms=Arms(in_row_space(products, tolerance=rank_tolerance), ids), means=means, noise=SubGaussian(1.0)
    )
