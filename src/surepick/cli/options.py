"""Options that several commands share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Format(StrEnum):
    """How an answer is printed."""

    text = "text"
    json = "json"


FormatOption = Annotated[Format, typer.Option("--format", help="How the answer is printed on standard output.")]
SeedOption = Annotated[int, typer.Option("--seed", min=0, help="Decides every random choice; same seed, same answer.")]
TableArgument = Annotated[
    str, typer.Argument(metavar="TABLE", help="A CSV, Excel, Parquet, Arrow or JSON file, or an Olympus folder.")
]
IdOption = Annotated[
    str | None,
    typer.Option("--id", help='Column(s) that name a candidate, e.g. "sku" or "n,theta,r,t"; none: the row number.'),
]
FeaturesOption = Annotated[
    str | None, typer.Option("--features", help='Feature columns, e.g. "a,b"; none: every other numeric column.')
]
StandardizeOption = Annotated[bool, typer.Option("--standardize", help="Scale each feature to mean 0, deviation 1.")]
InterceptOption = Annotated[bool, typer.Option("--intercept", help="Append a feature that is always 1.")]
EpsilonOption = Annotated[
    float, typer.Option("--epsilon", help="How much worse than the best the answer may be, in units of the reward.")
]
DeltaOption = Annotated[float, typer.Option("--delta", help="Probability with which the answer may be wrong.")]
NoiseOption = Annotated[
    str,
    typer.Option(
        "--noise",
        help="Needed. What is known of a single measurement: bernoulli (0 or 1), bounded:LOW:HIGH, or "
        "subgaussian:SIGMA (the standard deviation of normal noise, or half the largest range of repeats).",
    ),
]
PilotOrNoiseOption = Annotated[
    str,
    typer.Option(
        "--noise",
        help="Needed. What is known of a single measurement: bernoulli (0 or 1), bounded:LOW:HIGH, "
        "subgaussian:SIGMA (the standard deviation of normal noise, or half the largest range of repeats), or pilot: "
        "normal with one unknown standard deviation, bounded from 40 measurements (pilot:100: from 100).",
    ),
]
PolicyOption = Annotated[
    str | None,
    typer.Option(
        "--policy",
        help="certified-independent, certified-linear, certified-kernel, linear-embedding, fixed-linear, "
        "kernel-embedding, fixed-kernel, unknown-misspecification, rage, action-elimination, means-neural-rule, and "
        "with torch installed certified-neural and neural-embedding; to compare with: xy-static, xy-adaptive, lucb, "
        "and with a norm bound lingape and lingame. None: certified-linear "
        "if a norm bound is given, certified-kernel if a kernel is given as well, else certified-independent, which "
        "ignores the features.",
    ),
]
NormBoundOption = Annotated[
    float | None,
    typer.Option("--norm-bound", help="Largest norm that the coefficients of a linear reward can have."),
]
NormEstimateOption = Annotated[
    float | None,
    typer.Option(
        "--norm-estimate",
        help="In place of --norm-bound: an estimated norm (surepick tune); an answer that uses it is heuristic.",
    ),
]
GammaOption = Annotated[float | None, typer.Option("--gamma", help="Of the Gaussian kernel exp(-G ||x - z||^2).")]
KernelOption = Annotated[str | None, typer.Option("--kernel", help='Another kernel, for instance "matern:2.5:1".')]
ExpansionOption = Annotated[
    str | None,
    typer.Option(
        "--expansion",
        help='A kernel by its eigenfunctions: sine, "hermite:GAMMA:SPREAD", "fourier:polynomial:RATE", '
        '"fourier:geometric:RATIO", or one for each feature column joined by "*".',
    ),
]
MisspecificationOption = Annotated[
    float | None,
    typer.Option(
        "--misspecification",
        help="For certified-neural: how far the means can be from every embedding that the network may learn.",
    ),
]
GapBoundOption = Annotated[
    float | None, typer.Option("--gap-bound", help="Largest possible difference of two mean rewards, if known.")
]
MaxPullsOption = Annotated[int, typer.Option("--max-pulls", min=0, help="Give up before passing this many.")]
JobsOption = Annotated[int, typer.Option("--jobs", help="Processes at work; -1: one per processor.")]
DATA = "../shared/data"
DataOption = Annotated[
    Path, typer.Option("--data", envvar="SUREPICK_DATA", help="The folder of data sets; MNIST's files in its mnist/.")
]
