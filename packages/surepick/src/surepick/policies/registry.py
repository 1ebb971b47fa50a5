"""Names of the algorithms: name + options <-> policy. The options of a name are the fields of its records.

Names that are not in `ENTRIES` are those of other packages (`core.plugins`).
"""

import importlib.util
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields
from types import MappingProxyType
from typing import Any, Unpack

from surepick.chunks.sources import RowBlocks
from surepick.core.arms import Arms
from surepick.core.plugins import EMBEDDINGS, POLICIES, QUESTIONS, check_packages, package_of, plugin, plugin_names
from surepick.core.records import SHARED
from surepick.core.values import check_choice, setting
from surepick.errors import InvalidInput
from surepick.items import Items
from surepick.noise import USUAL_NOISE, Noise, Normal, known_scale, parse_noise
from surepick.policies import options as parts_of
from surepick.policies.base import Policy, Problem, doubts_of_delta, in_a_line
from surepick.policies.option_types import Options
from surepick.policies.options import MakeParts, Parts, PolicySpec, taken
from surepick.policies.paper.arm_elimination import AdaptiveDimension, FixedDimension, WholeSpace
from surepick.questions import BEST, NAMES, OneOf, own_question, question_class, question_name, question_spec
from surepick.text import did_you_mean, quoted

LITERAL_ROUNDS = {
    "dimension": "effective", "schedule": "paper", "union": "all", "bound": "paper", "floor": "published",
    "stopping": "rounds", "looks": 1, "reserve": 0.0,
}  # fmt: skip
PUBLISHED_NETWORK = {
    "constants": "paper", "architecture": "published", "depth": 3, "width": 128, "inputs": "raw",
    "error_tolerance": 1e-4, "tolerance_scale": "published", "floor": "published",
}  # fmt: skip


ROUNDS = "surepick.policies.paper.arm_elimination:ArmElimination"
CARRIED = "surepick.policies.carried.elimination:CarriedElimination"
READINGS = "surepick.policies.steered.embedded:CertifiedEmbedding"
PAIRED = "surepick.policies.paired.elimination:PairedElimination"
MIXTURES = "surepick.policies.mixtures:MixtureElimination"
LISTS = "surepick.policies.questions.elimination:CertifiedLists"
OF_ITEMS = "certified-items"
USUAL_DELTA = 0.05
OF_PACKAGE = "certified-embedding"
IN_BENCH = (  # which surepick-bench has
    "action-elimination", "apt", "lingame", "lingape", "lucb", "lucb-top", "means-neural-rule", "sequential-halving",
    "st2", "uniform-lists", "xy-adaptive", "xy-static",
)  # fmt: skip


def _rounds(parts: MakeParts, rule: type[Any], summary: str) -> PolicySpec:
    """Algorithms 1 and 3 with some embedding."""
    return PolicySpec(ROUNDS, parts, summary, paper=LITERAL_ROUNDS, rule=rule)


def _certified(parts: MakeParts, summary: str, **more: str) -> PolicySpec:
    evidence = {"carried": CARRIED, "lists": LISTS, **more}
    silent = dict.fromkeys(
        ("batch_size", "max_batches", "batch_cost", *parts_of.OF_BLOCKS, "later", "later_share", "prefer")
    )
    asked, hidden = parts_of.EVERY_QUESTION, {**silent, "batch_cost": 0.0}
    return PolicySpec(CARRIED, parts, summary, hidden_defaults=hidden, evidence=evidence, questions=asked)


