"""What is found out about a long list before anything is measured: its hash, how its rows are seen, and the design."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field
from typing import Any

import numpy as np

from surepick.blocks.map_reduce import Passes
from surepick.blocks.merkle import Tree
from surepick.blocks.moments import Coordinates, Directions, directions, first_look
from surepick.blocks.rows import RowBlocks
from surepick.core.arms import Arms, KnownIds
from surepick.core.arrays import FloatArray, IntArray, record
from surepick.core.json import encode, from_json
from surepick.designs.long_lists.d_optimal import SparseDesign, d_optimal
from surepick.embeddings.kernel_blocks import KernelDirections, kernel_directions
from surepick.embeddings.kernel_functions import Kernel
from surepick.errors import InvalidInput, SurepickError
from surepick.linalg.blas_threads import one_blas_thread
from surepick.policies.subset.chosen import SubsetRules

USUAL_LANDMARKS = 200


@record
class FirstLook:
    """What some four passes over K rows find.

    Args:
        root, sizes: of the tree of their hashes.
        where: the coordinates in which rows are seen.
        design: the rows that are measured, and how often; its pool is not kept.
        arms: these rows, with their ids.
    """

    root: str
    sizes: tuple[int, ...]
    where: Coordinates
    design: SparseDesign
    arms: Arms
    _tree: Tree | None = field(default=None, compare=False, repr=False)

    @staticmethod
    def at(passes: Passes, kernel: Kernel | None, rules: SubsetRules) -> FirstLook:
        """Look at the rows.

        Args:
            kernel: that of the rules.

        Raises:
            InvalidInput: they cannot be read, or do not span what they should.
            NotConverged: no design was found.
        """
        found, tree = first_look(passes)
        where: Coordinates = (
            directions(passes, found, most=rules.max_rank) if kernel is None else found_landmarks(passes, kernel, rules)
        )
        made = d_optimal(passes, where)
        arms = _arms(passes.rows, made.rows)
        design = _sparse(made.rows, made.weights, made.value, where, arms)
        return FirstLook(tree.root, tree.sizes, where, design, arms, tree)

    def tree_of(self, passes: Passes) -> Tree:
        """The hashes of all rows; without those of the first look it takes a pass.

        Raises:
            InvalidInput: they are other rows than those that were looked at.
        """
        if self._tree is not None:
            return self._tree
        with one_blas_thread():
            _, tree = first_look(passes)
        if tree.root != self.root:
            raise InvalidInput(
                f"the rows of the long list are not those of the first look: their root was {self.root[:16]}..., and "
                f"is {tree.root[:16]}.... A file was changed; nothing can be said of what it holds now."
            )
        return tree

    def spec(self) -> dict[str, Any]:
        """As plain data: all but the hashes and the features."""
        design = {"rows": self.design.rows, "weights": self.design.weights, "value": self.design.value}
        where = {name: one for name, one in encode(self.where, sparse=True).items() if name != "kernel"}
        return {"root": self.root, "sizes": list(self.sizes), "where": where, "design": encode(design)}

    @staticmethod
    def of(spec: Mapping[str, Any], rows: RowBlocks, kernel: Kernel | None) -> FirstLook:
        """From plain data and the rows that were looked at; those of the design are read, no others.

        Raises:
            InvalidInput: the data is none of ours, or these are other rows.
        """
        sizes = tuple(one.num_rows for one in rows.sources)
        try:
            if list(sizes) != list(spec["sizes"]):
                raise InvalidInput(
                    f"the files hold {sum(sizes):,} rows and {sum(spec['sizes']):,} were looked at, or lie in another "
                    "order; give those of the first look."
                )
            where = _where(spec["where"], kernel)
            chosen, weights = np.array(spec["design"]["rows"], np.int64), np.array(spec["design"]["weights"], float)
            arms = _arms(rows, chosen)
            design = _sparse(chosen, weights, float(spec["design"]["value"]), where, arms)
        except (KeyError, TypeError, ValueError, AttributeError, SurepickError) as error:
            if isinstance(error, InvalidInput):
                raise
            raise InvalidInput(f"'first_look' cannot be read: {error!r}.") from None
        return FirstLook(str(spec["root"]), sizes, where, design, arms)


@record
class _Landmarks:
    """`KernelDirections` but for the kernel, which the rules name."""

    landmarks: FloatArray
    factor: FloatArray
    left: float
    information: FloatArray
    longest: float


def _where(data: Mapping[str, Any], kernel: Kernel | None) -> Coordinates:
    if kernel is None:
        return from_json(Directions, json.dumps(data))
    found = from_json(_Landmarks, json.dumps(data))
    return KernelDirections(kernel, found.landmarks, found.factor, found.left, found.information, found.longest)


def _arms(rows: RowBlocks, chosen: IntArray) -> Arms:
    return Arms(rows.take(chosen), KnownIds(rows.ids(chosen)))


def _sparse(rows: IntArray, weights: FloatArray, value: float, where: Coordinates, arms: Arms) -> SparseDesign:
    """The design without its pool, with features that anybody computes again to the last bit."""
    nothing = np.empty(0, np.int64), np.empty((0, where.rank))
    return SparseDesign(rows, where.of(arms.features), weights, value, *nothing)


def found_landmarks(passes: Passes, kernel: Kernel, rules: SubsetRules) -> Coordinates:
    """The coordinates that a kernel gives rows.

    Raises:
        InvalidInput: the rules do not say for which epsilon.
    """
    if rules.epsilon is None:
        raise InvalidInput("with a kernel the selection needs epsilon, by which it chooses how many landmarks it uses.")
    most = USUAL_LANDMARKS if rules.max_rank is None else rules.max_rank
    return kernel_directions(passes, kernel, norm_bound=rules.norm_bound, epsilon=rules.epsilon, max_rank=most)
