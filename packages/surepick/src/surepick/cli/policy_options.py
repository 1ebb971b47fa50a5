"""From options of the command line to policies."""

import json
from dataclasses import dataclass, fields, make_dataclass
from itertools import product
from pathlib import Path
from typing import Any

from surepick import questions
from surepick.chunks.sources import RowBlocks
from surepick.cli.options import ASKS, POLICIES, QUESTIONS, ROUNDS, Goal, opt
from surepick.core.arms import Arms
from surepick.embeddings.base import ESTIMATED
from surepick.errors import InvalidInput
from surepick.noise import USUAL_NOISE, Noise, parse_noise
from surepick.policies.base import Policy
from surepick.policies.options import NAMES_OF_A_KERNEL, NOTHING, OF_BLOCKS, fitting_policy
from surepick.policies.registry import make_policy, policy_options, rehearsed
from surepick.studies.logs.keys import ITEM
from surepick.tables.reading import read_table

# --- The question, where it is not which candidate is the best.


def _options() -> dict[str, tuple[str, Any, Any]]:
    """option of a question -> (the name of the command line's option, its type, the option), as their files say."""
    found = {}
    for each in (each for made in questions.NAMES.values() for each in fields(made) if each.metadata):
        said = dict(each.metadata)
        kind, name = said.pop("kind"), said.pop("flag", each.name)
        found[each.name] = (name, kind | None, opt(said.pop("help"), rich_help_panel=ASKS, **said))
    return found


OF_QUESTIONS = _options()
ASKED = opt(f"{QUESTIONS}: which is the best (usual), which are above, the m best, ...", rich_help_panel=ASKS)
OfQuestions: Any = make_dataclass(
    "OfQuestions", [("question", str | None, ASKED), *OF_QUESTIONS.values()], frozen=True, slots=True, kw_only=True
)


