"""Settings of networks without meaning are refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from small_networks import SPECTRUM, make, normal_rows
from together import of_each

import surepick as sp
from surepick.embeddings import network as neural
from surepick.embeddings.network import SCALES, Network


@of_each(
    ("changes", "message"),
    [
        ({"depth": 1}, "depth is 1; it must be a whole number, 2 or more"),
        ({"depth": 2.5}, "depth is 2.5; it must be a whole number"),
        ({"depth": "3"}, "depth is '3'; it must be a number"),
        ({"width": 0}, "width is 0; it must be a whole number, 1 or more"),
        ({"width": 15}, "width is 15; two equal halves need an even number"),
        ({"seed": -1}, "seed is -1; it must be a whole number, 0 or more"),
        ({"architecture": "round"}, "architecture is 'round'; choose one of 'symmetric', 'standard', 'published'"),
        ({"inputs": "cooked"}, "inputs is 'cooked'; choose one of 'raw', 'normalized'"),
        ({"precision": "float16"}, "precision is 'float16'; choose one of 'float64', 'float32'"),
        ({"device": "abacus"}, "device is 'abacus'; give 'cpu' or 'cuda'"),
        ({"device": None}, "device is None; give 'cpu' or 'cuda'"),
    ],
)
def test_settings_without_meaning_are_refused(changes, message):
    with pytest.raises(sp.InvalidInput, match=message):
        Network(**changes)


def test_an_odd_width_is_fine_without_halves():
    assert Network(width=15, architecture="standard").num_parameters(2) == 15 + 15 * 2 + 15**2


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device here")
def test_a_device_that_is_absent_is_refused():
    with pytest.raises(sp.InvalidInput, match="device is 'cuda', and torch finds no such device here; use 'cpu'"):
        Network(device="cuda")


@pytest.mark.parametrize("scale", ["", "PAPER", None])
def test_an_unknown_scale_is_refused(scale):
    with pytest.raises(sp.InvalidInput, match=f"choose one of {', '.join(map(repr, SCALES))}"):
        SPECTRUM.dimension(0.1, scale)


def test_features_are_needed_and_finite():
    with pytest.raises(sp.InvalidInput, match="the arms have no features"):
        make(np.zeros((3, 0)))
    with pytest.raises(sp.InvalidInput, match="NaN or infinite features"):
        make([[1.0], [math.nan]])


def test_what_does_not_fit_into_memory_is_refused_before_it_is_formed(monkeypatch):
    arms = make(normal_rows(20, 3), width=8)
    theta = arms.start
    monkeypatch.setattr(neural, "LARGEST_ARRAY", 20 * arms.num_parameters * 8 - 1)
    with pytest.raises(sp.InvalidInput, match=r"the gradients of all arms would take .* GiB \(20 arms, 120 weights\)"):
        arms.gradients(theta)
    assert arms.gradients(theta, arms.inputs[:19]).shape == (19, 120)
    monkeypatch.setattr(neural, "LARGEST_ARRAY", 20**2 * 8 - 1)
    with pytest.raises(sp.InvalidInput, match=r"the gram matrix of the gradients would take .*certified-linear"):
        arms.spectrum(theta)
    assert arms.gram(theta, arms.inputs[:19]).shape == (19, 19)
    half = make(normal_rows(20, 3), width=8, precision="float32")
    assert half.gram(half.start).shape == (20, 20)
    usual = {"epsilon": 0.1, "delta": 0.05, "noise": "bernoulli", "width": 8}
    for name in ("neural-embedding", "certified-neural"):  # before anything is measured
        with pytest.raises(sp.InvalidInput, match="the spectrum of the gradients would take"):
            sp.make_policy(name, sp.Arms(normal_rows(20, 3)), **usual)


def test_gradients_that_are_not_finite_break_the_contract():
    """Weights may still become too large for features of order 1."""
    arms = make(normal_rows(4, 3), precision="float32")
    with pytest.raises(sp.errors.ContractError, match=r"a gradient of the network is not finite.*inputs='normalized'"):
        arms.spectrum(1e25 * arms.start)


@pytest.mark.parametrize(("size", "precision"), [(1e25, "float32"), (1e200, "float64")])
def test_features_whose_products_overflow_are_refused(size, precision):
    features = size * normal_rows(4, 3)
    with pytest.raises(sp.InvalidInput, match=r"so large that their products overflow; use inputs='normalized'"):
        make(features, precision=precision)
    arms = make(features, precision="float64", inputs="normalized") if size < 1e100 else make(features / size)
    assert np.all(np.isfinite(arms.spectrum(arms.start).values))


@pytest.mark.parametrize("path", ["bogus", "", None])
def test_an_unknown_path_is_refused(path):
    arms = make(normal_rows(4, 3))
    with pytest.raises(sp.InvalidInput, match="choose one of 'auto', 'jacobian', 'gram'"):
        arms.spectrum(arms.start, path=path)


@pytest.mark.parametrize("device", ["mps", "meta", "xpu"])
def test_other_devices_are_refused(device):
    with pytest.raises(sp.InvalidInput, match=f"device is '{device}'; give 'cpu' or 'cuda'"):
        Network(device=device)


def test_whole_numbers_are_stored_as_such():
    """16.0 is 16: the spec, the digests and torch see the same number."""
    network = Network(depth=2.0, width=16.0, seed=3.0)
    assert (network.depth, network.width, network.seed) == (2, 16, 3)
    assert {type(each) for each in (network.depth, network.width, network.seed)} == {int}
    assert network == Network(depth=2, width=16, seed=3)
    with pytest.raises(sp.InvalidInput, match=r"width is 16\.5"):
        Network(width=16.5)
