from .environment import Environment, with_block_effects
from .recorded import digits, recorded_answers, table, table_with_added_noise
from .rewards import RecordedRewards
from .synthetic import (
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
    "one_better",
    "recorded_answers",
    "soare",
    "some_better",
    "sphere",
    "table",
    "table_with_added_noise",
    "two_clusters",
    "with_block_effects",
]
