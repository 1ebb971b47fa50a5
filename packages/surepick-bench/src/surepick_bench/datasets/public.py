"""What the readers of data sets share: files, refused rows, numbers for what repeats, coordinates."""

import gzip
import hashlib
import struct
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from surepick.core.arms import Arms
from surepick.core.files import is_file
from surepick.core.random_streams import stream
from surepick.core.records import BoolArray, FloatArray, IntArray
from surepick.core.values import check_choice, not_negative, positive_number, whole_number
from surepick.environments.environment import Environment, RecordedAnswers
from surepick.environments.recorded import digit_environment, draw_images, table
from surepick.environments.rewards import RecordedRewards
from surepick.errors import DatasetMissing, InvalidInput
from surepick.linalg.factorisations import thin_svd
from surepick.noise import Bernoulli, Bounded, SubGaussian
from surepick.tables import Table, read_table

Value = TypeVar("Value", bound=Hashable)


def data_file(folder: Path, name: str, recipe: str) -> Path:
    """The file of that name in the folder, packed (name.gz) or plain."""
    for path in (folder / f"{name}.gz", folder / name):
        if is_file(path):
            return path
    raise DatasetMissing(f"There is neither {name}.gz nor {name} in {folder}.", recipe=recipe)


def refuse_rows(table: Table, bad: BoolArray, fault: Callable[[int], str], recipe: str) -> None:
    """Refuse a table with bad rows."""
    rows = np.flatnonzero(bad)
    if rows.size:
        raise InvalidInput(f"{table.source}, row {table.line_of(rows[0])}: {fault(int(rows[0]))} {recipe}")


def numbered(values: Sequence[Value]) -> tuple[list[Value], IntArray]:
    """The different values in the order of first appearance, and the place there of each value."""
    places: dict[Value, int] = {}
    index = np.array([places.setdefault(value, len(places)) for value in values], dtype=np.int64)
    return list(places), index


def one_hot(values: Sequence[Hashable]) -> FloatArray:
    """A 0/1 column for each different value, shape (len(values), different values)."""
    different, place = numbered(values)
    return np.eye(len(different))[place]


def in_row_space(features: FloatArray, *, tolerance: float) -> FloatArray:
    """The rows in orthonormal coordinates of their span, U diag(s), shape (K, rank)."""
    u, singular, _ = thin_svd(features)
    kept = singular > tolerance * singular[0]
    return np.asarray(u[:, kept] * singular[kept])


# --- Crossed barrels: 600 designs of a plastic part, each printed and crushed three times.

COLUMNS = ("n", "theta", "r", "t")
NOISE = 19.0  # half of the largest spread of a design's three values is 18.7
CROSSED_BARREL_RECIPE = (
    'Take "datasets/Crossed barrel_dataset.csv" from https://github.com/PV-Lab/Benchmarking (MIT) and write it as '
    "Crossed_barrel_dataset.csv: a row for each crushed part, the columns n, theta, r, t and toughness."
)


def crossed_barrel(directory: str | Path) -> Environment:
    """Which designs are the toughest? A pull draws one of the three recorded parts of a design.

    Args:
        directory: holds Crossed_barrel_dataset.csv, plain or packed (.gz).

    Returns:
        600 arms whose four features are those of the design, with toughness as reward; noise sub-Gaussian of scale 19.

    Raises:
        DatasetMissing: the file is absent; the message holds the recipe.
        InvalidInput: it is no such table.

    Source: Gongora et al., Science Advances 6, eaaz1708 (2020); Liang et al., npj Computational Materials 7, 188
        (2021).
    """
    path = data_file(Path(directory), "Crossed_barrel_dataset.csv", CROSSED_BARREL_RECIPE)
    return table(path, COLUMNS, "toughness", COLUMNS, noise=SubGaussian(NOISE))


# --- LiveCodeBench: language models as arms, a pull is the score on one question.

