"""What came before a batch of evidence."""

from surepick.core.observations import Observations

EPSILON = 0.1


def past(rng, num_arms: int) -> Observations:
    counts = rng.integers(0, 30, num_arms)
    sums = rng.binomial(counts, rng.uniform(size=num_arms)).astype(float)
    return Observations(counts, sums, sums)
