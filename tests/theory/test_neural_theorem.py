"""The theorem on Algorithm 2 in numbers: by hand, by direct sums, and the sentences of docs/neural-guarantee.md."""

from __future__ import annotations

import contextlib
import io
import itertools
import math
import re
from pathlib import Path

import numpy as np
import pytest
from fresh_modules import run_fresh
from scipy.stats import norm

import surepick as sp
from surepick.embeddings import NeuralTangentKernel, unit_rows_with_norm
from surepick.embeddings.neural.effective_dimension import neural_gram, spectrum_effective_dimension
from surepick.theory.neural_dimension import neural_effective_dimension, reward_norm
from surepick.theory.neural_theorem import proof_parameters, rounding_floor, theorem_parameters

PAGE = Path(__file__).parents[2] / "docs" / "neural-guarantee.md"
SMALL = {"reward_norm": 2.0, "epsilon": 0.25, "delta": 0.08, "slack": 0.25, "depth": 2, "width": 10}


def unit_rows(shape, seed=0):
    rows = np.random.default_rng(seed).standard_normal(shape)
    return rows / np.linalg.norm(rows, axis=1)[:, None]


def random_gram(size, rank, seed=0):
    factor = np.random.default_rng(seed).standard_normal((size, rank)) * 0.5 ** np.arange(rank)
    return factor @ factor.T


# --- the effective dimension


@pytest.mark.parametrize(
    ("tolerance", "dim"), [(0.0, 4), (0.4999, 4), (0.5, 3), (1.4999, 3), (1.5, 2), (3.5, 1), (100.0, 1), (math.inf, 1)]
)
def test_the_dimension_of_four_eigenvalues(tolerance, dim):
    assert spectrum_effective_dimension([4.0, 2.0, 1.0, 0.5], tolerance) == dim
    assert spectrum_effective_dimension([0.5, 1.0, 4.0, 2.0], tolerance) == dim


@pytest.mark.parametrize("seed", range(20))
def test_the_dimension_against_direct_sums_and_its_monotonicity(seed):
    rng = np.random.default_rng(seed)
    values = np.sort(10.0 ** rng.uniform(-6, 1, int(rng.integers(1, 12))))[::-1]
    last = len(values)
    for tolerance in np.sort(10.0 ** rng.uniform(-8, 1.5, 30)):
        direct = min(d for d in range(1, len(values) + 1) if sum(sorted(values)[: len(values) - d]) <= tolerance)
        assert spectrum_effective_dimension(values, tolerance) == direct <= last
        last = direct


@pytest.mark.parametrize("rank", [1, 3, 8])
def test_a_gram_matrix_and_its_eigenvalues_have_the_same_dimension(rank):
    gram = random_gram(8, rank)
    exact = np.linalg.svd(gram, compute_uv=False)
    for tolerance in (1.0, 1e-2, 1e-4, 1e-9):
        assert spectrum_effective_dimension(gram, tolerance) == spectrum_effective_dimension(exact, tolerance)


def test_rounding_never_makes_a_dimension_too_small():
    """Three equal arms: eigenvalues 3, 0, 0, computed as 3 and two numbers of either sign near 1e-16."""
    same = np.ones((3, 3))
    assert spectrum_effective_dimension(same, 1e-12) == 1
    assert spectrum_effective_dimension(same, 1e-18) == 3  # cannot be told from 0
    assert spectrum_effective_dimension(same, 1e-6, rounding=1e-6) == 2
    assert spectrum_effective_dimension([3.0, 0.0, -1e-17], 0.0) == 1
    assert spectrum_effective_dimension([[2.0]], 0.0) == 1


def test_two_orthogonal_arms():
    """L = 2, angle pi/2: Sigma = 1/pi and H-tilde = 1/pi off the diagonal, so H has the eigenvalues 1.5 +- 1/pi."""
    gram = neural_gram(np.eye(2), depth=2)
    np.testing.assert_allclose(gram, [[1.5, 1 / math.pi], [1 / math.pi, 1.5]], rtol=1e-14)
    edge = 1.5 - 1 / math.pi
    assert neural_effective_dimension(np.eye(2), edge + 1e-9, depth=2) == 1
    assert neural_effective_dimension(np.eye(2), edge - 1e-9, depth=2) == 2
    assert neural_effective_dimension(np.eye(2), edge + 1e-9, depth=2, form="H-tilde") == 2
    assert neural_effective_dimension(np.eye(3), 1.0 + 1e-9, depth=1) == 2  # the linear kernel


