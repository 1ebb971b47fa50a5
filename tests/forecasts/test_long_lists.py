"""What rows in blocks will cost: the same as what it then does cost, on average."""

import numpy as np
import pytest
from block_functions import written
from together import of_each

import surepick as sp
from surepick.chunks.passes import Meter
from surepick.chunks.sources import rows_of
from surepick.errors import InvalidInput

MANY = np.random.default_rng(3).standard_normal((20_000, 6)).astype(np.float32)
FEATURES = MANY[:5_000]
TRUTH = np.array([0.5, -0.3, 0.4, 0.1, -0.5, 0.2])
ASKED = {"epsilon": 0.1, "noise": "subgaussian:0.5", "norm_bound": 1.0, "size": 50}
FACTOR = 1.35  # between means; measured for 40 studies: 1.05 where truths are drawn, 1.00 where one is guessed
STUDIES, OF_A_GUESS = 16, 8


def real(truth, seed, features=FEATURES, **asked):
    """(measurements in all, for the short list, candidates on it) of a study with that truth."""
    rng, means = np.random.default_rng(seed), features @ truth

    def measure(ids):
        return means[[int(one) for one in ids]] + 0.5 * rng.standard_normal(len(ids))

    result = sp.find_best(rows_of(features), measure, progress=False, **{**ASKED, **asked})
    return result.pulls, result.pulls - result.certificate.pulls, result.study.arms.num_arms


def direction(seed):
    drawn = np.random.default_rng(seed).standard_normal(6)
    return drawn / np.linalg.norm(drawn)


def near(found, wanted):
    return wanted / FACTOR <= found <= wanted * FACTOR


@pytest.fixture(scope="module")
def under_the_guess():
    return np.array([real(TRUTH, seed) for seed in range(OF_A_GUESS)])


def test_what_a_guess_costs_is_what_it_then_costs(under_the_guess):
    found = sp.forecast(rows_of(FEATURES), TRUTH, rehearsals=OF_A_GUESS, **ASKED)
    totals, selected, listed = under_the_guess.T
    assert near(found.total, totals.mean())
    assert found.selection == pytest.approx(selected.mean(), rel=0.1)
    assert near(found.listed, np.median(listed))
    assert found.lowest <= np.median(totals) <= found.highest
    assert found.guess
    assert found.rehearsals == OF_A_GUESS


def test_a_forecast_of_other_noise_would_be_noticed(under_the_guess):
    """The saboteur: half as much noise again is no forecast of these studies."""
    found = sp.forecast(rows_of(FEATURES), TRUTH, rehearsals=OF_A_GUESS, **{**ASKED, "noise": "subgaussian:0.75"})
    assert not near(found.total, under_the_guess[:, 0].mean())


def test_what_is_drawn_costs_what_truths_of_that_kind_cost():
    found = sp.forecast(rows_of(MANY), rehearsals=STUDIES, **{**ASKED, "size": 200})
    totals = [real(direction(seed), seed, MANY, size=200)[0] for seed in range(STUDIES)]
    assert near(found.total, np.mean(totals))
    assert not found.guess
    assert any("drawn anew for each simulated study, with norm 1" in one for one in found.warnings)


def test_rewards_that_differ_less_cost_more():
    weak = sp.forecast(rows_of(FEATURES), norm=0.25, rehearsals=3, **ASKED)
    strong = sp.forecast(rows_of(FEATURES), rehearsals=3, **ASKED)
    assert weak.selection > strong.selection
    assert weak.total > strong.total


def test_it_says_so_in_words():
    said = str(sp.forecast(rows_of(FEATURES), TRUTH, rehearsals=3, **ASKED))
    for part in ("under the guess", "of 5,000 candidates", "in 3 simulated studies", "within 0.1 of the best"):
        assert part in said


def test_passes_are_those_of_real_studies_and_files_are_as_memory(tmp_path):
    meter = Meter()
    rows = written(tmp_path, FEATURES, [2_000, 3_000])
    found = sp.forecast(type(rows)(rows.sources), TRUTH, rehearsals=3, meter=meter, **ASKED)
    assert found == sp.forecast(rows_of(FEATURES), TRUTH, rehearsals=3, **ASKED)
    names = [one.name for one in meter.passes]
    assert names.count("first look") == 1
    assert names.count("rivals") <= 3 * 2


def test_the_same_seed_is_the_same_forecast():
    first, again, other = (sp.forecast(rows_of(FEATURES), rehearsals=1, seed=seed, **ASKED) for seed in (1, 1, 2))
    assert first == again != other


def test_a_budget_is_said():
    found = sp.forecast(rows_of(FEATURES), TRUTH, rehearsals=2, max_pulls=30, **ASKED)
    assert any("2 of 2 simulated studies had not ended after 30 measurements" in one for one in found.warnings)


def test_functions_of_a_kernel():
    square = np.random.default_rng(21).random((300, 2))
    asked = {"epsilon": 0.4, "noise": "subgaussian:0.2", "norm_bound": 1.5, "gamma": 4.0, "size": 60}
    found = sp.forecast(rows_of(square), rehearsals=1, **asked)
    assert found.total >= found.selection > 0
    with pytest.raises(InvalidInput, match="no coefficients to guess"):
        sp.forecast(rows_of(square), [1.0, 1.0], **asked)


@of_each(
    ("more", "said"),
    [
        ({"means": np.ones(5)}, r"shape \(5,\); give one finite coefficient for each of the 6"),
        ({"means": np.full(6, np.nan)}, "one finite coefficient"),
        ({"means": np.ones(6)}, "norm 2.449, more than the norm bound 1"),
        ({"means": TRUTH, "norm": 0.5}, "with coefficients nothing is drawn"),
        ({"norm": 2.0}, "norm is 2, more than the norm bound 1"),
        ({"norm": 0.0}, "norm is 0"),
        ({"rehearsals": 0}, "rehearsals"),
        ({"minimize": True}, "in which large is good"),
        ({"norm_bound": None}, "not by certified-independent: give norm_bound"),
    ],
)
def test_what_cannot_be_forecast_is_refused(more, said):
    with pytest.raises(InvalidInput, match=said):
        sp.forecast(rows_of(FEATURES[:300]), **{**ASKED, **more})


def test_a_policy_knows_what_is_asked():
    policy = sp.make_policy("certified-independent", sp.Arms(ids=["a", "b"]), epsilon=0.5, delta=0.1, noise="bernoulli")
    with pytest.raises(InvalidInput, match="epsilon: the policy knows what is asked"):
        sp.forecast(policy, epsilon=0.1)
