"""What a network learns from the batches so far: an embedding for the next one, and a guess of the means.

Both are functions of the past and of the seed; docs/neural-guarantee.md says why that matters.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from surepick.core.arrays import FloatArray, record
from surepick.core.design import Embedding, IndependentArms
from surepick.core.observations import Observations
from surepick.embeddings.neural.network import ArmNetwork, Network
from surepick.estimators import estimate
from surepick.estimators.network_training import left_out, plausible_regularization, train
from surepick.linalg.factorisations import thin_svd
from surepick.linalg.whitening import whitened
from surepick.policies.base import Problem
from surepick.policies.certified.sampling_rule import noise_scales, plug_in_means

VECTORS = ("gradient", "last-layer")
ENERGY_LEFT = 1e-3  # of the squares of the gradients; the embedding's default dimension leaves out at most this
LEAST_DIRECTION = 1e-6  # of the largest singular value, or of a column's entries; below it is rounding
RANK_TOLERANCE = 1e-9
HEURISTIC_LARGEST_SHARE = 8  # arms for each dimension, at least; with fewer the features save little
HEURISTIC_LEAST_DOUBT = 0.5  # of epsilon; one odd arm does not show in a mean square


class Learner(Protocol):
    """The settings that an embedding is a function of; their meaning is in `CertifiedNeural`."""

    @property
    def problem(self) -> Problem: ...
    @property
    def features(self) -> FloatArray: ...
    @property
    def network(self) -> Network: ...
    @property
    def dim(self) -> int | None: ...
    @property
    def vectors(self) -> str: ...
    @property
    def regularization(self) -> float | None: ...
    @property
    def uses_network(self) -> bool: ...


@record
class Learnt:
    """What the past says of the arms: an embedding, and a guess of the means.

    Args:
        vectors: Z, shape (K, r), Z'Z = K I, its first column 1; None where the network is not used.
        scores: guesses of the mean rewards, shape (K,).
        doubt: root mean square error of the network's guess for an arm that it has not seen; infinite before any.
        errors: the same for each guess, the arm's own measurements included, shape (K,).
    """

    vectors: FloatArray | None
    scores: FloatArray
    doubt: float
    errors: FloatArray


@dataclass(frozen=True)
class _Request:
    """What an embedding is a function of; two are equal when the digests are."""

    digest: str
    learner: Learner = field(compare=False)
    seen: Observations = field(compare=False)

    @staticmethod
    def of(learner: Learner, seen: Observations) -> _Request:
        settings = (learner.network, learner.dim, learner.vectors, learner.regularization, learner.uses_network)
        assumed = (learner.problem.noise, learner.problem.epsilon, learner.features.shape)
        digest = hashlib.sha256(repr((*settings, *assumed)).encode())
        for array in (learner.features, seen.counts, seen.sums, seen.squares):
            digest.update(b"" if array is None else np.ascontiguousarray(array).tobytes())
        return _Request(digest.hexdigest(), learner, seen)


def remembered(learner: Learner, seen: Observations) -> Learnt:
    """`learn`, with the last results kept: ask, tell and the next ask need the same embedding."""
    return _recalled(_Request.of(learner, seen))


@lru_cache(maxsize=4)
def _recalled(request: _Request) -> Learnt:
    """`learn`; a function of the digest alone."""
    return learn(request.learner, request.seen)


def learn(learner: Learner, seen: Observations) -> Learnt:
    """The embedding and the guess of the means, from everything seen so far: a function of it and of the seed.

    The network is trained on the arms' means less their common mean. The guess weighs an arm's own mean against what
    the network says of it without them, as if that erred as it does on the arms measured so far.
    """
    if not learner.uses_network:
        return _unlearnt(learner, seen)
    arms = ArmNetwork(learner.features, learner.network)
    if seen.total == 0:
        nothing = np.zeros(len(learner.features))
        return Learnt(
            _vectors(learner, arms, arms.start, nothing), nothing, np.inf, np.full(len(learner.features), np.inf)
        )
    sigma, offset = learner.problem.sigma, float(seen.sums.sum()) / seen.total
    centred = Observations(seen.counts, seen.sums - offset * seen.counts)
    alpha = learner.regularization or plausible_regularization(arms, centred, sigma=sigma)
    trained = train(arms, centred, regularization=alpha)
    others = left_out(arms, trained.weights, centred, regularization=alpha)
    pulled = np.flatnonzero(seen.counts)
    noise = sigma**2 / seen.counts[pulled]
    error = float(np.mean((centred.means[pulled] - others[pulled]) ** 2 - noise))
    doubt = max(math.sqrt(max(error, 0.0)), HEURISTIC_LEAST_DOUBT * learner.problem.epsilon)
    own, prior = seen.counts / sigma**2, doubt**-2
    scores = offset + (prior * others + own * centred.means) / (prior + own)
    return Learnt(_vectors(learner, arms, trained.weights, trained.scores), scores, doubt, (prior + own) ** -0.5)


def estimated_misspecification(learner: Learner, vectors: FloatArray, seen: Observations) -> float:
    """Three times the root mean square by which the means may miss the embedding, at least epsilon/20.

    What noise could hide counts as missed: twice the standard deviation of the sum of squares of pure noise. Before
    anything is seen: epsilon, for a batch that is evidence for nothing.
    """
    if seen.total == 0:
        return learner.problem.epsilon
    pulled = np.flatnonzero(seen.counts)
    fitted = estimate(Embedding(vectors, 0.0), seen)
    freedom = max(len(pulled) - vectors.shape[1], 1)
    misfit = seen.means[pulled] - fitted.scores[pulled]
    misfit -= np.average(misfit, weights=seen.counts[pulled])
    noise = learner.problem.sigma**2
    excess = max(float(seen.counts[pulled] @ misfit**2) - freedom * noise, 0.0)
    hidden = 2.0 * noise * math.sqrt(2.0 * freedom)
    return max(learner.problem.epsilon / 20.0, 3.0 * math.sqrt((excess + hidden) / seen.total))


def _unlearnt(learner: Learner, seen: Observations) -> Learnt:
    """The guess of `certified-independent`: the arms' own means."""
    problem, num_arms = learner.problem, len(learner.features)
    plug_in = plug_in_means(IndependentArms(num_arms), seen, noise_scales(problem, seen))
    return Learnt(None, plug_in.scores, np.inf, np.full(num_arms, np.inf))


