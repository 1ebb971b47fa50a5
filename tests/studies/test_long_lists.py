"""Studies of long lists in files: stored, opened again, shortened, and gone on with; in the library and by commands."""

import json

import numpy as np
import pytest
from command_line import surepick

import surepick as sp
from surepick.certificates.document import certificate_document
from surepick.certificates.verify import verify_certificate
from surepick.errors import InvalidInput, OutOfTurn, StorageError
from surepick.studies.database import resume_study

FEATURES = np.random.default_rng(13).standard_normal((6000, 4)).astype(np.float32)
THETA = np.array([0.7, -0.2, 0.5, 0.3])
MEANS = FEATURES.astype(np.float64) @ THETA
ASKED = {"epsilon": 0.2, "delta": 0.05, "noise": "subgaussian:0.5", "norm_bound": 1.0}
OPTIONS = ["--epsilon", "0.2", "--noise", "subgaussian:0.5", "--norm-bound", "1", "--option", "size=50"]


@pytest.fixture
def folder(tmp_path):
    """The rows in two files."""
    library = tmp_path / "library"
    library.mkdir()
    np.save(library / "a.npy", FEATURES[:3500])
    np.save(library / "b.npy", FEATURES[3500:])
    return library


def policy_of(folder, **options):
    return sp.make_policy("certified-linear", sp.read_arms(folder, blocks=True), size=50, **ASKED, **options)


def rewards_of(ids, rng):
    return MEANS[[int(one) for one in ids]] + 0.5 * rng.standard_normal(len(ids))


def measured(url, name, seed, **opening):
    """Ask and tell until nothing is asked; each time as another process would."""
    rng = np.random.default_rng(seed)
    while (batch := resume_study(url, name, **opening).ask()) is not None:
        resume_study(url, name, **opening).tell(batch, rewards_of(batch.pulls(), rng))
    return sp.open_study(url, name)


def in_memory(policy, seed):
    study, rng = sp.Study(policy), np.random.default_rng(seed)
    study.run(lambda ids: rewards_of(ids, rng), progress=False)
    return study


def shortened(url, folder):
    sp.create_study(url, "library", policy_of(folder))
    return measured(url, "library", 1)


def test_a_stored_list_is_shortened_and_its_answer_is_that_of_one_call(database_url, folder):
    long = shortened(database_url, folder)
    sp.create_study(database_url, "short", sp.short_list_policy(long))
    stored = measured(database_url, "short", 2)
    before = in_memory(policy_of(folder), 1)
    after = in_memory(sp.short_list_policy(before), 2)
    assert stored.ids == after.ids
    assert stored.certificate() == after.certificate()
    assert stored.certificate().verdict == "certified"
    assert MEANS.max() - MEANS[int(stored.recommend())] <= 0.2
    rows = sp.read_arms(folder, blocks=True)
    assert verify_certificate(certificate_document(stored), long_list=rows).holds


def test_what_was_found_out_before_the_first_result_is_stored(sqlite_url, folder):
    made = policy_of(folder)
    sp.create_study(sqlite_url, "library", made)
    opened = resume_study(sqlite_url, "library").policy
    assert opened.passes.meter.passes == []
    assert np.array_equal(opened.design.features, made.design.features)
    assert (opened.look.root, opened.look.sizes, opened.arms) == (made.look.root, made.look.sizes, made.arms)
    assert opened.spec == made.spec
    assert opened.ask(opened.init()) == made.ask(made.init())


def test_the_promise_is_that_of_the_answer_and_the_list_has_its_share(folder):
    policy = policy_of(folder, share=0.3)
    assert (policy.problem.epsilon, policy.problem.delta) == (0.2, 0.05)
    assert policy.rules.delta == pytest.approx(0.015)
    assert policy.claim(policy.init()).spent == policy.rules.delta


def test_a_function_that_a_kernel_knows_is_stored_too(sqlite_url, tmp_path):
    square = np.random.default_rng(21).random((2000, 2))
    np.save(tmp_path / "square.npy", square)
    rows = sp.read_arms(tmp_path / "square.npy", blocks=True)
    asked = {"epsilon": 0.3, "delta": 0.1, "noise": "subgaussian:0.1", "norm_bound": 1.0, "gamma": 2.0}
    made = sp.make_policy("certified-kernel", rows, size=2000, **asked)
    sp.create_study(sqlite_url, "square", made)
    opened = resume_study(sqlite_url, "square").policy
    assert opened.passes.meter.passes == []
    assert np.array_equal(opened.where.of(square), made.where.of(square))
    assert (opened.where.left, opened.rules) == (made.where.left, made.rules)
    assert sp.short_list_policy(sp.open_study(sqlite_url, "square")).spec["kernel"] == "gaussian:2.0"


def test_the_registration_code_does_not_depend_on_where_files_lie(folder, tmp_path):
    moved = tmp_path / "moved"
    moved.mkdir()
    for file in folder.iterdir():
        (moved / file.name).write_bytes(file.read_bytes())
    assert sp.Study(policy_of(folder)).registration == sp.Study(policy_of(moved)).registration
    assert str(folder) not in json.dumps(sp.Study(policy_of(folder)).policy.spec)


# --- refusals


def test_measured_rows_that_were_changed_are_noticed_at_once(sqlite_url, folder):
    sp.create_study(sqlite_url, "library", policy_of(folder))
    changed = np.load(folder / "a.npy")
    np.save(folder / "a.npy", changed[::-1])
    with pytest.raises(StorageError, match="no longer in the files that it goes through"):
        sp.open_study(sqlite_url, "library").policy  # noqa: B018 (building it is what is refused)