ENTRIES: Mapping[str, PolicySpec] = MappingProxyType(
    {
        "linear-embedding": _rounds(
            parts_of.linear,
            AdaptiveDimension,
            "Algorithm 1 with the linear embedding: rewards nearly linear in few directions of the features",
        ),
        "fixed-linear": _rounds(
            parts_of.linear, FixedDimension, "Algorithm 3 with the linear embedding: one dimension for all rounds"
        ),
        "kernel-embedding": _rounds(
            parts_of.kernel,
            AdaptiveDimension,
            "Algorithm 1 with a kernel: rewards smooth in the features, of bounded norm in the kernel's space",
        ),
        "fixed-kernel": _rounds(
            parts_of.kernel, FixedDimension, "Algorithm 3 with a kernel: one dimension for all rounds"
        ),
        "rage": PolicySpec(
            ROUNDS,
            parts_of.exact,
            "RAGE (Fiez et al. 2019): rewards exactly linear in the features",
            paper={"floor": "published", "stopping": "rounds"},
            rule=WholeSpace,
            defaults={"schedule": "paper", "union": "rage", "looks": 1},
            set={"reserve": 0.0},
        ),
        "unknown-misspecification": PolicySpec(
            "surepick.policies.paper.unknown_misspecification:UnknownMisspecificationElimination",
            parts_of.unbounded,
            "Algorithm 4: features of which nothing is known; never certifies and never stops by itself",
            paper={"schedule": "paper", "union": "all", "floor": "published"},
        ),
        "certified-linear": _certified(
            parts_of.linear,
            "fewest measurements for a certificate, with the linear embedding: the default where features are used",
            readings=READINGS,
        ),
        "certified-kernel": _certified(
            parts_of.kernel,
            "fewest measurements for a certificate, with a kernel: rewards smooth in the features",
            readings=READINGS,
        ),
        "certified-independent": _certified(
            parts_of.independent,
            "fewest measurements for a certificate without features: the default where none are used",
            mixtures=MIXTURES,
            paired=PAIRED,
        ),
        "certified-readings": PolicySpec(
            "surepick.policies.steered.elimination:CertifiedReadings",
            parts_of.features,
            "a certificate under a class of means that is named without a number: linear in the features, or smooth",
            assumed={"auto": "surepick.policies.steered.chosen:CertifiedByChoice"},
        ),
        OF_PACKAGE: _certified(
            parts_of.of_package,
            "fewest measurements for a certificate, with the embedding of another package",
            readings=READINGS,
        ),
        OF_ITEMS: PolicySpec(
            "surepick.policies.items:CertifiedItems",
            parts_of.nothing,
            "fewest answers for a certificate on a finite set of test items, which all candidates answer in one order",
            hidden_defaults={"prefer": None},
            questions=(BEST, OneOf.name),
        ),
        "neural-embedding": PolicySpec(
            "surepick.policies.paper.neural_elimination:NeuralElimination",
            parts_of.network,
            "Algorithm 2 with a network (extra 'neural'): to reproduce it; its verdict is heuristic",
            paper=PUBLISHED_NETWORK,
            listed="constants error_tolerance tolerance_scale trainer regularization slack floor misspecification "
            "tolerance",
        ),
        "certified-neural": PolicySpec(
            "surepick.policies.steered.neural:CertifiedNeural",
            parts_of.network,
            "a certificate with a network's embedding (extra 'neural'), if its misspecification is declared",
            defaults={"depth": 2, "width": 512, "architecture": "standard"},
            listed="misspecification dim vectors regularization",
        ),
    }
)


def policy_names(question: str | None = BEST) -> tuple[str, ...]:
    """The names that `make_policy` knows, sorted, those of installed packages among them.

    `certified-items`, for a finite set of test items, and `certified-embedding`, for the embedding of another package,
    are known beside them.

    Args:
        question: only those that answer the question of this name, "best", e.g. "top"; None: all.
    """
    ours = {name: spec for name, spec in ENTRIES.items() if name not in (OF_ITEMS, OF_PACKAGE)}
    if question is None:
        return tuple(sorted({*ours, *plugin_names(POLICIES)}))
    specs = {**_loadable(), **ours}
    return tuple(sorted(name for name, spec in specs.items() if question in spec.questions))


def is_named(name: object) -> bool:
    """Whether `policy_names(None)` has the name; of a name of ours, no other package is asked."""
    ours = name in ENTRIES and name not in (OF_ITEMS, OF_PACKAGE)
    return ours or (name not in ENTRIES and name in plugin_names(POLICIES))


def _loadable() -> dict[str, PolicySpec]:
    """The policies of installed packages, but for those that cannot be loaded: whoever names one is told why."""
    found = {}
    for name in plugin_names(POLICIES):
        with suppress(InvalidInput):
            found[name] = policy_spec(name)
    return found


def policy_options(name: str, given: Mapping[str, Any] = MappingProxyType({})) -> tuple[str, ...]:
    """The options that the policy knows, sorted."""
    return tuple(sorted(policy_spec(name).options(given)))


def needs_torch(name: str) -> bool:
    """Whether the policy trains a network."""
    return policy_spec(name).parts is parts_of.network


def uses_features(policy: Policy[Any] | str) -> bool:
    """Whether a policy, given as it is or by its name, looks at the features of its arms."""
    if isinstance(policy, str):
        return policy_spec(policy).parts not in (parts_of.independent, parts_of.nothing)
    _check_policy(policy)
    return policy.traits.uses_features


