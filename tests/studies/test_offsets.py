"""A number that is added to all rewards changes neither the answer nor what it costs."""

import numpy as np
import pytest
from budgets import budget

import surepick as sp
from surepick.questions import Above, AllGood, Constraint, TopM
from surepick.studies.logs.keys import deviations_of

IDS = [f"a{place}" for place in range(6)]
MEANS = dict(zip(IDS, (0.0, 0.5, 1.0, 1.5, 2.0, 3.0), strict=True))
OFFSETS = (-(2.0**30), 131072.0, -2345.625, 2.0**24)  # multiples of an eighth, as all rewards: 1e7 and 1e9 scales
TRIED = OFFSETS[: budget(len(OFFSETS), fewest=1)]


def eighths(value):
    """The nearest multiple of 1/8: sums with an offset are then exact."""
    return round(8.0 * value) / 8.0


def cost_of(offset, noise, *, question=None, constraints=None, seed=3, **options):
    """(answer, verdict, measurements, lists) of a study whose rewards have that offset."""
    rng = np.random.default_rng(seed)

    def one(name):
        away = eighths(rng.normal(0.0, 0.5))
        return offset + MEANS[name] + float(np.clip(away, -1.0, 1.0))

    def in_blocks(ids, blocks):
        effects = {block: eighths(rng.normal()) for block in dict.fromkeys(blocks)}
        return [one(name) + effects[block] for name, block in zip(ids, blocks, strict=True)]

    def measure(ids):
        if constraints is None:
            return [one(name) for name in ids]
        return [(one(name), one(name)) for name in ids]

    if question is not None:
        options["question"] = question(offset)
    if constraints is not None:
        options["constraints"] = [constraints(offset)]
    found = sp.find_best(
        IDS,
        in_blocks if "blocks" in options else measure,
        epsilon=0.75,
        noise=noise(offset),
        max_pulls=3_000,
        progress=False,
        **options,
    )
    lists = found.certificate.lists
    return found.best_arm, found.verdict, found.pulls, None if lists is None else (lists.inside, lists.outside)


def subgaussian(_):
    return "subgaussian:0.5"


def normal(_):
    return "normal"


def bounded(offset):
    return f"bounded:{offset - 1.0!r}:{offset + 4.0!r}"


def within_two(offset):
    return Constraint("size", offset + 2.0, tolerance=0.75, noise=bounded(offset))


ASKED = {
    "the best": {},
    "the two best": {"question": lambda _: TopM(2)},
    "all good": {"question": lambda _: AllGood()},
    "above a control": {"question": lambda _: Above(control="a1")},
    "above a number": {"question": lambda offset: Above(threshold=offset + 1.25)},
    "with a bound beside": {"constraints": within_two},
}
ONLY_KNOWN = {"action-elimination": {"policy": "action-elimination"}, "lucb": {"policy": "lucb"}}


BLOCKS_AND_ALL = {"in blocks": {"blocks": "day"}} | ASKED


@pytest.mark.cases(6)  # every second
@pytest.mark.parametrize("asked", BLOCKS_AND_ALL)
@pytest.mark.parametrize("noise", [subgaussian, normal, bounded])
def test_an_offset_changes_nothing(asked, noise):
    options = BLOCKS_AND_ALL[asked]
    if asked == "in blocks" and noise is bounded:
        pytest.skip("effects of blocks move rewards out of their range")
    plain = cost_of(0.0, noise, **options)
    assert plain[1] == "certified"
    for offset in TRIED:
        assert cost_of(offset, noise, **options) == plain


@pytest.mark.cases(4)
@pytest.mark.parametrize("asked", ONLY_KNOWN)
@pytest.mark.parametrize("noise", [subgaussian, bounded])
def test_an_offset_changes_nothing_for_other_policies(asked, noise):
    plain = cost_of(0.0, noise, **ONLY_KNOWN[asked])
    for offset in TRIED:
        assert cost_of(offset, noise, **ONLY_KNOWN[asked]) == plain


@pytest.mark.parametrize("noise", [subgaussian, normal])
def test_rewards_of_1e15_with_scale_1_cost_what_they_cost_around_0(noise):
    offset = 1e15  # eighths are still numbers there, and sums of ten of them are not
    for options in ({}, {"blocks": "day"}):
        assert cost_of(offset, noise, **options) == cost_of(0.0, noise, **options)


# of a range around 0 mixtures know only when some results are in which way rewards are told, and take a few more pulls
EVIDENCE = {one: {"evidence": "carried"} for one in ("bounded:{0}:{1}", "bounded:{1}:{2}")}


