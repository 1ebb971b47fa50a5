"""The experiments by name: the paper's, the baselines, and error rates against delta.

Constants that stand for knowledge are of two kinds. Those of the paper's policies are the published ones, which their
own data contradict (C = .5 where the norm is .89). Those of the certified policies hold for the environment; the tests
check them against the truth.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from surepick.core.records import record
from surepick.errors import InvalidInput
from surepick_bench import spec
from surepick_bench.runner import RANKING_AND_SELECTION

# --- The field's other algorithms beside ours, on easy instances and on those on which other papers publish pulls.
#
# `PEERS` has easy ones. In `SMALL_EPSILON` epsilon is a share of the gap between the best two arms, down to a
# thousandth, so that a policy that is blind to the gaps is found out. In `SLIPPAGE` all other arms are worse by
# epsilon. A study of the last two ends at `LIMITS` at the latest; the tables say which did.

LIMITS: Mapping[str, Any] = MappingProxyType({"max_pulls": 1_000_000_000, "max_seconds": 120.0})
SHARES = {"gap": 1.0, "gap/10": 0.1, "gap/1000": 0.001}
SLIPPAGE_EPSILON = 0.1
SLIPPAGE_GAP = SLIPPAGE_EPSILON * (1.0 + 1e-9)  # so that only the best arm is epsilon-best
CODE = {"constants": "published-code"}
CODE_PHASES = {**CODE, "shrinkage": 0.316}  # of the code's phases each is sqrt(10) times as long as the one before

PEERS = spec.crossed(
    "peers",
    "the field's other algorithms, each with its own stopping rule",
    [
        spec.EnvironmentSpec("sphere", "sphere", {"num_arms": 100, "dim": 10}),
        spec.EnvironmentSpec("soare", "soare", {"dim": 10, "angle": 0.6}),
        spec.EnvironmentSpec("digits", "digits", {"per_digit": 6}, "independent"),
    ],
    (
        spec.default("xy-static"),
        spec.default("xy-adaptive"),
        spec.default("lingape", norm_bound=2.0),
        spec.default("lingame", norm_bound=2.0),
        spec.default("lucb"),
        spec.default("sequential-halving", budget=100_000),
        spec.default("rage"),
        spec.default("action-elimination"),
        spec.default("certified-linear", norm_bound=2.0),
        spec.default("certified-readings", assume="linear:level=no", trust="exact"),
        spec.default("certified-independent"),
    ),
    max_pulls=1_000_000,
)
_WITH_FEATURES = (
    spec.default("xy-static", label="xy-static published-code", **CODE),
    spec.default("xy-adaptive", label="xy-adaptive published-code", **CODE_PHASES),
    spec.default("lingape", norm_bound=1.0),
    spec.default("lingame", norm_bound=1.0),
    spec.default("lingame", label="lingame stylised", play="learner", threshold="stylised"),
    spec.default("rage"),
    spec.default("action-elimination"),
    spec.default("action-elimination", label="action-elimination mixture", boundary="mixture"),
    spec.default("certified-linear", norm_bound=1.0),
    spec.default("certified-independent"),
)
_IN_LARGE_BATCHES = (
    spec.default("action-elimination"),
    spec.default("action-elimination", label="action-elimination mixture", boundary="mixture"),
    spec.default("certified-independent"),
)
_WITHOUT_FEATURES = (spec.default("lucb"), *_IN_LARGE_BATCHES)


def _soare(dim: int, angle: float, epsilon: str) -> spec.EnvironmentSpec:
    """The instance of Xu et al. (2018): theta = 2 e1 with sigma 1, in units half as large."""
    label = f"soare d={dim} w={angle:g} {epsilon}"
    return spec.EnvironmentSpec(label, "soare", {"dim": dim, "angle": angle, "sigma": 0.5})


def _small_epsilon() -> Iterator[spec.Cell]:
    linear = [(_soare(dim, 0.1, name), share) for dim in (5, 10) for name, share in SHARES.items()]
    linear.append((_soare(10, 0.01, "gap"), SHARES["gap"]))
    uniform = spec.EnvironmentSpec("50 on a sphere d=9 gap/1000", "sphere", {"num_arms": 50, "dim": 9})
    linear.append((uniform, SHARES["gap/1000"]))
    for place, share in linear:
        for policy in _WITH_FEATURES:
            yield spec.Cell("small-epsilon", place, policy, gap_share=share, **LIMITS)
    plain = (
        spec.EnvironmentSpec("10 normal gap/1000", "one-better", {"num_arms": 10, "gap": 0.6}, "independent"),
        spec.EnvironmentSpec("100 Bernoulli gap/1000", "falling-means", {}, "independent"),
    )
    for place in plain:
        for policy in _WITHOUT_FEATURES:
            yield spec.Cell("small-epsilon", place, policy, gap_share=SHARES["gap/1000"], **LIMITS)


def _slippage() -> Iterator[spec.Cell]:
    """LUCB, which pulls two arms a batch, is run with 100 arms only."""
    for num_arms, sigma in ((100, 0.5), (500, 0.5), (1000, 0.5), (2000, 1.0)):
        options = {"num_arms": num_arms, "gap": SLIPPAGE_GAP, "sigma": sigma}
        place = spec.EnvironmentSpec(f"slippage K={num_arms}", "one-better", options, "independent")
        for policy in _WITHOUT_FEATURES if num_arms == 100 else _IN_LARGE_BATCHES:
            yield spec.Cell("slippage", place, policy, SLIPPAGE_EPSILON, **LIMITS)


SMALL_EPSILON = spec.Experiment(
    "small-epsilon",
    "epsilon from the gap between the best two arms down to a thousandth of it",
    tuple(_small_epsilon()),
)
SLIPPAGE = spec.Experiment(
    "slippage", "all other arms are worse by epsilon, .1: sigma .5, and 1 at K = 2,000", tuple(_slippage())
)


# --- Questions whose answer is lists: ours beside the peers, each at its own stop.
#
# All peers keep delta for every arm at once, whatever errors="discovery" asks. Peers whose intervals can be tuned stand
# there twice: as they come, and tuned to the half-width at which the instance is decided. For that one has to know the
# truth, as no user does.

NAME = "questions"
OURS, TUNED = "certified-", ", tuned"
DELTA, MOST_PULLS, MOST_SECONDS = 0.05, 10_000_000, 300.0
SHIFT, OFF = 0.4, 4e-10  # in standard deviations; a little more, so that an arm on the other list is on a wrong one
MEDIAN_MODEL = "Claude-3-Haiku"  # of livecodebench's test output prediction
FALLING = (0.5, *(0.5 - place / 40.0 for place in range(2, 16)))


@record
class Asked:
    """A question about an environment."""

    place: spec.EnvironmentSpec  # the environment
    question: dict[str, Any]  # as `make_policy` takes it
    epsilon: float  # in reward units
    width: float  # the half-width at which intervals decide it, for peers that can be tuned
    linear: float | None = None  # norm bound of the rewards; None: they are not taken for linear in the features


def _place(label: str, name: str, **options: Any) -> spec.EnvironmentSpec:
    return spec.EnvironmentSpec(label, name, options, "independent")


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


def _policies(asked: Asked) -> Iterator[spec.PolicySpec]:
    """Ours, with features too where rewards are linear in them; then the peers that answer the question."""
    question: dict[str, Any] = {"question": asked.question}
    kind = asked.question["name"]
    yield spec.default("certified-independent", **question)
    if kind == "above":
        discovery = {**asked.question, "errors": "discovery"}
        yield spec.default("certified-independent", label="certified-independent discovery", question=discovery)
    if asked.linear is not None:
        yield spec.default("certified-linear", norm_bound=asked.linear, **question)
    if kind == "top":
        yield spec.default("lucb-top", **question)
        yield from _tuned("lucb-top", asked, label="lucb-top mixture", boundary="mixture")
    if kind == "all-good":
        yield from _tuned("st2", asked)
    if "threshold" in asked.question:
        yield from _tuned("apt", asked)
    yield spec.default("uniform-lists", **question)
    yield from _tuned("uniform-lists", asked, label="uniform-lists undecided", pulled="undecided")


def _tuned(name: str, asked: Asked, *, label: str | None = None, **options: Any) -> Iterator[spec.PolicySpec]:
    """A peer as it comes, and with intervals that are tightest where this instance is decided."""
    question, called = {"question": asked.question}, label or name
    yield spec.default(name, label=called, **question, **options)
    yield spec.default(name, label=f"{called}{TUNED}", **question, accuracy=asked.width, **options)


QUESTIONS = spec.Experiment(
    NAME,
    "questions whose answer is lists: above a threshold or a control, the m best, all that are good",
    tuple(
        spec.Cell(NAME, asked.place, policy, asked.epsilon, DELTA, max_pulls=MOST_PULLS, max_seconds=MOST_SECONDS)
        for asked in (*_above(), *_tops(), *_all_good())
        for policy in _policies(asked)
    ),
    note="tuned: the intervals are tightest where the instance is decided, which only the truth tells. Right: nobody "
    "is on a wrong list; of discovery, which does not promise that, the wrong share counts.",
)


def ratio_lines(spent: Mapping[tuple[str, str], float]) -> list[str]:
    """A line an environment and policy of ours: its pulls over those of the best peer, and of the best tuned one."""
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


NEVER_STOPS = 200_000  # budget of a policy without a stopping rule
LINEAR_ARMS = (250, 500, 750, 1000)
LINEAR_DIMS = (20, 25)  # the paper says 20; its published code draws 25
NORM_DIMS = (10, 20, 30)
DELTAS = (0.01, 0.05, 0.1, 0.2, 0.3)
PAPER = ("paper-linear", "paper-nonlinear", "mnist", "yahoo-like", "high-dimensional")
SEVERAL: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "paper": PAPER,
        "peers": ("peers", "small-epsilon", "slippage"),
        "ranking-and-selection": ("ranking-and-selection", "slippage"),
    }
)


def _on_clusters(
    name: str, title: str, environments: Mapping[str, dict[str, Any]], *, linear_norm: float, kernel_norm: float
) -> spec.Experiment:
    """The paper's five policies, Algorithm 4, the neural rule on plain means, and the certified ones."""
    return spec.crossed(
        name,
        title,
        [spec.EnvironmentSpec(label, "two-clusters", options, "linear", 2) for label, options in environments.items()],
        (
            spec.published("linear-embedding", norm_bound=0.5),
            spec.published("kernel-embedding", norm_bound=0.5, gamma=1.0),
            spec.published("rage"),
            spec.published("action-elimination", noise="subgaussian:0.5"),
            spec.published("neural-embedding", noise=None),
            spec.published("means-neural-rule", noise=None),
            spec.published("unknown-misspecification", dim=2, max_pulls=NEVER_STOPS),
            spec.default("certified-linear", norm_bound=linear_norm),
            spec.default("certified-kernel", norm_bound=kernel_norm, gamma=1.0),
            spec.default("certified-independent"),
            spec.default("certified-neural", misspecification=0.001, width=64),
        ),
    )


