"""The sentences of docs/neural-guarantee.md."""

from __future__ import annotations

import contextlib
import io
import math
import re
from pathlib import Path

import numpy as np
import pytest
from fresh_modules import run_fresh
from scipy.stats import norm
from tangent_kernels import unit_rows
from together import of_each

import surepick as sp
from surepick.embeddings import NeuralTangentKernel, unit_rows_with_norm
from surepick_bench.theory.neural import reward_norm, rounding_floor
from surepick_bench.theory.spectra import neural_gram

PAGE = Path(__file__).parents[2] / "docs" / "neural-guarantee.md"


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


@of_each("num_arms", [2, 10, 1000])
@of_each("gamma_share", [0.0, 0.5, 0.99])
@of_each("round_number", [1, 3, 5])
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
