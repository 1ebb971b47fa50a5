"""The command of experiments, by name: an entry point of `surepick.commands` gives it."""

from surepick.core.plugins import CommandSpec

BENCH = CommandSpec(
    "Experiments", "Experiments over many seeds: run them, sum them up, draw them.", "surepick_bench.commands:bench"
)
