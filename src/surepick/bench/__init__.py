"""Many studies against many environments: specs, runner, results, summaries."""

from surepick.bench.paper_experiments import experiment, experiment_names, experiments
from surepick.bench.replicate import Played, play
from surepick.bench.results import Results, read_results
from surepick.bench.runner import run_experiments
from surepick.bench.spec import Cell, EnvironmentSpec, Experiment, PolicySpec, crossed, restricted
from surepick.bench.summary import CellSummary, summarize
from surepick.linalg.blas_threads import one_thread

__all__ = [
    "Cell",
    "CellSummary",
    "EnvironmentSpec",
    "Experiment",
    "Played",
    "PolicySpec",
    "Results",
    "crossed",
    "experiment",
    "experiment_names",
    "experiments",
    "one_thread",
    "play",
    "read_results",
    "restricted",
    "run_experiments",
    "summarize",
]
