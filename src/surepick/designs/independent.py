"""The transductive design of arms without structure, in closed form."""

from __future__ import annotations

import numpy as np

from surepick.records import Design, IntArray


def independent_design(num_arms: int, active: IntArray | None = None) -> Design:
    """min over lambda of max over pairs a != b of S of 1/lambda_a + 1/lambda_b = 2 |S|, at equal weights on S.

    Proof: averaging 1/lambda_a + 1/lambda_b over all pairs of S gives (2/|S|) sum 1/lambda_a >= 2 |S|.

    Args:
        num_arms: K.
        active: S, indices; None = all arms.

    Returns:
        A design whose value equals its lower bound; value 0 when S has one arm.

    Source: ours. Cost: O(K).
    """
    arms = np.arange(num_arms) if active is None else active
    weights = np.zeros(num_arms)
    weights[arms] = 1.0 / len(arms)
    value = 2.0 * len(arms) if len(arms) > 1 else 0.0
    return Design(weights, value, value, num_arms)
