"""What an assumption is asked: by how much sum_x D(x) f(x) can be above 0, for every D that a rival's evidence needs.

For a rival j and a candidate c, F the flows of a process of j and u = 1/T > 0,

    D = u F - 1{c} + 1{j},    B(u) = sup over the functions f of the class of sum_x D(x) f(x)

so that h_j - h_c <= lack u + B(u) on the event of docs/certified-elimination.md, line 38. As u runs D runs along a
line; what a class needs of the rivals is formed once, and B costs little at each u.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from surepick.core.records import BoolArray, FloatArray, IntArray, record
from surepick.estimators.contrast_weights import EPS
from surepick.estimators.flows import ArmFlows

Curve = Callable[[FloatArray], FloatArray]  # u of each rival, (m,), in reward units -> what belongs to it, (m,)


@record
class Lines:
    """The differences D of m rivals, as u runs."""

    features: FloatArray  # of all arms, (K, D)
    candidate: int  # c
    held: ArmFlows  # the flows of one process of each rival, m rows
    negated: bool = False  # the processes are of negated rewards, since small ones are good
    block_name: str | None = None  # what the blocks are called within which the weights sum to 0

    @property
    def rivals(self) -> IntArray:
        """j, (m,)."""
        return self.held.arms

    @property
    def rounding(self) -> float:
        """What a sum over the flows may be off by, as a share of the sum of its absolute terms."""
        return EPS * (self.held.terms + len(self.held.pulled) + 16)

    @property
    def totals(self) -> FloatArray:
        """sum_x F(x), (m,)."""
        return np.asarray(self.held.flows.sum(axis=1))

    def at(self, arms: IntArray | int) -> FloatArray:
        """F of one arm, or of an arm for each rival, (m,)."""
        pulled, flows = self.held.pulled, self.held.flows
        wanted = np.broadcast_to(np.asarray(arms), len(flows))
        if len(pulled) == 0:
            return np.zeros(len(flows))
        place = np.minimum(np.searchsorted(pulled, wanted), len(pulled) - 1)
        return np.where(pulled[place] == wanted, flows[np.arange(len(flows)), place], 0.0)

    def rows(self, chosen: BoolArray) -> Lines:
        """Those of some rivals."""
        return replace(self, held=self.held.rows(chosen))

    def parts(self) -> Callable[[FloatArray], tuple[FloatArray, FloatArray]]:
        """u -> the sums of the positive and of the negative parts of D, both of shape (m,), rounded up."""
        there, own, flows = self.at(self.candidate), self.at(self.rivals), self.held.flows
        up = np.maximum(flows, 0.0).sum(axis=1) - np.maximum(there, 0.0) - np.maximum(own, 0.0)
        down = np.maximum(-flows, 0.0).sum(axis=1) - np.maximum(-there, 0.0) - np.maximum(-own, 0.0)
        up, down = np.maximum(up, 0.0), np.maximum(down, 0.0)

        def found(inverse: FloatArray) -> tuple[FloatArray, FloatArray]:
            at_centre, at_own = inverse * there - 1.0, inverse * own + 1.0
            off = self.rounding * (inverse * self.held.lengths + 2.0)
            gained = inverse * up + np.maximum(at_centre, 0.0) + np.maximum(at_own, 0.0)
            lost = inverse * down + np.maximum(-at_centre, 0.0) + np.maximum(-at_own, 0.0)
            return gained + off, lost + off

        return found

    def length(self) -> Curve:
        """u -> sum_x |D(x)|, (m,), rounded up."""
        parts = self.parts()
        return lambda inverse: np.add(*parts(inverse))


@record
class Support:
    """B along the lines of some rivals: norm * unit(u) + rest(u), each rounded up."""

    rest: Curve  # of everything that has no norm
    unit: Curve | None = None  # of the functions of norm 1; None: no norm is bounded
    norm: float = 0.0  # C

    def at(self, inverse: FloatArray) -> FloatArray:
        """B(u), (m,), in reward units; infinite where the class bounds nothing."""
        return self.rest(inverse) if self.unit is None else self.norm * self.unit(inverse) + self.rest(inverse)

    def plus(self, other: Support) -> Support:
        """That of all sums of a function of this class and one of the other."""
        if self.unit is None and other.unit is not None:
            return other.plus(self)
        first, second = self.rest, other.at
        return replace(self, rest=lambda inverse: first(inverse) + second(inverse))
