"""The figures of an experiment: what is drawn is what is in the table, and what is not drawn is said."""

import sys

import numpy as np
import pytest
from scipy.stats import binom
from together import of_each

from surepick.errors import InvalidInput
from surepick.reports.figure_page import short_number
from surepick.tables import Table, read_table, write_table
from surepick_bench.experiments import experiment_names
from surepick_bench.figures.figures import (
    LAYOUTS,
    error_figure,
    experiment_figures,
    median_curve,
    pulls_figure,
    read_rounds,
)
from surepick_bench.figures.panels import ORACLE, OWN_STOP, looks, read_replicates, true_answers
from surepick_bench.summary import share

pytest.importorskip("matplotlib")

GOOD = {"best_eliminated": False, "stops": "own", "eliminates": True, "success": True, "failure": ""}
NOTHING = dict.fromkeys(("num_arms", "dim", "pulls", "success", "verdict", "oracle_pulls", "stops", "eliminates"))


def replicate(policy="rage", seed=0, *, place="K=10, D=2", experiment="paper-linear", delta=0.05, **values):
    key = f"{experiment}/{place}/{policy}/{delta}/{seed}"
    sizes = {"num_arms": 10, "dim": 2, "epsilon": 0.1}
    spent = {"pulls": 3000 + seed, "oracle_pulls": 200 + seed**2, "verdict": "heuristic"}
    named = {"key": key, "experiment": experiment, "environment": place, "policy": policy, "seed": seed, "delta": delta}
    return {**named, **sizes, **spent, **GOOD, **values}


def failed(*arguments, **values):
    return replicate(*arguments, **{**values, **NOTHING, "failure": "NotConverged: no design"})


@pytest.fixture(params=["parquet", "csv"])
def as_read(request, tmp_path):
    """The table as it comes back from a file: with numbers in Parquet, with text only in CSV."""

    def as_read(rows) -> Table:
        if request.param == "parquet":
            pytest.importorskip("pyarrow")
        path = tmp_path / f"results.{request.param}"
        write_table(path, {name: [row[name] for row in rows] for name in rows[0]})
        return read_table(path)

    return as_read


def in_memory(rows) -> Table:
    columns = {name: tuple("" if row[name] is None else str(row[name]) for row in rows) for name in rows[0]}
    return Table("results.parquet", columns)


def pulls_of(rows, measure, *, layout="paper-linear", published=None):
    found = read_replicates(in_memory(rows))
    return pulls_figure(found, measure, LAYOUTS[layout], looks(found.policies), title="a title", published=published)


def errors_of(rows):
    found = read_replicates(in_memory(rows))
    return error_figure(found, looks(found.policies), title="a title")


def lines(axes) -> dict[str, object]:
    return {container.get_label(): container.lines[0] for container in axes.containers}


def marks(axes, marker) -> list[tuple[float, float]]:
    points = [line for line in axes.lines if line.get_marker() == marker]
    return [(float(x), float(y)) for line in points for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)]


def interval(wrong, runs) -> tuple[float, float]:
    found = share(wrong, runs)
    return found.low, found.high


def notes(figure) -> str:
    return figure.get_supxlabel().replace("\n", " ")


# reading


def test_truth_in_all_the_forms_in_which_it_comes_back():
    assert true_answers(("True", "false", "1", "0.0"))[:4].tolist() == [1, 0, 1, 0]
    assert np.isnan(true_answers(("", "None", "perhaps"))).all()
    np.testing.assert_array_equal(true_answers(np.array([1.0, 0.0, np.nan])), [1.0, 0.0, np.nan])


def test_an_own_stop_is_no_failure_no_budget_and_no_policy_without_one(as_read):
    rows = read_replicates(
        as_read(
            [
                replicate(),
                replicate(verdict="budget-exhausted", success=False),
                replicate("endless", stops="never"),
                replicate("halving", stops="budget"),
                failed(),
                replicate(success=False),
            ]
        )
    )
    assert rows.own_stop.tolist() == [True, False, False, True, False, True], "a fixed budget is an own stop"
    assert rows.num_arms.tolist() == [10] * 6, "a failed run stands in its environment"
    np.testing.assert_array_equal(rows.success, [1, 0, 1, 1, np.nan, 0])