def _is_expensive(cell: spec.Cell) -> bool:
    """certified-neural at D = 25, which only RAGE's figure needs: a third of the time of the whole experiment."""
    return cell.policy.name == "certified-neural" and cell.environment.options["dim"] == LINEAR_DIMS[1]


_ALL_LINEAR = _on_clusters(
    "paper-linear",
    "two clusters, linear Bernoulli rewards, K = 250 to 1,000 (the paper's figure 1a)",
    {
        f"K={num_arms}, D={dim}": {"num_arms": num_arms, "dim": dim, "reward": "linear"}
        for dim in LINEAR_DIMS
        for num_arms in LINEAR_ARMS
    },
    linear_norm=0.9,
    kernel_norm=1.2,
)
PAPER_LINEAR = replace(_ALL_LINEAR, cells=tuple(cell for cell in _ALL_LINEAR.cells if not _is_expensive(cell)))
PAPER_NONLINEAR = _on_clusters(
    "paper-nonlinear",
    "two clusters, reward = norm, K = 200, D = 10 to 30 (the paper's figure 1b)",
    {f"K=200, D={dim}": {"num_arms": 200, "dim": dim, "reward": "norm"} for dim in NORM_DIMS},
    linear_norm=1.2,
    kernel_norm=1.5,
)
MNIST = spec.crossed(
    "mnist",
    "200 images of digits, find a seven (the paper's figure 2a, Table 1 and Table 2)",
    [spec.EnvironmentSpec("200 images", "mnist", {"per_digit": 20}, "independent")],
    (
        spec.published("fixed-linear", norm_bound=1e-5),
        spec.published("fixed-kernel", norm_bound=2.5e-3, gamma=9e-5),
        spec.published("rage"),
        spec.published("action-elimination"),
        spec.published("neural-embedding"),
        spec.published("means-neural-rule"),
        spec.published("linear-embedding", norm_bound=1e-5),
        spec.default("certified-linear", norm_bound=2.0),
        spec.default("certified-independent"),
    ),
)
YAHOO_LIKE = spec.crossed(
    "yahoo-like",
    "200 click records, 5 of them rewarding (the paper's figure 2b, on generated records)",
    [spec.EnvironmentSpec("200 records", "yahoo-like", {"num_arms": 200}, "independent")],
    (
        spec.published("fixed-linear", norm_bound=1e-3),
        spec.published("fixed-kernel", norm_bound=1e-3, gamma=10.0),
        spec.published("rage"),
        spec.published("action-elimination"),
        spec.published("neural-embedding", error_tolerance=1e-3, regularization=10.0),
        spec.published("neural-embedding", label="neural, ridge 1", error_tolerance=1e-3, regularization=1.0),
        spec.published("means-neural-rule"),
        spec.default("certified-independent"),
    ),
    note="Generated data: the records are random numbers in the form of Yahoo's, and no Yahoo data is in them.",
)
HIGH_DIMENSIONAL = spec.crossed(
    "high-dimensional",
    "the paper's example in which its method does not feel the dimension and RAGE does (appendix)",
    [
        spec.EnvironmentSpec(f"D={dim}", "high-dimensional", {"dim": dim, "epsilon": 0.1}, "linear", None)
        for dim in (5, 10, 20, 40)
    ],
    (
        spec.published("linear-embedding", norm_bound=1.0),
        spec.published("rage"),
        spec.published("action-elimination"),
        spec.default("certified-linear", norm_bound=1.0),
        spec.default("certified-independent"),
    ),
)
_ONE_BETTER = spec.EnvironmentSpec("one better arm of 100", "one-better", {"num_arms": 100, "gap": 0.15}, "independent")
_JUDGED = (
    spec.published("neural-embedding"),
    spec.published("means-neural-rule"),
    spec.published("action-elimination"),
    spec.default("certified-independent"),
)
ERROR_RATE = spec.Experiment(
    "error-rate",
    "wrong answers against delta: one arm of 100 is better, by 1.5 epsilon",
    tuple(spec.Cell("error-rate", _ONE_BETTER, policy, delta=delta) for delta in DELTAS for policy in _JUDGED),
)
_SEVERAL = (PAPER_LINEAR, PAPER_NONLINEAR, MNIST, YAHOO_LIKE, HIGH_DIMENSIONAL, PEERS, SMALL_EPSILON, SLIPPAGE)
EXPERIMENTS: Mapping[str, spec.Experiment] = MappingProxyType(
    {each.name: each for each in (*_SEVERAL, RANKING_AND_SELECTION, QUESTIONS, ERROR_RATE)}
)


