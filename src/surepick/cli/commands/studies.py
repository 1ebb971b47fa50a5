"""`surepick create`, `list` and `migrate`: durable studies as a whole."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from surepick.cli import options
from surepick.cli.output import Text, note, noted, print_json, say
from surepick.cli.table_options import reads_tables
from surepick.errors import InvalidInput
from surepick.studies.logs.leases import format_utc
from surepick.tables.reading import ReadOptions

if TYPE_CHECKING:
    from surepick.core.arms import Arms
    from surepick.policies.base import Policy

VARIABLE = "SUREPICK_URL"
PASSWORD = re.compile(r"://[^/?]*:[^/?]+@|[?&]password=")


def given_url(url: str) -> str:
    """The address that a command was given: "-" is the one in the environment.

    Raises:
        InvalidInput: there is none.
    """
    if url == "-":
        if not (kept := os.environ.get(VARIABLE, "")):
            raise InvalidInput(
                f"- stands for the address in {VARIABLE}, which is not set: "
                f"export {VARIABLE}=postgresql+psycopg://USER:PASSWORD@HOST/DATABASE, or write the address itself."
            )
        return kept
    if PASSWORD.search(url):
        note(
            "there is a password in the command, which others can read in the list of processes and in your shell's "
            f"history. Put the address into {VARIABLE} and write - in its place, or the password into ~/.pgpass."
        )
    return url


UrlArgument = Annotated[
    str,
    typer.Argument(
        metavar="URL",
        help=f"The database: sqlite:///FILE or postgresql+psycopg://USER@HOST/DATABASE; - for the one in {VARIABLE}.",
        show_default=False,
        callback=given_url,
    ),
]
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The study.", show_default=False)]


SHOWN = 3  # candidates whose names a new study shows
WIDEST = 10_000  # columns of a terminal


def check_extra() -> None:
    """Refuse to go on without what studies in a database need.

    Raises:
        InvalidInput: it is absent; the pip command is named.
    """
    if importlib.util.find_spec("sqlalchemy") is None:
        raise InvalidInput('studies that last need sqlalchemy, which is absent: pip install "surepick[studies]".')


def command_line(command: str, url: str, *words: str) -> str:
    """A command to type next, quoted for a shell; a password in the address is not shown."""
    from surepick.studies.logs.sql.engine import shown  # noqa: PLC0415 (SQLAlchemy: heavy, and an extra)

    address = "-" if url == os.environ.get(VARIABLE) else shown(url)
    return shlex.join(["surepick", command, address, *words])


@reads_tables
def create(
    url: UrlArgument,
    name: NameArgument,
    arms: Annotated[
        str,
        typer.Option(
            "--arms", metavar="TABLE", help="The candidates, one row each: a CSV, Excel, Parquet, Arrow or JSON file."
        ),
    ],
    id_column: options.IdOption = None,
    features: options.FeaturesOption = None,
    epsilon: options.EpsilonOption = 0.1,
    delta: options.DeltaOption = 0.05,
    noise: options.NoiseOption = "",
    policy: options.PolicyOption = None,
    norm_bound: options.NormBoundOption = None,
    norm_estimate: options.NormEstimateOption = None,
    gamma: options.GammaOption = None,
    kernel: options.KernelOption = None,
    expansion: options.ExpansionOption = None,
    misspecification: options.MisspecificationOption = None,
    gap_bound: options.GapBoundOption = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option", metavar="NAME=VALUE", help="Any other option of the policy, e.g. largest_batch=200; repeatable."
        ),
    ] = None,
    minimize: Annotated[bool, typer.Option("--minimize", help="Small measurements are good.")] = False,
    standardize: options.StandardizeOption = False,
    intercept: options.InterceptOption = False,
    *,
    reading: ReadOptions,
    seed: Annotated[
        int | None, typer.Option("--seed", min=0, help="Of a policy that draws something (the neural ones).")
    ] = None,
    output: options.FormatOption = options.Format.text,
) -> None:
    """Start a study that lasts: candidates, what is known of a measurement, and what is to be promised.

    The database is made if it is absent. Afterwards: ask what to measure, tell what came, until it is done.
    """
    from surepick.cli.policy_options import chosen_policy, fitting_policy, norm_options  # noqa: PLC0415 (only here: ask and tell stay quick)
    from surepick.noise import parse_noise  # noqa: PLC0415
    from surepick.policies.base import spec_of  # noqa: PLC0415
    from surepick.policies.registry import policy_options  # noqa: PLC0415

    check_extra()
    from surepick.studies.database import create_study  # noqa: PLC0415
    from surepick.tables import read_arms  # noqa: PLC0415

    if not noise:
        raise InvalidInput(
            "say what is known of a single measurement with --noise: bernoulli, bounded:LOW:HIGH, or "
            "subgaussian:SIGMA. Every certificate rests on it."
        )
    candidates = read_arms(arms, id_column, features, standardize=standardize, intercept=intercept, **reading)
    given: dict[str, Any] = {
        **norm_options(norm_bound, norm_estimate),
        "misspecification": misspecification,
        "gap_bound": gap_bound,
        "gamma": gamma,
        "kernel": kernel,
        "expansion": expansion,
        **_more_options(option or []),
    }
    if seed is not None and "seed" in policy_options(policy or fitting_policy(given)):
        given["seed"] = seed
    chosen = chosen_policy(candidates, parse_noise(noise), policy, epsilon=epsilon, delta=delta, **given)
    note(*chosen.traits.caveats, *_unused(candidates, chosen))
    with noted():
        study = create_study(url, name, candidates, chosen, minimize=minimize)
    spec = spec_of(chosen) or {}
    if output is options.Format.json:
        plan = study.progress()
        answer = {"study": name, "candidates": candidates.num_arms, "policy": spec, "next": plan.asked}
        print_json({**answer, "registration": study.registration})
        return
    console = Console(highlight=False, soft_wrap=True)
    console.print(
        Text(
            f"Study {name!r}: {candidates.num_arms:,} candidates, policy {spec['name']}. Asked: one within {epsilon:g} "
            f"of the best, wrong with probability at most {delta:g}."
        )
    )
    names = ", ".join(candidates.ids[:SHOWN]) + (", ..." if candidates.num_arms > SHOWN else "")
    console.print(Text(f"Candidates: {names}"))
    console.print(Text(f"{name}: {study.progress()}"))
    console.print(
        Text(
            f"Registration code: {study.registration}. Keep it outside of the database, for instance in the protocol: "
            "surepick verify --registered CODE then refuses a certificate of any other promise."
        )
    )
    console.print(Text("This is the first round only; surepick forecast says what all may take."))
    console.print(Text(f"Next: {command_line('ask', url, name)}"))


def _unused(candidates: Arms, chosen: Policy[Any]) -> list[str]:
    """That the features are not used, if they are not."""
    columns = candidates.features.shape[1]
    from surepick.policies.base import spec_of  # noqa: PLC0415
    from surepick.studies.progress import times  # noqa: PLC0415

    spec = spec_of(chosen) or {}
    if columns == 0 or spec.get("name") != "certified-independent":
        return []
    return [
        f"{times(columns, 'feature column')} not used: nothing is assumed about features unless --norm-bound says how "
        "much they can matter."
    ]


def _more_options(pairs: list[str]) -> dict[str, Any]:
    """NAME=VALUE as options: the value is JSON, or else a text."""
    found = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name.strip():
            raise InvalidInput(f"--option {pair!r} is not understood; write NAME=VALUE, e.g. largest_batch=200.")
        try:
            found[name.strip()] = json.loads(text)
        except (ValueError, RecursionError):
            found[name.strip()] = text
    return found


def list_all(url: UrlArgument, output: options.FormatOption = options.Format.text) -> None:
    """The studies of a database."""
    check_extra()
    from surepick.studies.database import list_studies  # noqa: PLC0415

    with noted():
        studies = list_studies(url)
    if output is options.Format.json:
        print_json(
            {
                "studies": [
                    {
                        "name": one.name,
                        "candidates": one.candidates,
                        "policy": one.policy,
                        "epsilon": one.epsilon,
                        "delta": one.delta,
                        "created": format_utc(one.created_at),
                        "rounds": one.rounds,
                        "pulls": one.pulls,
                        "verdict": one.verdict,
                        "closed_early": one.ended,
                        "registration": one.registration,
                    }
                    for one in studies
                ]
            }
        )
        return
    if not studies:
        say("No studies yet; start one with surepick create.")
        return
    table = Table(box=box.SIMPLE_HEAD)
    for header in ("study", "policy", "verdict"):
        table.add_column(header, no_wrap=True)
    for header in ("candidates", "epsilon", "delta", "rounds", "measured"):
        table.add_column(header, justify="right", no_wrap=True)
    for one in studies:
        promise = (f"{one.candidates:,}", f"{one.epsilon:g}", f"{one.delta:g}")
        verdict = one.verdict + (", closed early" if one.ended else "")
        table.add_row(Text(one.name), one.policy, verdict, *promise, f"{one.rounds:,}", f"{one.pulls:,}")
    usual = Console(highlight=False)
    whole = usual.measure(table, options=usual.options.update_width(WIDEST)).maximum
    Console(highlight=False, width=max(usual.width, whole)).print(table)  # a name that is cut could not be typed


def migrate(url: UrlArgument, output: options.FormatOption = options.Format.text) -> None:
    """Bring the tables of a database to the schema of this version; copy the database before."""
    check_extra()
    from surepick.studies.database import migrate_studies  # noqa: PLC0415

    before, now = migrate_studies(url)
    if output is options.Format.json:
        print_json({"before": before, "now": now})
        return
    done = f"The schema is {now} already; nothing was changed." if before == now else f"Schema {before} is now {now}."
    Console(highlight=False, soft_wrap=True).print(Text(done))
