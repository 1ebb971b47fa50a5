from . import datasets
from .experiments import experiment, experiment_names, experiments
from .results import Played, Results, play, read_results
from .runner import run_experiments
from .spec import Cell, EnvironmentSpec, Experiment, PolicySpec, crossed, restricted
from .summary import CellSummary, summarize

__all__ = [
    "Cell",
    "CellSummary",
    "EnvironmentSpec",
    "Experiment",
    "Played",
    "PolicySpec",
    "Results",
    "crossed",
    "datasets",
    "experiment",
    "experiment_names",
    "experiments",
    "play",
    "read_results",
    "restricted",
    "run_experiments",
    "summarize",
]