def test_doubled_coordinates_leave_the_kernel_alone():
    arms = unit_rows((5, 3))
    np.testing.assert_allclose(neural_gram(np.hstack([arms, arms]) / math.sqrt(2)), neural_gram(arms), rtol=1e-12)


def test_rows_of_any_norm_can_be_normalised():
    rows = 3.0 * np.random.default_rng(0).standard_normal((6, 2))
    with pytest.raises(sp.InvalidInput, match="do not have unit norm"):
        neural_effective_dimension(rows, 1e-3)
    lifted = unit_rows_with_norm(rows)
    kernel = NeuralTangentKernel(4, "H-tilde")
    np.testing.assert_array_equal(
        neural_gram(rows, depth=4, form="H-tilde", inputs="normalized"), kernel.gram(lifted, lifted)
    )
    assert neural_effective_dimension(rows, 1e-3, inputs="normalized") == neural_effective_dimension(lifted, 1e-3)


def test_two_clusters_have_two_directions_at_a_tolerance_that_matters():
    arms = sp.environments.two_clusters(num_arms=60).arms.features
    assert neural_effective_dimension(arms, 0.01, inputs="normalized") == 2
    assert neural_effective_dimension(arms, 1e-12, inputs="normalized") == 60


@pytest.mark.parametrize(
    ("spectrum", "message"),
    [
        ([1.0, -0.1], "the smallest eigenvalue is -0.1"),
        ([[1.0, 2.0], [2.0, 1.0]], "the smallest eigenvalue is -1"),
        ([[1.0, 2.0], [0.0, 1.0]], "not symmetric: two entries differ by 2"),
        ([1.0, math.nan], "eigenvalue 1 is not finite"),
        ([[1.0, math.inf], [math.inf, 1.0]], "entries that are not finite"),
        (np.zeros((2, 3)), r"shape \(2, 3\)"),
        ([], r"shape \(0,\)"),
        ("much", "not an array of numbers"),
    ],
)
def test_what_is_no_spectrum(spectrum, message):
    with pytest.raises(sp.InvalidInput, match=message):
        spectrum_effective_dimension(spectrum, 0.1)


@pytest.mark.parametrize("tolerance", [-1.0, math.nan, "small"])
def test_what_is_no_tolerance(tolerance):
    with pytest.raises(sp.InvalidInput, match="tolerance is"):
        spectrum_effective_dimension([1.0], tolerance)


def test_what_is_no_rounding_and_no_choice_of_inputs():
    with pytest.raises(sp.InvalidInput, match="rounding is -1"):
        spectrum_effective_dimension([1.0], 0.1, rounding=-1)
    with pytest.raises(sp.InvalidInput, match="inputs is 'doubled'"):
        neural_gram(np.eye(2), inputs="doubled")


# --- the norm of the rewards


