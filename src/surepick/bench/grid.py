"""The paper's search for its constants: every combination of a grid, judged by the true success rate.

It USES THE TRUTH, which a user does not have. It is here so that the paper's constants can be traced; a user calls
`choose_kernel` on pilot pulls instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from types import MappingProxyType

from surepick.bench.spec import Cell, Experiment
from surepick.bench.summary import CellSummary
from surepick.errors import InvalidInput
from surepick.policies.registry import policy_options

DECADES = tuple(10.0**power for power in range(-5, 4))  # of C and gamma
TOLERANCES = tuple(10.0**power for power in range(-5, 0))  # of eps-bar
AXES: Mapping[str, tuple[float, ...]] = MappingProxyType(
    {"norm_bound": DECADES, "gamma": DECADES, "error_tolerance": TOLERANCES}
)


def grid_experiment(
    base: Experiment, policy: str, *, environment: str | None = None, axes: Mapping[str, Sequence[float]] | None = None
) -> Experiment:
    """Every combination of the grid for one policy of an experiment, in one of its environments.

    Args:
        base: e.g. experiment("mnist").
        policy: label of one of its policies; its other settings stay.
        environment: label of one of its environments; None: the first.
        axes: option -> values; None: the paper's grids of those of norm_bound (C), gamma and error_tolerance (eps-bar)
            that the policy has.

    Raises:
        InvalidInput: no such policy or environment, or nothing to vary.

    Source: "Experimental setups": C and gamma in 1e-5 to 1e3, eps-bar in 1e-5 to 1e-1, by powers of ten.
    """
    cell = _cell(base, policy, environment)
    spec, known = cell.policy, policy_options(cell.policy.name)
    varied = {name: tuple(dict.fromkeys(values)) for name, values in (axes or AXES).items() if name in known}
    if not varied or not all(varied.values()):
        raise InvalidInput(
            f"{policy} has none of the constants that a grid varies ({', '.join(AXES)}); take another --policy."
        )
    name, cells = f"grid-{base.name}", []
    for values in product(*varied.values()):
        point = dict(zip(varied, values, strict=True))
        label = " ".join([policy, *(f"{option}={value:.12g}" for option, value in point.items())])
        tried = replace(spec, label=label, options={**spec.options, **point})
        cells.append(replace(cell, experiment=name, policy=tried))
    return Experiment(name, f"grid search for {policy}: USES THE TRUTH", tuple(cells), base.note)


def ranked(cells: Sequence[CellSummary]) -> tuple[CellSummary, ...]:
    """As the paper ranks them: the highest true success rate first, then the fewest oracle pulls.

    Success is the paper's: the active set came to hold only epsilon-best arms.
    """

    def merit(cell: CellSummary) -> tuple[float, float]:
        reached = cell.reached.count / cell.reached.total if cell.reached else 0.0
        return -reached, cell.oracle.median if cell.oracle else float("inf")

    return tuple(sorted(cells, key=merit))


def _cell(base: Experiment, policy: str, environment: str | None) -> Cell:
    mine = [cell for cell in base.cells if cell.policy.label == policy]
    if not mine:
        raise InvalidInput(f"{base.name} has no policy {policy!r}; it has {', '.join(base.policies)}.")
    if environment is None:
        return mine[0]
    found = next((cell for cell in mine if cell.environment.label == environment), None)
    if found is None:
        places = "; ".join(cell.environment.label for cell in mine)
        raise InvalidInput(f"{base.name} runs {policy} in no environment {environment!r}; it does in {places}.")
    return found
