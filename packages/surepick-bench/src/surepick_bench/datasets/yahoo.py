"""News articles shown to users: arms from the Yahoo! R6A log, and from generated records of the same form."""

import gzip
import math
import zlib
from bisect import insort
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from types import MappingProxyType

import numpy as np

from surepick.core.arms import Arms
from surepick.core.files import is_file, is_folder
from surepick.core.random_streams import stream
from surepick.core.records import BoolArray, FloatArray, record
from surepick.core.values import as_number, whole_number
from surepick.environments.environment import Environment
from surepick.errors import DatasetMissing, InvalidInput
from surepick.noise import SubGaussian
from surepick_bench.datasets.public import in_row_space

# --- Lines of the Yahoo! R6A news log: which article was shown to whom, from which pool, and whether it was clicked.
#
#     TIMESTAMP DISPLAYED CLICK |user 1:V ... 6:V |ARTICLE 1:V ... 6:V |ARTICLE ...
#
# The log itself is not included: it is given on request, for non-commercial research.

Features = tuple[float, ...]

NUM_FEATURES = 6
IDS = tuple(str(number) for number in range(1, NUM_FEATURES + 1))
PREFIXES = tuple(f"{name}:" for name in IDS)
LONGEST_TIMESTAMP = 20  # digits
REMEMBERED = 2_000  # pools and article blocks kept by their text: consecutive lines repeat them
RECIPE = (
    "Ask for the data set R6A (Yahoo! Front Page Today Module User Click Log) at "
    "https://webscope.sandbox.yahoo.com, free for non-commercial research, and give one of its files or their folder."
)
REMEDY = "Correct or remove the line, or read with strict=False, which skips such lines and counts them."


@record
class YahooRecord:
    """One line of the log.

    Args:
        number: of the line, counted from 1 through all files.
        timestamp: seconds since 1970.
        article: id of the displayed article.
        clicked: whether the user clicked on it.
        user: the user's six features, in the order of their ids.
        pool: id -> six features of every article that could have been displayed.
    """

    number: int
    timestamp: int
    article: str
    clicked: bool
    user: Features
    pool: Mapping[str, Features]

    @property
    def displayed(self) -> Features:
        """The six features of the displayed article."""
        return self.pool[self.article]


@record
class YahooLog:
    """What a log holds.

    Args:
        records: good lines.
        clicks: how many of them were clicked.
        skipped: reason -> lines that were passed over for it.
    """

    records: int
    clicks: int
    skipped: Mapping[str, int]

    @property
    def sentence(self) -> str:
        """The counts in words."""
        if not self.skipped:
            return "No line was skipped."
        reasons = ", ".join(f"{reason}: {count}" for reason, count in self.skipped.items())
        return f"{sum(self.skipped.values())} lines were skipped ({reasons})."


def yahoo_log(path: str | Path, *, strict: bool = False) -> YahooLog:
    """Read the whole log and count: records, clicks, and the lines skipped for each reason.

    Args:
        path, strict: as in `yahoo_records`.

    Raises:
        DatasetMissing, InvalidInput: as in `yahoo_records`.

    Cost: one pass, constant memory.
    """
    return counted(path, strict=strict)


def counted(path: str | Path, *, strict: bool, each: Callable[[YahooRecord], None] | None = None) -> YahooLog:
    """Read the whole log, hand over each record, and count."""
    records, clicks, skipped = 0, 0, Counter[str]()
    for line in read_lines(path, strict=strict):
        if isinstance(line, str):
            skipped[line] += 1
            continue
        records += 1
        clicks += line.clicked
        if each is not None:
            each(line)
    return YahooLog(records, clicks, MappingProxyType(dict(sorted(skipped.items()))))


