"""MNIST's test images as arms, read from the original files."""

from __future__ import annotations

import gzip
import hashlib
import struct
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from surepick.bench.datasets.files import data_file, in_row_space
from surepick.core.random_streams import stream
from surepick.environments.digits import digit_environment, draw_images
from surepick.environments.environment import Environment
from surepick.errors import InvalidInput

IMAGES = "t10k-images-idx3-ubyte"
LABELS = "t10k-labels-idx1-ubyte"
MD5 = {IMAGES: "9fb629c4189551a2d022fa330f9573f3", LABELS: "ec29112dd5afa0611ce80d1b7f02629c"}  # of the .gz files
HEADERS = {IMAGES: (2051, 10000, 28, 28), LABELS: (2049, 10000)}  # magic number, then the shape
RECIPE = (
    f"Download {IMAGES}.gz (md5 {MD5[IMAGES]}) and {LABELS}.gz (md5 {MD5[LABELS]}), the test half of MNIST, e.g. from "
    "https://ossci-datasets.s3.amazonaws.com/mnist/, and put both into that directory, packed or unpacked."
)


def mnist(directory: str | Path, seed: int = 0, per_digit: int = 20) -> Environment:
    """MNIST test images: an image of a 7 is worth 1, of a 1, 2 or 9 .8, any other .5; noise N(0, 1).

    Args:
        directory: where the two files of the test half lie, as .gz (checked by md5) or unpacked (checked by header
            and size).
        seed: decides which images are drawn.
        per_digit: images of each digit, drawn without replacement.

    Returns:
        K = 10 * per_digit arms with ids like "7-#123" (digit, number of the image). The features are the grey levels
        in [0, 1] in coordinates of their row space, U diag(s), shape (K, rank): inner products are those of the
        images, and with the usual full row rank every reward is linear in them.

    Raises:
        DatasetMissing: a file is absent; the message holds the recipe.
        InvalidInput: a file is corrupt, or per_digit is out of range.

    Source: the paper's MNIST experiment.
    """
    pixels = _read(Path(directory), IMAGES)
    labels = _read(Path(directory), LABELS).astype(np.int64)
    if labels.max() > 9:
        raise InvalidInput(f"{LABELS} in {directory} holds the label {labels.max()}; digits are 0 to 9. {RECIPE}")
    chosen = draw_images(labels, per_digit, stream(seed, "mnist", per_digit))
    features = in_row_space(pixels[chosen].reshape(len(chosen), -1) / 255.0, tolerance=1e-12)
    return digit_environment(features, labels, chosen)


def _read(directory: Path, name: str) -> NDArray[np.uint8]:
    path = data_file(directory, name, RECIPE)
    content = path.read_bytes()
    if path.suffix == ".gz":
        digest = hashlib.md5(content, usedforsecurity=False).hexdigest()
        if digest != MD5[name]:
            raise InvalidInput(
                f"{path} has md5 {digest}, not {MD5[name]}: it is damaged or another file, and results would not be "
                f"comparable. {RECIPE}"
            )
        content = gzip.decompress(content)
    header = HEADERS[name]
    start = 4 * len(header)
    found = struct.unpack(f">{len(header)}i", content[:start]) if len(content) >= start else ()
    size = int(np.prod(header[1:]))
    if found != header or len(content) != start + size:
        raise InvalidInput(
            f"{path} is not MNIST's test half: its header is {found} and {len(content)} bytes long, expected {header} "
            f"and {start + size} bytes. {RECIPE}"
        )
    return np.frombuffer(content, dtype=np.uint8, offset=start).reshape(header[1:])
