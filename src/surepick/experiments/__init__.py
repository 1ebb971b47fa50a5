"""Many studies against many environments: specs, runner, results, summaries."""

from surepick.experiments.catalogue import experiment, experiment_names, experiments
from surepick.experiments.replicate import Played, play
from surepick.experiments.results import Results, read_results
from surepick.experiments.runner import run_experiments
from surepick.experiments.simulation import Run, simulate
from surepick.experiments.spec import Cell, EnvironmentSpec, Experiment, PolicySpec, crossed, restricted
from surepick.experiments.summary import CellSummary, summarize
from surepick.threads import one_thread

__all__ = [
    "Cell",
    "CellSummary",
    "EnvironmentSpec",
    "Experiment",
    "Played",
    "PolicySpec",
    "Results",
    "Run",
    "crossed",
    "experiment",
    "experiment_names",
    "experiments",
    "one_thread",
    "play",
    "read_results",
    "restricted",
    "run_experiments",
    "simulate",
    "summarize",
]
