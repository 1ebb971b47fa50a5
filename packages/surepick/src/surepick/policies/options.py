"""Options of policies: a field with its default, and the check that refuses values without meaning."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from importlib import import_module
from numbers import Real
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np

from surepick import embeddings
from surepick.core import values
from surepick.core.arms import Arms
from surepick.core.plugins import EMBEDDINGS, plugin_names
from surepick.core.records import FloatArray
from surepick.embeddings.base import ExactFeatures, embedding_spec, free_dim
from surepick.errors import InvalidInput
from surepick.noise import Noise, PilotGaussian, known_scale, largest_scale, parse_noise
from surepick.policies.base import Problem
from surepick.questions import BEST, NAMES, Question, asked_of, own_fields, question_name, taken_question
from surepick.text import quoted

T = TypeVar("T")
Check = Callable[[str, object], object]  # (name of the option, its value); raises InvalidInput
MOST_GROWTH = 1000.0
RESERVED = ("id", "key", "reward", "pulls", "sum", "squares")
GROWTH = f"by what share a batch adds pulls; at most {MOST_GROWTH:g}."


def option(default: T, check: Check) -> T:
    """A field of a record with that default, for `check_options`; None is accepted where it is the default."""
    return field(default=default, metadata={"check": check})


def check_options(settings: Any) -> None:
    """Call the check of each field that has one."""
    for each in fields(settings):
        check = each.metadata.get("check")
        if check is not None and (getattr(settings, each.name) is not None or each.default is not None):
            check(each.name, getattr(settings, each.name))


def positive(meaning: str) -> Check:
    return lambda name, value: values.positive_number(name, value, meaning)


def at_least_zero(meaning: str) -> Check:
    return lambda name, value: values.not_negative(name, value, meaning)


def one_of(*known: str) -> Check:
    return lambda name, value: values.check_choice(name, value, known)


def whole(meaning: str, *, least: int = 1) -> Check:
    return lambda name, value: values.whole_number(name, value, least=least, meaning=meaning)


def growth(name: str, value: object) -> None:
    """Refuse batches that do not grow, or beyond what anybody could measure."""
    values.positive_number(name, value, GROWTH)
    growth_or_none(name, value)


def growth_or_none(name: str, value: object) -> None:
    """The same, but 0 has a meaning too."""
    if values.not_negative(name, value, GROWTH) > MOST_GROWTH:
        raise InvalidInput(
            f"{name} is {quoted(value)}; it must be at most {MOST_GROWTH:g}: by what share a batch adds pulls."
        )


slack = values.check_slack
check_share = values.share_of_pulls
tolerance = positive("the relative gap to which designs are solved.")
accuracy = positive("the half-width at which intervals are tightest, in reward units.")
largest_batch = whole("a batch has at least one pull.")
batch_size = whole("smaller batches tell a candidate and its rivals apart too slowly.", least=4)
max_batches = whole("the first batch finds a candidate, and a later one tests it.", least=2)
batch_cost = at_least_zero("what each batch costs beside its measurements.")
regularization = positive("what holds the weights near their start.")
budget = whole("the measurements in all.", least=2)
block_size = whole("a block has room for a candidate and a rival.", least=2)


def check_noise(name: str, noise: Noise, given: Mapping[str, Any], *, unknown_scale: bool) -> None:
    """Refuse a noise that a policy cannot do with."""
    if isinstance(noise, PilotGaussian) and not name.startswith("certified-"):
        raise InvalidInput(
            f"the noise's pilot may fail with probability {noise.failure:g}, which would have to be taken from delta; "
            f"{name} does not, only the certified policies do. Declare subgaussian:SIGMA, or take "
            "certified-independent (--policy certified-independent)."
        )
    if known_scale(noise):
        values.check_size("a scale of the noise", float(np.min(noise.sigma)), float(np.max(noise.sigma)))
        return
    if not unknown_scale and given.get("assume") is not None:
        raise InvalidInput(
            "--assume measures for a class where it is known how much repeats of one candidate vary. Say it with "
            "--noise subgaussian:SIGMA, SIGMA their standard deviation (surepick run --noise pilot finds it), or leave "
            "--assume out."
        )
    if not unknown_scale:
        raise InvalidInput(
            f"noise is normal with unknown scales, and {name} rests on a scale that is known beforehand. Take "
            "certified-independent (--policy certified-independent), certified-linear or certified-kernel, or declare "
            "subgaussian:SIGMA."
        )
    unknown = ("carried", "paired", "lists", *(() if given.get("budget") is None else ("mixtures",)))
    if (value := given.get("evidence")) not in (None, *unknown):
        raise InvalidInput(
            f"evidence is {quoted(value)}, which rests on a scale of the noise that is known beforehand, and noise is "
            "normal with unknown scales. Leave evidence out, or declare subgaussian:SIGMA."
        )


def refused_unless(holds: Callable[[object], bool], words: str) -> Check:
    """Refuse a value for which something does not hold, in these words."""

    def check(name: str, value: object) -> None:
        if not holds(value):
            raise InvalidInput(f"{name} is {quoted(value)}; {words}")

    return check


block_name = refused_unless(
    lambda value: isinstance(value, str) and bool(value.strip()) and value not in RESERVED,
    "say what measurements that belong together are called, e.g. 'plate' or 'day': the column of results that names "
    f"each row's block. {', '.join(RESERVED)} are other columns.",
)
arm_id = refused_unless(lambda value: isinstance(value, str), "give the id of a candidate.")
arm_ids = refused_unless(
    lambda value: isinstance(value, list | tuple) and all(isinstance(one, str) for one in value),
    "give a list of ids of candidates.",
)
yes = refused_unless(lambda value: value is True, "it is True, or left out.")  # what is not wanted is left out


def share_of_delta(name: str, value: object) -> None:
    """Refuse what is no share."""
    if not 0.0 < values.as_number(name, value) < 1.0:
        raise InvalidInput(f"{name} is {quoted(value)}; it must lie strictly between 0 and 1: a share of delta.")


# --- What policies are made of beside the problem and their own options: embeddings, features, networks.

LINEAR = ("norm_bound", "bound", "norm_source", "max_rank")
KERNEL = ("kernel", "norm_bound", "bound", "nystrom_above", "max_rank", "rounding", "norm_source")
EXPANSIONS = "mercer"  # the embedding that has them, in surepick-bench
MERCER = ("expansion", "norm_bound", "bound", "max_dim", "norm_source")
NAMES_OF_A_KERNEL = ("gamma", "kernel", "expansion")
OF_BLOCKS = ("blocks", "block_size", "control", "once_a_block", "streams")
NOTHING = "nothing"  # what is assumed of the means, where no class is named
PAIRED = "paired"  # the evidence of differences within blocks
MIXTURES = "mixtures"  # that of few candidates
NETWORK = ("depth", "width", "architecture", "inputs", "seed", "device", "precision")

Parts = dict[str, Any]  # what a policy is made of beside the problem and its own options
MakeParts = Callable[[Arms, dict[str, Any]], Parts]  # it takes its options out of the second


def _need_norm_bound(options: dict[str, Any]) -> None:
    if options.get("norm_bound") is None:
        raise InvalidInput(
            "an embedding needs norm_bound: the largest norm that the reward function can have. The misspecification "
            "that compression causes is proportional to it; without it nothing can be certified."
        )


def taken(options: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """The named options, removed from `options`."""
    return {name: options.pop(name) for name in names if name in options}


def _doubles(arms: Arms) -> FloatArray:
    """The features in double precision, for policies that compute with them at once."""
    features = np.asarray(arms.features, dtype=np.float64)
    features.flags.writeable = False  # so that no policy copies them again
    return features


def linear(arms: Arms, options: dict[str, Any]) -> Parts:
    _need_norm_bound(options)
    return {"embedding": embeddings.LinearEmbedding(arms.features, **taken(options, LINEAR))}


def kernel(arms: Arms, options: dict[str, Any]) -> Parts:
    """The gram matrix's eigenvectors of a kernel; or, named by its `expansion`, its eigenfunctions."""
    _need_norm_bound(options)
    named = [name for name in NAMES_OF_A_KERNEL if options.get(name) is not None]
    if len(named) != 1:
        raise InvalidInput(
            "say which kernel, once: gamma=G for the Gaussian exp(-G ||x - z||^2); kernel=..., for instance "
            "'matern:2.5:1.0'; or expansion=..., for instance 'hermite:1.0:0.5', for its eigenfunctions."
        )
    used, others = (MERCER, KERNEL) if named == ["expansion"] else (KERNEL, MERCER)
    idle = [name for name in others if name not in used and options.pop(name, None) is not None]
    if idle:
        raise InvalidInput(
            f"{', '.join(idle)} has no effect on an embedding named by {named[0]}; that knows {', '.join(used)}."
        )
    gamma = options.pop("gamma", None)
    if named == ["expansion"]:
        if EXPANSIONS not in plugin_names(EMBEDDINGS):
            raise InvalidInput('expansion is in another package, which is absent: pip install "surepick[bench]".')
        return {"embedding": embedding_spec(EXPANSIONS).make(arms.features, options)}
    if gamma is not None:
        options["kernel"] = embeddings.GaussianKernel(gamma)
    return {"embedding": embeddings.KernelEmbedding(arms.features, **taken(options, KERNEL))}