def experiment(name: str) -> spec.Experiment:
    """The experiment of that name, or the one that a file NAME.json describes."""
    if name.endswith(".json"):
        return spec.experiment_of_file(name)
    if name not in EXPERIMENTS:
        raise InvalidInput(
            f"there is no experiment {name!r}; choose from {', '.join(EXPERIMENTS)}, paper for all the paper's, or a "
            "file NAME.json that describes one."
        )
    return EXPERIMENTS[name]


def experiments(names: Sequence[str]) -> tuple[spec.Experiment, ...]:
    """The experiments of those names, each once; "paper" stands for all the paper's, "peers" for three,
    "ranking-and-selection" for itself and "slippage".
    """
    if not names:
        raise InvalidInput(f"name an experiment: {', '.join(EXPERIMENTS)}, or paper for all the paper's.")
    several = [each for name in names for each in SEVERAL.get(name, (name,))]
    return tuple(experiment(name) for name in dict.fromkeys(several))


def experiment_names() -> tuple[str, ...]:
    """The names that `experiment` knows, in the order of the paper."""
    return tuple(EXPERIMENTS)


# --- What was published, beside which the measured numbers stand.
#
# Two kinds, never mixed: what the paper prints (read off its figures, so to two digits at best), and what a careful
# reimplementation with the settings of the published code measured, which tells more precisely whether ours is the same
# algorithm. All pulls are the paper's metric, until only epsilon-best arms are left, unless they are named own.