WITHOUT_FEATURES, LINEAR, KERNEL = "certified-independent", "certified-linear", "certified-kernel"
NEURAL, NAMED = "certified-neural", "certified-readings"
WHO_KNOWS = {
    "norm_source": LINEAR,
    "norm_bound": LINEAR,
    **dict.fromkeys(NAMES_OF_A_KERNEL, KERNEL),
    **dict.fromkeys(("assume", "trust"), NAMED),
    "embedding": "certified-embedding",
    "misspecification": NEURAL,
    "items": "certified-items",
    **dict.fromkeys(("budget", "batch_size", "max_batches", "batch_cost", "later", *OF_BLOCKS), WITHOUT_FEATURES),
    **dict.fromkeys(("question", *questions.QUESTION_OPTIONS), WITHOUT_FEATURES),
}
NUMBERS = 'a number, or several with commas between: "1,2"'
WHOLES = 'a whole number, or several with commas: "48,96"'
Values = dict[str, list[Any]]  # option -> the values that were given, one or several


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyOptions(OfQuestions):  # type: ignore[misc]
    """What is asked, the policy and its settings. `surepick forecast` compares lists with commas; others take one."""

    policy: str | None = opt(
        f"{POLICIES}. None: "
        "certified-readings with --assume, certified-linear if a norm bound is given, certified-kernel if a kernel "
        "is given as well, else certified-independent, which ignores the features."
    )
    assume: str | None = opt(
        "What the means are, of which you know the name only: nothing, linear in the features, smooth, or "
        "auto: what the results do not speak against; docs/assumptions.md.",
        "CLASS",
    )
    trust: str | None = opt(
        "How far each mean may be off --assume: roughly (by epsilon; usual), exact, or a number.", "HOW"
    )
    norm_bound: str | None = opt("The largest norm that the coefficients of a linear reward can have.", "NUMBER")
    norm_estimate: str | None = opt(
        "An estimate instead (surepick tune); an answer that uses it is heuristic.", "NUMBER"
    )
    gamma: str | None = opt("Of the kernel exp(-NUMBER ||x - z||^2).", "NUMBER")
    kernel: str | None = opt('Another kernel, e.g. "matern:2.5:1".')
    expansion: str | None = opt(
        'A kernel by its eigenfunctions: sine, "hermite:GAMMA:SPREAD", "fourier:polynomial:RATE", '
        '"fourier:geometric:RATIO", or one for each feature column joined by "*".'
    )
    embedding: str | None = opt("That of an installed package; its settings: --option NAME=VALUE.", "NAME")
    misspecification: float | None = opt("For certified-neural: the embedding's error.")
    gap_bound: float | None = opt("The largest possible difference of two means.")
    budget: str | None = opt(
        "Measurements in all: the smallest gap that they can show; --epsilon may be left out.", "N"
    )
    batch_size: str | None = opt(
        "Of every batch, e.g. the wells of a plate; certified-*.", "PULLS", rich_help_panel=ROUNDS
    )
    max_batches: str | None = opt(
        "The study ends after so many, certified or not; certified-*.", "NUMBER", rich_help_panel=ROUNDS
    )
    batch_cost: str | None = opt(
        "Of each batch beside its measurements, in the money of --cost; certified-*.", "MONEY", rich_help_panel=ROUNDS
    )
    items: str | None = opt("Test items that all candidates answer, or their number; for certified-items.", "TABLE")
    blocks: str | None = opt(
        'Measurements of the same one share an effect, e.g. "day": a column of results.', "NAME", rich_help_panel=ROUNDS
    )
    streams: str | None = opt(
        "Measurements of the same one share random numbers; with --noise normal.", "NAME", rich_help_panel=ROUNDS
    )
    block_size: str | None = opt("Most measurements in a block; with --blocks.", "PULLS", rich_help_panel=ROUNDS)
    control: str | None = opt(
        "A candidate for every block, or with which all are compared.", "ID", rich_help_panel=ROUNDS
    )
    once_a_block: bool = opt(
        "A candidate is measured at most once in a block; with --blocks.", default=False, rich_help_panel=ROUNDS
    )
    later: list[str] | None = opt("A candidate that is not there yet, and may be added; repeatable.", "ID")
    option: list[str] | None = opt("Another one, repeatable.", "NAME=VALUE")

    def measured_beside(self) -> tuple[str, ...]:
        """The columns that constraints are on."""
        return tuple(questions.parse_constraint(text).name for text in self.constraint or ())

    def question_values(self) -> dict[str, list[Any]]:
        """The options of the question that were given; several questions where commas stand between them."""
        every = {name: getattr(self, flag) for name, (flag, *_) in OF_QUESTIONS.items()}
        found = {name: [value] for name, value in every.items() if value not in (None, [])}
        asked = [word.strip() for word in (self.question or "").split(",") if word.strip()]
        return {"question": asked, **found} if asked else found

    @property
    def asks_several(self) -> bool:
        """Whether questions are compared."""
        return len(self.question_values().get("question", [])) > 1

    def asked(self, goal: Goal, *, by_segment: bool = False) -> str:
        """The question, and what is promised of its answer, in words."""
        values = self.question_values()
        if self.asks_several:
            return f"{len(values['question'])} questions, each with epsilon {goal.epsilon:g} and delta {goal.delta:g}."
        given = {name: value for name, (value,) in values.items()} | self.own_values()
        question = questions.taken_question({**given, "control": self.control})
        question = questions.asked_of(question, by_segment=by_segment)
        if question is None:
            return f"one {goal}."
        return " ".join((*question.said(goal.epsilon, by_segment=by_segment), question.guarantee(goal.delta)))

    def chosen(
        self,
        arms: Arms | RowBlocks,
        noise: Noise,
        goal: Goal,
        *,
        seed: int | None = None,
        rehearsal_seed: int | None = None,
    ) -> Policy[Any]:
        """The one policy that the options ask for."""
        name, settings = self.single()
        known = policy_options(name, settings)
        if seed is not None and "seed" in known:
            settings["seed"] = seed
        if rehearsal_seed is not None:
            settings = rehearsed(name, settings, rehearsal_seed)
        return make_policy(
            name, arms, epsilon=None if goal.any_gap else goal.epsilon, delta=goal.delta, noise=noise, **settings
        )

    @property
    def names_nothing(self) -> bool:
        """Whether it is the usual policy, and nobody said what to make of features."""
        return self.policy is None and self.assume is None and self.single() == (WITHOUT_FEATURES, {})

    def single(self) -> tuple[str, dict[str, Any]]:
        """(the name of the one policy that the options ask for, its settings)."""
        values = self._values()
        for option, several in values.items():
            if len(several) > 1:
                raise InvalidInput(
                    f"{_flag(option)} has {len(several)} values, and one study takes one; surepick forecast compares "
                    "several."
                )
        settings = {option: value for option, (value,) in values.items()}
        name = (self.policy or "").strip() or fitting_policy(settings)
        known = policy_options(name, settings)
        for option in settings:
            if option in WHO_KNOWS and option not in known:
                raise InvalidInput(
                    f"{_flag(option)} has no meaning for {name}; leave it out, or take --policy {WHO_KNOWS[option]}."
                )
        return name, settings

    def grid(self, usual_norm_bound: str = "") -> dict[str, tuple[str, dict[str, Any]]]:
        """Every policy with every combination of the options that it knows: label -> (name, options)."""
        values, names = self._values(), _words(self.policy)
        if not names and usual_norm_bound and "norm_bound" not in values:
            values = {"norm_bound": _numbers("--norm-bound", usual_norm_bound), **values}
        names = names or list(_implied(values))
        known_to = {name: _known_options(name, values) for name in names}
        for option in values:
            if not any(option in known for known in known_to.values()):
                add = f", or add --policy {WHO_KNOWS[option]}" if option in WHO_KNOWS else ""
                raise InvalidInput(f"{_flag(option)} has no meaning for {', '.join(names)}; leave it out{add}.")
        grid = {}
        for name in names:
            _check_estimate(name, values)
            known = {option: several for option, several in values.items() if option in known_to[name]}
            for combination in product(*known.values()):
                options = questions.of_question(dict(zip(known, combination, strict=True)))
                own = policy_options(name, options)  # without those of another question of another package
                options = {option: value for option, value in options.items() if option in own}
                grid[_label(name, options)] = (name, options)
        return grid

    def own_values(self) -> dict[str, Any]:
        """The options of a question of another package that were given."""
        own = questions.own_fields(self.question)
        return {name: value for name, (value,) in _more_options(self.option or []).items() if name in own}

    def _values(self) -> Values:
        """The options that were given, with their values."""
        bounds, estimates = self.norm_bound, self.norm_estimate
        if bounds is not None and estimates is not None:
            raise InvalidInput(
                f"--norm-bound {bounds} and --norm-estimate {estimates} were both given; with a bound that holds the "
                "answer is a theorem, with an estimate it is not. Give the bound if you vouch for it, else the "
                "estimate."
            )
        values: Values = {
            "norm_source": [] if estimates is None else [ESTIMATED],
            "norm_bound": _numbers("--norm-bound", bounds) + _numbers("--norm-estimate", estimates),
            "misspecification": [] if self.misspecification is None else [self.misspecification],
            "gamma": _numbers("--gamma", self.gamma),
            "kernel": _words(self.kernel),
            "expansion": _words(self.expansion),
            "embedding": [] if self.embedding is None else [self.embedding],
            "assume": [] if self.assume in (None, NOTHING) else [self.assume],
            "trust": _trusted(self.trust),
            "gap_bound": [] if self.gap_bound is None else [self.gap_bound],
            "budget": _numbers("--budget", self.budget, int, wanted=WHOLES),
            "batch_size": _numbers("--batch-size", self.batch_size, int, wanted=WHOLES),
            "max_batches": _numbers("--max-batches", self.max_batches, int, wanted=WHOLES),
            "batch_cost": _numbers("--batch-cost", self.batch_cost),
            "items": [] if self.items is None else [named_items(self.items)],
            "blocks": [] if self.blocks is None else [self.blocks],
            "streams": [] if self.streams is None else [self.streams],
            "block_size": _numbers("--block-size", self.block_size, int, wanted=WHOLES),
            "control": [] if self.control is None else [self.control],
            "once_a_block": [True] if self.once_a_block else [],
            "later": [tuple(self.later)] if self.later else [],
        }
        given = {option: several for option, several in values.items() if several}
        return given | self.question_values() | _more_options(self.option or [])


