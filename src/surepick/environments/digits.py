"""Handwritten digits as arms: "find a seven". The 8 x 8 images that come with scikit-learn."""

from __future__ import annotations

import numpy as np

from surepick.core.arms import Arms
from surepick.core.arrays import FloatArray, IntArray
from surepick.core.random_streams import stream
from surepick.environments.environment import Environment
from surepick.errors import InvalidInput
from surepick.linalg.factorisations import thin_svd
from surepick.noise import SubGaussian

NUM_CLASSES = 10
REWARDS = np.array([0.5, 0.8, 0.8, 0.5, 0.5, 0.5, 0.5, 1.0, 0.5, 0.8])  # 7 is best; 1, 2 and 9 resemble it


def digits(seed: int = 0, per_digit: int = 6) -> Environment:
    """Real handwritten digits (8 x 8): an image of a 7 is worth 1, of a 1, 2 or 9 .8, any other .5; noise N(0, 1).

    The features are the 64 grey levels in [0, 1] and the 112 products of neighbouring ones, horizontal and vertical
    ("is there a stroke?"). Grey levels alone would not do: few images use the outer pixels, so 60 of them have rank
    about 53, and no linear function of them takes these values. With the products 60 images have rank 60.

    Args:
        seed: decides which images are drawn.
        per_digit: images of each digit, drawn without replacement, 1 to 174 (there are 174 images of an 8).

    Returns:
        10 * per_digit arms with ids like "7-#123" (digit, number of the image). Images are redrawn, up to 100 times,
        until the features have full row rank, so that the rewards are exactly linear in them. That succeeds up to
        per_digit = 14, for some seeds at 15, and hardly ever beyond (all images together have rank 162): the images
        then stand as drawn, and the rewards are not linear in the features.

    Raises:
        InvalidInput: per_digit is out of range, or scikit-learn is absent.

    Source: the paper's MNIST experiment, on smaller images. Differs from the paper: the products.
    """
    try:
        from sklearn.datasets import load_digits  # noqa: PLC0415 (heavy, and an extra)
    except ImportError as error:
        raise InvalidInput('the digits need scikit-learn, which is absent: pip install "surepick[demo]".') from error
    images, labels = load_digits(return_X_y=True)
    features = _with_strokes(images / 16.0)
    rng = stream(seed, "digits", per_digit)
    chosen = draw_images(labels, per_digit, rng)
    for _ in range(100 if len(chosen) <= features.shape[1] else 0):
        if row_rank(features[chosen]) == len(chosen):
            break
        chosen = draw_images(labels, per_digit, rng)
    return digit_environment(features[chosen], labels, chosen)


def _with_strokes(pixels: FloatArray) -> FloatArray:
    images = pixels.reshape(-1, 8, 8)
    across = (images[:, :, 1:] * images[:, :, :-1]).reshape(len(images), -1)
    down = (images[:, 1:, :] * images[:, :-1, :]).reshape(len(images), -1)
    return np.concatenate([pixels, across, down], axis=1)


def draw_images(labels: IntArray, per_digit: int, rng: np.random.Generator) -> IntArray:
    """Numbers of `per_digit` images of each digit, drawn without replacement, shape (10 * per_digit,).

    Raises:
        InvalidInput: per_digit is below 1 or above the images of some digit.
    """
    most = int(np.bincount(labels, minlength=NUM_CLASSES).min())
    if not 1 <= per_digit <= most:
        raise InvalidInput(f"per_digit is {per_digit}; it must be 1 to {most}, the images of the rarest digit.")
    of_each = [rng.choice(np.flatnonzero(labels == digit), per_digit, replace=False) for digit in range(NUM_CLASSES)]
    return np.concatenate(of_each)


def row_rank(features: FloatArray, *, tolerance: float = 1e-9) -> int:
    """Singular values above `tolerance` times the largest."""
    _, singular, _ = thin_svd(features)
    return int(np.sum(singular > tolerance * singular[0]))


def digit_environment(features: FloatArray, labels: IntArray, chosen: IntArray) -> Environment:
    """The chosen images as arms, with the paper's rewards and unit normal noise."""
    ids = [f"{labels[image]}-#{image}" for image in chosen]
    return Environment(arms=Arms(features, ids), means=REWARDS[labels[chosen]], noise=SubGaussian(1.0))
