"""The benchmarks at tiny sizes: what stands beside ours is what it says, and a line that misses says so."""

from __future__ import annotations

import contextlib
import importlib.util
import math
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import surepick as sp
from surepick.designs import design_value, solve_design
from surepick.policies.registry import needs_torch

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def loaded(name):
    """A benchmark as a module, which nothing else can import."""
    spec = importlib.util.spec_from_file_location(f"benchmark_{name}", BENCHMARKS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, str(BENCHMARKS))  # as for a script
    spec.loader.exec_module(module)
    sys.path.remove(str(BENCHMARKS))
    return module


@pytest.fixture(scope="module")
def design():
    yield loaded("design_solver")
    del sys.modules["benchmark_design_solver"]


@pytest.fixture(scope="module")
def policies():
    yield loaded("policies")
    del sys.modules["benchmark_policies"]


@pytest.fixture(scope="module")
def end_to_end():
    yield loaded("end_to_end")
    del sys.modules["benchmark_end_to_end"]


# --- design_solver.py


def test_frank_wolfe_takes_the_same_steps_whichever_way_it_finds_the_farthest_pair(design):
    features = design.gaussian(40, 4)
    explicit = design.frank_wolfe(features)
    products = design.frank_wolfe(features, search=design.all_products)
    extrapolated = design.frank_wolfe_extrapolated(features, steps_timed=2)
    assert explicit.stopped
    assert explicit.steps == products.steps == extrapolated.steps > 100
    np.testing.assert_allclose(products.weights, explicit.weights, atol=1e-12)
    assert design_value(features, explicit.weights) > solve_design(features, tolerance=1e-3).value


def test_frank_wolfe_says_when_its_own_rule_did_not_end_it(design):
    ended = design.frank_wolfe(design.gaussian(20, 3), max_steps=5)
    assert (ended.stopped, ended.steps) == (False, 5)


def test_the_steps_of_frank_wolfe_follow_from_the_weights_that_it_ends_with(design):
    """Of the order of 200 sqrt((1 + q)/q), as the benchmark explains the number that it extrapolates."""
    for shape in ((60, 5), (100, 10)):
        ended = design.frank_wolfe(design.gaussian(*shape), search=design.all_products)
        squares = float(np.sum(ended.weights**2))
        assert 0.7 < ended.steps / (200.0 * math.sqrt((1.0 + squares) / squares)) < 1.3


def test_clarabel_finds_the_optimum_that_our_bounds_bracket(design):
    pytest.importorskip("cvxpy")
    features = design.gaussian(15, 3)
    value, seconds = design.clarabel(features)
    ours = solve_design(features, tolerance=1e-4)
    assert ours.lower_bound * (1.0 - 1e-5) <= value <= ours.value * (1.0 + 1e-5)
    assert seconds > 0.0


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("beside", "easy", "impossible"),
    [("Frank-Wolfe", 1e-9, 1e9), ("extrapolated", 1e-9, 1e9), ("passes", 1e9, 1e-9), ("limit", 1e3, 1e-9)],
)
def test_a_line_of_the_table_holds_or_misses(design, beside, easy, impossible):
    case = design.Case("Gaussian", design.gaussian, 30, 3, beside, easy, long=True)
    lines = list(design.table_lines(case, quick=False))
    assert len(lines) == len(case.tolerances)
    assert all(line.startswith("Gaussian 30 x 3") and line.endswith("holds") for line in lines)
    misses = design.table_lines(replace(case, asked=impossible), quick=False)
    assert all(line.endswith("misses") for line in misses)
    assert all(line.endswith("left out") for line in design.table_lines(case, quick=True))


def test_a_gap_that_is_not_certified_misses_whatever_the_speed(design):
    case = design.Case("Gaussian", design.gaussian, 30, 3, "limit", 1e3)
    ours = design.Ours(seconds=0.001, gap=0.2, lower=1.0, support=3)
    assert design.judged(case, ours, design.Beside("limit", 1e3), certified=False).endswith("misses")


