"""The network as an embedding: its output, its start, its weights and its gradients."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from small_networks import KINDS, elsewhere, make, normal_rows, relative, unit_rows

import surepick as sp
from surepick.embeddings import NeuralTangentKernel, unit_rows_with_norm
from surepick.embeddings.network import ARCHITECTURES, ArmNetwork, Network

# --- the output


@pytest.mark.parametrize("inputs", ["raw", "normalized"])
@pytest.mark.parametrize(("architecture", "depth"), KINDS)
def test_the_output_is_the_formula(architecture, depth, inputs):
    """The docstring of `Network`, line by line in numpy."""
    features = normal_rows(5, 3)
    arms = make(features, architecture, depth, inputs=inputs)
    theta = elsewhere(arms)
    hidden = unit_rows_with_norm(features) if inputs == "normalized" else features
    if architecture == "symmetric":
        hidden = np.hstack([hidden, hidden]) / np.sqrt(2.0)
    *inner, (last, offset) = arms.layers(theta)
    for weights, biases in inner:
        hidden = hidden @ weights.numpy().T
        hidden = np.maximum(hidden if biases is None else hidden + biases.numpy(), 0.0)
    expected = (hidden @ last.numpy().T)[:, 0] * (1.0 if architecture == "published" else np.sqrt(6))
    expected = expected if offset is None else expected + offset.numpy()
    assert relative(arms.outputs(theta), expected) < 1e-13
    assert arms.last_layer(theta) == pytest.approx(hidden, abs=1e-13)


def test_a_network_of_one_unit_by_hand():
    """Standard, m = 2, L = 2: f = sqrt2 (3 relu(2 x) - 5 relu(-x)), p = 2 + 2."""
    arms = make([[1.0], [-1.0], [0.5]], "standard", depth=2, width=2)
    theta = arms.tensor(np.array([2.0, -1.0, 3.0, -5.0]))
    root = math.sqrt(2.0)
    assert arms.outputs(theta).numpy() == pytest.approx([6 * root, -5 * root, 3 * root])
    gradients = [[3.0, 0.0, 2.0, 0.0], [0.0, 5.0, 0.0, 1.0], [1.5, 0.0, 1.0, 0.0]]
    assert arms.gradients(theta).numpy() == pytest.approx(root * np.array(gradients))


@pytest.mark.parametrize("width", [16, 64, 512])
@pytest.mark.parametrize("depth", [2, 3, 4])
def test_the_symmetric_network_starts_at_zero_for_every_arm(depth, width):
    """To rounding, whatever the norms of the inputs."""
    for number, norm in enumerate((1e-3, 1.0, 10.0, 100.0)):
        arms = make(norm * unit_rows(40, 7, number), "symmetric", depth, width, seed=number)
        assert float(arms.outputs(arms.start).abs().max()) <= 1e-12
    normalized = make(normal_rows(40, 7), "symmetric", depth, width, inputs="normalized")
    assert float(normalized.outputs(normalized.start).abs().max()) <= 1e-12


@pytest.mark.parametrize("architecture", ["standard", "published"])
def test_the_others_do_not(architecture):
    """The saboteur of the test above."""
    arms = make(unit_rows(40, 7), architecture, width=64)
    assert float(arms.outputs(arms.start).abs().max()) > 0.01


# --- the start


@pytest.mark.parametrize("depth", [2, 3, 4])
def test_the_start_has_two_equal_blocks_and_opposite_last_weights(depth):
    arms = make(normal_rows(3, 5), "symmetric", depth, width=8)
    *inner, (last, _) = arms.layers(arms.start)
    for weights, biases in inner:
        half = [size // 2 for size in weights.shape]
        assert biases is None
        assert torch.equal(weights[: half[0], : half[1]], weights[half[0] :, half[1] :])
        assert not weights[: half[0], half[1] :].any()
        assert not weights[half[0] :, : half[1]].any()
        assert weights[: half[0], : half[1]].all()
    assert torch.equal(last[0, :4], -last[0, 4:])


def variance(values, expected) -> float:
    """The empirical variance around 0 over the expected one, in standard deviations from 1 of a normal sample."""
    drawn = np.asarray(values).ravel()
    return abs(float(np.mean(drawn**2)) / expected - 1.0) / math.sqrt(2.0 / drawn.size)


def test_the_variances_of_the_start():
    """Within 5 standard deviations of the empirical variance of normal draws: false alarm 6e-7 each."""
    width, features = 400, normal_rows(2, 30)
    symmetric = make(features, "symmetric", 3, width)
    for weights, _ in symmetric.layers(symmetric.start)[:-1]:
        assert variance(weights[: width // 2, : weights.shape[1] // 2], 4.0 / width) < 5.0
    assert variance(symmetric.layers(symmetric.start)[-1][0][0, : width // 2], 2.0 / width) < 5.0
    standard = make(features, "standard", 3, width)
    for weights, _ in standard.layers(standard.start)[:-1]:
        assert variance(weights, 2.0 / width) < 5.0
    assert variance(standard.layers(standard.start)[-1][0], 1.0 / width) < 5.0


def test_the_published_start_is_the_default_of_torch():
    """Weights and biases uniform in +- 1/sqrt(fan-in): the largest of 400 and more just below."""
    arms = make(normal_rows(2, 30), "published", 3, 400)
    for weights, biases in arms.layers(arms.start):
        limit = 1.0 / math.sqrt(weights.shape[1])
        for part in (weights, biases):
            assert float(part.abs().max()) <= limit
            assert part.numel() == 1 or float(part.abs().max()) > 0.97 * limit  # false alarm .97^400 = 5e-6, seed fixed


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_start_is_a_function_of_the_seed(architecture):
    starts = [make(normal_rows(4, 3, number), architecture, seed=7).start for number in range(2)]
    assert torch.equal(*starts)
    other = make(normal_rows(4, 3), architecture, seed=8).start
    assert float((starts[0] - other).abs().max()) > 0.1
    single = make(normal_rows(4, 3), architecture, seed=7, precision="float32").start
    assert torch.equal(single, starts[0].to(torch.float32))


# --- the number of weights


@pytest.mark.parametrize("depth", [2, 3, 5])
@pytest.mark.parametrize(
    ("architecture", "inputs", "columns"),
    [("symmetric", "raw", 10), ("symmetric", "normalized", 12), ("standard", "raw", 5), ("standard", "normalized", 6)],
)
def test_the_weights_are_counted_as_in_the_paper(architecture, inputs, columns, depth):
    """p = m + m d + m^2 (L - 2), d the inputs after appending the norm and doubling."""
    network = Network(depth=depth, width=8, architecture=architecture, inputs=inputs)
    assert network.num_parameters(5) == 8 + 8 * columns + 8**2 * (depth - 2)
    arms = ArmNetwork(normal_rows(4, 5), network)
    assert arms.num_parameters == len(arms.start) == network.num_parameters(5)
    assert arms.inputs.shape == (4, columns)


def test_the_published_network_has_biases():
    """128-128 on D = 25, as torch's own layers count."""
    layers = (torch.nn.Linear(25, 128), torch.nn.Linear(128, 128), torch.nn.Linear(128, 1))
    expected = sum(part.numel() for layer in layers for part in layer.parameters())
    arms = make(normal_rows(4, 25), "published", 3, 128)
    assert arms.num_parameters == len(arms.start) == expected == 19_969