def stands_for(name: str, policy: Policy[Any]) -> bool:
    """Whether the policy, perhaps made by hand, is of the class and chooses dimensions by the rule of that name."""
    entry = policy_spec(name)
    rule = entry.rule is None or type(getattr(policy, "rule", None)) is entry.rule
    paths = (entry.path, *entry.evidence.values(), *entry.assumed.values())
    return rule and type(policy).__name__ in {path.partition(":")[2] for path in paths}


def policy_summary(name: str) -> str:
    """One line about the policy, for people who choose."""
    return policy_spec(name).summary


def paper_settings(name: str) -> dict[str, Any]:
    """The options under which a policy makes the literal choices of its source; never norm_bound, gamma or dim.

    Example: `make_policy("linear-embedding", arms, ..., norm_bound=.5, **paper_settings("linear-embedding"))`.

    Raises:
        InvalidInput: the name is not known.
    """
    return dict(policy_spec(name).paper)


def make_policy(
    name: str,
    arms: Arms | RowBlocks,
    *,
    epsilon: float | None = None,
    delta: float,
    noise: Noise | str,
    **options: Unpack[Options],
) -> Policy[Any]:
    """The policy of that name for these arms.

    Args:
        name: one of `policy_names()`.
        arms: what is chosen among; policies that ignore features accept arms without any. For rows in blocks, too many
            for memory, the policy shortens the list, and `short_list_policy` gives the one for what is left of it.
        epsilon: the shortfall that is tolerated, in reward units, > 0; None beside a `budget`: whatever this can show.
        delta: the error probability, in (0, 1).
        noise: what is assumed of a reward, a record or its text ("bernoulli", "subgaussian:0.5").
        options: settings of the policy; `policy.spec` lists them with their values.

    Returns:
        A frozen policy; `make_policy(arms=arms, **policy.spec)` gives an equal one (`spec` is None where a part of it
        has no name).

    Raises:
        InvalidInput: unknown name or option, or a setting without meaning.

    Warns:
        UserWarning: delta looks like a confidence.
    """
    given: dict[str, Any] = {**options}
    if epsilon is None:
        epsilon, given = parts_of.without_tolerance(noise, given, policy_options(name, given))
    policy = built_policy(name, arms, epsilon=epsilon, delta=delta, noise=noise, **given)
    for sentence in doubts_of_delta(delta):
        warnings.warn(sentence, UserWarning, stacklevel=2)
    return policy


def settled_policy(
    policy: Policy[Any] | str,
    arms: Arms,
    *,
    epsilon: float | None,
    delta: float | None,
    noise: Noise | str | None,
    **options: Any,
) -> Policy[Any]:
    """The policy that was given, or the one of that name, for whoever takes either."""
    if isinstance(policy, str):
        if epsilon is None and options.get("budget") is None:
            raise InvalidInput(f"{policy} needs epsilon, as in make_policy({policy!r}, arms, epsilon=..., ...).")
        noise, delta = USUAL_NOISE if noise is None else noise, USUAL_DELTA if delta is None else delta
        return make_policy(policy, arms, epsilon=epsilon, delta=delta, noise=noise, **options)
    _check_policy(policy)
    given = {"epsilon": epsilon, "delta": delta, "noise": noise, **options}
    for name in [name for name, value in given.items() if value is not None]:
        raise InvalidInput(f"{name} is given, and the policy, a {type(policy).__name__}, has it itself; leave it out.")
    known = policy.problem.arms
    if known is not None and (known.num_arms, known.ids) != (arms.num_arms, arms.ids):
        raise InvalidInput(
            f"the policy was made for other candidates, {quoted(known.ids[0])}, ...; make it of those that are given."
        )
    return policy