def test_the_norm_of_rewards():
    assert reward_norm(np.eye(3), [1.0, 2.0, 2.0]) == pytest.approx(3.0)
    assert reward_norm(4 * np.eye(2), [3.0, 4.0]) == pytest.approx(2.5)
    assert reward_norm(np.eye(2), [0.0, 0.0]) == 0.0
    assert reward_norm(np.ones((2, 2)), [1.0, 1.0]) == pytest.approx(1.0)
    assert reward_norm(np.ones((2, 2)), [1.0, 0.9]) == math.inf
    assert reward_norm(np.ones((2, 2)), [1.0, 1.0 + 1e-6], range_tolerance=1e-5) == pytest.approx(1.0, rel=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_the_norm_of_rewards_against_an_explicit_inverse(seed):
    gram = random_gram(6, 6, seed) + 0.1 * np.eye(6)
    means = np.random.default_rng(seed + 100).standard_normal(6)
    assert reward_norm(gram, means) == pytest.approx(math.sqrt(means @ np.linalg.inv(gram) @ means))
    weights = np.random.default_rng(seed).standard_normal(6)
    low = random_gram(6, 3, seed)
    assert reward_norm(low, low @ weights) == pytest.approx(math.sqrt(weights @ low @ weights))
    assert reward_norm(low, means) == math.inf


def test_the_norm_is_at_most_the_remark_s_bound():
    gram = neural_gram(unit_rows((12, 5)))
    means = np.random.default_rng(3).uniform(-1, 1, 12)
    assert reward_norm(gram, means) <= math.sqrt(12 / np.linalg.eigvalsh(gram)[0])


def test_means_that_do_not_fit():
    with pytest.raises(sp.InvalidInput, match="means have shape"):
        reward_norm(np.eye(3), [1.0, 2.0])
    with pytest.raises(sp.InvalidInput, match="give a gram matrix"):
        reward_norm([1.0, 2.0], [1.0, 2.0])


# --- the parameters


def test_rounding_floors():
    assert rounding_floor(1, 0.25) == 16
    assert rounding_floor(2, 0.25) == 32
    assert rounding_floor(2000, 0.1) == 180 * 2000 * 100  # the other procedure is cheaper


def test_the_printed_choice_by_hand():
    """K = 2, S = 2: log(K^2)/S = log(4)/2; log(K^2/delta_2) = log(4/.0025); E = min(first, second, third)."""
    found = theorem_parameters([1.5, 0.5], **SMALL)
    alpha = math.log(4.0) / 2.0
    assert found.regularisation == pytest.approx(alpha) == pytest.approx(0.693147, rel=1e-6)
    first, second = alpha**2 / (32**2 * 2), 0.0625 / (1.25 * 2 * 2)
    third = 0.25**7 * alpha**3 / (1.25**3 * 2**3 * math.log(1600.0) ** 3 * 4)
    assert found.truncation**2 == pytest.approx(min(first, second, third)) == pytest.approx(third)
    assert (found.effective_dimension, found.tail, found.source) == (2, 0.0, "published")
    assert [one.delta for one in found.rounds] == [pytest.approx(0.01), pytest.approx(0.0025)]
    assert [one.pulls for one in found.rounds] == [60, 296]  # 4 * 2.5 * log(400) = 59.9, 16 * 2.5 * log(1600) = 295.1
    assert found.pulls == 356
    one = found.rounds[0]
    assert one.step_size == pytest.approx(1.0 / (10 * alpha + 60 * 10 * 2))
    assert one.printed_steps == pytest.approx(math.log(0.0625 * alpha / 120) / (one.step_size * 20))
    assert one.printed_steps < 0
    width = 2**6 * 2**16 * math.log(4 * 2 / 0.08) / found.truncation**8
    assert found.log10_least_width == pytest.approx(math.log10(width))


def test_the_proof_s_choice_by_hand():
    """alpha = (3 - 2 sqrt 2) log(400) / 4; A = 2 because the tail .5 beyond 1 is far above eps-bar^2/4."""
    found = proof_parameters([1.5, 0.5], **SMALL)
    alpha = (3 - 2 * math.sqrt(2)) * math.log(400.0) / 4
    assert found.regularisation == pytest.approx(alpha)
    pulls = [1024 * 4 * 1.25 * 2 * math.log(400.0), 1024 * 16 * 1.25 * 2 * math.log(1600.0)]
    assert [one.pulls for one in found.rounds] == [math.ceil(number) for number in pulls]
    last, constant = found.rounds[-1].pulls, 1 / 16
    bounds = [
        0.0625 / (4096 * 1.25 * 2 * 4),
        alpha**2 / (4 * last**2 * 2),
        0.25 * alpha**3 / (96 * constant * last**3 * 4),
    ]
    assert found.truncation**2 == pytest.approx(min(bounds)) == pytest.approx(bounds[2])
    assert found.unmet == ()
    ideal = proof_parameters([1.5, 0.5], constant_2=math.inf, **SMALL)
    assert ideal.truncation**2 == pytest.approx(bounds[0])
    assert ideal.unmet == ()
    assert [one.steps for one in ideal.rounds] == [0, 0]


def test_what_the_printed_choice_violates():
    found = theorem_parameters([1.5, 0.5], **SMALL)
    what = [sentence.split(",")[0].split(":")[0] for sentence in found.unmet]
    assert what == ["noise", "alpha", "gradient descent", "cutting the embedding off"]
    noise = 2 * math.sqrt(1.25 * 2 / 60) * (math.sqrt(2 * math.log(400.0)) + math.sqrt(2 * found.regularisation) * 2)
    assert f"{noise:.3g}, and the proof allows 2^-k/8 = 0.0625" in found.unmet[0]
    close = theorem_parameters([1.0, 1.0], reward_norm=1.4, epsilon=0.99, delta=0.05, slack=0.1, depth=2, width=9)
    assert any(sentence.startswith("misspecification") for sentence in close.unmet)


@pytest.mark.parametrize("seed", range(25))
def test_the_proof_s_choice_meets_every_inequality_and_the_printed_one_never_does(seed):
    rng = np.random.default_rng(seed)
    values = 10.0 ** rng.uniform(-16, 1, int(rng.integers(2, 40)))
    setting = {
        "reward_norm": float(10.0 ** rng.uniform(-1, 1.5)),
        "epsilon": float(10.0 ** rng.uniform(-2.5, -0.05)),
        "delta": float(rng.uniform(0.001, 0.9)),
        "slack": float(rng.choice([0.05, 0.25, 1.0])),
        "depth": int(rng.integers(2, 6)),
        "width": 1000,
    }
    for constant in (0.01, 1.0, math.inf):
        found = proof_parameters(values, sigma=float(rng.choice([0.1, 1.0, 3.0])), constant_2=constant, **setting)
        assert found.unmet == ()
        assert sum(one.delta for one in found.rounds) <= 0.21 * setting["delta"]
        assert found.tail <= found.truncation**2 / (2 * len(values))
    assert any(sentence.startswith("noise") for sentence in theorem_parameters(values, **setting).unmet)


@pytest.mark.parametrize("seed", range(10))
def test_the_truncation_is_the_largest_that_satisfies_the_fixed_point(seed):
    """By brute force over eps-bar, for the idealised network: eps-bar^2 d_eff(eps-bar^2/(2K)) <= constant."""
    rng = np.random.default_rng(seed)
    values = np.sort(10.0 ** rng.uniform(-9, -4, 12))[::-1]
    found = proof_parameters(values, constant_2=math.inf, **SMALL)
    constant = 0.0625 / (4096 * 1.25 * 4)

    def allowed(squared):
        return squared * spectrum_effective_dimension(values, squared / 24) <= constant * (1 + 1e-12)

    grid = found.truncation**2 * 10.0 ** np.linspace(-3, 3, 4001)
    assert allowed(found.truncation**2)
    assert not any(allowed(squared) for squared in grid if squared > found.truncation**2 * (1 + 1e-9))
    assert found.effective_dimension == spectrum_effective_dimension(values, found.truncation**2 / 24)


def test_the_dimension_can_be_below_the_number_of_arms():
    values = [5.0, 1.0, *[1e-60] * 8]
    for found in (theorem_parameters(values, **SMALL), proof_parameters(values, **SMALL)):
        assert found.effective_dimension == 2
        assert found.tail == pytest.approx(8e-60)


def test_the_steps_are_just_enough():
    found = proof_parameters([1.5, 0.5], **SMALL)
    for one in found.rounds:
        rate = 1 - one.step_size * 10 * found.regularisation
        start = math.sqrt(one.pulls * 2 / found.regularisation)
        allowed = 0.25  # epsilon / (16 C) with C = 1/16
        assert rate ** (one.steps / 2) * start <= allowed < rate ** ((one.steps - 1) / 2) * start
        assert one.steps * found.regularisation / 2 == pytest.approx(abs(one.printed_steps), rel=1e-3)  # L = 2


def test_the_width_changes_only_the_step_size():
    narrow, wide = (theorem_parameters([1.5, 0.5], **SMALL | {"width": m}) for m in (10, 1000))
    assert narrow.rounds[0].step_size == pytest.approx(100 * wide.rounds[0].step_size)
    assert narrow.rounds[0].steps == wide.rounds[0].steps
    assert narrow.truncation == wide.truncation


def test_noise_costs_its_square():
    pulls = [proof_parameters([1.0, 1.0], sigma=sigma, **SMALL).rounds[-1].pulls for sigma in (1.0, 3.0)]
    assert pulls[1] == pytest.approx(9 * pulls[0], rel=1e-5)


def test_a_better_answer_costs_more_and_never_fewer_dimensions():
    values = 10.0 ** np.linspace(0, -30, 20)
    for choice in (theorem_parameters, proof_parameters):
        chosen = [choice(values, **SMALL | {"epsilon": epsilon}) for epsilon in (0.9, 0.5, 0.2, 0.05, 0.01)]
        assert all(a.pulls <= b.pulls for a, b in itertools.pairwise(chosen))
        assert all(a.effective_dimension <= b.effective_dimension for a, b in itertools.pairwise(chosen))
        assert chosen[0].effective_dimension < chosen[-1].effective_dimension
        assert chosen[0].pulls < chosen[-1].pulls


def test_a_large_epsilon_has_one_round_in_the_proof_and_none_in_print():
    assert len(proof_parameters([1.0, 1.0], **SMALL | {"epsilon": 3.0}).rounds) == 1
    with pytest.raises(sp.InvalidInput, match="is then 0, no round"):
        theorem_parameters([1.0, 1.0], **SMALL | {"epsilon": 1.0})


@pytest.mark.parametrize("choice", [theorem_parameters, proof_parameters])
@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"reward_norm": math.inf}, "reward_norm is inf"),
        ({"reward_norm": 0.0}, "reward_norm is 0"),
        ({"epsilon": 0.0}, "epsilon is 0"),
        ({"delta": 1.0}, "delta is 1"),
        ({"slack": 0.0}, "slack is 0"),
        ({"depth": 1}, "depth is 1"),
        ({"width": 0}, "width is 0"),
        ({"constant_1": -1.0}, "constant_1 is -1"),
        ({"constant_1": 1e9}, "steps of 1 or more"),
        ({"constant_2": 0.0}, "constant_2 is 0"),
        ({"constant_2": math.nan}, "constant_2 is nan"),
    ],
)
def test_settings_without_a_meaning(choice, setting, message):
    with pytest.raises(sp.InvalidInput, match=message):
        choice([1.5, 0.5], **SMALL | setting)