def of_package(arms: Arms, options: dict[str, Any]) -> Parts:
    """The embedding of another package, by its name."""
    return {"embedding": embedding_spec(options.pop("embedding")).make(arms.features, options)}


def unbounded(arms: Arms, _: dict[str, Any]) -> Parts:
    return {"embedding": embeddings.LinearEmbedding(arms.features, norm_bound=1.0)}  # its bound is not used


def independent(arms: Arms, _: dict[str, Any]) -> Parts:
    return {"embedding": embeddings.IndependentEmbedding(arms.num_arms)}


def exact(arms: Arms, _: dict[str, Any]) -> Parts:
    return {"embedding": ExactFeatures(_doubles(arms))}


def features(arms: Arms, _: dict[str, Any]) -> Parts:
    return {"features": _doubles(arms)}


def nothing(_: Arms, __: dict[str, Any]) -> Parts:
    return {}


def network(arms: Arms, options: dict[str, Any]) -> Parts:
    from surepick.embeddings.network import Network  # noqa: PLC0415 (torch: heavy, and an extra)

    return {"features": _doubles(arms), "network": Network(**taken(options, NETWORK))}


OPTIONS_OF: Mapping[MakeParts, tuple[str, ...]] = MappingProxyType(
    {
        linear: LINEAR,
        kernel: tuple(dict.fromkeys((*KERNEL, *MERCER, "gamma"))),
        network: NETWORK,
        of_package: ("embedding",),
    }
)