@of_each(("wrong", "runs"), [(0, 1), (1, 1), (0, 50), (3, 50), (17, 40), (50, 50)])
def test_the_interval_is_where_both_tails_have_their_share(wrong, runs):
    low, high = interval(wrong, runs)
    assert low == 0.0 if wrong == 0 else binom.sf(wrong - 1, runs, low) == pytest.approx(0.025)
    assert high == 1.0 if wrong == runs else binom.cdf(wrong, runs, high) == pytest.approx(0.025)


def test_policies_are_told_apart():
    styles = looks([f"policy {number}" for number in range(26)])
    assert len({(look.colour, look.marker) for look in styles.values()}) == 26
    thirteen = list(styles.values())[:13]
    assert len({look.marker for look in thirteen}) == len({(look.colour, look.line) for look in thirteen}) == 13


def test_ticks_are_short():
    assert [short_number(value) for value in (1, 200, 5e3, 2e7)] == ["1", "200", "5k", "20M"]


# pulls


def on_a_grid(**values):
    return [
        replicate(
            policy, seed, place=f"K={num_arms}, D={dim}", num_arms=num_arms, dim=dim, oracle_pulls=oracle, **values
        )
        for policy, factor in (("rage", 7), ("linear-embedding", 1))
        for num_arms in (250, 500)
        for dim in (20, 25)
        for seed, oracle in enumerate(factor * num_arms * dim * np.array([1, 2, 3, 4, 90]))
    ]


def test_lines_go_through_the_medians_with_a_panel_for_each_dimension():
    figure = pulls_of(on_a_grid(), ORACLE)
    assert [axes.get_title() for axes in figure.axes] == ["dimension D = 20", "dimension D = 25"]
    for axes, dim in zip(figure.axes, (20, 25), strict=True):
        assert axes.get_yscale() == "log"
        assert "needs the truth: oracle" in axes.get_ylabel()
        assert axes.get_xlabel() == "number of arms K"
        assert [label.get_text() for label in axes.get_xticklabels()] == ["250", "500"]
        drawn = lines(axes)
        assert set(drawn) == {"rage", "linear-embedding"}
        for policy, factor in (("rage", 7), ("linear-embedding", 1)):
            np.testing.assert_allclose(drawn[policy].get_ydata(), [factor * 250 * dim * 3, factor * 500 * dim * 3])
            np.testing.assert_allclose(drawn[policy].get_xdata(), [250, 500], atol=0.15 * 250)
        means = [20 * factor * num_arms * dim for factor in (1, 7) for num_arms in (250, 500)]
        np.testing.assert_allclose(sorted(y for _, y in marks(axes, "*")), sorted(means))
        low, high = axes.get_ylim()
        assert low < 2 * 250 * dim
        assert high > max(means)


def test_the_two_numbers_never_share_an_axis():
    rows = [replicate(policy, seed) for policy in ("rage", "lucb") for seed in range(5)]
    for measure, largest, smallest in ((ORACLE, 216, 200), (OWN_STOP, 3004, 3000)):
        (axes,) = pulls_of(rows, measure).axes
        values = np.concatenate([line.get_ydata() for line in lines(axes).values()])
        assert smallest <= values.min() <= values.max() <= largest
        assert ("oracle" in axes.get_ylabel(), "own stop" in axes.get_ylabel()) == (
            measure is ORACLE,
            measure is OWN_STOP,
        )


def test_settings_that_would_mix_environments_become_boxes():
    rows = [replicate(place=place) for place in ("wide", "narrow")]
    assert [axes.get_title() for axes in pulls_of(rows, ORACLE).axes] == ["narrow", "wide"]