@pytest.mark.cases(5)
@pytest.mark.parametrize(("offset", "shrunk"), [(101325.0, 1.0), (-2345.678, 1.0), (-2345.678, 1e-5 / 0.003)], ids=str)
@pytest.mark.parametrize("noise", ["normal", "subgaussian:{0}", "bounded:{1}:{2}"])
def test_air_pressure_costs_what_its_differences_cost(offset, shrunk, noise):
    means = {"a": 0.0, "b": 0.01 * shrunk, "c": 0.005 * shrunk}

    def found(level):
        rng = np.random.default_rng(0)
        said = noise.format(0.003 * shrunk, level - 0.02 * shrunk, level + 0.03 * shrunk)
        return sp.find_best(
            list(means),
            lambda ids: [level + means[name] + rng.normal(0.0, 0.003 * shrunk) for name in ids],
            epsilon=0.004 * shrunk,
            noise=said,
            max_pulls=3_000,
            progress=False,
            **EVIDENCE.get(noise, {}),
        )

    one, other = found(0.0), found(offset)
    assert (one.best_arm, one.verdict) == (other.best_arm, other.verdict) == ("b", "certified")
    assert abs(one.pulls - other.pulls) <= 0.05 * one.pulls


def test_candidates_a_hundred_million_scales_apart_are_told_apart():
    rng = np.random.default_rng(0)
    means = {"a": 101325.0, "b": 0.0, "c": -4e5}
    found = sp.find_best(
        list(means),
        lambda ids: [means[name] + rng.normal(0.0, 0.003) for name in ids],
        epsilon=0.004,
        noise="normal",
        max_pulls=1_000,
    )
    assert (found.best_arm, found.verdict) == ("a", "certified")


@pytest.mark.parametrize("noise", ["normal", "subgaussian:0.004", "bounded:{0}:{1}"])
def test_a_rehearsal_costs_the_same_with_an_offset(tmp_path, noise):
    rng = np.random.default_rng(1)
    values = {name: 0.005 * place + rng.normal(0.0, 0.003, 30) for place, name in enumerate("abc")}

    def found(offset):
        file = tmp_path / f"{offset}.csv"
        rows = [f"{name},{offset + value!r}" for name, own in values.items() for value in own.tolist()]
        file.write_text("\n".join(["id,y", *rows]))
        said = noise.format(offset - 0.02, offset + 0.03)
        recorded = sp.environments.table(file, id="id", reward="y", noise=sp.parse_noise(said))
        asked = {"epsilon": 0.004, "delta": 0.05, "noise": said, **EVIDENCE.get(noise, {})}
        policy = sp.make_policy("certified-independent", recorded.arms, **asked)
        return sp.simulate(policy, recorded, seed=2, max_pulls=20_000)

    one, other = found(0.0), found(101325.0)
    assert (one.best_arm, one.verdict) == (other.best_arm, other.verdict) == ("c", "certified")
    assert abs(one.pulls - other.pulls) <= 0.05 * one.pulls


def test_a_certificate_of_rewards_with_an_offset_is_computed_again(tmp_path):
    rng = np.random.default_rng(0)

    def measure(ids):
        return [1e15 + MEANS[name] + eighths(rng.normal(0.0, 0.5)) for name in ids]

    found = sp.find_best(IDS, measure, epsilon=0.5, noise="normal", max_pulls=3_000)
    file = tmp_path / "certificate.json"
    sp.write_certificate(found.study, file)
    told = sp.verify_certificate(file)
    assert told.verdict == found.verdict == "certified"
    assert '"rests"' in file.read_text()


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 1, 0, 2)])
def test_deviations_are_exact_whatever_the_order(order):
    values = np.array([1e9, 1e9 + 0.25, 1e9 + 1.0, 1e9 - 0.75])[list(order)]
    arms, ones = np.zeros(4, np.int64), np.ones(4, np.int64)
    found = deviations_of([(arms, ones, values, None)], 2)
    assert found.tolist() == [float(np.sum((values - 1e9 - 0.125) ** 2)), 0.0]


def test_equal_rewards_have_no_deviation_and_totals_say_none():
    arms, ones = np.zeros(3, np.int64), np.ones(3, np.int64)
    assert deviations_of([(arms, ones, np.full(3, 0.1), None)], 1).tolist() == [0.0]
    assert deviations_of([(arms, 2 * ones, np.full(3, 0.2), None)], 1) is None


@pytest.mark.parametrize("noise", [subgaussian, normal, bounded])
def test_with_features_an_offset_costs_nothing_and_contradicts_the_norm_that_was_declared(noise):
    """The level is part of <x, theta>: measurements are the same, and the reason names the norm bound."""
    places = np.arange(6)
    arms = sp.Arms(np.column_stack([places / 6, np.ones(6)]), ids=IDS)

    def found(offset):
        rng = np.random.default_rng(3)
        return sp.find_best(
            arms,
            lambda ids: [
                offset + MEANS[name] + eighths(float(np.clip(rng.normal(0.0, 0.5), -1.0, 1.0))) for name in ids
            ],
            epsilon=0.75,
            noise=noise(offset),
            norm_bound=20.0,
            max_pulls=3_000,
        )

    plain, shifted = found(0.0), found(131072.0)
    assert (shifted.best_arm, shifted.pulls) == (plain.best_arm, plain.pulls)
    assert (plain.verdict, shifted.verdict) == ("certified", "heuristic")
    assert "norm_bound is too small" in shifted.certificate.reason