def test_other_settings_without_a_meaning():
    with pytest.raises(sp.InvalidInput, match="the number of arms is 1"):
        theorem_parameters([1.0], **SMALL)
    with pytest.raises(sp.InvalidInput, match="constant_2 is inf"):
        theorem_parameters([1.0, 1.0], constant_2=math.inf, **SMALL)
    with pytest.raises(sp.InvalidInput, match="sigma is -1"):
        proof_parameters([1.0, 1.0], sigma=-1, **SMALL)


# --- sentences of docs/neural-guarantee.md


def test_the_page_s_program_prints_the_page_s_table():
    page = PAGE.read_text(encoding="utf-8")
    program, printed = re.search(r"```python\n(.*?)```\s*```text\n(.*?)```", page, re.DOTALL).groups()
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        run_fresh(program)
    assert output.getvalue().split() == printed.split()


@pytest.mark.parametrize(("name", "bound"), [("two_clusters", 0.003), ("digits", 1.5)])
def test_the_kernel_used_directly(name, bound):
    environment = getattr(sp.environments, name)()
    rows, kernel = unit_rows_with_norm(environment.arms.features), NeuralTangentKernel(3, "H")
    largest = reward_norm(kernel.gram(rows, rows), environment.means)
    embedding = sp.KernelEmbedding(rows, kernel=kernel, norm_bound=largest)
    assert (
        float(f"{embedding.misspecification(2):.1g}" if bound < 1 else f"{embedding.misspecification(2):.1f}") == bound
    )