Name = tuple[str, str, str]  # experiment, environment, policy


@record
class Published:
    """What is known about one cell; the paper reports no pulls until its own stop."""

    figure: str = ""  # the paper's number of pulls as it can be read off, e.g. "2,800-3,200"; "" if it has none
    success: float | None = None  # the paper's success rate; None if it gives none
    expected: float | None = None  # oracle pulls of the reimplementation; None if it has none
    own: float | None = None  # own-stop pulls of the reimplementation; None: it has none
    by_median: bool = False  # the numbers are medians, because the tails are heavy
    rounds: tuple[tuple[float, float], ...] = ()  # of the paper's last table: mean dimension and share done of a round
    end: int | None = None  # which end of a range in `figure` this cell is, 0 or 1; None: neither

    @property
    def read(self) -> float | None:
        """The paper's number for this cell, as a number; None if the figure gives none here."""
        numbers = self.figure.partition(" ")[0].replace(",", "").split("-")
        if len(numbers) > 1:
            return None if self.end is None else float(numbers[self.end])
        return float(numbers[0]) if numbers[0] else None


ENDS: Mapping[int, int] = MappingProxyType({0: 0, 3: 1})  # of a range over four numbers of arms
ON_LINEAR: Mapping[str, tuple[str, tuple[float | None, ...]]] = MappingProxyType(
    {
        "linear-embedding": ("2,800-3,200", (2_694, 2_955, 3_111, 3_223)),
        "kernel-embedding": ("2,800-3,200", (2_676, 2_925, 3_071, 3_175)),
        "action-elimination": ("60,000-250,000", (60_000, 121_000, 190_000, 259_000)),
        "neural-embedding": ("290", (284, None, None, 333)),
        "unknown-misspecification": ("", (10_700, 11_600, 12_200, 12_600)),
    }
)
RAGE_ON_LINEAR = (9_548, 10_944, 12_066, 12_856)  # D = 25
OWN_ON_LINEAR: Mapping[str, tuple[float, ...]] = MappingProxyType(
    {"linear-embedding": (2_934, 3_185, 3_346, 3_463), "rage": (2.7e6, 3.4e6, 3.7e6, 3.9e6)}
)
ON_NORM: Mapping[str, tuple[str, tuple[float, ...]]] = MappingProxyType(
    {
        "linear-embedding": ("2,500", (2_602, 2_432, 2_614)),
        "kernel-embedding": ("2,500", (2_596, 2_596, 2_596)),
        "rage": ("3,700-12,000", (3_819, 7_445, 10_647)),
        "action-elimination": ("46,000", (46_000, 46_000, 46_000)),
        "neural-embedding": ("280", (276, 276, 276)),
    }
)
NEURAL_ON_YAHOO: Mapping[str, Any] = MappingProxyType(
    {"expected": 1.1e4, "by_median": True, "rounds": ((72.70, 0.86), (167.57, 1.0))}
)


