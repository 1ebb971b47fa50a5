"""What policies are made of beside the problem and their own options: embeddings, features, networks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from surepick.core.arms import Arms
from surepick.core.arrays import FloatArray
from surepick.core.plugins import EMBEDDINGS, plugin_names
from surepick.embeddings import (
    ArmEmbedding,
    GaussianKernel,
    IndependentEmbedding,
    KernelEmbedding,
    LinearEmbedding,
)
from surepick.embeddings.exact import ExactFeatures
from surepick.embeddings.spec import embedding_spec
from surepick.errors import InvalidInput

LINEAR = ("norm_bound", "bound", "norm_source", "max_rank")
KERNEL = ("kernel", "norm_bound", "bound", "nystrom_above", "max_rank", "rounding", "norm_source")
EXPANSIONS = "mercer"  # the embedding that has them, in surepick-bench
MERCER = ("expansion", "norm_bound", "bound", "max_dim", "norm_source")
NAMES_OF_A_KERNEL = ("gamma", "kernel", "expansion")
OF_BLOCKS = ("blocks", "block_size", "control", "once_a_block", "streams")
OF_LISTS = ("batch_size", "max_batches", "batch_cost", "blocks", "block_size", "once_a_block")
PAIRED = "paired"  # the evidence of differences within blocks
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
    return {"embedding": LinearEmbedding(arms.features, **taken(options, LINEAR))}


def kernel(arms: Arms, options: dict[str, Any]) -> Parts:
    """The gram matrix's eigenvectors of a kernel; or, named by its `expansion`, its eigenfunctions.

    Raises:
        InvalidInput: not exactly one of gamma, kernel and expansion, or an option of the embedding that is not used.
    """
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
        options["kernel"] = GaussianKernel(gamma)
    return {"embedding": KernelEmbedding(arms.features, **taken(options, KERNEL))}


def of_package(arms: Arms, options: dict[str, Any]) -> Parts:
    """The embedding of another package, by its name."""
    return {"embedding": embedding_spec(options.pop("embedding")).make(arms.features, options)}


def unbounded(arms: Arms, _: dict[str, Any]) -> Parts:
    return {"embedding": LinearEmbedding(arms.features, norm_bound=1.0)}  # its bound is not used


def independent(arms: Arms, _: dict[str, Any]) -> Parts:
    return {"embedding": IndependentEmbedding(arms.num_arms)}


def exact(arms: Arms, _: dict[str, Any]) -> Parts:
    return {"embedding": ExactFeatures(_doubles(arms))}


def features(arms: Arms, _: dict[str, Any]) -> Parts:
    return {"features": _doubles(arms)}


def nothing(_: Arms, __: dict[str, Any]) -> Parts:
    return {}


def network(arms: Arms, options: dict[str, Any]) -> Parts:
    from surepick.embeddings.neural.network import Network  # noqa: PLC0415 (torch: heavy, and an extra)

    return {"features": _doubles(arms), "network": Network(**taken(options, NETWORK))}


OPTIONS_OF: Mapping[MakeParts, tuple[str, ...]] = MappingProxyType(
    {
        linear: LINEAR,
        kernel: tuple(dict.fromkeys((*KERNEL, *MERCER, "gamma"))),
        network: NETWORK,
        of_package: ("embedding",),
    }
)


def embedding_options(parts: MakeParts, given: Mapping[str, Any]) -> tuple[str, ...]:
    """The options of the embedding of another package that `given` names.

    Raises:
        InvalidInput: no package has it.
    """
    name = given.get("embedding")
    return () if parts is not of_package or name is None else embedding_spec(name).options


def are_paired(options: Mapping[str, Any], *, known_scale: bool) -> bool:
    """Whether candidates are compared within blocks, by differences of which nobody knows how much they vary."""
    return options.get("streams") is not None or (options.get("blocks") is not None and not known_scale)


HEURISTIC_BIASED = 0.2  # of epsilon: where the bias stays larger, epochs are the usual evidence


def stays_biased(embedding: ArmEmbedding | None, dim: int | None, epsilon: float) -> bool:
    """Whether misspecification eats much of epsilon in the largest dimension that may be used.

    The weights of carried-on evidence minimise variance alone, those of epochs the bias too (docs/decisions/0022).
    """
    if embedding is None or embedding.norm_bound is None:
        return False
    used = dim if isinstance(dim, int) and 1 <= dim <= embedding.max_dim else embedding.max_dim
    return 2.0 * embedding.misspecification(used) > HEURISTIC_BIASED * epsilon


def fitting_policy(options: Mapping[str, Any]) -> str:
    """The certified policy that these options speak of; those that are None were not given."""
    given = {option for option, value in options.items() if value is not None}
    if "items" in given:
        return "certified-items"
    if "embedding" in given:
        return "certified-embedding"
    if "misspecification" in given:
        return "certified-neural"
    if given & set(NAMES_OF_A_KERNEL):
        return "certified-kernel"
    return "certified-linear" if "norm_bound" in given else "certified-independent"
