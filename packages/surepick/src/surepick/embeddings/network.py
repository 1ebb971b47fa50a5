"""A neural network as a map from arms to vectors: its gradient with respect to the weights, and its last layer."""

import math
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from surepick.core.arms import feature_matrix
from surepick.core.random_streams import stream
from surepick.core.records import FloatArray, frozen, record
from surepick.core.values import check_choice, whole_number
from surepick.embeddings.base import tail_sums
from surepick.embeddings.tangent_kernel import unit_rows_with_norm
from surepick.errors import ContractError, InvalidInput
from surepick.linalg.rows import equal_rows
from surepick.text import quoted

ARCHITECTURES = ("symmetric", "standard", "published")
INPUTS = ("raw", "normalized")
PRECISIONS = {"float64": torch.float64, "float32": torch.float32}
PATHS = ("auto", "jacobian", "gram")
SCALES = ("paper", "published", "relative")
LARGEST_ARRAY = 4 * 2**30  # bytes
Layers = list[tuple[Tensor, Tensor | None]]


@record
class Network:
    """What kind of network, and where its weights start: a fully connected ReLU network with one output.

        "symmetric":  f(x) = sqrt(m) W_L relu(W_{L-1} ... relu(W_1 (x, x)/sqrt(2)))
                      W_l = [[W, 0], [0, W]], entries of W from N(0, 4/m);  W_L = (w, -w), entries of w from N(0, 2/m)
        "standard":   f(x) = sqrt(m) W_L relu(W_{L-1} ... relu(W_1 x)), entries from N(0, 2/m), of W_L from N(0, 1/m)
        "published":  f(x) = W_L relu(... relu(W_1 x + b_1) ...) + b_L, all entries uniform in +- 1/sqrt(fan-in)

    At the start the first is 0 for every arm. As m grows, the gram matrix of its gradients over m tends to H-tilde^(L),
    that of the second to H = (H-tilde^(L) + Sigma^(L))/2 (`NeuralTangentKernel`).

    Args:
        depth: L >= 2, the number of weight layers.
        width: m >= 1, units in each hidden layer; even for "symmetric".
        architecture: one of the three above.
        inputs: "raw" takes the features as they are; "normalized" takes (x/|x|, |x|/R)/sqrt(1 + |x|^2/R^2), R the
            largest |x|: of norm 1, and the norm of x can still be told.
        seed: decides the weights at the start, the same on every device.
        device: where torch computes, "cpu" or "cuda".
        precision: "float64" or "float32".

    Raises:
        InvalidInput: a setting has no meaning.

    Source: section 5, definition of f, and the assumption on the initialisation; the published code for "published".
    """

    depth: int = 3
    width: int = 128
    architecture: str = "symmetric"
    inputs: str = "raw"
    seed: int = 0
    device: str = "cpu"
    precision: str = "float64"

    def __post_init__(self) -> None:
        for name, least, meaning in (
            ("depth", 2, "a network has a hidden layer and a last one."),
            ("width", 1, "a hidden layer has at least one unit."),
            ("seed", 0, "it decides the weights at the start."),
        ):
            value = whole_number(name, getattr(self, name), least=least, meaning=meaning)
            object.__setattr__(self, name, value)
        for name, known in (("architecture", ARCHITECTURES), ("inputs", INPUTS), ("precision", tuple(PRECISIONS))):
            check_choice(name, getattr(self, name), known)
        if self.architecture == "symmetric" and self.width % 2:
            raise InvalidInput(f"width is {self.width}; two equal halves need an even number.")
        try:
            kind = torch.device(self.device).type
        except (RuntimeError, TypeError):
            kind = ""
        if kind not in ("cpu", "cuda"):
            raise InvalidInput(f"device is {quoted(self.device)}; give 'cpu' or 'cuda'.")
        if kind == "cuda" and not torch.cuda.is_available():
            raise InvalidInput(f"device is {quoted(self.device)}, and torch finds no such device here; use 'cpu'.")

    @property
    def scale(self) -> float:
        """sqrt(m), or 1 for the published network: what multiplies the last layer."""
        return 1.0 if self.architecture == "published" else math.sqrt(self.width)

    def shapes(self, num_inputs: int) -> list[tuple[int, int]]:
        """(outputs, inputs) of each weight layer, for features with so many columns."""
        first = num_inputs + (self.inputs == "normalized")
        first *= 2 if self.architecture == "symmetric" else 1
        widths = [first, *[self.width] * (self.depth - 1), 1]
        return list(zip(widths[1:], widths[:-1], strict=True))

    def num_parameters(self, num_inputs: int) -> int:
        """p = m + m D' + m^2 (L - 2), D' the inputs after doubling and appending; with biases 1 more for each unit."""
        biases = self.architecture == "published"
        return sum(outputs * (inputs + biases) for outputs, inputs in self.shapes(num_inputs))