def built_policy(
    name: str, arms: Arms | RowBlocks, *, epsilon: float, delta: float, noise: Noise | str, **options: Any
) -> Policy[Any]:
    """As `make_policy`, without a word about what is accepted."""
    check_packages(options.pop("packages", None) or ())
    entry = policy_spec(name)
    options = {each: setting(each, value) for each, value in options.items()}
    if options.get("assume") == parts_of.NOTHING and entry.evidence:
        del options["assume"]
    if isinstance(arms, RowBlocks) or "first_look" in options:
        asked: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "noise": noise, **options}
        from surepick.policies import long_lists  # noqa: PLC0415 (passes, designs of many rows)

        return long_lists.shortened_first(built_policy, _check_known, entry.hidden_defaults, name, arms, **asked)
    if "selected" in options:
        if not entry.evidence or question_name(options.get("question")) not in (None, BEST):
            raise InvalidInput("candidates that were selected answer which is the best, by a certified-* policy only.")
        from surepick.policies import long_lists  # noqa: PLC0415

        return long_lists.best_of_subset(built_policy, name, arms, epsilon=epsilon, delta=delta, noise=noise, **options)
    _check_known(name, options)
    _need_torch(name)
    _check_arms(name, arms)
    assumed = parse_noise(noise) if isinstance(noise, str) else noise
    if isinstance(assumed, type) or not isinstance(assumed, (Normal, Noise)):
        raise InvalidInput(f"noise is {quoted(noise)}; give Bernoulli(), Bounded(low, high), SubGaussian(s) or text.")
    given = {**entry.defaults, **options}
    question = parts_of.for_each_segment(name, entry, arms, parts_of.asked_question(name, entry, given))
    if isinstance(question, OneOf):
        from surepick.policies import long_lists  # noqa: PLC0415

        return long_lists.one_of_share(
            built_policy, question, name, arms, epsilon=epsilon, delta=delta, noise=noise, **given
        )
    parts_of.check_noise(name, assumed, given, unknown_scale=bool(entry.evidence))
    kind = given.pop("evidence", None) if entry.evidence else None
    if (question is not None and kind not in (None, "lists")) or (kind == "lists" and question is None):
        raise InvalidInput("evidence='lists' answers questions other than 'best', and no other evidence does.")
    if question is not None and entry.evidence:
        kind = "lists"
        parts_of.refuse_beside_lists(given)
    problem = Problem(arms.num_arms, epsilon, delta, assumed, given.pop("gap_bound", None), arms, question)
    if kind is None and "paired" in entry.evidence:
        kind = parts_of.without_features(problem, given, lambda: entry.record(parts_of.MIXTURES))
    if kind is not None:
        check_choice("evidence", kind, tuple(entry.evidence))
    parts = entry.parts(arms, given)
    if entry.rule is not None:
        parts["rule"] = entry.rule(**taken(given, tuple(each.name for each in fields(entry.rule) if each.init)))
    free = (
        kind is None
        and known_scale(assumed)
        and "readings" in entry.evidence
        and all(given.get(each, usual) == usual for each, usual in entry.hidden_defaults.items())
    )
    if free and parts_of.stays_biased(parts.get("embedding"), given.get("dim"), problem.epsilon):
        kind = "readings"
    kind = next((each for each in entry.assumed if given.get("assume") == each), kind)
    _check_kind(name, entry, kind, given)
    known = {each.name for each in fields(entry.record(kind))}
    given = {each: value for each, value in given.items() if value is not None or each in known}
    policy: Policy[Any] = entry.record(kind)(problem, **parts, **entry.set, **given)
    object.__setattr__(policy, "spec", _spec(name, entry, policy, parts, options.get("embedding")))
    _show_in_a_line(type(policy))
    return policy


def _show_in_a_line(cls: type) -> None:
    """Its policies are shown in a line, in place of all their parts as other records."""
    if cls.__repr__ is SHARED["__repr__"]:
        cls.__repr__ = in_a_line  # type: ignore[assignment]


