"""The hidden truth: synthetic instances and data sets that can be pulled. No policy sees them."""

from surepick.environments.block_effects import with_block_effects
from surepick.environments.digits import digits
from surepick.environments.environment import Environment
from surepick.environments.line_chain import observation_mean, throughput
from surepick.environments.line_simulator import observe_line
from surepick.environments.queueing import production_line, simulated_production_line
from surepick.environments.recorded import recorded_answers, table, table_with_added_noise
from surepick.environments.rewards import RecordedRewards
from surepick.environments.synthetic import (
    falling_means,
    given_means,
    high_dimensional,
    one_better,
    soare,
    some_better,
    sphere,
    two_clusters,
)

__all__ = [
    "Environment",
    "RecordedRewards",
    "digits",
    "falling_means",
    "given_means",
    "high_dimensional",
    "observation_mean",
    "observe_line",
    "one_better",
    "production_line",
    "recorded_answers",
    "simulated_production_line",
    "soare",
    "some_better",
    "sphere",
    "table",
    "table_with_added_noise",
    "throughput",
    "two_clusters",
    "with_block_effects",
]