def test_two_arms_are_enough_to_break_the_published_counts():
    """Exact: two independent arms, gap just above epsilon; round 1 alone drops the better one too often."""
    epsilon, delta = 0.1, 0.05
    threshold = 1 / 16 + 3 * epsilon / 8
    value, log_term = 4.0, math.log(4 * 8 / delta)
    counts = {
        "box": max(4 * 2 * 1.1 * log_term, rounding_floor(2, 0.1)),
        "paper": 4 * value * 1.1 * log_term,
        "derived": 2 * 1.1 * value * math.log(8 / delta) / threshold**2,
        "proof": 256 * 4 * value * 1.1 * log_term,
    }
    counts = {name: 2 * math.ceil(number / 2) for name, number in counts.items()}
    wrong = {name: norm.sf((threshold + epsilon) / math.sqrt(4 / total)) for name, total in counts.items()}
    assert counts == {"box": 80, "paper": 114, "derived": 4468, "proof": 29114}
    assert wrong["box"] == pytest.approx(0.186, abs=1e-3)
    assert wrong["paper"] == pytest.approx(0.143, abs=1e-3)
    assert wrong["derived"] < delta / 8
    assert wrong["proof"] < delta / 8


@pytest.mark.parametrize("num_arms", [2, 10, 1000])
@pytest.mark.parametrize("gamma_share", [0.0, 0.5, 0.99])
@pytest.mark.parametrize("round_number", [1, 3, 5])
def test_the_derived_counts_spend_their_share(num_arms, gamma_share, round_number):
    """K - 1 events of normal noise, bias at its bound: together at most delta_k, and not with half the pulls."""
    epsilon, delta, sigma, scaled = 0.05, 0.05, 0.7, 1.1 * 6.0
    threshold = 2.0**-round_number / 8 + 3 * epsilon / 8
    shift = gamma_share * threshold
    share = delta / (8 * round_number**2)
    total = 2 * sigma**2 * scaled * math.log((num_arms - 1) / share) / (threshold - shift) ** 2

    def spent(pulls):
        return (num_arms - 1) * norm.sf((threshold - shift) / (sigma * math.sqrt(scaled / pulls)))

    assert spent(total) <= share < spent(total / 3)