def are_paired(options: Mapping[str, Any], *, known_scale: bool) -> bool:
    """Whether candidates are compared within blocks, by differences of which nobody knows how much they vary."""
    return options.get("streams") is not None or (options.get("blocks") is not None and not known_scale)


MOST_FEW = 10  # candidates for which mixtures are the usual evidence (docs/decisions/0050)
MOST_MIXED = 30  # ... and for which they can be asked for: their numbers grow with the square
MOST_BUDGETED = 1000  # ... and for which a budget can be given, with one margin


def unfit_for_mixtures(problem: Problem, given: Mapping[str, Any]) -> str:
    """Why mixtures over comparators and margins are no evidence for a study with these options; "" if they are."""
    most = MOST_MIXED if given.get("budget") is None else MOST_BUDGETED
    if not 2 <= problem.num_arms <= most:
        return f"{problem.num_arms} candidates are not between 2 and {most}"
    if not known_scale(problem.noise) and given.get("budget") is None:
        return "the scale of the noise is unknown"
    if problem.question is not None or problem.relative_costs is not None:
        return "measurements have unlike costs" if problem.question is None else "the question is another one"
    budget, size = given.get("budget"), given.get("batch_size")
    least = {"batch_size": 1, "largest_batch": 1, "budget": 1 if known_scale(problem.noise) else 2}
    for name, each in least.items():
        if isinstance(value := given.get(name), Real) and value < each * problem.num_arms:
            return f"{name} is below {'' if each == 1 else 'twice '}their number"
    if isinstance(budget, Real) and isinstance(size, Real) and size > budget:
        return "batch_size is above budget"
    return ""