def _on_linear() -> Iterator[tuple[Name, Published]]:
    for column, num_arms in enumerate(LINEAR_ARMS):
        for dim in LINEAR_DIMS:
            place = f"K={num_arms}, D={dim}"
            for policy, (figure, pulls) in ON_LINEAR.items():
                own_stop = OWN_ON_LINEAR.get(policy, (None,) * 4)[column]
                known = Published(figure, 1.0 if figure else None, pulls[column], own_stop, end=ENDS.get(column))
                yield ("paper-linear", place, policy), known
        # RAGE's pulls grow with D: the paper says 20, and its published code draws 25, which gives its figure
        expected, own = RAGE_ON_LINEAR[column], OWN_ON_LINEAR["rage"][column]
        yield ("paper-linear", f"K={num_arms}, D=20", "rage"), Published("10,000-12,500", 1.0)  # at D = 25
        known = Published("10,000-12,500", 1.0, expected, own, end=ENDS.get(column))
        yield ("paper-linear", f"K={num_arms}, D=25", "rage"), known


def _on_norm() -> Iterator[tuple[Name, Published]]:
    for column, dim in enumerate(NORM_DIMS):
        for policy, (figure, expected) in ON_NORM.items():
            known = Published(figure, 1.0, expected[column], end={0: 0, 2: 1}.get(column))
            yield ("paper-nonlinear", f"K=200, D={dim}", policy), known


