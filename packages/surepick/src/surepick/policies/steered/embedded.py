"""Certified elimination with an embedding whose misspecification eats much of epsilon: steered for, and read.

Weights that minimise variance alone, as carried evidence has them, then leave no room for the candidate; those of
`weights.py` weigh bias too.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import Any

from surepick.assumptions.reading import class_in_words
from surepick.assumptions.records import Assumption, Linear, Near
from surepick.core.observations import Observations
from surepick.core.plans import Embedding, Plan
from surepick.core.records import FloatArray, record
from surepick.embeddings import ArmEmbedding
from surepick.errors import InvalidInput
from surepick.policies import model_checks
from surepick.policies.base import Traits, check_arms, delta_for_test
from surepick.policies.steered.elimination import CertifiedReadings, SteeredState


@record
class CertifiedEmbedding(CertifiedReadings):
    """Certify one candidate under the class that an embedding declares, of one dimension.

        |h_x - <z_x, theta>| <= gamma for every arm,    ||theta|| <= C          z = psi_d, gamma that of d, C declared

    Args:
        problem: what is asked; the noise has a known scale.
        embedding: the family psi_d with its misspecification bound and its norm bound.
        dim: d; None: the largest.

    Raises:
        InvalidInput: a setting has no meaning, or the embedding declares no norm bound or no vectors.

    Source: docs/certified-elimination.md, lines 38 to 43; ours.
    """

    features: FloatArray = field(init=False, compare=False, repr=False)
    assume: str = field(default="linear", init=False, compare=False, repr=False)
    trust: str | float = field(default="exact", init=False, compare=False, repr=False)
    embedding: ArmEmbedding
    dim: int | None = None
    evidence: str = field(default="readings", init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        check_arms(self.problem, self.embedding.num_arms)
        found = self.embedding.at(self._dim)
        if self.embedding.norm_bound is None or not isinstance(found, Embedding):
            raise InvalidInput("what is read rests on vectors and a norm bound, and the embedding declares none.")
        object.__setattr__(self, "features", found.features)
        delta_for_test(self.problem)

    @property
    def _dim(self) -> int:
        return self.embedding.max_dim if self.dim is None else self.dim

    @property
    def gamma(self) -> float:
        """How far means may be off the class, in reward units."""
        return float(self.embedding.misspecification(self._dim))

    @property
    def named(self) -> tuple[Assumption, ...]:
        """The class of psi_d."""
        return (Near(Linear(self.embedding.norm_bound, level=False), self.gamma),)

    @property
    def traits(self) -> Traits:
        own = self.embedding.traits
        return Traits(
            uses_features=True,
            certifies="candidate",
            assumptions=own.assumptions,
            checks=model_checks.checks_of(self.embedding),
            caveats=own.caveats,
            judges_parts=True,
            corrects=True,
            weigh=self.weigh,
        )

    def failed_checks(self, _: SteeredState, plan: Plan, seen: Observations) -> tuple[str, ...]:
        embedded, dim = self.embedding.at(self._dim), self._dim
        told = replace(plan, dim=dim, misspecification=self.gamma)
        white = self._cache.white(self.embedding, dim)
        return model_checks.misfits(self.embedding, embedded, told, seen, self.problem, white=white)

    def _in_words(self, _: SteeredState, assumption: Assumption, data: str) -> str:
        return class_in_words(assumption, data).replace("the features", "the vectors of the embedding")

    def _answer(self, state: SteeredState) -> dict[str, Any]:
        active = model_checks.active_assumptions(self.embedding, state.seen.total, True)
        return {
            "assumptions": active,
            "why_heuristic": model_checks.why_not_certified(self.embedding, state.alarms, True),
        }
