"""Embeddings of many arms: read in blocks, from where they lie, with a bound that is valid to the last bit."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import numpy as np
import pytest

import surepick as sp
from surepick.certificates.document import _arms_entry
from surepick.embeddings import GaussianKernel, KernelEmbedding, LinearEmbedding, base, linear, linear as directions
from surepick.linalg import factorisations as linalg
from surepick.linalg.factorisations import thin_svd, triangular_factor
from surepick.linalg.rows import equal_rows


@pytest.fixture
def in_blocks(monkeypatch):
    """Every set of arms counts as large, and the blocks are small: many of each, and a last one that is not full."""
    monkeypatch.setattr(linear, "STREAM_ABOVE", 0)
    monkeypatch.setattr(base, "VIEWED_ABOVE", 0)
    monkeypatch.setattr(directions, "PASS_ENTRIES", 60)
    monkeypatch.setattr(linalg, "TRIANGLE_ROWS", 7)


def features_of(kind: str, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    matrix = rng.standard_normal((101, 6))
    if kind == "deficient":
        matrix = matrix[:, :3] @ rng.standard_normal((3, 6))
    elif kind == "wide":
        matrix = rng.standard_normal((5, 12))
    elif kind == "decaying":
        matrix = matrix * 10.0 ** -np.arange(6) @ np.linalg.qr(rng.standard_normal((6, 6)))[0]
    elif kind == "scales":
        matrix = matrix * 10.0 ** rng.integers(-7, 8, 6)
    elif kind == "tiny":
        matrix = matrix * 1e-160
    elif kind == "single":
        matrix = matrix.astype(np.float32).astype(np.float64)
    elif kind == "ties":
        matrix = matrix[rng.integers(0, 20, 101)]
    return matrix


KINDS = ["spread", "deficient", "wide", "decaying", "scales", "tiny", "single", "ties"]


def exact_residuals(matrix: np.ndarray, found: directions.SingularDirections) -> np.ndarray:
    """max_x ||x - V_d psi_d(x)|| for d = 0 .. r with the V that was used, in extended precision."""
    basis = thin_svd(triangular_factor(matrix))[2][: found.scores.shape[1]].T.astype(np.longdouble)
    left, worst = matrix.astype(np.longdouble), []
    unit = np.abs(left).max()
    for dim in range(found.scores.shape[1] + 1):
        rest = left - found.scores[:, :dim].astype(np.longdouble) @ basis[:, :dim].T
        worst.append(unit * np.sqrt(((rest / unit) ** 2).sum(axis=1).max()))
    return np.array(worst)


# the decomposition

extended = pytest.mark.skipif(
    np.finfo(np.longdouble).eps >= np.finfo(np.float64).eps, reason="no extended precision to compare with"
)


@extended
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("most", [2, 100])
@pytest.mark.usefixtures("in_blocks")
def test_the_residuals_cover_the_exact_ones_and_hardly_more(kind, most):
    for seed in range(5):
        matrix = features_of(kind, seed)
        found = directions.leading_directions(matrix, equal_rows(matrix), most=most)
        exact = exact_residuals(matrix, found)
        complete = len(exact) == len(found.singular) + 1
        counted = exact[:-1] if complete else exact
        assert np.all(counted <= found.residuals[: len(counted)])
        assert np.all(found.residuals[: len(counted)] <= counted * (1 + 1e-11) + 1e-11 * exact[0])
        assert np.all(found.residuals <= found.sums)
        if complete:
            assert found.residuals[-1] == 0.0
            assert exact[-1] <= 1e-14 * exact[0]


@extended
@pytest.mark.usefixtures("in_blocks")
def test_without_the_allowance_for_rounding_the_residuals_would_be_too_small(monkeypatch):
    monkeypatch.setattr(directions, "rounding_share", lambda basis: 0.0)
    matrices = [features_of(kind, seed) for kind in ("spread", "deficient") for seed in range(20)]
    found = [directions.leading_directions(matrix, equal_rows(matrix), most=100) for matrix in matrices]
    short = [np.any(exact_residuals(*both)[:-1] > both[1].residuals[:-1]) for both in zip(matrices, found, strict=True)]
    assert np.count_nonzero(short) > 0


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_change_nothing_but_the_last_digits(kind, request):
    matrix = features_of(kind, 3)
    whole = LinearEmbedding(matrix, norm_bound=1.5)
    request.getfixturevalue("in_blocks")
    part = LinearEmbedding(matrix, norm_bound=1.5)
    assert part.max_dim == whole.max_dim
    assert (part.num_distinct, part.traits.caveats, part.traits.spec) == (
        whole.num_distinct,
        whole.traits.caveats,
        whole.traits.spec,
    )
    size = np.abs(matrix).max()
    for dim in range(1, whole.max_dim + 1):
        mine, theirs = part.at(dim).features, whole.at(dim).features
        assert np.allclose(mine @ mine.T / size**2, theirs @ theirs.T / size**2, rtol=0, atol=1e-12 * len(matrix))
        assert part.misspecification(dim) == pytest.approx(whole.misspecification(dim), rel=1e-6, abs=1e-11 * size)


@pytest.mark.parametrize("bound", ["row-tail", "paper"])
@pytest.mark.usefixtures("in_blocks")
def test_what_is_left_out_counts_as_misspecification(bound):
    matrix = features_of("decaying", 1)
    embedding = LinearEmbedding(matrix, norm_bound=2.0, bound=bound, max_rank=3)
    whole = LinearEmbedding(matrix, norm_bound=2.0, bound=bound)
    assert (embedding.max_dim, whole.max_dim) == (3, 6)
    assert embedding.traits.spec["max_rank"] == 3
    assert "max_rank" not in whole.traits.spec
    assert LinearEmbedding(matrix, **embedding.traits.spec) == embedding
    assert embedding.traits.caveats[0].startswith("3 of 6 independent feature directions are kept")
    for dim in (1, 2, 3):
        np.testing.assert_allclose(embedding.at(dim).features, whole.at(dim).features, rtol=0, atol=1e-14)
        assert embedding.misspecification(dim) == pytest.approx(whole.misspecification(dim), rel=1e-8)
        psi = embedding.at(dim).features
        rest = matrix - psi @ np.linalg.lstsq(psi, matrix)[0]
        assert embedding.misspecification(dim) >= 2.0 * np.linalg.norm(rest, axis=1).max() * (1 - 1e-9)
    with pytest.raises(sp.InvalidInput, match=r"rank 3; use 1 \.\. 3"):
        embedding.at(4)


def test_max_rank_cuts_few_arms_too():
    matrix = features_of("decaying", 1)
    embedding, whole = LinearEmbedding(matrix, norm_bound=1.0, max_rank=2), LinearEmbedding(matrix, norm_bound=1.0)
    assert embedding.max_dim == 2
    assert embedding.at(2) == whole.at(2)
    with pytest.raises(sp.InvalidInput, match="max_rank is 0"):
        LinearEmbedding(matrix, norm_bound=1.0, max_rank=0)


def test_the_default_of_max_rank_bounds_the_vectors(monkeypatch):
    monkeypatch.setattr(linear, "STREAM_ABOVE", 600)
    monkeypatch.setattr(linear, "KEPT_ENTRIES", 404)
    assert LinearEmbedding(features_of("spread", 0), norm_bound=1.0).max_dim == 4
    assert LinearEmbedding(features_of("spread", 0)[:100], norm_bound=1.0).max_dim == 6
    assert LinearEmbedding(features_of("spread", 0), norm_bound=1.0, max_rank=5).max_dim == 5


@pytest.mark.usefixtures("in_blocks")
def test_equal_rows_get_equal_vectors_wherever_they_stand():
    rng = np.random.default_rng(0)
    matrix = rng.standard_normal((30, 5))[rng.integers(0, 30, 400)]
    matrix[::7] *= -0.0  # rows of zeros of either sign
    psi = LinearEmbedding(matrix, norm_bound=1.0).at(5).features
    classes = equal_rows(matrix)
    assert len(classes.first) < 32
    assert psi.tobytes() == psi[classes.first[classes.group]].tobytes()


@pytest.mark.usefixtures("in_blocks")
def test_features_that_are_zero_are_refused_in_blocks_too():
    with pytest.raises(sp.InvalidInput, match="all features are zero"):
        LinearEmbedding(np.zeros((50, 3)), norm_bound=1.0)


@pytest.mark.parametrize("shape", [(1, 4), (4, 4), (5000, 3), (4000, 300)])
def test_the_triangular_factor_has_the_gram_matrix_of_the_rows(shape):
    matrix = np.random.default_rng(4).standard_normal(shape).astype(np.float32)
    factor = triangular_factor(matrix)
    assert factor.shape == (min(shape), shape[1])
    assert np.array_equal(factor, np.triu(factor))
    doubles = matrix.astype(np.float64)
    assert np.allclose(factor.T @ factor, doubles.T @ doubles, rtol=0, atol=1e-12 * shape[0])


def test_the_rank_is_decided_on_the_rows_never_on_their_gram_matrix():
    matrix = np.random.default_rng(5).standard_normal((9000, 3))
    matrix[:, 2] = matrix[:, 0] + 1e-11 * matrix[:, 2]  # 1e-22 in the gram matrix, below its rounding
    singular = thin_svd(triangular_factor(matrix))[1]
    assert singular[2] == pytest.approx(np.linalg.svd(matrix, compute_uv=False)[2], rel=1e-3)


# arms where they lie


@pytest.fixture
def mapped(tmp_path):
    """Arms in a file of float32, mapped for reading, and the same in memory as float64."""
    rng = np.random.default_rng(6)
    numbers = rng.standard_normal((300, 4)).astype(np.float32)
    np.save(tmp_path / "arms.npy", numbers)
    return np.load(tmp_path / "arms.npy", mmap_mode="r"), numbers.astype(np.float64)


def test_mapped_arms_are_embedded_as_their_numbers_are(mapped):
    there, doubles = mapped
    assert sp.Arms(there) == sp.Arms(doubles)
    for make in (
        lambda features: LinearEmbedding(features, norm_bound=1.0),
        lambda features: KernelEmbedding(features, kernel=GaussianKernel(0.1), norm_bound=1.0),
        lambda features: KernelEmbedding(features, kernel="polynomial:2", norm_bound=1.0, nystrom_above=9, max_rank=9),
    ):
        one, other = make(sp.Arms(there).features), make(doubles)
        assert np.shares_memory(one.features, there)
        assert one == other
        assert one.at(one.max_dim).features.dtype == np.float64


@pytest.mark.usefixtures("in_blocks")
def test_mapped_arms_are_embedded_in_blocks_as_their_numbers_are(mapped):
    there, doubles = mapped
    assert LinearEmbedding(there, norm_bound=1.0, max_rank=3) == LinearEmbedding(doubles, norm_bound=1.0, max_rank=3)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("linear-embedding", {"norm_bound": 0.01, "max_rank": 3}),
        ("fixed-kernel", {"norm_bound": 1.0, "gamma": 0.1}),
        ("certified-linear", {"norm_bound": 1.0}),
        ("certified-kernel", {"norm_bound": 1.0, "gamma": 0.1}),
        ("certified-independent", {}),
        ("rage", {}),
        ("lingape", {"norm_bound": 1.0}),
    ],
)
def test_policies_plan_the_same_for_mapped_arms(mapped, name, options):
    there, doubles = (sp.Arms(features[:40]) for features in mapped)
    assert np.shares_memory(there.features, mapped[0])
    policies = [
        sp.make_policy(name, arms, epsilon=0.5, delta=0.1, noise=sp.SubGaussian(0.1), **options)
        for arms in (there, doubles)
    ]
    assert policies[0].ask(policies[0].init()) == policies[1].ask(policies[1].init())
    assert sp.make_policy(arms=there, **policies[0].spec) == policies[0]


def test_a_study_of_mapped_arms_ends_as_that_of_their_numbers(mapped):
    answers = []
    for features in mapped:
        arms = sp.Arms(features[:40])
        truth = sp.environments.Environment(
            arms=arms, means=np.asarray(features[:40], np.float64) @ [0.5, 0.2, 0.0, 0.1], noise=sp.SubGaussian(0.1)
        )
        policy = sp.make_policy("certified-linear", arms, epsilon=0.1, delta=0.1, noise=truth.noise, norm_bound=0.6)
        run = sp.simulate(policy, truth, seed=1)
        study = sp.Study(arms, policy)
        assert study.ask().total > 0
        answers.append((run.best_arm, run.pulls, run.verdict, run.success, _arms_entry(arms)))
    assert answers[0] == answers[1]
    assert answers[0][3]


@pytest.mark.usefixtures("in_blocks")
def test_the_vectors_of_many_arms_are_not_copied_for_each_dimension():
    embedding = LinearEmbedding(features_of("spread", 2), norm_bound=1.0)
    one, whole = embedding.at(2).features, embedding.at(6).features
    assert np.shares_memory(one, whole)
    for array in (one, whole):
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 1.0
        with pytest.raises(ValueError, match="WRITEABLE"):
            array[:1].flags.writeable = True


# kernels


def proved_coordinates(embedding: KernelEmbedding, reward: np.ndarray) -> np.ndarray:
    """V'a, where L a are the values of the reward at the pivots: the arms of which nothing is left over."""
    psi = embedding.at(embedding.max_dim).features
    pivots = np.argsort(1.0 - np.einsum("ij,ij->i", psi, psi))[: embedding.max_dim]
    return np.linalg.solve(psi[pivots], reward[pivots])