def test_boxes_have_a_star_at_the_mean_and_say_how_many_runs_they_hold():
    rows = [replicate("rage", seed, experiment="mnist", oracle_pulls=10**seed) for seed in range(6)]
    rows += [replicate("rage", 6, experiment="mnist", oracle_pulls=None, best_eliminated=True), failed(seed=7)]
    rows[-1].update(experiment="mnist")
    figure = pulls_of(rows, ORACLE, layout="mnist")
    (axes,) = figure.axes
    assert axes.get_xscale() == "log"
    assert "needs the truth: oracle" in axes.get_xlabel()
    assert marks(axes, "*") == [(pytest.approx(111_111 / 6), 0.0)]
    assert [line.get_color() for line in axes.lines if line.get_marker() == "*"] == ["black"]
    assert [text.get_text() for text in axes.texts] == ["6/8"]
    assert "never down to epsilon-best arms, left out: rage 1 of 8" in notes(figure)
    assert "failed, left out: rage 1 of 8" in notes(figure)


def test_policies_that_do_not_eliminate_are_named_and_left_out_of_oracle_pulls():
    rows = [replicate("lucb", eliminates=False, oracle_pulls=None, best_eliminated=None), replicate("rage")]
    for told in (rows, [{name: value for name, value in row.items() if name != "eliminates"} for row in rows]):
        figure = pulls_of(told, ORACLE)
        assert set(lines(figure.axes[0])) == {"rage"}
        assert "Left out (do not eliminate arms, so have no oracle number): lucb." in notes(figure)
        assert set(lines(pulls_of(told, OWN_STOP).axes[0])) == {"lucb", "rage"}


def test_what_a_user_pays_shows_who_is_certified_and_leaves_budgets_out():
    rows = [replicate("certified-linear", seed, verdict="certified") for seed in range(4)]
    rows += [replicate("sometimes", seed, verdict="certified" if seed else "heuristic") for seed in range(4)]
    rows += [replicate("rage", seed, pulls=50, verdict="budget-exhausted", success=False) for seed in range(3)]
    rows += [replicate("rage", 3, pulls=7_000), replicate("halving", stops="budget"), replicate("idle", stops="never")]
    figure = pulls_of(rows, OWN_STOP)
    drawn = lines(figure.axes[0])
    assert drawn["certified-linear"].get_markerfacecolor() == drawn["certified-linear"].get_color()
    assert drawn["sometimes"].get_markerfacecolor() == drawn["rage"].get_markerfacecolor() == "white"
    assert drawn["rage"].get_ydata().tolist() == [7_000]
    assert [text.get_text() for text in figure.legends[0].get_texts()][:4] == [
        "certified-linear (certified)",
        "halving",
        "rage",
        "sometimes (certified in 3 of 4)",
    ]
    assert "Runs ended by a budget, left out: rage 3 of 4." in notes(figure)
    assert "Left out (do not stop by themselves): idle." in notes(figure)


def test_many_wrong_answers_are_named_beside_few_pulls():
    rows = [replicate("hasty", seed, success=False, verdict="heuristic") for seed in range(20)]
    rows += [replicate("unlucky", seed, success=seed > 0, verdict="certified") for seed in range(20)]
    figure = pulls_of(rows, OWN_STOP, layout="mnist")
    labels = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert labels == ["hasty\nwrong in 20 of 20", "unlucky\ncertified"]


@pytest.mark.parametrize("layout", ["paper-linear", "mnist"])
def test_published_numbers_are_diamonds_beside_oracle_pulls_only(layout):
    rows = [replicate(experiment=layout, seed=seed) for seed in range(3)]
    published = {(layout, "K=10, D=2", "rage"): 11_000.0, (layout, "K=10, D=2", "absent"): 5.0, ("x", "y", "z"): 1.0}
    figure = pulls_of(rows, ORACLE, layout=layout, published=published)
    ((x, y),) = marks(figure.axes[0], "D")
    assert (x if layout == "mnist" else y) == 11_000.0
    assert "published" in [text.get_text() for text in figure.legends[0].get_texts()]
    own = pulls_of(rows, OWN_STOP, layout=layout, published=published)
    assert marks(own.axes[0], "D") == []
    assert "published" not in [text.get_text() for text in own.legends[0].get_texts()]


