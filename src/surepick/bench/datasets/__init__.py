"""Data sets that can be pulled, and every environment by its name."""

from surepick.bench.datasets.crossed_barrel import crossed_barrel
from surepick.bench.datasets.livecodebench import livecodebench
from surepick.bench.datasets.mnist import mnist
from surepick.bench.datasets.nasbench import nasbench_macro
from surepick.bench.datasets.open_bandit import open_bandit
from surepick.bench.datasets.random_network import random_network
from surepick.bench.datasets.registry import environment_names, make_environment
from surepick.bench.datasets.yahoo import YahooDraw, draw_yahoo, yahoo_like, yahoo_r6a
from surepick.bench.datasets.yahoo_lines import YahooLog, YahooRecord, yahoo_log, yahoo_records

__all__ = [
    "YahooDraw",
    "YahooLog",
    "YahooRecord",
    "crossed_barrel",
    "draw_yahoo",
    "environment_names",
    "livecodebench",
    "make_environment",
    "mnist",
    "nasbench_macro",
    "open_bandit",
    "random_network",
    "yahoo_like",
    "yahoo_log",
    "yahoo_r6a",
    "yahoo_records",
]
