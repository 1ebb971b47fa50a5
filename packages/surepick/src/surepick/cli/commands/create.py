"""`surepick create` and `shortlist`: a new study in a database, and that of a short list."""

from typing import Annotated, Any, Literal

from typer import Argument

from surepick.chunks.sources import RowBlocks
from surepick.cli import options
from surepick.cli.answers import advice_for, print_saving
from surepick.cli.open_study import DatabaseArgument, NameArgument, UrlArgument, command_line
from surepick.cli.options import REQUIRED, opt
from surepick.cli.output import note, print_json, say
from surepick.cli.policy_options import PolicyOptions, declared_noise
from surepick.cli.tables import TableOptions
from surepick.core.descriptions import Scale
from surepick.errors import InvalidInput
from surepick.policies.base import caveats_of, spec_of
from surepick.studies.logs.base import AS_THEY_COME, CLOSED_ROUNDS
from surepick.studies.opening import create_study, is_http, open_study
from surepick.studies.registration import subject_of

SHOWN = 3  # candidates whose names a new study shows


def create(
    url: UrlArgument,
    name: NameArgument,
    *,
    arms: str = opt(
        "The candidates, one row each; of a folder of files, too many for memory.", "TABLE", default=REQUIRED
    ),
    in_blocks: bool = opt("Read --arms in blocks, as of a folder; a short list is looked for first.", default=False),
    table: TableOptions,
    describe: str | None = opt(
        "The columns that whoever measures sees beside a candidate; none: no column. Else: all but its id, at most 20.",
        show_default=False,
    ),
    reward: str | None = opt("What tables of results call the column of the measurements; none: reward."),
    unit: str = opt("The unit of a measurement, for people.", default=""),
    limits: str | None = opt("LOW:HIGH: a measurement outside is asked about before it is stored: a typing error?"),
    minimize: bool = options.MINIMIZE,
    asked: options.AskedGoal,
    noise: options.NoiseOption = "",
    policy: PolicyOptions,
    seed: int | None = opt("For policies that draw at random.", min=0),
    judge: Literal["closed-rounds", "as-they-come"] = opt(
        "When results are judged: a round when it is complete, or what is in, by `surepick interim`.",
        default="closed-rounds",
    ),
    surplus: Literal["count", "refuse"] | None = opt(
        "Results beyond what a round asks: they count, or are refused. Else: counted in a database, refused by a "
        "server.",
        show_default=False,
    ),
    output: options.FormatOption = options.Format.text,
) -> None:
    """Start a study in a database: candidates, noise, and the goal.

    The database is made if it is absent. Then repeat until it is done: ask what to measure, tell the results.
    """
    assumed = declared_noise(noise)
    when = AS_THEY_COME if judge == "as-they-come" else CLOSED_ROUNDS
    reader = table.of([policy.single()[0]])
    low, high = (None, None) if limits is None else Scale.of(limits)
    found = reader.candidates(arms, in_blocks=in_blocks, reward=reward, describe=describe)
    if isinstance(found, RowBlocks):
        _check_list(url, when)
    number = found.num_rows if isinstance(found, RowBlocks) else found.num_arms
    goal = asked.settled(advice_for(number, assumed), budget=policy.budget)
    chosen = policy.chosen(found, assumed, goal, seed=seed, more=reader.preference(arms, found))
    candidates, _ = subject_of(chosen)
    spec = spec_of(chosen) or {}
    note(*reader.not_used, *caveats_of(chosen))
    named: dict[str, Any] = {"id_column": table.id, "reward_column": reward, "surplus": surplus}
    named["scale"] = Scale(unit, low, high)
    study = create_study(url, name, candidates, chosen, minimize=minimize, judge=when, **named)
    if output is options.Format.json:
        answer = {"study": name, "candidates": candidates.num_arms, "policy": spec, "next": study.progress().asked}
        print_json({**answer, "registration": study.registration})
        return
    names = ", ".join(candidates.ids[:SHOWN]) + (", ..." if candidates.num_arms > SHOWN else "")
    words = policy.asked(goal, by_segment=candidates.segments is not None)
    say(f"Study {name!r}: {number:,} candidates, policy {spec['name']}. Asked: {words}")
    if isinstance(found, RowBlocks):
        say("It looks for a short list first; surepick shortlist then makes the study of that list.")
    say(f"Candidates: {names}")
    if candidates.features_said:
        say(f"{candidates.features_said}")
    if not noise:
        say("Noise: normal, and repeats show how much measurements vary; for results of 0 and 1 say --noise bernoulli.")
    say(f"{name}: {study.progress()}")
    later = ": surepick verify --registered CODE then refuses a certificate of any other promise."
    if isinstance(found, RowBlocks):
        later = ". It stands for the whole question; the study of the short list has one of its own."
    say(
        f"Registration code: {study.registration}. Keep it outside of the database, for instance in the protocol{later}"
    )
    if candidates is found:
        say("This is the first round only; surepick forecast says how many measurements all rounds may take.")
        if policy.names_nothing:
            print_saving(lambda: table.with_features.arms(arms, reward=reward), number, assumed, goal)
    say(f"Next: {command_line('ask', url, name)}")


def _check_list(url: str, judge: str) -> None:
    """Refuse what a study of a list in files cannot do, before the files are gone through."""
    if is_http(url):
        raise InvalidInput("a server does not see the files of a long list: make the study on the database itself.")
    if judge == AS_THEY_COME:
        raise InvalidInput("a list is shortened after whole rounds: leave out --judge as-they-come.")


# --- `surepick shortlist`: from a long list that is short now to the study of the short one.


def shortlist(
    url: DatabaseArgument,
    name: NameArgument,
    new: Annotated[str, Argument(metavar="NEW", help="The name of the study to make.", show_default=False)],
    output: options.FormatOption = options.Format.text,
) -> None:
    """Start the study of a short list, once the study of a long list in files has found it.

    It goes through the files once. What the new study certifies holds for the long list.
    """
    from surepick.find_best import short_list_policy  # noqa: PLC0415 (numpy: `--help` needs none)

    long_list = open_study(url, name)
    policy = short_list_policy(long_list)
    study = create_study(url, new, policy, minimize=long_list.minimize)
    total = long_list.progress().shortens
    if output is options.Format.json:
        found = {"study": new, "candidates": len(study.ids), "long_list": total, "policy": spec_of(policy)}
        print_json({**found, "next": study.progress().asked, "registration": study.registration})
        return
    say(f"Study {new!r}: the {len(study.ids):,} candidates on the short list of {total:,}.")
    say(f"{new}: {study.progress()}")
    say(f"Registration code: {study.registration}.")
    say(f"Next: {command_line('ask', url, new)}")