PUBLISHED: Mapping[Name, Published] = MappingProxyType(
    {
        **dict(_on_linear()),
        **dict(_on_norm()),
        ("mnist", "200 images", "action-elimination"): Published("410,000", 1.0, 4.1e5),
        ("mnist", "200 images", "rage"): Published("310,000", 1.0, 3.0e5),
        ("mnist", "200 images", "fixed-linear"): Published("255,000", 1.0, 2.6e5),
        ("mnist", "200 images", "fixed-kernel"): Published("250,000", 1.0, 2.6e5),
        ("mnist", "200 images", "neural-embedding"): Published(
            "30,000", 0.98, 2.9e4, rounds=((190.22, 0.82), (192.11, 0.98))
        ),
        ("mnist", "200 images", "means-neural-rule"): Published("", None, 28_184),
        ("yahoo-like", "200 records", "action-elimination"): Published("115,000", 1.0, 1.18e5),
        ("yahoo-like", "200 records", "rage"): Published("50,000 (median)", 0.90, 1.0e5, by_median=True),
        ("yahoo-like", "200 records", "fixed-linear"): Published("58,000 (median)", 0.88, by_median=True),
        ("yahoo-like", "200 records", "fixed-kernel"): Published("70,000", 0.98, 7.0e4),
        ("yahoo-like", "200 records", "neural-embedding"): Published("13,000", 1.0, **NEURAL_ON_YAHOO),
        ("yahoo-like", "200 records", "neural, ridge 1"): Published("13,000", 1.0, **NEURAL_ON_YAHOO),
    }
)


def read_off() -> dict[Name, float]:
    """The paper's own oracle pulls where its figures give a number: cell -> pulls, to be drawn."""
    return {name: known.read for name, known in PUBLISHED.items() if known.read is not None}


def published_for(experiment: str, environment: str, policy: str) -> Published:
    """What is known about the cell; an empty record if nothing is."""
    return PUBLISHED.get((experiment, environment, policy), Published())
