"""Names of the algorithms: name + options <-> policy."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from surepick.embeddings import GaussianKernel, IndependentEmbedding, KernelEmbedding, LinearEmbedding
from surepick.errors import InvalidInput
from surepick.noise import Noise, failure_probability, parse_noise
from surepick.policies import (
    action_elimination,
    adaptive_elimination,
    certified_elimination,
    fixed_elimination,
    lingame,
    lingape,
    lucb,
    means_neural_rule,
    rage,
    successive_halving,
    unknown_misspecification,
    xy_adaptive,
    xy_static,
)
from surepick.policies.action_elimination import ActionElimination
from surepick.policies.adaptive_elimination import AdaptiveElimination
from surepick.policies.certified_elimination import CertifiedElimination
from surepick.policies.fixed_elimination import FixedElimination
from surepick.policies.lingame import LinGame
from surepick.policies.lingape import LinGapE
from surepick.policies.lucb import LUCB
from surepick.policies.means_neural_rule import MeansNeuralRule
from surepick.policies.protocol import CERTIFIED_NEURAL_OPTIONS, NETWORK_OPTIONS, NEURAL_OPTIONS, Policy
from surepick.policies.rage import RAGE
from surepick.policies.schedules import SCHEDULES, UNIONS
from surepick.policies.successive_halving import SuccessiveHalving
from surepick.policies.unknown_misspecification import UnknownMisspecificationElimination
from surepick.policies.xy_adaptive import XYAdaptive
from surepick.policies.xy_static import XYStatic
from surepick.records import Arms, FloatArray
from surepick.settings import check_choice, check_size, positive_number
from surepick.text import quoted

LINEAR_OPTIONS = ("norm_bound", "bound", "norm_source", "max_rank")
KERNEL_OPTIONS = ("kernel", "norm_bound", "bound", "nystrom_above", "max_rank", "rounding", "norm_source")
IDLE = ("slack", "schedule", "union")  # known to all policies, without effect on some
LEARNER = MappingProxyType({"depth": 2, "width": 512, "architecture": "standard"})  # of certified-neural, by default
LITERAL_ROUNDS = MappingProxyType(
    {
        "dimension": "effective",
        "schedule": "paper",
        "union": "all",
        "bound": "paper",
        "floor": "published",
        "stopping": "rounds",
        "looks": 1,
        "reserve": 0.0,
    }
)


@dataclass(frozen=True, slots=True)
class Entry:
    """How a name becomes a policy.

    Args:
        build: (arms, epsilon=, delta=, noise=, **options) -> policy.
        options: names of the options it knows.
        paper: the options that give the literal choices of its source.
        summary: one line for people who choose.
    """

    build: Callable[..., Policy[Any]]
    options: tuple[str, ...]
    paper: Mapping[str, Any]
    summary: str


def _need_norm_bound(options: dict[str, Any]) -> None:
    if options.get("norm_bound") is None:
        raise InvalidInput(
            "an embedding needs norm_bound: the largest norm that the reward function can have. The misspecification "
            "that compression causes is proportional to it; without it nothing can be certified."
        )


def _taken(options: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """The named options, removed from `options`."""
    return {name: options.pop(name) for name in names if name in options}


def _doubles(arms: Arms) -> FloatArray:
    """The features in double precision, for policies that compute with them at once."""
    features = np.asarray(arms.features, dtype=np.float64)
    features.flags.writeable = False  # so that no policy copies them again
    return features


def _linear(arms: Arms, options: dict[str, Any]) -> LinearEmbedding:
    _need_norm_bound(options)
    return LinearEmbedding(arms.features, **_taken(options, LINEAR_OPTIONS))


def _kernel(arms: Arms, options: dict[str, Any]) -> KernelEmbedding:
    _need_norm_bound(options)
    gamma = options.pop("gamma", None)
    if (gamma is None) == (options.get("kernel") is None):
        raise InvalidInput(
            "say which kernel, once: gamma=G for the Gaussian exp(-G ||x - z||^2), or kernel=..., for instance "
            "'matern:2.5:1.0'."
        )
    if gamma is not None:
        options["kernel"] = GaussianKernel(gamma)
    return KernelEmbedding(arms.features, **_taken(options, KERNEL_OPTIONS))


def _linear_embedding(arms: Arms, **options: Any) -> AdaptiveElimination:
    return AdaptiveElimination(embedding=_linear(arms, options), **options)


def _fixed_linear(arms: Arms, **options: Any) -> FixedElimination:
    return FixedElimination(embedding=_linear(arms, options), **options)


def _kernel_embedding(arms: Arms, **options: Any) -> AdaptiveElimination:
    return AdaptiveElimination(embedding=_kernel(arms, options), **options)


def _fixed_kernel(arms: Arms, **options: Any) -> FixedElimination:
    return FixedElimination(embedding=_kernel(arms, options), **options)


def _unknown_misspecification(arms: Arms, **options: Any) -> UnknownMisspecificationElimination:
    embedding = LinearEmbedding(arms.features, norm_bound=1.0)  # its bound is not used: gamma-tilde is unknown
    return UnknownMisspecificationElimination(embedding=embedding, **options)


def _rage(arms: Arms, **options: Any) -> RAGE:
    return RAGE(features=_doubles(arms), **options)


def _certified_linear(arms: Arms, **options: Any) -> CertifiedElimination:
    _check_idle(options)
    return CertifiedElimination(embedding=_linear(arms, options), **options)


def _certified_kernel(arms: Arms, **options: Any) -> CertifiedElimination:
    _check_idle(options)
    return CertifiedElimination(embedding=_kernel(arms, options), **options)


def _certified_independent(arms: Arms, **options: Any) -> CertifiedElimination:
    _check_idle(options)
    return CertifiedElimination(embedding=IndependentEmbedding(arms.num_arms), **options)


def _neural_embedding(arms: Arms, **options: Any) -> Policy[Any]:
    _check_idle({name: options.pop(name) for name in ("schedule", "union") if name in options})
    _need_torch("neural-embedding")
    from surepick.embeddings.neural import Network  # noqa: PLC0415 (torch: heavy, and an extra)
    from surepick.policies.neural_elimination import NeuralElimination  # noqa: PLC0415

    network = Network(**_taken(options, NETWORK_OPTIONS))
    return NeuralElimination(features=_doubles(arms), network=network, **options)


def _certified_neural(arms: Arms, **options: Any) -> Policy[Any]:
    _check_idle(options)
    _need_torch("certified-neural")
    from surepick.embeddings.neural import Network  # noqa: PLC0415 (torch: heavy, and an extra)
    from surepick.policies.certified_neural import CertifiedNeural  # noqa: PLC0415

    network = Network(**{**LEARNER, **_taken(options, NETWORK_OPTIONS)})
    return CertifiedNeural(features=_doubles(arms), network=network, **options)


def _means_neural_rule(arms: Arms, **options: Any) -> MeansNeuralRule:
    _check_idle({name: options.pop(name) for name in ("schedule", "union") if name in options})
    return MeansNeuralRule(num_arms=arms.num_arms, **options)


def _need_torch(name: str) -> None:
    """Refuse a neural request where torch is absent, before anything is spent."""
    if importlib.util.find_spec("torch") is None:
        raise InvalidInput(f'{name} needs torch, which is absent: pip install "surepick[neural]".')


def _check_idle(options: dict[str, Any]) -> None:
    """Remove the options of all policies that have no effect here, after checking them."""
    check_choice("schedule", options.pop("schedule", "convergent"), SCHEDULES)
    check_choice("union", options.pop("union", "best-pairs"), UNIONS)
    positive_number("slack", options.pop("slack", 0.1), "what rounding to whole pulls may cost.")


def _action_elimination(arms: Arms, **options: Any) -> ActionElimination:
    _check_idle(options)
    return ActionElimination(num_arms=arms.num_arms, **options)


def _xy_static(arms: Arms, **options: Any) -> XYStatic:
    _check_idle(options)
    return XYStatic(features=_doubles(arms), **options)


def _xy_adaptive(arms: Arms, **options: Any) -> XYAdaptive:
    _check_idle({name: options.pop(name) for name in ("schedule", "union") if name in options})
    return XYAdaptive(features=_doubles(arms), **options)


def _lingape(arms: Arms, **options: Any) -> LinGapE:
    _check_idle(options)
    return LinGapE(features=_doubles(arms), **options)


def _lingame(arms: Arms, **options: Any) -> LinGame:
    _check_idle(options)
    return LinGame(features=_doubles(arms), **options)


def _lucb(arms: Arms, **options: Any) -> LUCB:
    _check_idle(options)
    return LUCB(num_arms=arms.num_arms, **options)


def _successive_halving(arms: Arms, **options: Any) -> SuccessiveHalving:
    _check_idle(options)
    if options.get("budget") is None:
        raise InvalidInput(
            "successive-halving needs budget: the pulls in all, which it spends and then stops. To measure until the "
            "answer is certified, take certified-independent."
        )
    return SuccessiveHalving(num_arms=arms.num_arms, **options)


ENTRIES: Mapping[str, Entry] = MappingProxyType(
    {
        "linear-embedding": Entry(
            _linear_embedding,
            (*adaptive_elimination.OPTIONS, *LINEAR_OPTIONS),
            LITERAL_ROUNDS,
            "Algorithm 1 with the linear embedding: rewards nearly linear in few directions of the features",
        ),
        "fixed-linear": Entry(
            _fixed_linear,
            (*fixed_elimination.OPTIONS, *LINEAR_OPTIONS),
            LITERAL_ROUNDS,
            "Algorithm 3 with the linear embedding: one dimension for all rounds",
        ),
        "kernel-embedding": Entry(
            _kernel_embedding,
            (*adaptive_elimination.OPTIONS, *KERNEL_OPTIONS, "gamma"),
            LITERAL_ROUNDS,
            "Algorithm 1 with a kernel: rewards smooth in the features, of bounded norm in the kernel's space",
        ),
        "fixed-kernel": Entry(
            _fixed_kernel,
            (*fixed_elimination.OPTIONS, *KERNEL_OPTIONS, "gamma"),
            LITERAL_ROUNDS,
            "Algorithm 3 with a kernel: one dimension for all rounds",
        ),
        "unknown-misspecification": Entry(
            _unknown_misspecification,
            unknown_misspecification.OPTIONS,
            MappingProxyType({"schedule": "paper", "union": "all", "floor": "published"}),
            "Algorithm 4: features of which nothing is known; never certifies and never stops by itself",
        ),
        "certified-linear": Entry(
            _certified_linear,
            (*certified_elimination.OPTIONS, *IDLE, *LINEAR_OPTIONS),
            MappingProxyType({}),
            "fewest measurements for a certificate, with the linear embedding: the default where features are used",
        ),
        "certified-kernel": Entry(
            _certified_kernel,
            (*certified_elimination.OPTIONS, *IDLE, *KERNEL_OPTIONS, "gamma"),
            MappingProxyType({}),
            "fewest measurements for a certificate, with a kernel: rewards smooth in the features",
        ),
        "certified-independent": Entry(
            _certified_independent,
            (*certified_elimination.OPTIONS, *IDLE),
            MappingProxyType({}),
            "fewest measurements for a certificate without features: the default where none are used",
        ),
        "neural-embedding": Entry(
            _neural_embedding,
            (*NEURAL_OPTIONS, *NETWORK_OPTIONS, "schedule", "union"),
            MappingProxyType(
                {
                    "constants": "paper",
                    "architecture": "published",
                    "depth": 3,
                    "width": 128,
                    "inputs": "raw",
                    "error_tolerance": 1e-4,
                    "tolerance_scale": "published",
                    "floor": "published",
                }
            ),
            "Algorithm 2 with a network (extra 'neural'): to reproduce it; its verdict is heuristic",
        ),
        "means-neural-rule": Entry(
            _means_neural_rule,
            (*means_neural_rule.OPTIONS, "schedule", "union"),
            MappingProxyType({"constants": "paper"}),
            "Algorithm 2's counts and threshold on plain means: a control beside neural-embedding",
        ),
        "certified-neural": Entry(
            _certified_neural,
            (*CERTIFIED_NEURAL_OPTIONS, *IDLE, *NETWORK_OPTIONS),
            MappingProxyType({}),
            "a certificate with a network's embedding (extra 'neural'), if its misspecification is declared",
        ),
        "rage": Entry(
            _rage,
            rage.OPTIONS,
            MappingProxyType({"floor": "published", "stopping": "rounds"}),
            "RAGE (Fiez et al. 2019): rewards exactly linear in the features",
        ),
        "action-elimination": Entry(
            _action_elimination,
            (*action_elimination.OPTIONS, *IDLE),
            MappingProxyType({"growth": 0.02}),
            "action elimination: features are ignored, one interval per arm (slack, schedule, union: no effect)",
        ),
        "xy-static": Entry(
            _xy_static,
            (*xy_static.OPTIONS, *IDLE),
            MappingProxyType({"constants": "paper"}),
            "XY-static (Soare et al. 2014): rewards exactly linear in the features, one fixed design",
        ),
        "xy-adaptive": Entry(
            _xy_adaptive,
            (*xy_adaptive.OPTIONS, "schedule", "union"),
            MappingProxyType({"constants": "paper", "shrinkage": 0.1, "stopping": "phases"}),
            "XY-adaptive (Soare et al. 2014): rewards exactly linear in the features, phases that drop arms",
        ),
        "lingape": Entry(
            _lingape,
            (*lingape.OPTIONS, *IDLE),
            MappingProxyType({"selection": "greedy", "radius": "dimension"}),
            "LinGapE (Xu et al. 2018): rewards exactly linear, of bounded norm; the leader against its closest rival",
        ),
        "lingame": Entry(
            _lingame,
            (*lingame.OPTIONS, *IDLE),
            MappingProxyType({"play": "learner", "threshold": "stylised"}),
            "LinGame (Degenne et al. 2020): rewards exactly linear, of bounded norm; weights from a game",
        ),
        "lucb": Entry(
            _lucb,
            (*lucb.OPTIONS, *IDLE),
            MappingProxyType({"growth": 0.0}),
            "LUCB1 (Kalyanakrishnan et al. 2012): features are ignored, the leader and its strongest rival are pulled",
        ),
        "successive-halving": Entry(
            _successive_halving,
            (*successive_halving.OPTIONS, *IDLE),
            MappingProxyType({}),
            "sequential halving (Karnin et al. 2013): features are ignored, a fixed budget; its verdict is heuristic",
        ),
    }
)


def policy_names() -> tuple[str, ...]:
    """The names that `make_policy` knows, sorted."""
    return tuple(sorted(ENTRIES))


def policy_options(name: str) -> tuple[str, ...]:
    """The options that the policy knows, sorted."""
    return tuple(sorted(_entry(name).options))


def needs_torch(name: str) -> bool:
    """Whether the policy trains a network."""
    return _entry(name).build in (_neural_embedding, _certified_neural)


def policy_summary(name: str) -> str:
    """One line about the policy, for people who choose."""
    return _entry(name).summary


def paper_settings(name: str) -> dict[str, Any]:
    """The options under which a policy makes the literal choices of its source; never norm_bound, gamma or dim.

    Example: `make_policy("linear-embedding", arms, ..., norm_bound=.5, **paper_settings("linear-embedding"))`.

    Raises:
        InvalidInput: the name is not known.
    """
    return dict(_entry(name).paper)


def make_policy(
    name: str, arms: Arms, *, epsilon: float, delta: float, noise: Noise | str, **options: Any
) -> Policy[Any]:
    """The policy of that name for these arms.

    Args:
        name: one of `policy_names()`.
        arms: what is chosen among; policies that ignore features accept arms without any.
        epsilon: the shortfall that is tolerated, in reward units, > 0.
        delta: the error probability, in (0, 1).
        noise: what is assumed of a reward, a record or its text ("bernoulli", "subgaussian:0.5").
        options: settings of the policy; `policy.spec` lists them with their values.

    Returns:
        A frozen policy; `make_policy(arms=arms, **policy.spec)` gives an equal one.

    Raises:
        InvalidInput: unknown name or option, or a setting without meaning.
    """
    entry = _entry(name)
    unknown = sorted(set(options) - set(entry.options))
    if unknown:
        raise InvalidInput(
            f"{name} has no option {', '.join(map(repr, unknown))}; it knows {', '.join(policy_options(name))}."
        )
    if not isinstance(arms, Arms):
        raise InvalidInput(f"arms is a {type(arms).__name__}; give Arms(features, ids) or read_arms(path).")
    assumed = parse_noise(noise) if isinstance(noise, str) else noise
    if isinstance(assumed, type) or not isinstance(assumed, Noise):
        raise InvalidInput(f"noise is {quoted(noise)}; give Bernoulli(), Bounded(low, high), SubGaussian(s) or text.")
    check_size("a scale of the noise", float(np.min(assumed.sigma)), float(np.max(assumed.sigma)))
    if failure_probability(assumed) > 0 and not name.startswith("certified-"):
        raise InvalidInput(
            f"the noise's pilot may fail with probability {failure_probability(assumed):g}, which would have to be "
            f"taken from delta; {name} does not, only the certified policies do. Declare subgaussian:SIGMA, or take "
            "certified-independent (--policy certified-independent)."
        )
    return entry.build(arms, epsilon=epsilon, delta=delta, noise=assumed, **options)


def _entry(name: str) -> Entry:
    if not isinstance(name, str) or name not in ENTRIES:
        raise InvalidInput(f"there is no policy {quoted(name)}; choose one of {', '.join(policy_names())}.")
    return ENTRIES[name]