def test_the_instances_are_those_that_they_are_called(design):
    assert np.allclose(np.linalg.norm(design.sphere(50, 6), axis=1), 1.0)
    assert np.linalg.matrix_rank(design.digits(1797, 64)) == 61
    near = design.clusters(40, 5)
    assert np.ptp(near[::2], axis=0).max() < 1e-3 < np.abs(near[0] - near[1]).max()
    labels = [(case.label, case.beside) for case in design.CASES]
    assert len(set(labels)) == len(labels)


def test_growth_is_the_slope_on_logarithmic_scales(design):
    sizes = [10.0, 100.0, 1000.0]
    assert design.slope(sizes, [3.0 * size**1.5 for size in sizes]) == pytest.approx(1.5)
    lines = list(design.growth_lines((50, 100), 3, (2, 4), 60))
    assert [line.split(":")[0] for line in lines] == ["growth with K at d = 3", "growth with d at K = 60"]


def test_memory_is_measured_in_a_process_of_its_own(design):
    line = design.memory_line(2_000, 3, 0.01)
    assert line.startswith("memory, 2000 x 3 at 1.0%:")
    assert line.endswith("holds")
    assert 1.0 < design.peak_memory() < 1e5


PEAK = """
from peak_memory import peak_memory
before = peak_memory()
block = bytearray(int((before + 50.0) * 1e6))
assert peak_memory() >= len(block) / 1e6 > before
"""