# errors


def test_policies_that_err_more_often_than_they_say_stand_out():
    rows = [
        replicate(policy, seed, delta=delta, success=bool(seed >= wrong))
        for delta in (0.05, 0.2)
        for policy, wrong in (("honest", 4), ("reckless", 18))
        for seed in range(40)
    ]
    rows += [replicate("honest", 40 + seed, success=False, verdict="budget-exhausted") for seed in range(30)]
    figure = errors_of(rows)
    (axes,) = figure.axes
    heights = sorted(float(container.lines[0].get_ydata()[0]) for container in axes.containers)
    np.testing.assert_allclose(heights, [0.1, 0.1, 0.45, 0.45])  # exhausted budgets are no wrong answers
    tops = [container.lines[2][0].get_segments()[0][:, 1] for container in axes.containers]
    assert any(np.allclose(top, interval(4, 40)) for top in tops)
    reference = [line.get_ydata() for line in axes.lines if line.get_linestyle() == "--"]
    assert [set(np.asarray(line).tolist()) for line in reference] == [{0.05}, {0.2}]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0.05", "0.2"]
    assert [text.get_text().strip() for text in axes.texts] == ["45%", "45%"]
    assert "Wholly above delta (ringed): reckless (K=10, D=2)." in notes(figure)
    assert "rage" not in notes(figure)


def test_a_policy_within_its_error_rate_does_not_stand_out():
    figure = errors_of([replicate("honest", seed, success=bool(seed >= 2)) for seed in range(40)])
    assert len(figure.axes[0].texts) == 0
    assert "Wholly above" not in notes(figure)


# arms left


def test_the_median_of_the_arms_that_are_left():
    rng = np.random.default_rng(3)
    rows = [replicate(seed=seed) for seed in range(5)]
    steps = [
        {"key": row["key"], "total_pulls": int(pulls), "active": int(active)}
        for row in rows
        for pulls, active in zip(np.cumsum(rng.integers(1, 50, 6)), -np.sort(-rng.integers(1, 10, 6)), strict=True)
    ]
    found = read_rounds(in_memory([steps[place] for place in rng.permutation(len(steps))]))
    grid, median = median_curve(read_replicates(in_memory(rows)), found)
    for pulls, value in zip(grid, median, strict=True):
        left = [
            [10, *(s["active"] for s in steps if s["key"] == row["key"] and s["total_pulls"] <= pulls)][-1]
            for row in rows
        ]
        assert value == np.median(left)
    assert grid[-1] == max(step["total_pulls"] for step in steps)


# files


@pytest.fixture
def undrawn(monkeypatch):
    """Figures are composed, and not drawn."""
    saving = "surepick_bench.figures.panels.save"
    monkeypatch.setattr(saving, lambda figure, directory, name: [directory / name])


@pytest.mark.usefixtures("undrawn")
def test_every_experiment_has_its_figures(tmp_path):
    ours = {"peers", "questions", "small-epsilon", "slippage", "ranking-and-selection", "error-rate"}
    every = ours | {"mnist", "yahoo-like", "high-dimensional", "paper-linear", "paper-nonlinear"}
    assert every == set(experiment_names())
    rows = [replicate(policy, experiment=name) for name in every for policy in ("a", "b")]
    rounds = in_memory([{"key": row["key"], "total_pulls": 10, "active": 3} for row in rows])
    names = [path.name for path in experiment_figures(in_memory(rows), rounds, tmp_path)]
    assert sorted(names) == sorted(
        [f"{kind}-{name}" for kind in ("own-stop", "errors", "arms-left") for name in every]
        + [f"oracle-{name}" for name in every - ours]
    )