def yahoo_records(path: str | Path, *, strict: bool = False) -> Iterator[YahooRecord]:
    """The good lines of the log, one by one.

    Args:
        path: a file, packed (`*.gz`) or plain, or a folder whose `*.gz` are read in the order of their names.
        strict: False skips lines that are no records (`yahoo_log` counts them); True refuses the first one.

    Returns:
        An iterator of records; the pool of a record holds the features of every article offered.

    Raises:
        DatasetMissing: there is no such file, or no `*.gz` in the folder; the message holds the recipe.
        InvalidInput: a file cannot be read or unpacked, or, with strict, a line is not a record.

    Cost: one pass, constant memory; about 70,000 lines of real length (25 articles) a second on one core.
    """
    return (line for line in read_lines(path, strict=strict) if isinstance(line, YahooRecord))


def read_lines(path: str | Path, *, strict: bool) -> Iterator[YahooRecord | str]:
    """Every line as a record, or as the kind of its fault; arguments and errors as in `yahoo_records`."""
    number = 0
    article_of = lru_cache(REMEMBERED)(_article)
    pool_of = lru_cache(REMEMBERED)(partial(_pool, article_of=article_of))
    for file in _files(Path(path)):
        for line, raw in enumerate(_raw_lines(file), start=1):
            number += 1
            try:
                yield _record(raw.decode("latin-1"), number, pool_of)
            except _BadLineError as bad:
                if strict:
                    raise InvalidInput(f"{file}, line {line}: {bad}. {REMEDY}") from None
                yield bad.reason