def _trusted(given: str | None) -> list[str | float]:
    """The values of --trust: words, and numbers."""
    return [word if word in ("roughly", "exact") else _numbers("--trust", word)[0] for word in _words(given)]


def named_items(given: str) -> int | list[str]:
    """The test items that --items names: their number, a table's column "item" or only one, or a program's files."""
    if given.isascii() and given.isdigit():
        return int(given)
    from surepick.cli.programs import items_in  # noqa: PLC0415 (their files: where items are given)

    if (found := items_in(Path(given))) is not None:
        return found
    table = read_table(given)
    column = ITEM if ITEM in table.columns else next(iter(table.columns))
    if column != ITEM and len(table.columns) > 1:
        raise InvalidInput(f"{table.source} has no column {ITEM!r}; name the one that holds the items so.")
    return list(table.text(column))


def declared_noise(text: str, why: str = "") -> Noise:
    """The noise that --noise declares; normal where nothing is declared, unless there is a reason `why` it must be."""
    if why and not text:
        raise InvalidInput(
            "say what is known of a single measurement with --noise: bernoulli, bounded:LOW:HIGH, subgaussian:SIGMA "
            f"(normal noise of standard deviation SIGMA), or normal (nobody knows SIGMA). {why}"
        )
    return parse_noise(text or USUAL_NOISE)


