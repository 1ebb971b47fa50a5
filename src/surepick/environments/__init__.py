"""The hidden truth: synthetic instances and data sets that can be pulled. No policy sees them."""

from surepick.environments.added_noise import table_with_added_noise
from surepick.environments.digits import digits
from surepick.environments.environment import Environment
from surepick.environments.livecodebench import livecodebench
from surepick.environments.mnist import mnist
from surepick.environments.nasbench import nasbench_macro
from surepick.environments.networks import random_network
from surepick.environments.open_bandit import open_bandit
from surepick.environments.recorded import table
from surepick.environments.registry import environment_names, make_environment
from surepick.environments.rewards import RecordedRewards
from surepick.environments.synthetic import high_dimensional, one_better, soare, sphere, two_clusters
from surepick.environments.yahoo import YahooDraw, draw_yahoo, yahoo_like, yahoo_r6a
from surepick.environments.yahoo_lines import YahooLog, YahooRecord, yahoo_log, yahoo_records

__all__ = [
    "Environment",
    "RecordedRewards",
    "YahooDraw",
    "YahooLog",
    "YahooRecord",
    "digits",
    "draw_yahoo",
    "environment_names",
    "high_dimensional",
    "livecodebench",
    "make_environment",
    "mnist",
    "nasbench_macro",
    "one_better",
    "open_bandit",
    "random_network",
    "soare",
    "sphere",
    "table",
    "table_with_added_noise",
    "two_clusters",
    "yahoo_like",
    "yahoo_log",
    "yahoo_r6a",
    "yahoo_records",
]