# --- the inputs


def test_normalized_inputs_have_unit_norm_and_keep_the_norm_tellable():
    features = np.array([[3.0, 4.0], [0.3, 0.4], [-6.0, 8.0], [1e-9, 0.0]])
    rows = unit_rows_with_norm(features)
    assert np.linalg.norm(rows, axis=1) == pytest.approx(np.ones(4), abs=1e-15)
    assert rows[0] == pytest.approx(np.array([0.6, 0.8, 0.5]) / math.sqrt(1.25))
    assert rows[1] == pytest.approx(np.array([0.6, 0.8, 0.05]) / math.sqrt(1.0025))
    assert rows[2] == pytest.approx(np.array([-0.6, 0.8, 1.0]) / math.sqrt(2.0))
    norms = 10.0 * rows[:, -1] / np.sqrt(1.0 - rows[:, -1] ** 2)
    assert norms == pytest.approx([5.0, 0.5, 10.0, 1e-9])
    assert unit_rows_with_norm(7.0 * features) == pytest.approx(rows, abs=1e-15)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_collinear_arms_are_told_apart_after_normalizing(architecture):
    arms = make([[1.0, 2.0], [2.0, 4.0], [0.5, -1.0]], architecture, width=16, inputs="normalized")
    gradients = arms.gradients(arms.start)
    assert float((gradients[0] - gradients[1]).norm()) > 0.05 * float(gradients[0].norm())
    symmetric = 2.0 if architecture == "symmetric" else 1.0
    assert (symmetric * arms.inputs[:, :3] ** 2).sum(dim=1).numpy() == pytest.approx(np.ones(3))


