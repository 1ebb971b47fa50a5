"""A selection made again from the long list, by somebody who does not believe it."""

from __future__ import annotations

import numpy as np

from surepick.blocks.rows import RowBlocks
from surepick.core.arrays import record
from surepick.errors import InvalidInput
from surepick.policies.subset.chosen import Subset
from surepick.policies.subset.selection import SubsetSelection


@record
class LongList:
    """The long list behind the candidates of a study.

    Args:
        subset: how they were selected.
    """

    subset: Subset

    @property
    def total(self) -> int:
        """Its candidates."""
        return self.subset.total

    @property
    def minimize(self) -> bool:
        """Small rewards are good."""
        return self.subset.minimize

    def check(self, rows: RowBlocks) -> str:
        """Select the candidates again; what was found, in words.

        Args:
            rows: the long list, its sources in the same order.

        Raises:
            InvalidInput: it is another list, or other candidates are selected from it.
        """
        stated, rules = self.subset, self.subset.rules
        policy = SubsetSelection.over(
            rows,
            delta=rules.delta,
            noise=rules.noise,
            norm_bound=rules.norm_bound,
            size=rules.size,
            slack=rules.slack,
            max_rank=rules.max_rank,
            kernel=rules.kernel,
            epsilon=rules.epsilon,
        )
        if (policy.look.root, policy.look.sizes) != (stated.root, stated.sizes):
            raise InvalidInput(
                f"it is another list: its root is {policy.look.root[:16]}..., and that of the certificate "
                f"{stated.root[:16]}..."
            )
        places = {name: place for place, name in enumerate(policy.arms.ids)}
        state = policy.init()
        for batch in stated.batches:
            state = policy.tell(state, policy.ask(state), batch.among(places)).state
        if not state.finished:
            raise InvalidInput(f"after its measurements {state.left:,} candidates are left, more than {rules.size:,}.")
        expected = np.union1d(policy.subset(state), policy.design.rows)
        if expected.tolist() != sorted(stated.rows):
            raise InvalidInput(f"{len(expected):,} candidates are selected from it, and the certificate has others.")
        return f"{len(expected):,} of {self.total:,} candidates, the same again"