def without_features(problem: Problem, given: Mapping[str, Any], record_of: Callable[[], type[Any]]) -> str | None:
    """The usual evidence where no features are used; None: it is carried.

    Mixtures are that of few candidates where they are fit, and no option is given that other evidence alone has;
    `record_of` gives the class.
    """
    if are_paired(given, known_scale=known_scale(problem.noise)):
        return PAIRED
    unfit, budget = unfit_for_mixtures(problem, given), given.get("budget")
    if unfit and budget is not None:
        raise InvalidInput(
            f"a budget aims at the smallest gap that it can certify by evidence for which {unfit}. max_pulls ends a "
            "study of any kind, with what it has certified by then."
        )
    if unfit or (budget is None and problem.num_arms > MOST_FEW):
        return None
    known = {each.name for each in fields(record_of()) if each.init}
    return MIXTURES if all(value is None or name in known for name, value in given.items()) else None


HEURISTIC_BIASED = 0.2  # of epsilon: where the bias stays larger, evidence is usually steered for and read


def stays_biased(embedding: embeddings.ArmEmbedding | None, dim: int | None, epsilon: float) -> bool:
    """Whether misspecification eats much of epsilon in the largest dimension that may be used (docs/decisions/0022)."""
    if embedding is None or embedding.norm_bound is None or (dim is None and free_dim(embedding)):
        return False
    used = dim if isinstance(dim, int) and 1 <= dim <= embedding.max_dim else embedding.max_dim
    return 2.0 * embedding.misspecification(used) > HEURISTIC_BIASED * epsilon


def fitting_policy(options: Mapping[str, Any]) -> str:
    """The certified policy that these options speak of; those that are None were not given."""
    given = {option for option, value in options.items() if value is not None}
    if "items" in given:
        return "certified-items"
    if "assume" in given and options["assume"] != NOTHING:
        return "certified-readings"
    if "embedding" in given:
        return "certified-embedding"
    if "misspecification" in given:
        return "certified-neural"
    if given & set(NAMES_OF_A_KERNEL):
        return "certified-kernel"
    return "certified-linear" if "norm_bound" in given else "certified-independent"


# --- How a name becomes a policy: its class, its parts and its options. Other packages give theirs by an entry point.

ANY_OTHER = "*"  # stands for the questions of other packages
EVERY_QUESTION = (BEST, *NAMES, ANY_OTHER)


@dataclass(frozen=True, slots=True)
class PolicySpec:
    """How a name becomes a policy. The entry point of another package in `surepick.policies` gives one.

    Args:
        path: of the class, "module:Class", a record with `problem` and `spec`; it is loaded when a policy is made.
        parts: (arms, options) -> what it is made of beside the problem and its own options: one of the functions of
            `surepick.policies.options`, of which `nothing` is for policies that look at the number of arms only,
            `features` for those that take vectors, `linear`, `kernel` and `independent` for those with an embedding.
        summary: one line for people who choose.
        paper: the options that give the literal choices of its source.
        rule: how the dimension of a round is chosen, where that is an option.
        defaults: values that differ from those of the records.
        set: fields that the name decides, which are no options.
        hidden_defaults: options with a usual value that says nothing, which a spec does not name.
        evidence: values of the option "evidence" that stand for another class, with its path.
        assumed: the same of the option "assume".
        listed: its own options, as words, where the class cannot be loaded without torch; "": read from the records.
        questions: the names of those that it answers; ANY_OTHER among them: those of other packages, too.
    """

    path: str
    parts: MakeParts
    summary: str
    paper: Mapping[str, Any] = field(default_factory=dict)
    rule: type[Any] | None = None
    defaults: Mapping[str, Any] = field(default_factory=dict)
    set: Mapping[str, Any] = field(default_factory=dict)
    hidden_defaults: Mapping[str, Any] = field(default_factory=dict)
    evidence: Mapping[str, str] = field(default_factory=dict)
    assumed: Mapping[str, str] = field(default_factory=dict)
    listed: str = ""
    questions: tuple[str, ...] = (BEST,)

    def record(self, kind: str | None = None) -> type[Any]:
        """The class; torch is loaded only for those that need it.

        Args:
            kind: the value of "evidence" or of "assume"; None: the usual one.
        """
        module, _, name = (self.path if kind is None else {**self.evidence, **self.assumed}[kind]).partition(":")
        found: type[Any] = getattr(import_module(module), name)
        return found

    def own_options(self) -> tuple[str, ...]:
        """What a user may set of the policy and its rule."""
        return (*(["evidence"] if self.evidence else []), *(tuple(self.listed.split()) or self.record_fields()))

    def record_fields(self) -> tuple[str, ...]:
        """The fields of the policy and its rule, but for what they are made of."""
        ours = {"problem", "embedding", "features", "network", "rule", "spec", *self.set}
        records = [self.record(), *map(self.record, self.evidence), *([self.rule] if self.rule else [])]
        names = [each.name for one in records for each in fields(one) if each.init and each.name not in ours]
        return tuple(dict.fromkeys(names))

    def options(self, given: Mapping[str, Any]) -> tuple[str, ...]:
        """All options, those of the problem and of the parts included, and of what `given` names of other packages."""
        asked = [each.name for name in self.questions if name in NAMES for each in fields(NAMES[name])]
        question = ("question", *asked, *own_fields(given.get("question"))) if asked else ()
        parts, name = OPTIONS_OF.get(self.parts, ()), given.get("embedding")
        theirs = () if self.parts is not of_package or name is None else embedding_spec(name).options
        return tuple(dict.fromkeys(("gap_bound", *self.own_options(), *parts, *theirs, *question)))