def _implied(values: Values) -> tuple[str, ...]:
    """The policies that the options speak of, and the one without features beside them."""
    if "misspecification" in values:
        return (NEURAL, WITHOUT_FEATURES)
    if "assume" in values:
        return (NAMED, WITHOUT_FEATURES)
    if any(option in values for option in NAMES_OF_A_KERNEL):
        if "norm_bound" not in values:
            raise InvalidInput("a kernel needs --norm-bound as well: the largest norm of the reward in its space.")
        return (LINEAR, KERNEL, WITHOUT_FEATURES)
    return (LINEAR, WITHOUT_FEATURES) if "norm_bound" in values else (WITHOUT_FEATURES,)


def _check_estimate(name: str, values: Values) -> None:
    """Refuse an estimated norm for a policy that would take it for a bound."""
    known = policy_options(name)
    if "norm_source" in values and "norm_bound" in known and "norm_source" not in known:
        raise InvalidInput(
            f"--norm-estimate has no meaning for {name}, which takes every norm for a bound; give --norm-bound if you "
            f"can vouch for it, or take --policy {LINEAR}."
        )


def _known_options(name: str, values: Values) -> set[str]:
    """The options of a policy, with those of every question and embedding of another package that is given."""
    named = [{option: value} for option in ("question", "embedding") for value in values.get(option, ())]
    return {option for given in ({}, *named) for option in policy_options(name, given)}


def _more_options(pairs: list[str]) -> Values:
    """NAME=VALUE as options: the value is JSON, or else a text."""
    found: Values = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name.strip():
            raise InvalidInput(f"--option {pair!r} is not understood; write NAME=VALUE, e.g. largest_batch=200.")
        try:
            found[name.strip()] = [json.loads(text)]
        except (ValueError, RecursionError):
            found[name.strip()] = [text]
    return found


def _words(text: str | None) -> list[str]:
    return [] if not text else [word.strip() for word in text.split(",")]


def _numbers(flag: str, text: str | None, kind: type = float, *, wanted: str = NUMBERS) -> list[Any]:
    try:
        return [kind(word) for word in _words(text)]
    except ValueError as error:
        raise InvalidInput(f"{flag} is {text!r}; give {wanted}.") from error


def _label(name: str, options: dict[str, Any]) -> str:
    shown = [
        f"{option}={value:g}" if isinstance(value, float) else f"{option}={value}" for option, value in options.items()
    ]
    return " ".join([name, *shown])


def _flag(option: str) -> str:
    """The option of the command line that sets this option of a policy."""
    if option == "norm_source":
        return "--norm-estimate"
    return f"--{option.replace('_', '-')}" if option in {*WHO_KNOWS, "gap_bound"} else f"--option {option}"
