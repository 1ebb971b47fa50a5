"""The network's two costs, its embedding and its training, beside plain matrix multiplications of as many operations.

    OMP_NUM_THREADS=1 python benchmarks/neural.py [--arms 250,1000,2000] [--width 128] [--architecture symmetric]
    python benchmarks/neural.py --device cuda [--arms 10000] [--width 1024] [--precision float32]

Two clusters in 25 dimensions, linear Bernoulli rewards, 100 pulls of each arm. "embedding" is `ArmNetwork.spectrum` at
theta_0; AdamW, whose steps do not depend on the data, runs at the fewest arms only. Operations are counted as

    gram matrix of the gradients   2 K^2 (inputs + units) of each layer, and two passes through the network
    eigenvalues and vectors        9 K^3
    a Gauss-Newton step            a gram matrix, K^3/3, and eight passes
    a step of gradient descent     four passes            of AdamW      three passes            a pass      2 K p

"same" is their number over the rate of products of square matrices on the same device in the same precision.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch

import surepick as sp
from surepick.embeddings.network import ARCHITECTURES, PRECISIONS, ArmNetwork, Network
from surepick.estimators.network_training import TRAINERS, train

PULLS = 100
SIZES = {"cpu": 1024, "cuda": 8192}  # of the square matrices
DEFAULTS = {"cpu": ("250,1000,2000", 128), "cuda": ("10000", 1024)}


@dataclass(frozen=True)
class Cost:
    """What was done, in seconds and in floating point operations."""

    label: str
    seconds: float
    operations: float


def seconds_of(device: str, work: Callable[[], object]) -> float:
    """Wall-clock seconds, with whatever was given to the device before and during it done."""
    wait(device)
    started = time.perf_counter()
    work()
    wait(device)
    return time.perf_counter() - started


def wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def rate_of_products(device: str, precision: str, *, seconds: float = 1.0) -> float:
    """Operations a second of products of square matrices."""
    size = SIZES[device]
    generator = torch.Generator(device=device).manual_seed(0)
    left, right = (
        torch.randn((size, size), generator=generator, device=device, dtype=PRECISIONS[precision]) for _ in range(2)
    )
    out = torch.empty_like(left)
    once = seconds_of(device, lambda: torch.mm(left, right, out=out))
    once = min(once, seconds_of(device, lambda: torch.mm(left, right, out=out)))
    repeats = max(3, int(seconds / once))

    def products() -> None:
        for _ in range(repeats):
            torch.mm(left, right, out=out)

    return repeats * 2.0 * size**3 / seconds_of(device, products)


def gram_operations(arms: ArmNetwork, num_inputs: int) -> float:
    """Of GG' without G."""
    size = arms.num_arms
    layers = sum(inputs + outputs for outputs, inputs in arms.network.shapes(num_inputs))
    return 2.0 * size**2 * layers + 2 * a_pass(arms)


def a_pass(arms: ArmNetwork) -> float:
    """Of one pass through the network for all arms."""
    return 2.0 * arms.num_arms * arms.num_parameters


def costs(num_arms: int, network: Network, trainers: tuple[str, ...]) -> Iterator[Cost]:
    """The embedding, then each trainer."""
    environment = sp.environments.two_clusters(num_arms=num_arms, dim=25, reward="linear", seed=0)
    seen = environment.pull(np.full(num_arms, PULLS), np.random.default_rng(0))
    arms = ArmNetwork(environment.arms.features, network)
    gram, one, device = gram_operations(arms, 25), a_pass(arms), network.device
    start = arms.start
    found = seconds_of(device, lambda: arms.spectrum(start, path="gram"))
    yield Cost("embedding", found, gram + 9.0 * num_arms**3)
    each = {"gauss-newton": gram + num_arms**3 / 3.0 + 8.0 * one, "gradient-descent": 4.0 * one, "adamw": 3.0 * one}
    for trainer in trainers:
        started = time.perf_counter()
        trained = train(arms, seen, trainer=trainer)
        wait(device)
        found = time.perf_counter() - started
        yield Cost(f"{trainer}, {trained.steps} steps", found, trained.steps * each[trainer])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=list(DEFAULTS), default="cpu")
    parser.add_argument("--arms", help="numbers of arms, even, fewest first")
    parser.add_argument("--width", type=int)
    parser.add_argument("--architecture", choices=ARCHITECTURES, default="symmetric")
    parser.add_argument("--precision", choices=list(PRECISIONS), default="float64")
    chosen = parser.parse_args()
    if chosen.device == "cuda" and not torch.cuda.is_available():
        print("torch finds no CUDA device here: nothing was measured.")
        return
    arms, width = DEFAULTS[chosen.device]
    numbers = [int(number) for number in (chosen.arms or arms).split(",")]
    network = Network(
        width=chosen.width or width, architecture=chosen.architecture, device=chosen.device, precision=chosen.precision
    )
    if chosen.device == "cuda":
        print(torch.cuda.get_device_name())
    train(ArmNetwork(np.eye(4), network), sp.Observations(np.ones(4), np.ones(4)))  # first calls load libraries
    rate = rate_of_products(chosen.device, chosen.precision)
    print(f"{network.architecture}, width {network.width}, {network.precision}: products at {rate / 1e9:,.1f} GFLOP/s")
    print(f"{'arms':>7s}  {'':32s} {'seconds':>9s} {'GFLOP':>10s} {'same, s':>9s} {'ratio':>7s}")
    for place, number in enumerate(numbers):
        trainers = TRAINERS if place == 0 and chosen.device == "cpu" else ("gauss-newton", "gradient-descent")
        for cost in costs(number, network, trainers):
            same = cost.operations / rate
            print(
                f"{number:7d}  {cost.label:32s} {cost.seconds:9.3f} {cost.operations / 1e9:10.2f} {same:9.4f} "
                f"{cost.seconds / same:7.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