Task = Literal["testgen", "execution"]
TASKS = ("testgen", "execution")
NO_MODELS = ("item", "question_id")  # the columns that say which question a row is
FULL_SCORE = 100.0
LIVECODEBENCH_RECIPE = (
    "Take src/mocks/TASK.json from https://github.com/LiveCodeBench/livecodebench.github.io (CC BY-SA 4.0) and write "
    "TASK.csv (or TASK.csv.gz), a row for each question: the columns item and question_id, and one for each model with "
    "its score, 0 to 100."
)


def livecodebench(
    directory: str | Path, task: Task = "testgen", *, features_from: Task | None = None, dim: int = 5
) -> Environment:
    """Which language model is best at a task of programming? A pull asks one random question.

    The reward is the recorded score / 100 in [0, 1]. All noise is that of the questions; none is added.

    Args:
        directory: holds testgen.csv and execution.csv, plain or packed (.gz).
        task: "testgen" (predict the output of tests, 442 questions) or "execution" (predict that of a program, 479).
        features_from: another task, whose scores describe the models: only those that are in both (28 of 37) are then
            arms. None: no features.
        dim: number of features, the leading coordinates of the models in the singular value decomposition of the
            other task's scores, 1 to the number of models; scaled so that a model with full scores has norm 1.

    Returns:
        An arm for each model, with its name as id and its mean score as truth. It has the questions as test items.

    Raises:
        DatasetMissing: a file is absent; the message holds the recipe.
        InvalidInput: an unknown task, features from the task itself (they would hold the rewards), dim out of range,
            a score outside [0, 100], or tasks without a model in common.

    Source: Jain et al., LiveCodeBench (2024), arXiv 2403.07974; scores from its web site.
    """
    check_choice("task", task, TASKS)
    scores = _scores(Path(directory), task)
    if features_from is None:
        return _environment(scores, Arms(None, list(scores)))
    check_choice("features_from", features_from, TASKS)
    if features_from == task:
        raise InvalidInput(f"features_from is {task!r}, the task itself: the features would hold the rewards.")
    others = _scores(Path(directory), features_from)
    both = [name for name in scores if name in others]
    if not both:
        raise InvalidInput(f"no model of {task} in {directory} is also in {features_from}; none would have features.")
    features = _coordinates(np.array([others[name] for name in both]), dim)
    return _environment({name: scores[name] for name in both}, Arms(features, both))


def _scores(directory: Path, task: str) -> dict[str, FloatArray]:
    """The scores of each model in [0, 1], one for each question."""
    recorded = read_table(data_file(directory, f"{task}.csv", LIVECODEBENCH_RECIPE))
    scores = {name: recorded.numbers(name) / FULL_SCORE for name in recorded.columns if name not in NO_MODELS}
    for name, values in scores.items():
        refuse_rows(
            recorded,
            ~((values >= 0.0) & (values <= 1.0)),
            lambda row, name=name, values=values: (  # type: ignore[misc]
                f"the score of {name!r} is {values[row] * FULL_SCORE:g}, outside [0, {FULL_SCORE:g}]."
            ),
            LIVECODEBENCH_RECIPE,
        )
    if not scores:
        raise InvalidInput(f"{recorded.source} has no column of a model. {LIVECODEBENCH_RECIPE}")
    return scores


def _coordinates(scores: FloatArray, dim: int) -> FloatArray:
    """The models in the `dim` leading directions of their scores, shape (K, dim)."""
    whole_number("dim", dim, least=1, meaning="a number of features.")
    if dim > min(scores.shape):
        raise InvalidInput(
            f"dim is {dim}; {scores.shape[0]} models on {scores.shape[1]} questions have no more than "
            f"{min(scores.shape)} directions."
        )
    u, singular, _ = thin_svd(scores / np.sqrt(scores.shape[1]))
    return np.asarray(u[:, :dim] * singular[:dim])


def _environment(scores: dict[str, FloatArray], arms: Arms) -> Environment:
    law = RecordedAnswers(np.array(list(scores.values())))
    return Environment(arms=arms, means=law.means, noise=Bounded(0.0, 1.0), law=law)