@frozen
class GradientSpectrum:
    """The singular value decomposition of the gradients of all arms, G = U diag(e) V', without V."""

    values: FloatArray  # e, decreasing, (min(K, p),), of the gradients as they are
    vectors: FloatArray  # U, (K, min(K, p)), orthonormal columns
    width: int  # m
    num_parameters: int  # p

    def dimension(self, tolerance: float, scale: str) -> int:
        """The smallest d >= 1 (never beyond the rank) with sum_{i>d} e_i <= tolerance * unit (Algorithm 2, line 3).

        "paper": unit = sqrt(m)    "published": unit = p, by which that code divides gradients    "relative": sum of e
        """
        check_choice("tolerance_scale", scale, SCALES)
        units = (math.sqrt(self.width), float(self.num_parameters), float(self.values.sum()))
        unit = dict(zip(SCALES, units, strict=True))[scale]
        return max(1, int(np.argmax(tail_sums(self.values) <= tolerance * unit)))

    def vectors_of(self, dim: int) -> FloatArray:
        """psi_d(x_i) = (e_1 u_i1, ..., e_d u_id) / sqrt(m), shape (K, d) (Algorithm 2, line 3)."""
        return self.vectors[:, :dim] * (self.values[:dim] / math.sqrt(self.width))


class ArmNetwork:
    """A network together with the arms it is asked about, X of (K, D). Weights are one flat vector theta, (p,)."""

    def __init__(self, features: FloatArray, network: Network) -> None:
        matrix = np.asarray(feature_matrix(features), dtype=np.float64)
        if matrix.shape[1] == 0:
            raise InvalidInput("the arms have no features, and a network needs some; use certified-independent.")
        self.network = network
        self.num_arms = len(matrix)
        self.num_parameters = network.num_parameters(matrix.shape[1])
        self.num_distinct = len(equal_rows(matrix).first)
        self._shapes = network.shapes(matrix.shape[1])
        rows = unit_rows_with_norm(matrix) if network.inputs == "normalized" else matrix
        if network.architecture == "symmetric":
            rows = np.concatenate([rows, rows], axis=1) / math.sqrt(2.0)
        self.inputs = self.tensor(rows)
        if not bool(torch.isfinite(self.inputs @ self.inputs.sum(dim=0)).all()):
            raise InvalidInput("the features are so large that their products overflow; use inputs='normalized'.")

    @property
    def penalty(self) -> float:
        """What a regularisation of 1 multiplies |theta - theta_0|^2 / 2 by: m, or 1 for the published network."""
        return self.network.scale**2

    @cached_property
    def start(self) -> Tensor:
        """theta_0, a function of the seed alone."""
        parts = []
        for layer, (outputs, inputs) in enumerate(self._shapes):
            rng = stream(self.network.seed, "network", layer)
            parts += self._drawn(rng, outputs, inputs, last=layer == len(self._shapes) - 1)
        return self.tensor(np.concatenate([part.ravel() for part in parts]))

    def outputs(self, theta: Tensor, rows: Tensor | None = None, *, masks: list[Tensor] | None = None) -> Tensor:
        """f(x; theta) of the arms, shape (K,), or of other input rows."""
        hidden = self.inputs if rows is None else rows
        *inner, last = self.layers(theta)
        for number, (weights, biases) in enumerate(inner):
            hidden = torch.relu(torch.nn.functional.linear(hidden, weights, biases))
            hidden = hidden if masks is None else hidden * masks[number]
        return self.network.scale * torch.nn.functional.linear(hidden, *last)[:, 0]

    def gradients(self, theta: Tensor, rows: Tensor | None = None) -> Tensor:
        """G, the gradient of f with respect to theta for each arm, shape (K, p)."""
        rows = self.inputs if rows is None else rows
        self._check_memory(len(rows) * self.num_parameters, "the gradients of all arms")

        def output(weights: Tensor, row: Tensor) -> Tensor:
            return self.outputs(weights, row[None, :])[0]

        return torch.func.vmap(torch.func.grad(output), in_dims=(None, 0))(theta, rows)

    def gram(self, theta: Tensor, rows: Tensor | None = None) -> Tensor:
        """GG' without G, (K, K): sum over layers of (H_{l-1} H_{l-1}' [+ 1 with biases]) o (Delta_l Delta_l'), with the
        layer's inputs and the derivatives of f by its outputs before the ReLU. Cost: O(K^2 (D + L m)) time."""
        size = self.num_arms if rows is None else len(rows)
        self._check_memory(size**2, "the gram matrix of the gradients")
        inputs, deltas = self._passed(theta, rows)
        total = torch.zeros((size, size), dtype=self.inputs.dtype, device=self.inputs.device)
        for hidden, delta, (_, biases) in zip(inputs, deltas, self.layers(theta), strict=True):
            products = hidden @ hidden.T
            if biases is not None:
                products += 1.0
            total += products.mul_(delta @ delta.T)
        return total

    def _passed(self, theta: Tensor, rows: Tensor | None) -> tuple[list[Tensor], list[Tensor]]:
        """(H_{l-1}, Delta_l) of every layer l: its inputs, and the derivatives of f by its outputs before the ReLU."""
        layers, inputs = self.layers(theta), self._seen(theta, self.inputs if rows is None else rows)
        deltas = [torch.full_like(inputs[-1][:, :1], self.network.scale)]
        for layer in range(len(layers) - 1, 0, -1):
            deltas.append((deltas[-1] @ layers[layer][0]) * (inputs[layer] > 0))
        return inputs, deltas[::-1]

    def _seen(self, theta: Tensor, rows: Tensor) -> list[Tensor]:
        """H_{l-1}, the inputs of every layer l."""
        inputs = [rows]
        for weights, biases in self.layers(theta)[:-1]:
            inputs.append(torch.relu(torch.nn.functional.linear(inputs[-1], weights, biases)))
        return inputs

    def last_layer(self, theta: Tensor) -> FloatArray:
        """The arms as the last layer sees them, shape (K, m): f is a linear function of them."""
        return np.asarray(self._seen(theta, self.inputs)[-1].detach().cpu().numpy(), dtype=np.float64)

    def pushed(self, theta: Tensor, direction: Tensor, rows: Tensor | None = None) -> Tensor:
        """G v: how fast the outputs change along a direction of the weights, shape (K,)."""
        hidden = self.inputs if rows is None else rows
        change = torch.zeros_like(hidden)
        linear = torch.nn.functional.linear
        pairs = list(zip(self.layers(theta), self.layers(direction), strict=True))
        for (weights, biases), (step, shift) in pairs[:-1]:
            before = linear(hidden, weights, biases)
            change = (linear(change, weights) + linear(hidden, step, shift)) * (before > 0)
            hidden = torch.relu(before)
        (weights, _), (step, shift) = pairs[-1]
        return self.network.scale * (linear(change, weights) + linear(hidden, step, shift))[:, 0]

    def pulled(self, theta: Tensor, shares: Tensor, rows: Tensor | None = None) -> Tensor:
        """G'c: the gradient of sum_x c_x f(x), shape (p,)."""
        inputs, deltas = self._passed(theta, rows)
        parts = []
        for hidden, delta, (_, biases) in zip(inputs, deltas, self.layers(theta), strict=True):
            scaled = delta * shares[:, None]
            parts.append((scaled.T @ hidden).reshape(-1))
            if biases is not None:
                parts.append(scaled.sum(dim=0))
        return torch.cat(parts)

    def spectrum(self, theta: Tensor, *, path: str = "auto") -> GradientSpectrum:
        """The singular values and left vectors of the gradients; O(K p min(K, p)) or O(K^2 (D + L m) + K^3) time."""
        check_choice("path", path, PATHS)
        direct = self.num_parameters <= self.num_arms if path == "auto" else path == "jacobian"
        matrix = self.gradients(theta) if direct else self.gram(theta)
        if not bool(torch.isfinite(matrix).all()):
            raise ContractError(
                "a gradient of the network is not finite: its weights or the features are too large. Use "
                "inputs='normalized', or features of order 1."
            )
        if direct:
            vectors, values, _ = torch.linalg.svd(matrix, full_matrices=False)
        else:
            squares, vectors = torch.linalg.eigh(matrix)
            values, vectors = torch.sqrt(torch.clamp(squares, min=0.0)).flip(0), vectors.flip(1)
        classes = equal_rows(self.inputs.cpu().numpy())  # equal arms are one point, however their rows are rounded
        vectors = vectors[torch.as_tensor(classes.first[classes.group], device=self.inputs.device)]
        return GradientSpectrum(values.cpu().numpy(), vectors.cpu().numpy(), self.network.width, self.num_parameters)

    def check_size(self) -> None:
        """Refuse arms that are too many for their gradients' spectrum, before anything is measured."""
        self._check_memory(self.num_arms * min(self.num_arms, self.num_parameters), "the spectrum of the gradients")

    def layers(self, theta: Tensor) -> Layers:
        """theta as weights (outputs, inputs) and biases of each layer."""
        parts: Layers = []
        at = 0
        for outputs, inputs in self._shapes:
            weights = theta[at : at + outputs * inputs].view(outputs, inputs)
            at += outputs * inputs
            biases = None
            if self.network.architecture == "published":
                biases = theta[at : at + outputs]
                at += outputs
            parts.append((weights, biases))
        return parts

    def _drawn(self, rng: np.random.Generator, outputs: int, inputs: int, *, last: bool) -> list[FloatArray]:
        """Weights (outputs, inputs) of a layer at the start, and the biases (outputs,) of a published one."""
        width = self.network.width
        if self.network.architecture == "published":
            limit = 1.0 / math.sqrt(inputs)
            return [rng.uniform(-limit, limit, (outputs, inputs)), rng.uniform(-limit, limit, outputs)]
        if self.network.architecture == "standard":
            return [math.sqrt((1.0 if last else 2.0) / width) * rng.standard_normal((outputs, inputs))]
        if last:
            half = math.sqrt(2.0 / width) * rng.standard_normal(inputs // 2)
            return [np.concatenate([half, -half])]
        block = math.sqrt(4.0 / width) * rng.standard_normal((outputs // 2, inputs // 2))
        return [np.block([[block, np.zeros_like(block)], [np.zeros_like(block), block]])]

    def tensor(self, values: FloatArray) -> Tensor:
        """Numbers where the network computes, in its precision and of the shape given."""
        return torch.tensor(values, dtype=PRECISIONS[self.network.precision], device=self.network.device)

    def _check_memory(self, entries: int, what: str) -> None:
        """Refuse an array of more than 4 GiB."""
        needed = entries * self.inputs.element_size()
        if needed > LARGEST_ARRAY:
            raise InvalidInput(
                f"{what} would take {needed / 2**30:.1f} GiB ({self.num_arms} arms, {self.num_parameters} weights), "
                f"and at most {LARGEST_ARRAY / 2**30:.0f} are formed. Use a smaller network, fewer arms, or a policy "
                "that scales (certified-linear, certified-independent)."
            )