def test_a_zero_row_has_no_direction():
    with pytest.raises(sp.InvalidInput, match="1 rows are zero, the first is row 1: they have no direction"):
        make([[1.0, 2.0], [0.0, 0.0]], inputs="normalized")
    assert make([[1.0, 2.0], [0.0, 0.0]]).num_arms == 2


# --- gradients, gram matrix, products


@pytest.mark.parametrize("inputs", ["raw", "normalized"])
@pytest.mark.parametrize(("architecture", "depth"), KINDS)
def test_gradients_are_central_finite_differences(architecture, depth, inputs):
    arms = make(normal_rows(4, 3), architecture, depth, inputs=inputs)
    theta, step = elsewhere(arms), 1e-6
    columns = []
    for number in range(arms.num_parameters):
        shift = torch.zeros_like(theta)
        shift[number] = step
        columns.append((arms.outputs(theta + shift) - arms.outputs(theta - shift)) / (2.0 * step))
    found, expected = arms.gradients(theta), torch.stack(columns, dim=1)
    assert found.shape == (4, arms.num_parameters)
    assert relative(found, expected) < 1e-7


@pytest.mark.parametrize("inputs", ["raw", "normalized"])
@pytest.mark.parametrize(("architecture", "depth"), [*KINDS, *((each, 4) for each in ARCHITECTURES)])
def test_gram_and_products_are_those_of_the_jacobian(architecture, depth, inputs):
    arms = make(normal_rows(6, 3), architecture, depth, inputs=inputs)
    rng = np.random.default_rng(1)
    direction, shares = arms.tensor(rng.normal(size=arms.num_parameters)), arms.tensor(rng.normal(size=6))
    for theta in (arms.start, elsewhere(arms)):
        jacobian = arms.gradients(theta)
        assert relative(arms.gram(theta), jacobian @ jacobian.T) < 1e-12
        assert relative(arms.pushed(theta, direction), jacobian @ direction) < 1e-12
        assert relative(arms.pulled(theta, shares), jacobian.T @ shares) < 1e-12
        rows = arms.inputs[[4, 1]]
        assert relative(arms.gradients(theta, rows), jacobian[[4, 1]]) < 1e-12
        assert relative(arms.gram(theta, rows), jacobian[[4, 1]] @ jacobian[[4, 1]].T) < 1e-12
        assert relative(arms.pushed(theta, direction, rows), (jacobian @ direction)[[4, 1]]) < 1e-12
        assert relative(arms.pulled(theta, shares[:2], rows), jacobian[[4, 1]].T @ shares[:2]) < 1e-12


# --- the limit of infinite width


@pytest.mark.parametrize(
    ("architecture", "form", "depth"),
    [
        ("symmetric", "H-tilde", 2),
        pytest.param("symmetric", "H-tilde", 3, marks=pytest.mark.slow),
        pytest.param("standard", "H", 2, marks=pytest.mark.slow),
        ("standard", "H", 3),
    ],
)
def test_the_gram_over_the_width_tends_to_the_tangent_kernel(architecture, form, depth):
    """Mean of 16 networks of width 1024 (2048 for two equal halves) in Frobenius norm; one network is 4 to 18 % off.

    So their mean is about 2 % off, and 6 % from its limit would be three standard deviations.
    """
    rows = unit_rows(12, 4)
    width = 2048 if architecture == "symmetric" else 1024
    networks = (make(rows, architecture, depth, width, seed=seed) for seed in range(16))
    mean = np.mean([(arms.gram(arms.start) / width).numpy() for arms in networks], axis=0)
    distances = {}
    for name in ("H-tilde", "H"):
        limit = NeuralTangentKernel(depth, name).gram(rows, rows)
        distances[name] = np.linalg.norm(mean - limit) / np.linalg.norm(limit)
    print(f"\n{architecture}, depth {depth}: " + ", ".join(f"{far:.1%} from {name}" for name, far in distances.items()))
    assert distances.pop(form) < 0.06
    assert min(distances.values()) > 0.18