def test_the_peak_is_that_of_a_process_and_grows_with_what_it_holds():
    """In a process of its own: this one may have held a lot."""
    run = subprocess.run([sys.executable, "-c", PEAK], cwd=BENCHMARKS, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def test_only_the_named_lines_are_printed(design, capsys):
    design.main(["--quick", "--only", "plane Gaussian 10000 x 1"])
    header, *lines = capsys.readouterr().out.splitlines()
    assert header.startswith("instance")
    assert [line.split()[1] for line in lines] == ["Gaussian", "Gaussian"]


# --- policies.py


def test_the_table_of_the_certified_policies(policies, capsys):
    policies.main(["--seeds", "1", "--only", "soare"])
    title, header, line = capsys.readouterr().out.splitlines()
    assert title == "certified-linear, 1 seeds from 300000"
    assert header.split()[:4] == ["pulls", "median", "must", "refer."]
    assert line.split()[0] == "soare"
    assert "420" in line.split()


def test_the_table_of_all_policies(policies, capsys):
    options = ["--all", "--seeds", "2", "--only", "soare,mnist", "--mnist", "nowhere"]
    policies.main([*options, "--policies", "certified-linear,rage,xy-static", "--max-pulls", "5000"])
    _, header, place, *lines = capsys.readouterr().out.splitlines()
    assert header.split() == ["mean", "pulls", "median", "reference", "pac", "right", "seconds"]
    assert place.startswith("soare: K 11, reference 119, pac 102")
    found = {line.split()[0]: line for line in lines}
    assert list(found) == ["certified-linear", "rage", "xy-static", "mnist:"]
    assert "2 certified" in found["certified-linear"]
    assert " 2/2 " in found["rage"]
    assert "2 pull budget" in found["xy-static"]
    assert "0/2" in found["xy-static"]
    assert ">" in found["xy-static"]
    assert "skipped" in found["mnist:"]


def test_a_cell_that_takes_too_long_says_so_and_ends(policies):
    place = policies.places("", "")["soare"]
    world = place.make(0)
    kernel = policies.kernel_of(place, world)
    started = time.process_time()
    cell = policies.played("xy-static", place, [(0, world, kernel)] * 3, max_pulls=10**9, seconds=1e-3)
    assert dict(cell.verdicts) == {"time budget": 1}
    assert cell.right == 0
    assert time.process_time() - started < 2.0


def test_time_that_is_over_stops_whatever_catches_exceptions(policies):
    def stubborn():
        while True:
            with contextlib.suppress(Exception):
                time.sleep(0.01)

    with pytest.raises(policies.OutOfTime), policies.time_limit(0.05):
        stubborn()


def test_every_policy_is_told_what_it_must_be_told(policies):
    place = policies.places("", "")["soare"]
    world = place.make(0)
    kernel = policies.kernel_of(place, world)
    for name in sp.policy_names():
        if needs_torch(name) and importlib.util.find_spec("torch") is None:
            continue
        options = policies.options_of(name, place, kernel)
        policy = sp.make_policy(name, world.arms, epsilon=0.1, delta=0.05, noise=world.noise, **options)
        assert policy.problem.epsilon == 0.1


GENERATED = ("two clusters, K 250", "perturbation 1e-3", "sphere", "soare", "digits", "high-dimensional", "one better")


@pytest.mark.parametrize("label", GENERATED)
def test_the_norm_that_the_policies_are_told_is_true(policies, label):
    place = policies.places("", "")[label]
    world = place.make(3)
    theta = np.linalg.lstsq(world.arms.features, world.means, rcond=1e-9)[0]
    assert policies.is_linear(world, place.epsilon)
    assert np.linalg.norm(theta) <= place.norm_bound * (1.0 + 1e-9)


@pytest.mark.parametrize("label", ["yahoo-like", "random network"])
def test_means_that_are_not_linear_are_found_out(policies, label):
    place = policies.places("", "")[label]
    assert not policies.is_linear(place.make(3), place.epsilon)


# --- end_to_end.py


def test_a_study_is_timed_by_phase(end_to_end, tmp_path, capsys):
    document = tmp_path / "certificate.json"
    outcome = end_to_end.played(60, seed=0, file=None, document=document, limit=60.0)
    assert list(outcome.seconds) == [*end_to_end.PHASES, "document"]
    assert outcome.total == pytest.approx(sum(outcome.seconds.values()))
    assert outcome.verdict == "certified"
    assert sp.verify_certificate(document).holds
    assert len(capsys.readouterr().err.splitlines()) == outcome.rounds > 0
    unfinished = end_to_end.played(60, seed=0, file=None, document=None, limit=0.0)
    assert (unfinished.verdict, unfinished.rounds, unfinished.right) == ("not finished", 0, False)


@pytest.mark.usefixtures("sqlite_url")  # closes what is opened
def test_a_durable_study_asks_and_finds_the_same(end_to_end, tmp_path):
    held = end_to_end.played(60, seed=1, file=None, document=None, limit=60.0)
    kept = end_to_end.played(60, seed=1, file=tmp_path / "study.db", document=None, limit=60.0)
    assert (kept.rounds, kept.pulls, kept.verdict) == (held.rounds, held.pulls, held.verdict)
    assert kept.file_megabytes > 0.0 == held.file_megabytes


def test_the_table_of_whole_studies(end_to_end, capfd):
    end_to_end.main(["--arms", "20,40"])
    header, *lines, growth = capfd.readouterr().out.splitlines()
    assert header.split()[:7] == ["K", *end_to_end.PHASES, "seconds"]
    assert [line.split()[0] for line in lines] == ["20", "40"]
    assert growth.startswith("growth with K, exponent: ")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, "holds"),
        ({"megabytes": 4_001.0}, "misses"),
        ({"seconds": {"ask": 301.0}}, "misses"),
        ({"right": False}, "misses"),
        ({"verdict": "heuristic"}, "misses"),
    ],
)
def test_a_million_candidates_hold_or_miss(end_to_end, change, said):
    fine = end_to_end.Outcome(1_000_000, {"ask": 299.0}, 9, 500, "certified", True, 3_999.0, 0.0)
    assert end_to_end.asked(replace(fine, **change)).endswith(said)


# --- peers_published_code.py


def test_the_published_rules_find_the_best_arm_in_fewer_pulls_than_the_texts_constants(capsys):
    beside = loaded("peers_published_code")
    try:
        beside.main(["--smoke"])
        shown = capsys.readouterr().out
        assert shown.count("1 of 1 right") == 2 + len(beside.OURS)
        theirs, right = beside.theirs(beside.published_static, 3, 0.6, 3)
        assert right == 3
        texts, _ = beside.ours("xy-static", {}, 3, 0.6, 3)
        codes, _ = beside.ours("xy-static", {"constants": "published-code"}, 3, 0.6, 3)
        assert texts > 2.0 * theirs > codes
    finally:
        del sys.modules["benchmark_peers_published_code"]