def test_the_last_threshold_is_between_seven_sixteenths_and_half_of_epsilon():
    for epsilon in [*np.linspace(0.001, 0.999, 500), 2.0**-3]:
        last = max(1, math.ceil(math.log2(1 / epsilon)))
        threshold = 2.0**-last / 8 + 3 * epsilon / 8
        assert 7 / 16 * epsilon <= threshold <= epsilon / 2 * (1 + 1e-12)
    natural = math.ceil(math.log(1 / 0.1))  # the printed logarithm, read as natural
    assert 2 * (2.0**-natural / 8 + 3 * 0.1 / 8) > 0.1


def test_the_gradients_of_the_paper_s_network_have_the_other_gram():
    """All weights, the zero blocks with them: H-tilde. The diagonal blocks alone: H. Both by hand, m = 1024, L = 3."""
    half = unit_rows((3, 4), seed=1)
    inputs = np.hstack([half, half]) / math.sqrt(2)
    full, blocks = np.zeros((3, 3)), np.zeros((3, 3))
    for seed in range(4):
        one, other = _gradient_grams(inputs, 1024, np.random.default_rng(seed))
        full, blocks = full + one / 4, blocks + other / 4
    np.testing.assert_allclose(full, neural_gram(half, form="H-tilde"), atol=0.2)
    np.testing.assert_allclose(blocks, neural_gram(half, form="H"), atol=0.15)
    assert np.trace(full) / np.trace(blocks) == pytest.approx(1.5, abs=0.05)


def _gradient_grams(inputs, width, rng):
    def block(rows, columns):
        part = rng.standard_normal((rows // 2, columns // 2)) * math.sqrt(4 / width)
        return np.block([[part, np.zeros_like(part)], [np.zeros_like(part), part]])

    first, second = block(width, inputs.shape[1]), block(width, width)
    last = rng.standard_normal(width // 2) * math.sqrt(2 / width)
    last = np.concatenate([last, -last])
    h1 = np.maximum(inputs @ first.T, 0)
    h2 = np.maximum(h1 @ second.T, 0)
    np.testing.assert_allclose(h2 @ last, 0, atol=1e-12)
    d2 = last * (h2 > 0)
    d1 = (d2 @ second) * (h1 > 0)

    def product(back, forward, parts):
        return sum(
            (b @ b.T) * (f @ f.T) for b, f in zip(np.hsplit(back, parts), np.hsplit(forward, parts), strict=True)
        )

    return tuple(h2 @ h2.T + product(d2, h1, parts) + product(d1, inputs, parts) for parts in (1, 2))