class _BadLineError(Exception):
    """A line is not a record; `reason` is the kind of fault, the message the fault in full."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


def _record(text: str, number: int, pool_of: Callable[[str], Mapping[str, Features]]) -> YahooRecord:
    """The record of a line; _BadLineError if it is none."""
    head, _, rest = text.partition("|")
    user, _, offered = rest.partition("|")
    fields = head.split()
    if not fields and not rest:
        raise _BadLineError("empty line", "the line is empty")
    if len(fields) != 3 or not (fields[0].isdecimal() and len(fields[0]) <= LONGEST_TIMESTAMP):
        raise _BadLineError(
            "malformed beginning", f"it begins with {head.strip()[:60]!r}, not with TIMESTAMP ARTICLE CLICK"
        )
    timestamp, article, click = fields
    if click not in ("0", "1"):
        raise _BadLineError("click is neither 0 nor 1", f"the click is {click[:20]!r}; it must be 0 or 1")
    who, _, values = user.partition(" ")
    if who != "user":
        raise _BadLineError("no user block", f"where |user was expected stands |{who.strip()[:20]}")
    features = _features("the user", values)
    pool = pool_of(offered)
    if article not in pool:
        raise _BadLineError(
            "displayed article not in the pool",
            f"the displayed article {article[:20]} is not among the {len(pool)} articles of its pool",
        )
    return YahooRecord(number, int(timestamp), article, click == "1", features, pool)


def _pool(offered: str, article_of: Callable[[str], tuple[str, Features]]) -> Mapping[str, Features]:
    pool: dict[str, Features] = {}
    for name, features in map(article_of, offered.split("|")):
        if name in pool:
            raise _BadLineError("article offered twice", f"the article {name} stands twice in the pool")
        pool[name] = features
    return MappingProxyType(pool)


def _article(block: str) -> tuple[str, Features]:
    name, _, values = block.partition(" ")
    if not name.strip():
        raise _BadLineError("article without id", f"an article of the pool has no id: |{block.strip()[:40]}")
    return name.strip(), _features(f"the article {name.strip()[:20]}", values)


def _features(whose: str, text: str) -> Features:
    """Six finite values in the order of their ids, from "2:.5 3:.5 ..."; the quick way first, for faultless blocks."""
    tokens = text.split()
    if len(tokens) == NUM_FEATURES and "_" not in text:
        try:
            found = {token[:2]: float(token[2:]) for token in tokens}
            in_order = tuple([found[name] for name in PREFIXES])
            if math.isfinite(sum(in_order)):
                return in_order
        except (KeyError, ValueError):
            pass
    return _features_or_fault(whose, tokens)


def _features_or_fault(whose: str, tokens: list[str]) -> Features:
    values: dict[str, float] = {}
    for token in tokens:
        name, colon, number = token.partition(":")
        if name not in IDS or not colon:
            raise _BadLineError("unknown feature", f"{whose} has {token[:30]!r}; features are 1:VALUE to 6:VALUE")
        if name in values:
            raise _BadLineError("repeated feature", f"{whose} has the feature {name} twice")
        where = f"the feature {name} of {whose} is"
        try:
            values[name] = math.nan if "_" in number else float(number)
        except ValueError:
            raise _BadLineError("value is not a number", f"{where} {number[:20]!r}, not a number") from None
        if not math.isfinite(values[name]):
            raise _BadLineError("value is not finite", f"{where} {number[:20]}, not finite")
    if lacking := [name for name in IDS if name not in values]:
        found = f"{whose} has {len(values)} of {NUM_FEATURES} features"
        raise _BadLineError("missing feature", f"{found}: {', '.join(lacking)} not found")
    return tuple([values[name] for name in IDS])


def _files(path: Path) -> list[Path]:
    if is_file(path):
        return [path]
    if not is_folder(path):
        raise DatasetMissing(f"There is no file or folder {path}.", recipe=RECIPE)
    files = sorted(path.glob("*.gz"))
    if not files:
        raise DatasetMissing(f"There is no *.gz in {path}.", recipe=RECIPE)
    return files


def _raw_lines(file: Path) -> Iterator[bytes]:
    line = 0
    try:
        with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as stream:
            for line, raw in enumerate(stream, start=1):  # noqa: B007 (named in the message below)
                yield raw
    except (OSError, EOFError, zlib.error) as error:
        raise InvalidInput(
            f"{file} cannot be read beyond line {line}: {error}. It is damaged or not complete; obtain it again."
        ) from error


# --- A random sample of lines with different features, drawn in one pass over a log that does not fit into memory.

Row = tuple[Features, Features]


def feature_row(line: YahooRecord) -> Row:
    """What decides the features of the arm that a line becomes."""
    return line.user, line.displayed


@dataclass(slots=True)
class _Seat:
    """A row's first line so far, and the places of all the row's lines in the random order, sorted."""

    line: YahooRecord
    places: list[float] = field(default_factory=list)


class DistinctSample:
    """The `size` different rows that come first when all lines stand in the order of their random places. A row that
    falls out cannot come back by a place already seen: the last place kept only becomes earlier. Cost: O(size) time a
    line that is kept, O(1) for the others; memory for `size` lines and the places of repeats."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.seats: dict[Row, _Seat] = {}
        self.end = math.inf if size else -math.inf  # the last place kept, once all seats are taken

    def offer(self, place: float, line: YahooRecord) -> None:
        """Consider a line at its place, a random number that no other line has."""
        if place > self.end:
            return
        seat = self.seats.setdefault(feature_row(line), _Seat(line))
        insort(seat.places, place)
        if seat.places[0] == place:
            seat.line = line
        if len(self.seats) > self.size:
            del self.seats[max(self.seats, key=self._first_place)]
        if len(self.seats) == self.size:
            self.end = max(map(self._first_place, self.seats))

    def _first_place(self, row: Row) -> float:
        return self.seats[row].places[0]

    def first(self, number: int, excluded: AbstractSet[Row] = frozenset()) -> tuple[list[YahooRecord], int]:
        """The first `number` lines without an excluded row, and how many others were passed over on the way. There are
        fewer lines where the log has not so many different rows."""
        rows = [row for row in sorted(self.seats, key=self._first_place) if row not in excluded][:number]
        end = self._first_place(rows[-1]) if rows else -math.inf
        met = sum(place <= end for seat in self.seats.values() for place in seat.places)
        return [self.seats[row].line for row in rows], met - len(rows)


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
    num_arms: int = 200, seed: int = 0, *, num_rewarding: int | None = None, rank_tolerance: float = ROUNDING_KEPT
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