def test_two_runs_write_equal_files(tmp_path):
    rows = [replicate(policy, seed, experiment="mnist") for policy in ("a", "b") for seed in range(3)]
    rounds = in_memory([{"key": row["key"], "total_pulls": 10 + row["seed"], "active": 3} for row in rows])
    table = in_memory(rows)
    first = experiment_figures(table, rounds, tmp_path / "new" / "first")
    assert [path.name for path in first] == [
        f"{kind}-mnist.{ending}" for kind in ("oracle", "own-stop", "arms-left", "errors") for ending in ("png", "svg")
    ]
    second = experiment_figures(table, rounds, tmp_path / "second")
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes().startswith(b"\x89PNG" if one.suffix == ".png" else b"<?xml")
        assert one.read_bytes() == other.read_bytes()


def test_generated_data_are_called_so():
    assert "generated data" in LAYOUTS["yahoo-like"].title


def test_values_of_delta_are_never_pooled(tmp_path):
    rows = [replicate(experiment="some/thing", delta=delta) for delta in (0.01, 0.1)]
    names = [path.name for path in experiment_figures(in_memory(rows), None, tmp_path) if path.suffix == ".png"]
    assert names == [
        "own-stop-some-thing-epsilon-0.1-delta-0.01.png",
        "own-stop-some-thing-epsilon-0.1-delta-0.1.png",
        "errors-some-thing.png",
    ]


@pytest.mark.usefixtures("undrawn")
def test_an_epsilon_of_each_environment_is_pooled_where_the_experiment_says_so(tmp_path):
    rows = [replicate(experiment="small-epsilon", place=f"{epsilon:g}", epsilon=epsilon) for epsilon in (0.1, 0.2)]
    names = [path.name for path in experiment_figures(in_memory(rows), None, tmp_path)]
    assert names == ["own-stop-small-epsilon", "errors-small-epsilon"]


@pytest.mark.parametrize(
    ("as_read", "experiment"),
    [
        ("csv", "paper-linear"),
        ("parquet", "mnist"),
        pytest.param("parquet", "paper-linear", marks=pytest.mark.slow),
        pytest.param("csv", "mnist", marks=pytest.mark.slow),
    ],
    indirect=["as_read"],
)
def test_an_experiment_without_a_single_result_is_drawn_and_says_so(as_read, tmp_path, experiment):
    rows = [failed(policy, seed, experiment=experiment) for policy in ("a", "b") for seed in range(2)]
    assert len(experiment_figures(as_read(rows), None, tmp_path / "figures")) == 6
    for measure in (ORACLE, OWN_STOP):
        figure = pulls_of(rows, measure, layout=experiment)
        assert "no run gave a number" in [text.get_text() for text in figure.axes[0].texts]
        assert "Runs that failed, left out: a 2 of 2, b 2 of 2." in notes(figure)
    assert "no run ended at its own stop" in [text.get_text() for text in errors_of(rows).axes[0].texts]


@pytest.mark.parametrize("experiment", [pytest.param("paper-linear", marks=pytest.mark.slow), "mnist"])
def test_one_policy_one_seed_and_columns_that_are_not_there(tmp_path, experiment):
    row = replicate(experiment=experiment)
    assert len(experiment_figures(in_memory([row]), None, tmp_path)) == 6
    bare = {name: row[name] for name in ("experiment", "environment", "policy", "pulls")}
    assert len(experiment_figures(in_memory([bare, bare]), None, tmp_path)) == 4  # no delta: no errors against it
    with pytest.raises(InvalidInput, match="no column 'policy'"):
        experiment_figures(in_memory([{"experiment": "mnist", "environment": "x"}]), None, tmp_path)


def test_no_pull_at_all_has_a_place_on_the_axis():
    figure = pulls_of([replicate(oracle_pulls=0)], ORACLE)
    assert lines(figure.axes[0])["rage"].get_ydata().tolist() == [1.0]
    assert "no pull at all are drawn at 1" in notes(figure)


def test_a_figure_needs_its_extra_and_a_place(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput, match="cannot be written"):
        experiment_figures(in_memory([replicate()]), None, tmp_path / "file")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InvalidInput, match=r"pip install \"surepick\[reports\]\""):
        experiment_figures(in_memory([replicate()]), None, tmp_path)
