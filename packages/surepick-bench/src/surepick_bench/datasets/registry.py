"""Names of the environments: name + options + seed -> environment, so that an experiment is plain data."""

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from surepick.core.arms import Arms
from surepick.core.records import FloatArray, IntArray
from surepick.core.values import check_choice, whole_number
from surepick.environments import synthetic
from surepick.environments.environment import Environment
from surepick.environments.recorded import digits
from surepick.environments.rewards import RecordedRewards
from surepick.errors import InvalidInput
from surepick.noise import Bernoulli
from surepick.tables import Table, read_table
from surepick_bench.datasets import public
from surepick_bench.datasets.yahoo import yahoo_like, yahoo_r6a
from surepick_bench.simulators import production_line, simulated_production_line

# --- The Open Bandit Dataset: recorded clicks on fashion items, by item or by pair of user and item.

USER_FEATURES = tuple(f"user_feature_{number}" for number in range(4))
ITEM_NUMBER, *ITEM_CATEGORIES = (f"item_feature_{number}" for number in range(4))
RECIPE = (
    "The small sample is in the folder obd of https://github.com/st-tech/zr-obp (Apache-2.0), the whole at "
    "https://research.zozo.com/data.html; give the folder that holds random/ and bts/, its files plain or packed (.gz)."
)


def open_bandit(
    directory: str | Path,
    policy: Literal["random", "bts"] = "random",
    campaign: str = "men",
    *,
    arm: Literal["item", "pair"] = "item",
    min_records: int = 1,
) -> Environment:
    """Recorded clicks: which item, or which pair of user and item, is clicked most often?

    A pull draws one of the arm's recorded displays; its mean is its click rate in the file. A display is never an arm
    of its own: many have equal features, and were clicked once and not another time.

    Args:
        directory: holds POLICY/CAMPAIGN/CAMPAIGN.csv and item_context.csv, plain or packed (.gz).
        policy: which displays: "random" chose items uniformly, so that click rates can be compared; "bts" (Bernoulli
            Thompson sampling) chose them by context, so that they also tell to whom an item was shown.
        campaign: "men", "women" or "all", as far as the files are there.
        arm: "item": the features are the item's context, a number and its categories one-hot. "pair": an item and the
            users with equal features; the features are the products of the user's one-hot categories and the one-hot
            item.
        min_records: arms with fewer displays are left out. In the sample of 10,000 most pairs have one or two, and
            a pair clicked in its only display has the click rate 1.

    Returns:
        Arms with the item's id, or "USER/ITEM" with users numbered in the order of their appearance. Items may share
        their context (two of the 34 men's items do): no function of it tells them apart.

    Raises:
        DatasetMissing: a file is absent; the message holds the recipe.
        InvalidInput: an unknown policy or kind of arm, a file without the columns, a click that is neither 0 nor 1,
            an item without context, or no arm with enough displays.

    Source: Saito et al., Open Bandit Dataset and Pipeline (2020), arXiv 2008.07146.
    """
    check_choice("policy", policy, ("random", "bts"))
    check_choice("arm", arm, ("item", "pair"))
    whole_number("min_records", min_records, least=1, meaning="an arm without a display has no click rate.")
    folder = Path(directory) / policy / campaign
    displays = read_table(public.data_file(folder, f"{campaign}.csv", RECIPE))
    clicks = _clicks(displays)
    items, item_of_row = public.numbered(displays.text("item_id"))
    if arm == "item":
        context = read_table(public.data_file(folder, "item_context.csv", RECIPE))
        return _environment(items, _contexts(context, items), item_of_row, clicks, min_records)
    users, user_of_row = public.numbered(list(zip(*(displays.text(name) for name in USER_FEATURES), strict=True)))
    pairs, pair_of_row = public.numbered(list(zip(user_of_row.tolist(), item_of_row.tolist(), strict=True)))
    ids = [f"{user}/{items[item]}" for user, item in pairs]
    categories = np.column_stack([public.one_hot(column) for column in zip(*users, strict=True)])
    user_of_pair, item_of_pair = np.array(pairs).T
    shown = np.eye(len(items))[item_of_pair]
    features = np.einsum("ki,kj->kij", categories[user_of_pair], shown).reshape(len(pairs), -1)
    return _environment(ids, features, pair_of_row, clicks, min_records)


def _clicks(displays: Table) -> FloatArray:
    clicks = displays.numbers("click")
    bad = (clicks != 0.0) & (clicks != 1.0)
    rest = f"as in {bad.sum()} of {len(clicks)} rows neither 0 nor 1. Obtain the file again."
    public.refuse_rows(displays, bad, lambda row: f"the click is {clicks[row]:g}, {rest}", RECIPE)
    return clicks


