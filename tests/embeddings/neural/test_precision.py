"""Single precision and other devices agree with double precision on the processor."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch
from small_networks import KINDS, make, relative, unit_rows
from together import of_each

from surepick.embeddings.network import ArmNetwork, Network

on_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no CUDA device here")


@of_each(("architecture", "depth"), KINDS)
def test_single_precision_agrees_to_its_digits(architecture, depth):
    double = make(unit_rows(12, 4), architecture, depth, width=32)
    single = make(unit_rows(12, 4), architecture, depth, width=32, precision="float32")
    assert single.start.dtype == single.gram(single.start).dtype == torch.float32
    assert relative(single.gram(single.start), double.gram(double.start)) < 1e-5
    assert relative(single.gradients(single.start), double.gradients(double.start)) < 1e-5
    found, expected = single.spectrum(single.start).values, double.spectrum(double.start).values
    assert np.max(np.abs(found - expected)) < 2e-3 * expected[0]  # the square root of the rounding of a square
    assert found.dtype == np.float64


@on_cuda
@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize(("architecture", "depth"), KINDS)
def test_cuda_agrees_with_the_processor(architecture, depth, precision):
    network = Network(depth=depth, width=64, architecture=architecture, precision=precision)
    here = ArmNetwork(unit_rows(50, 6), network)
    there = ArmNetwork(unit_rows(50, 6), dataclasses.replace(network, device="cuda"))
    tolerance = 1e-11 if precision == "float64" else 1e-4
    assert torch.equal(there.start.cpu(), here.start)
    assert there.gram(there.start).device.type == "cuda"
    assert relative(there.gram(there.start).cpu(), here.gram(here.start)) < tolerance
    assert relative(there.gradients(there.start).cpu(), here.gradients(here.start)) < tolerance
    found, expected = there.spectrum(there.start).values, here.spectrum(here.start).values
    assert np.max(np.abs(found - expected)) < math.sqrt(tolerance) * expected[0]