def rehearsed(name: str, options: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """The options with seeds in place of those that a policy would draw when it is made: for rehearsals and forecasts,
    whose output is the same each time. A study that counts must not have them."""
    drawn = {"seed": name == OF_ITEMS, "sample_seed": options.get("question") == "one-of"}
    return {**{option: seed for option, is_drawn in drawn.items() if is_drawn}, **options}


def _spec(
    name: str, entry: PolicySpec, policy: Any, parts: Parts, embedding: str | None = None
) -> dict[str, Any] | None:
    """Every option in force, as plain data, so that a default that changes later changes nothing, and the packages of
    others that it needs; None if an option has no name."""
    problem: Problem = policy.problem
    asked = {"epsilon": problem.epsilon, "delta": problem.delta, "noise": problem.noise.spec}
    options: dict[str, Any] = {"gap_bound": problem.gap_bound}
    if problem.question is not None:
        options["question"] = question_spec(problem.question)
    for one in (policy, *([policy.rule] if entry.rule else [])):
        held = {each.name: getattr(one, each.name) for each in fields(one) if each.name in entry.own_options()}
        options |= {key: value.spec if isinstance(value, Items) else value for key, value in held.items()}
    if entry.parts in (parts_of.linear, parts_of.kernel, parts_of.of_package):
        embedded = parts["embedding"].traits.spec
        if embedded is None:
            return None
        options |= embedded if embedding is None else {"embedding": embedding, **embedded}
    if "network" in parts:
        options |= {option: getattr(parts["network"], option) for option in parts_of.NETWORK}
    wanted = ((POLICIES, name), (QUESTIONS, question_name(problem.question)), (EMBEDDINGS, embedding))
    others = {package for group, one in wanted if (package := _package_of(group, one)) is not None}
    if others:
        options["packages"] = sorted(others)
    hidden = entry.hidden_defaults.items()
    return {"name": name, **asked, **{key: value for key, value in options.items() if (key, value) not in hidden}}


def _package_of(group: str, name: str | None) -> str | None:
    """The package of others that has the name; None where it is ours."""
    ours = {POLICIES: ENTRIES, QUESTIONS: (BEST, *NAMES), EMBEDDINGS: ()}[group]
    return None if name is None or name in ours else package_of(group, name)


def _check_policy(policy: object) -> None:
    """Refuse what is neither a policy nor a name."""
    if isinstance(policy, type) or not isinstance(policy, Policy):
        raise InvalidInput(f"policy is {quoted(policy)}; give a name, one of policy_names(), or a policy.")


def _need_torch(name: str) -> None:
    """Refuse a neural request where torch is absent, before anything is spent."""
    if needs_torch(name) and importlib.util.find_spec("torch") is None:
        raise InvalidInput(f'{name} needs torch, which is absent: pip install "surepick[neural]".')


def _check_arms(name: str, arms: object) -> None:
    """Refuse what are no arms, and arms of a table without a feature that this policy would have to do without."""
    if not isinstance(arms, Arms):
        raise InvalidInput(f"arms is a {type(arms).__name__}; give Arms(features, ids) or read_arms(path).")
    if arms.aside and uses_features(name):
        raise InvalidInput(
            f"{name} uses features, and one is no feature as it stands. {arms.aside[0]} Correct the table, or name the "
            "columns that are features where it is read: features=[...]."
        )


def _check_known(name: str, options: Mapping[str, Any]) -> None:
    """Refuse options that the policy would not read."""
    if isinstance(options.get("question"), str) and options["question"] != BEST:
        question_class(options["question"])
    asked = question_name(options.get("question"))
    if asked in NAMES or own_question(asked) is not None:
        parts_of.check_answered(name, policy_spec(name), asked)
    known = policy_options(name, options)
    unknown = sorted(set(options) - set(known))
    if unknown:
        meant = did_you_mean(unknown[0], known)
        raise InvalidInput(f"{name} has no option {', '.join(map(repr, unknown))}; it knows {', '.join(known)}.{meant}")
    if name == OF_PACKAGE and options.get("embedding") is None:
        raise InvalidInput(f"{OF_PACKAGE} needs embedding: the name of one that an installed package has.")
    if name == OF_ITEMS and options.get("items") is None:
        raise InvalidInput(
            f"{OF_ITEMS} needs items: the ids of the test items that all candidates answer, or their number."
        )
    if name == "sequential-halving" and options.get("budget") is None:
        raise InvalidInput(
            "sequential-halving needs budget: the pulls in all, which it spends and then stops. To measure until the "
            "answer is certified, take certified-independent."
        )


def _check_kind(name: str, entry: PolicySpec, kind: str | None, given: dict[str, Any]) -> None:
    """Take out options that this kind of evidence does not have, if they say nothing."""
    if kind is None and not entry.evidence:
        return
    known = {each.name for each in fields(entry.record(kind))}
    for option in [each for each in given if each not in known]:
        value = given.pop(option)
        if value is not None and (option not in entry.hidden_defaults or value != entry.hidden_defaults[option]):
            kind = kind or "carried"
            raise InvalidInput(f"{name} with evidence={kind!r} has no option {option!r}; leave out one of the two.")


def policy_spec(name: str) -> PolicySpec:
    """How the name becomes a policy, ours or that of an installed package."""
    if isinstance(name, str) and name in ENTRIES:
        return ENTRIES[name]
    if (found := plugin(POLICIES, name, PolicySpec)) is not None:
        return found
    if isinstance(name, str) and name in IN_BENCH:
        raise InvalidInput(f'{name} is in another package, which is absent: pip install "surepick[bench]".')
    meant = did_you_mean(name, policy_names(None))
    raise InvalidInput(f"there is no policy {quoted(name)}; choose one of {', '.join(policy_names(None))}.{meant}")
