"""Digits and MNIST: real images on which the rewards are linear."""

import builtins
import gzip

import numpy as np
import pytest
from sampled_rewards import SEEDS

from surepick import environments
from surepick.environments.recorded import REWARDS, row_rank
from surepick.errors import DatasetMissing, InvalidInput
from surepick.noise import SubGaussian
from surepick_bench import datasets

# digits


def test_digits_are_sixty_real_images_on_which_the_rewards_are_linear():
    for seed in SEEDS:
        env = environments.digits(seed)
        labels = np.array([int(name.split("-#")[0]) for name in env.arms.ids])
        np.testing.assert_array_equal(np.bincount(labels), 6)
        np.testing.assert_array_equal(env.means, REWARDS[labels])
        assert set(labels[env.gaps == 0]) == {7}
        assert np.linalg.matrix_rank(env.arms.features) == env.num_arms == 60
        assert env.arms.features.min() == 0
        assert env.arms.features.max() == 1
        assert env.noise == SubGaussian(1.0)


def test_the_products_of_neighbours_are_what_makes_the_digits_linear():
    env = environments.digits(0)
    pixels, theta_of = env.arms.features[:, :64], lambda x: np.linalg.lstsq(x, env.means)[0]
    assert np.max(np.abs(pixels @ theta_of(pixels) - env.means)) > 0.02
    full = env.arms.features
    assert np.max(np.abs(full @ theta_of(full) - env.means)) < 1e-10


def test_digits_show_the_images_that_their_ids_name():
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    env = environments.digits(4, per_digit=2)
    for name, features in zip(env.arms.ids, env.arms.features, strict=True):
        digit, number = (int(part) for part in name.split("-#"))
        assert labels[number] == digit
        image = images[number].reshape(8, 8) / 16
        np.testing.assert_array_equal(features[:64], image.ravel())
        assert features[64 + 7 * 3 + 2] == image[3, 2] * image[3, 3]  # across
        assert features[64 + 56 + 8 * 3 + 2] == image[3, 2] * image[4, 2]  # down


def test_the_seed_decides_the_images():
    assert environments.digits(1) == environments.digits(1)
    assert environments.digits(1) != environments.digits(2)


def test_more_images_than_dimensions_stand_as_drawn():
    env = environments.digits(0, per_digit=18)
    assert env.num_arms == 180 > row_rank(env.arms.features)


@pytest.mark.parametrize("per_digit", [0, 175])
def test_more_digits_than_there_are_is_refused(per_digit):
    with pytest.raises(InvalidInput, match=f"per_digit is {per_digit}; it must be 1 to 174"):
        environments.digits(0, per_digit)


def test_digits_without_sklearn_name_the_command(monkeypatch):
    real_import = builtins.__import__

    def without(name, *args, **kwargs):
        if name.startswith("sklearn"):
            raise ImportError(name)
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(InvalidInput, match=r'pip install "surepick\[demo\]"'):
        environments.digits(0)


# MNIST


IMAGES, LABELS = "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"


def test_mnist_keeps_the_geometry_of_the_images(mnist_directory):
    env = datasets.mnist(mnist_directory, seed=1)
    labels, numbers = np.array([[int(part) for part in name.split("-#")] for name in env.arms.ids]).T
    np.testing.assert_array_equal(np.bincount(labels), 20)
    np.testing.assert_array_equal(env.means, REWARDS[labels])
    assert env.arms.features.shape == (200, 200)
    raw = np.frombuffer(gzip.decompress((mnist_directory / f"{IMAGES}.gz").read_bytes()), np.uint8, offset=16)
    pixels = raw.reshape(10_000, 784)[numbers] / 255
    np.testing.assert_allclose(env.arms.features @ env.arms.features.T, pixels @ pixels.T, atol=1e-10)
    truth = np.frombuffer(gzip.decompress((mnist_directory / f"{LABELS}.gz").read_bytes()), np.uint8, offset=8)
    np.testing.assert_array_equal(truth[numbers], labels)


def test_unpacked_files_give_the_same_instance(mnist_directory, tmp_path):
    for name in (IMAGES, LABELS):
        (tmp_path / name).write_bytes(gzip.decompress((mnist_directory / f"{name}.gz").read_bytes()))
    assert datasets.mnist(tmp_path, 3, 2) == datasets.mnist(mnist_directory, 3, 2)


def test_absent_files_come_with_the_recipe(tmp_path):
    with pytest.raises(
        DatasetMissing, match=rf"neither {IMAGES}\.gz nor {IMAGES} in .*md5 9fb629c4189551a2d022fa330f9573f3"
    ) as caught:
        datasets.mnist(tmp_path)
    assert LABELS in caught.value.recipe


def test_a_damaged_packed_file_is_refused(tmp_path):
    (tmp_path / f"{IMAGES}.gz").write_bytes(gzip.compress(b"not these"))
    with pytest.raises(InvalidInput, match=r"has md5 \w{32}, not 9fb629c4189551a2d022fa330f9573f3"):
        datasets.mnist(tmp_path)


@pytest.mark.parametrize("content", [b"", b"\0\0\x08\x03" + b"\0" * 100])
def test_an_unpacked_file_of_another_kind_is_refused(tmp_path, content):
    (tmp_path / IMAGES).write_bytes(content)
    with pytest.raises(InvalidInput, match="not MNIST's test half"):
        datasets.mnist(tmp_path)


def test_more_mnist_images_than_there_are_is_refused(mnist_directory):
    with pytest.raises(InvalidInput, match="it must be 1 to 892"):
        datasets.mnist(mnist_directory, per_digit=893)
