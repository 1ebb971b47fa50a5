"""The hidden truth: synthetic instances and data sets that can be pulled. No policy sees them."""

from surepick.environments.digits import digits
from surepick.environments.environment import Environment
from surepick.environments.mnist import mnist
from surepick.environments.networks import random_network
from surepick.environments.recorded import table
from surepick.environments.rewards import RecordedRewards
from surepick.environments.synthetic import high_dimensional, soare, sphere, two_clusters

__all__ = [
    "Environment",
    "RecordedRewards",
    "digits",
    "high_dimensional",
    "mnist",
    "random_network",
    "soare",
    "sphere",
    "table",
    "two_clusters",
]