LEAST_TOLERANCE = 1e-6  # of the largest scale of the noise: what is asked for where a budget says when to end


def without_tolerance(
    noise: Noise | str, given: Mapping[str, Any], known: tuple[str, ...]
) -> tuple[float, dict[str, Any]]:
    """(epsilon, the options) where none is given: with a budget the least that has a meaning, and any gap will do."""
    if given.get("budget") is None or "any_gap" not in known:
        raise InvalidInput(
            "epsilon is not given: how much worse than the best the answer may be. certified-independent with budget=N "
            "(the measurements in all) does without: its answer is as good as these can show."
        )
    assumed = parse_noise(noise) if isinstance(noise, str) else noise
    scale = largest_scale(assumed) if known_scale(assumed) else 1.0
    return LEAST_TOLERANCE * scale, {**given, "any_gap": True}


def asked_question(name: str, spec: PolicySpec, given: dict[str, Any]) -> Question | None:
    """The question that the options ask of a policy; its options are taken out of them."""
    question = None if spec.questions == (BEST,) else taken_question(given)
    check_answered(name, spec, question_name(question))
    return question


def for_each_segment(name: str, spec: PolicySpec, arms: Arms, question: Question | None) -> Question | None:
    """The question, where arms have segments: the best of each segment is one of its 1 best."""
    if arms.segments is None:
        return question
    if "lists" not in spec.evidence:
        raise InvalidInput(
            f"{name} answers for the whole list and not for each segment: leave segments out, or take "
            "certified-independent, certified-linear or certified-kernel."
        )
    asked = asked_of(question, by_segment=True)
    assert asked is not None
    asked.check_segments()
    return asked


def check_answered(name: str, spec: PolicySpec, asked: str) -> None:
    """Refuse a question that a policy does not answer."""
    if asked not in spec.questions and (asked in EVERY_QUESTION or ANY_OTHER not in spec.questions):
        known = " or ".join(map(repr, spec.questions))
        raise InvalidInput(
            f"{name} answers question {known}, not {asked!r}; certified-independent answers every question."
        )


WHO_COMES = (
    "who comes later changes who is among the best, and what is on a list stays on it: begin a study when all are "
    "there (with a threshold or a control a study of those that come says the same of them)"
)
NOT_BESIDE_LISTS = MappingProxyType(  # options of the best arm's evidence -> why no list has them
    {
        "control": "only question 'above' compares with a control, and every other one has an arm of its own for that",
        "later": WHO_COMES,
        "later_share": WHO_COMES,
        "gap_bound": "where no two candidates differ by more than epsilon every list is right, and nothing has to be "
        "measured; a larger bound says nothing of who is on which list",
    }
)


def refuse_beside_lists(given: Mapping[str, Any]) -> None:
    """Refuse options of the best arm's evidence where the question is another one."""
    for option, why in NOT_BESIDE_LISTS.items():
        if given.get(option) is not None:
            raise InvalidInput(f"{why}: leave {option} out.")
