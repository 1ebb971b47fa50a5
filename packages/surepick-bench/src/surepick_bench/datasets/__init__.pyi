from .public import crossed_barrel, livecodebench, mnist, nasbench_macro, random_network
from .registry import environment_names, make_environment, open_bandit
from .yahoo import YahooDraw, YahooLog, YahooRecord, draw_yahoo, yahoo_like, yahoo_log, yahoo_r6a, yahoo_records

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