def _vectors(learner: Learner, arms: ArmNetwork, weights: Any, outputs: FloatArray) -> FloatArray | None:
    """(1, f, leading directions) in orthonormal coordinates; None where they would be too many to save anything."""
    num_arms = arms.num_arms
    if learner.vectors == "gradient":
        spectrum = arms.spectrum(weights)
        left, values = spectrum.vectors, spectrum.values
    else:
        left, values, _ = thin_svd(arms.last_layer(weights))
    tails = np.append(np.cumsum((values**2)[::-1])[::-1], 0.0)
    dim = learner.dim or min(int(np.argmax(tails <= ENERGY_LEFT * tails[0])), num_arms // HEURISTIC_LARGEST_SHARE)
    kept = np.flatnonzero(values[:dim] > LEAST_DIRECTION * values[0])
    columns = np.column_stack([outputs, left[:, kept] * values[kept]])
    centred = columns - columns.mean(axis=0)
    told = np.abs(centred).max(axis=0) > LEAST_DIRECTION * np.abs(columns).max(axis=0)  # the others are rounding
    if dim < 1 or not told.any() or np.count_nonzero(told) + 1 >= num_arms:
        return None
    basis = whitened(centred[:, told], rank_tolerance=RANK_TOLERANCE).basis
    return np.column_stack([np.ones(num_arms), basis])