def _contexts(context: Table, items: list[str]) -> FloatArray:
    """The context of each item, in the order of the items."""
    row_of = {item: row for row, item in enumerate(context.text("item_id"))}
    lacking = [item for item in items if item not in row_of]
    if lacking:
        raise InvalidInput(
            f"{context.source} has no row for {len(lacking)} of {len(items)} displayed items (the first is "
            f"{lacking[0]!r}); they would have no features. Give the two files of one campaign. {RECIPE}"
        )
    columns = [context.numbers(ITEM_NUMBER)[:, None], *(public.one_hot(context.text(name)) for name in ITEM_CATEGORIES)]
    return np.column_stack(columns)[[row_of[item] for item in items]]


def _environment(
    ids: list[str], features: FloatArray, arm_of_row: IntArray, clicks: FloatArray, min_records: int
) -> Environment:
    """Arms with at least `min_records` rows, each with its recorded clicks."""
    kept = np.bincount(arm_of_row) >= min_records
    if not kept.any():
        raise InvalidInput(
            f"no arm has {min_records} recorded displays; the most is {int(np.bincount(arm_of_row).max())} "
            f"(of {len(ids)} arms). Lower min_records."
        )
    rows = kept[arm_of_row]
    law = RecordedRewards(clicks[rows], (np.cumsum(kept) - 1)[arm_of_row[rows]])
    arms = Arms(features[kept], [name for name, keep in zip(ids, kept, strict=True) if keep])
    return Environment(arms=arms, means=law.means, noise=Bernoulli(), law=law)


NO_DEFAULT = inspect.Parameter.empty
ENVIRONMENTS: Mapping[str, Callable[..., Environment]] = MappingProxyType(
    {
        "crossed-barrel": public.crossed_barrel,
        "digits": digits,
        "falling-means": synthetic.falling_means,
        "given-means": synthetic.given_means,
        "high-dimensional": synthetic.high_dimensional,
        "livecodebench": public.livecodebench,
        "mnist": public.mnist,
        "nasbench-macro": public.nasbench_macro,
        "one-better": synthetic.one_better,
        "open-bandit": open_bandit,
        "production-line": production_line,
        "random-network": public.random_network,
        "simulated-production-line": simulated_production_line,
        "soare": synthetic.soare,
        "some-better": synthetic.some_better,
        "sphere": synthetic.sphere,
        "two-clusters": synthetic.two_clusters,
        "yahoo-like": yahoo_like,
        "yahoo-r6a": yahoo_r6a,
    }
)
FOLDERS: Mapping[str, str] = MappingProxyType(  # under the folder of data sets, of those that are read from files
    {
        "crossed-barrel": "pvlab",
        "livecodebench": "livecodebench",
        "mnist": "mnist",
        "nasbench-macro": "nasbench_macro",
        "open-bandit": "obd",
        "yahoo-r6a": "yahoo_r6a",
    }
)


def _parameters(name: str) -> dict[str, Any]:
    """What an environment takes beside its folder, which comes first: name -> default, which may be `NO_DEFAULT`."""
    taken = list(inspect.signature(ENVIRONMENTS[name]).parameters.values())
    return {each.name: each.default for each in (taken[1:] if name in FOLDERS else taken)}


def environment_names() -> tuple[str, ...]:
    """The names that `make_environment` knows, sorted."""
    return tuple(sorted(ENVIRONMENTS))


def make_environment(name: str, *, seed: int, data: str | Path = ".", **options: Any) -> Environment:
    """The environment of that name.

    Args:
        name: one of `environment_names()`.
        seed: decides everything that is random about it; if nothing is, every seed gives the same environment.
        data: the folder of data sets, for environments that are read from files.
        options: settings of the environment.

    Raises:
        InvalidInput: unknown name or option, an option without default that is missing, or one out of range.
        DatasetMissing: its files are not there; the message holds the recipe.
    """
    if name not in ENVIRONMENTS:
        raise InvalidInput(f"there is no environment {name!r}; choose one of {', '.join(environment_names())}.")
    parameters = _parameters(name)
    known = sorted(set(parameters) - {"seed"})
    if unknown := sorted(set(options) - set(known)):
        names = ", ".join(known) or "none"
        raise InvalidInput(f"environment {name} has no option {', '.join(map(repr, unknown))}; it knows {names}.")
    given = {**options, "seed": seed} if "seed" in parameters else options
    if missing := [each for each, usual in parameters.items() if usual is NO_DEFAULT and each not in given]:
        are, which = ("has", "it") if len(missing) == 1 else ("have", "them")
        raise InvalidInput(f"{name} needs {' and '.join(missing)}, which {are} no default; add {which} to the options.")
    return ENVIRONMENTS[name](*([Path(data) / FOLDERS[name]] if name in FOLDERS else []), **given)