# --- MNIST's test images as arms, read from the original files.

IMAGES = "t10k-images-idx3-ubyte"
LABELS = "t10k-labels-idx1-ubyte"
MD5 = {IMAGES: "9fb629c4189551a2d022fa330f9573f3", LABELS: "ec29112dd5afa0611ce80d1b7f02629c"}  # of the .gz files
HEADERS = {IMAGES: (2051, 10000, 28, 28), LABELS: (2049, 10000)}  # magic number, then the shape
MNIST_RECIPE = (
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
        raise InvalidInput(f"{LABELS} in {directory} holds the label {labels.max()}; digits are 0 to 9. {MNIST_RECIPE}")
    chosen = draw_images(labels, per_digit, stream(seed, "mnist", per_digit))
    features = in_row_space(pixels[chosen].reshape(len(chosen), -1) / 255.0, tolerance=1e-12)
    return digit_environment(features, labels, chosen)


def _read(directory: Path, name: str) -> NDArray[np.uint8]:
    path = data_file(directory, name, MNIST_RECIPE)
    content = path.read_bytes()
    if path.suffix == ".gz":
        digest = hashlib.md5(content, usedforsecurity=False).hexdigest()
        if digest != MD5[name]:
            raise InvalidInput(
                f"{path} has md5 {digest}, not {MD5[name]}: it is damaged or another file, and results would not be "
                f"comparable. {MNIST_RECIPE}"
            )
        content = gzip.decompress(content)
    header = HEADERS[name]
    start = 4 * len(header)
    found = struct.unpack(f">{len(header)}i", content[:start]) if len(content) >= start else ()
    size = int(np.prod(header[1:]))
    if found != header or len(content) != start + size:
        raise InvalidInput(
            f"{path} is not MNIST's test half: its header is {found} and {len(content)} bytes long, expected {header} "
            f"and {start + size} bytes. {MNIST_RECIPE}"
        )
    return np.frombuffer(content, dtype=np.uint8, offset=start).reshape(header[1:])


# --- NAS-Bench-Macro: small networks, each trained three times, as arms.

FILE = "nas_bench_macro_cifar10.csv"
RUNS = ("correct_run0", "correct_run1", "correct_run2")
NUM_LAYERS, LAYER_KINDS = 8, "012"  # identity, and two kinds of convolution
TEST_IMAGES = 10_000
NASBENCH_RECIPE = (
    "Take data/nas-bench-macro_cifar10.json from https://github.com/xiusu/NAS-Bench-Macro (Apache-2.0) and write "
    f"{FILE} (or {FILE}.gz) with the columns arch, {', '.join(RUNS)}: the eight digits, and the number of right "
    f"answers among {TEST_IMAGES:,} test images in each of the three trainings (100 times the percentage)."
)


def nasbench_macro(directory: str | Path, *, reward: Literal["training", "image"] = "training") -> Environment:
    """Which of 6,561 networks classifies CIFAR-10 best?

    Args:
        directory: holds nas_bench_macro_cifar10.csv, plain or packed (.gz).
        reward: "training": a pull draws one of the three recorded trainings and gives its accuracy; the noise is
            sub-Gaussian with half the largest difference between trainings of one network (.0097), which is a valid
            scale here. "image": a pull shows the network one random test image, and gives 1 if it is right:
            Bernoulli with the accuracy averaged over the trainings.

    Returns:
        An arm for each network, its id the eight digits of its layers, its 24 features one-hot by layer (rank 17).
        Networks that differ only by where their identity layers stand share their results: the best accuracy is that
        of two arms.

    Raises:
        DatasetMissing: the file is absent; the message holds the recipe.
        InvalidInput: the file has other columns or values, or the reward is unknown.

    Source: Su et al., Prioritized Architecture Sampling with Monto-Carlo Tree Search (CVPR 2021).
    """
    check_choice("reward", reward, ("training", "image"))
    recorded = read_table(data_file(Path(directory), FILE, NASBENCH_RECIPE))
    names = recorded.text("arch")
    arms = Arms(_layers(recorded, names), names, columns=[f"{layer}={kind}" for layer, kind in _columns()])
    accuracies = _accuracies(recorded)
    law = RecordedRewards(accuracies.ravel(), np.repeat(np.arange(arms.num_arms), len(RUNS)))
    if reward == "image":
        return Environment(arms=arms, means=law.means, noise=Bernoulli())
    scale = float(law.half_ranges.max())
    if scale == 0.0:
        raise InvalidInput(
            f"{recorded.source}: the trainings of every network agree, so there is no noise to decide upon. "
            f"{NASBENCH_RECIPE}"
        )
    return Environment(arms=arms, means=law.means, noise=SubGaussian(scale), law=law)


def _columns() -> list[tuple[int, str]]:
    return [(layer, kind) for layer in range(NUM_LAYERS) for kind in LAYER_KINDS]


def _layers(recorded: Table, names: tuple[str, ...]) -> FloatArray:
    """One-hot layers of each network, shape (K, 24)."""
    bad = np.array([len(name) != NUM_LAYERS or bool(set(name) - set(LAYER_KINDS)) for name in names])
    digits = f"no network of {NUM_LAYERS} digits 0 to 2. Leading zeros must be kept: write the column as text."
    refuse_rows(recorded, bad, lambda row: f"{names[row]!r} is {digits}", NASBENCH_RECIPE)
    return np.array([[float(name[layer] == kind) for layer, kind in _columns()] for name in names])


def _accuracies(recorded: Table) -> FloatArray:
    """Share of right answers of each training, shape (K, 3)."""
    accuracies = np.column_stack([recorded.numbers(name) for name in RUNS]) / TEST_IMAGES
    bad: BoolArray = np.asarray(~((accuracies >= 0.0) & (accuracies <= 1.0)).all(axis=1))
    rest = f"no numbers of right answers among {TEST_IMAGES:,}; {bad.sum()} of {len(bad)} rows are so."
    refuse_rows(recorded, bad, lambda row: f"{accuracies[row] * TEST_IMAGES} are {rest}", NASBENCH_RECIPE)
    return accuracies


# --- Rewards of a random neural network: smooth, not linear, and of no norm that anybody would declare.


def random_network(
    *, num_arms: int = 500, dim: int = 10, hidden: int = 64, decay: float = 1.0, sigma: float = 0.1, seed: int = 0
) -> Environment:
    """Normal arms, features of falling weight; means are a random two-layer network, moved and scaled onto [0, 1].

        x_i from N(0, i^(-2 decay)),   g(x) = sum_j a_j max(<w_j, x>, 0),   a_j and the entries of w_j from N(0, 1)
        h = (g - min g)/(max g - min g)

    Args:
        num_arms: K, at least 2.
        dim: D, at least 2.
        hidden: units of the network.
        decay: how fast the features lose weight, at least 0; with 0 all ten matter alike.
        sigma: standard deviation of the normal noise, in reward units.
        seed: decides arms and network.

    Returns:
        An environment of K arms with D features.

    Raises:
        InvalidInput: an argument is out of range.

    Source: ours.
    """
    whole_number("num_arms", num_arms, least=2, meaning="one arm is no choice.")
    whole_number("dim", dim, least=2, meaning="on a line the network has at most one bend.")
    whole_number("hidden", hidden, least=1, meaning="a network has units.")
    not_negative("decay", decay, "how fast the features lose weight.")
    positive_number("sigma", sigma, "the noise of one measurement.")
    rng = stream(seed, "random_network", num_arms, dim, hidden)
    features = rng.standard_normal((num_arms, dim)) * np.arange(1.0, dim + 1.0) ** -decay
    outputs = np.maximum(features @ rng.standard_normal((dim, hidden)), 0.0) @ rng.standard_normal(hidden)
    means = (outputs - outputs.min()) / max(float(np.ptp(outputs)), np.finfo(np.float64).tiny)
    return Environment(arms=Arms(features), means=means, noise=SubGaussian(sigma))
