"""The paper's search for its constants: every combination of a grid, judged by the true success rate.

It USES THE TRUTH: nobody who needs the answer can do it. It is here so that the paper's constants can be traced; what
a user can do instead is `choose_kernel` on pilot pulls.
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
    spec, known = cell.policy, set(policy_options(cell.policy.name))
    asked = AXES if axes is None else axes
    varied = {name: tuple(dict.fromkeys(values)) for name, values in asked.items() if name in known}
    if not varied or not all(varied.values()):
        raise InvalidInput(
            f"{policy} has none of the constants that a grid varies ({', '.join(AXES)}); take another --policy."
        )
    name = f"grid-{base.name}"
    cells = tuple(
        replace(
            cell,
            experiment=name,
            policy=replace(spec, label=label_of(spec.label, point), options={**spec.options, **point}),
        )
        for values in product(*varied.values())
        for point in [dict(zip(varied, values, strict=True))]
    )
    return Experiment(name, f"grid search for {policy}: USES THE TRUTH", cells, base.note)


def label_of(policy: str, point: Mapping[str, float]) -> str:
    """policy norm_bound=1e-05 gamma=0.1."""
    return " ".join([policy, *(f"{name}={value:.12g}" for name, value in point.items())])


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