def check_kernel_bound(num_arms: int, max_rank: int, gamma: float) -> None:
    rng = np.random.default_rng(7)
    features, kernel = rng.standard_normal((num_arms, 10)), GaussianKernel(gamma)
    embedding = KernelEmbedding(features, kernel=kernel, norm_bound=1.0, nystrom_above=100, max_rank=max_rank)
    assert embedding.max_dim == max_rank
    worst = int(np.argmin(np.sum(embedding.at(max_rank).features ** 2, axis=1)))
    for centres in (features[rng.integers(0, num_arms, 30)], rng.standard_normal((30, 10)), features[[worst]]):
        weights = rng.standard_normal(len(centres))
        weights /= np.sqrt(weights @ kernel.gram(centres, centres) @ weights)  # a function of norm 1
        reward = kernel.gram(features, centres) @ weights
        theta = proved_coordinates(embedding, reward)
        for dim in (1, max_rank // 4, max_rank - 1, max_rank):
            error = np.abs(reward - embedding.at(dim).features @ theta[:dim]).max()
            assert error <= embedding.misspecification(dim)
    floor = embedding.misspecification(max_rank)  # the last function is the worst one at its centre: R_xx / 1
    assert abs(reward - embedding.at(max_rank).features @ theta)[worst] == pytest.approx(floor**2, rel=1e-3)


def test_the_kernel_bound_covers_functions_of_the_declared_norm():
    check_kernel_bound(2000, 60, 0.02)


@pytest.mark.slow
def test_a_hundred_thousand_arms_have_a_kernel_bound_that_covers_functions_of_the_declared_norm():
    check_kernel_bound(100_000, 200, 0.02)


# the sizes


def peak_beyond(program: str, *arguments: str) -> float:
    """What a process holds at most beyond what it held before `measured()` was called, in MB."""
    text = textwrap.dedent(program)
    done = subprocess.run([sys.executable, "-c", text, *arguments], capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1])