def test_other_rows_that_were_changed_are_noticed_before_the_short_list_is_made(sqlite_url, folder):
    long = shortened(sqlite_url, folder)
    changed = np.load(folder / "b.npy")
    kept = set(long.policy.design.rows.tolist()) | set(long.state.rows.tolist())
    other = next(row for row in range(2500) if row + 3500 not in kept)
    changed[other] += 0.001
    np.save(folder / "b.npy", changed)
    with pytest.raises(InvalidInput, match="are not those of the first look"):
        sp.short_list_policy(resume_study(sqlite_url, "library"))


@pytest.mark.parametrize("missing", ["a.npy", "b.npy"])
def test_a_file_that_is_gone_is_named(sqlite_url, folder, missing):
    sp.create_study(sqlite_url, "library", policy_of(folder))
    (folder / missing).unlink()
    with pytest.raises(InvalidInput, match=missing):
        sp.open_study(sqlite_url, "library").policy  # noqa: B018 (as above)


def test_rows_in_memory_are_refused_for_a_database(sqlite_url):
    from surepick.blocks.sources import rows_of

    policy = sp.make_policy("certified-linear", rows_of(FEATURES), size=50, **ASKED)
    with pytest.raises(InvalidInput, match=r"must be in \.npy or Parquet files"):
        sp.create_study(sqlite_url, "library", policy)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"sise": 50}, "no option 'sise'"),
        ({"question": "top", "m": 3}, "which is the best, and no other question"),
        ({"share": 1.5}, "share is 1.5"),
        ({"norm_bound": None}, "need norm_bound"),
        ({"noise": "normal"}, "noise of a declared scale"),
    ],
)
def test_what_has_no_meaning_is_refused_before_the_files_are_read(folder, options, words):
    rows = sp.read_arms(folder, blocks=True)
    (folder / "a.npy").unlink()
    with pytest.raises(InvalidInput, match=words):
        sp.make_policy("certified-linear", rows, **{**ASKED, **options})


def test_a_spec_alone_opens_no_file(folder):
    spec = policy_of(folder).spec
    with pytest.raises(InvalidInput, match="open the study where its files lie"):
        sp.make_policy(arms=sp.Arms(FEATURES[:50].astype(float)), **spec)


def test_a_certificate_of_the_list_alone_is_not_recomputed_elsewhere(sqlite_url, folder):
    found = verify_certificate(certificate_document(shortened(sqlite_url, folder)))
    assert [line.what for line in found.lines if not line.holds] == ["the policy"]


def test_a_list_that_is_not_short_has_no_study(folder):
    with pytest.raises(OutOfTurn, match="6,000 candidates are left"):
        sp.short_list_policy(sp.Study(policy_of(folder)))


def test_a_study_that_shortens_nothing_has_no_short_list():
    study = sp.Study(
        sp.make_policy("certified-independent", sp.Arms(ids="ab"), epsilon=0.1, delta=0.1, noise="bernoulli")
    )
    with pytest.raises(InvalidInput, match="shortens no list"):
        sp.short_list_policy(study)


# --- by commands


def test_from_a_folder_to_a_verified_certificate(sqlite_url, folder, tmp_path):
    code, said, _ = surepick("create", sqlite_url, "library", "--arms", folder, *OPTIONS)
    assert code == 0
    assert "6,000 candidates, policy certified-linear" in said
    assert "shorten a list of 6,000" in said
    with pytest.raises(OutOfTurn, match="not short yet"):
        surepick("shortlist", sqlite_url, "library", "short")
    measured(sqlite_url, "library", 1)
    assert "the list of 6,000 candidates is short now" in surepick("status", sqlite_url, "library")[1]
    code, said, _ = surepick("shortlist", sqlite_url, "library", "short", "--format", "json")
    assert code == 0
    assert json.loads(said)["long_list"] == 6000
    measured(sqlite_url, "short", 2)
    listed = surepick("list", sqlite_url)[1]
    assert "shortened" in listed
    assert "certified" in listed
    file = tmp_path / "c.json"
    assert surepick("certificate", sqlite_url, "short", "--out", file)[0] == 0
    code, said, _ = surepick("verify", file, "--arms", folder)
    assert code == 0
    assert "of 6,000 candidates, the same again" in said


def test_one_file_is_read_in_blocks_if_asked(sqlite_url, folder):
    arms = ["--arms", folder / "a.npy", "--in-blocks"]
    code, said, _ = surepick("create", sqlite_url, "part", *arms, *OPTIONS)
    assert code == 0
    assert "shorten a list of 3,500" in said


def test_options_of_tables_are_refused_with_a_folder(sqlite_url, folder):
    with pytest.raises(InvalidInput, match="leave out --intercept"):
        surepick("create", sqlite_url, "library", "--arms", folder, "--intercept", *OPTIONS)


def test_the_design_and_the_forecast_of_a_folder(folder):
    code, said, _ = surepick("design", folder)
    assert code == 0
    assert "of 6,000 candidates" in said
    assert "passes over the files" in said
    asked = [folder, *OPTIONS, "--rehearsals", "3"]
    code, said, _ = surepick("forecast", *asked)
    assert code == 0
    assert "in 3 simulated studies" in said
    found = json.loads(surepick("forecast", *asked, "--format", "json")[1])
    assert found["num_rows"] == 6000
    with pytest.raises(InvalidInput, match="leave out --reward"):
        surepick("forecast", *asked, "--reward", "r")