LINEAR = """
    import resource, sys
    import numpy as np
    import surepick as sp
    from surepick.embeddings import LinearEmbedding
    def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    arms = sp.Arms(np.load(sys.argv[1], mmap_mode="r"))
    for top in range(0, arms.num_arms, 5000):
        arms.features[top : top + 5000].sum()  # the file is in memory, whoever owns it
    before = peak()
    embedding = LinearEmbedding(arms.features, norm_bound=1.0, max_rank=int(sys.argv[2]))
    assert embedding.max_dim == int(sys.argv[2]), embedding.max_dim
    assert embedding.misspecification(10) < 0.01
    print(peak() - before)
"""
KERNEL = """
    import resource, sys
    import numpy as np
    from surepick.embeddings import GaussianKernel, KernelEmbedding
    def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    features = np.random.default_rng(0).standard_normal((100_000, 10))
    before = peak()
    embedding = KernelEmbedding(features, kernel=GaussianKernel(0.02), norm_bound=1.0)
    assert embedding.max_dim == 200
    print(peak() - before)
"""


@pytest.mark.slow
def test_a_mapped_file_is_embedded_in_the_memory_of_the_vectors_and_some_blocks(tmp_path):
    """100,000 arms of 512 float32, 205 MB: 160 MB of vectors and 60 of blocks; a float64 copy would be 410 MB."""
    rng = np.random.default_rng(1)
    basis = rng.standard_normal((10, 512)).astype(np.float32) / 23
    numbers = rng.standard_normal((100_000, 10), dtype=np.float32) @ basis
    numbers += 1e-4 * rng.standard_normal(numbers.shape, dtype=np.float32)
    np.save(tmp_path / "arms.npy", numbers)
    del numbers
    assert peak_beyond(LINEAR, str(tmp_path / "arms.npy"), "200") < 260
    assert peak_beyond(LINEAR, str(tmp_path / "arms.npy"), "20") < 110


@pytest.mark.slow
def test_a_hundred_thousand_arms_have_a_kernel_embedding_in_less_than_two_gigabytes():
    """Four arrays of 100,000 x 200, 160 MB each."""
    assert peak_beyond(KERNEL) < 800
