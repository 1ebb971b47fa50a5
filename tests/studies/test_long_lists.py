"""Studies of long lists in files: stored, opened again, shortened, and gone on with; in the library and by commands."""

import json

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from certified_files import resealed
from command_line import surepick
from databases import first_on

import surepick as sp
from surepick.certificates.document import certificate_document
from surepick.certificates.verify import verify_certificate
from surepick.core.records import encode
from surepick.errors import InvalidInput, OutOfTurn, StorageError
from surepick.studies.database import resume_stored_study
from surepick.studies.logs.hash_chain import hash_of_arms
from surepick.studies.registration import code_of

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
    while (batch := resume_stored_study(url, name, **opening).ask()) is not None:
        resume_stored_study(url, name, **opening).tell(batch, rewards_of(batch.pulls(), rng))
    return sp.open_study(url, name)


def in_memory(policy, seed):
    study, rng = sp.Study(policy), np.random.default_rng(seed)
    study.run(lambda ids: rewards_of(ids, rng), progress=False)
    return study


def shortened(url, folder):
    sp.create_study(url, "library", policy_of(folder))
    return measured(url, "library", 1)


@first_on("postgresql")
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
    opened = resume_stored_study(sqlite_url, "library").policy
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
    square = np.random.default_rng(21).random((600, 2))
    np.save(tmp_path / "square.npy", square)
    rows = sp.read_arms(tmp_path / "square.npy", blocks=True)
    asked = {"epsilon": 0.3, "delta": 0.1, "noise": "subgaussian:0.1", "norm_bound": 1.0, "gamma": 2.0}
    made = sp.make_policy("certified-kernel", rows, size=600, **asked)
    sp.create_study(sqlite_url, "square", made)
    opened = resume_stored_study(sqlite_url, "square").policy
    assert opened.passes.meter.passes == []
    assert np.array_equal(opened.where.of(square), made.where.of(square))
    assert (opened.where.left, opened.rules) == (made.where.left, made.rules)
    assert sp.short_list_policy(sp.open_study(sqlite_url, "square")).spec["kernel"] == "gaussian:2.0"


def test_the_registration_code_does_not_depend_on_where_files_lie(folder, tmp_path):
    moved = tmp_path / "moved"
    moved.mkdir()
    for file in folder.iterdir():
        (moved / file.name).write_bytes(file.read_bytes())
    assert (
        sp.Study(policy_of(folder), study_id="x").registration == sp.Study(policy_of(moved), study_id="x").registration
    )
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
        sp.short_list_policy(resume_stored_study(sqlite_url, "library"))


@pytest.mark.parametrize("missing", ["a.npy", "b.npy"])
def test_a_file_that_is_gone_is_named(sqlite_url, folder, missing):
    sp.create_study(sqlite_url, "library", policy_of(folder))
    (folder / missing).unlink()
    with pytest.raises(InvalidInput, match=missing):
        sp.open_study(sqlite_url, "library").policy  # noqa: B018 (as above)


def test_rows_in_memory_are_refused_for_a_database(sqlite_url):
    from surepick.chunks.sources import rows_of

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
        sp.make_policy("certified-independent", sp.Arms(ids=[*"ab"]), epsilon=0.1, delta=0.1, noise="bernoulli")
    )
    with pytest.raises(InvalidInput, match="shortens no list"):
        sp.short_list_policy(study)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"blocks": "day"}, "take no blocks"),
        ({"batch_size": 20}, "take no batch_size"),
        ({"later": ("5",)}, "take no later"),
        ({"slack": 0.3}, "taken off epsilon"),
        ({"evidence": "nonsense"}, "evidence"),
        ({"bound": "x"}, "bound"),
        ({"gap_bound": -1.0}, "gap_bound"),
        ({"m": 2}, "'m'|no option m|m "),
    ],
)
def test_what_only_the_second_study_would_refuse_is_refused_at_once(folder, options, words):
    rows = sp.read_arms(folder, blocks=True)
    (folder / "a.npy").unlink()
    with pytest.raises(InvalidInput, match=words):
        sp.make_policy("certified-linear", rows, **ASKED, **options)


# --- what happened in the first study is told of the second


def test_small_rewards_that_were_good_stay_good(folder):
    policy, rng = policy_of(folder), np.random.default_rng(1)
    study = sp.Study(policy, minimize=True)
    study.run(lambda ids: -rewards_of(ids, rng), progress=False)
    following = sp.short_list_policy(study)
    with pytest.raises(InvalidInput, match="selected where small rewards were good"):
        sp.Study(following)
    after = sp.Study(following, minimize=True)
    after.run(lambda ids: -rewards_of(ids, rng), progress=False)
    document = certificate_document(after)
    assert verify_certificate(document).holds
    other = resealed({**document, "minimize": False})
    assert not verify_certificate(other).holds


def with_a_lost_result(folder, reason):
    study, rng = sp.Study(policy_of(folder)), np.random.default_rng(1)
    batch = study.ask()
    ids = batch.pulls()
    study.tell(ids[:-1], rewards_of(ids[:-1], rng))
    study.abandon(reason)
    study.run(lambda ids: rewards_of(ids, rng), progress=False)
    return study


def test_results_that_were_lost_are_told_of_the_answer(folder):
    after = sp.Study(sp.short_list_policy(with_a_lost_result(folder, "independent-of-value")))
    said = "Of the measurements for the selection: Plans closed with results missing: 1"
    assert any(one.startswith(said) for one in after.certificate().assumptions)


def test_results_that_were_left_out_for_their_values_end_it(folder):
    with pytest.raises(InvalidInput, match="may depend on their values"):
        sp.short_list_policy(with_a_lost_result(folder, "they looked too good"))


# --- files that change


def test_a_file_that_is_another_one_for_a_while_is_noticed(sqlite_url, folder):
    sp.create_study(sqlite_url, "library", policy_of(folder))
    study = resume_stored_study(sqlite_url, "library")
    measured_rows = study.policy.design.rows
    whole = np.load(folder / "b.npy")
    other = -whole
    kept = measured_rows[measured_rows >= 3500] - 3500
    other[kept] = whole[kept]
    np.save(folder / "b.npy", other)
    with pytest.raises(InvalidInput, match="are not those of the first look"):
        measured(sqlite_url, "library", 1)
    np.save(folder / "b.npy", whole)  # as it was, with another time
    measured(sqlite_url, "library", 1)
    sp.short_list_policy(sp.open_study(sqlite_url, "library"))


def test_ids_of_parquet_files_that_may_have_changed_are_refused(sqlite_url, tmp_path):
    columns = {f"x{one}": FEATURES[:, one] for one in range(4)}
    names = [f"c{row}" for row in range(len(FEATURES))]
    file = tmp_path / "library.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"sku": names, **columns}), file)
    rows = sp.read_arms(file, id="sku", blocks=True)
    sp.create_study(sqlite_url, "library", sp.make_policy("certified-linear", rows, size=50, **ASKED))
    assert resume_stored_study(sqlite_url, "library").policy.arms.ids[0].startswith("c")
    pyarrow.parquet.write_table(pyarrow.table({"sku": names[::-1], **columns}), file)
    with pytest.raises(InvalidInput, match="its ids may be those of other rows"):
        resume_stored_study(sqlite_url, "library").policy  # noqa: B018 (building it is what is refused)


def test_the_registration_code_does_not_depend_on_last_bits(folder):
    study = sp.Study(policy_of(folder), study_id="x")
    spec = json.loads(json.dumps(encode(study.policy.spec)))
    spec["first_look"]["design"]["weights"][0] *= 1.0 + 1e-15
    arms = {"sha256": hash_of_arms(study.arms), "columns": study.arms.columns, "preparation": study.arms.preparation}
    assert code_of(spec, arms, study_id="x", minimize=False) == study.registration
    spec["first_look"]["root"] = "0" * 64
    assert code_of(spec, arms, study_id="x", minimize=False) != study.registration


# --- by commands


def test_from_a_folder_to_a_verified_certificate(sqlite_url, folder, tmp_path):
    code, said, _ = surepick("create", sqlite_url, "library", "--arms", folder, *OPTIONS)
    assert code == 0
    assert "6,000 candidates, policy certified-linear" in said
    assert "shorten a list of 6,000" in said
    with pytest.raises(OutOfTurn, match="not short yet"):
        surepick("shortlist", sqlite_url, "library", "short")
    first = resume_stored_study(sqlite_url, "library").ask()
    resume_stored_study(sqlite_url, "library").tell(first, rewards_of(first.pulls(), np.random.default_rng(1)))
    assert (
        "of those that are measured; 6,000 of 6,000 candidates are left" in surepick("status", sqlite_url, "library")[1]
    )
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
    asked = [folder, *OPTIONS, "--rehearsals", "2"]
    code, said, _ = surepick("forecast", *asked)
    assert code == 0
    assert "in 2 simulated studies" in said
    found = json.loads(surepick("forecast", *asked, "--format", "json")[1])
    assert found["num_rows"] == 6000
    with pytest.raises(InvalidInput, match="leave out --reward"):
        surepick("forecast", *asked, "--reward", "r")


def test_a_list_that_is_short_at_once_has_a_report(sqlite_url, folder, tmp_path):
    few = [word for word in OPTIONS if word not in ("--option", "size=50")]
    assert surepick("create", sqlite_url, "library", "--arms", folder, *few)[0] == 0
    assert surepick("report", sqlite_url, "library", "--out", tmp_path / "r.html")[0] == 0
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "a short list, not an answer" in page
    assert "rule of thumb" not in page
    assert surepick("shortlist", sqlite_url, "library", "all")[0] == 0


@pytest.mark.parametrize(
    ("url", "more", "words"),
    [
        ("https://surepick.example", [], "a server does not see the files"),
        ("sqlite:///nowhere.db", ["--judge", "as-they-come"], "after whole rounds"),
    ],
)
def test_what_such_a_study_cannot_do_is_refused_before_the_files_are_gone_through(folder, url, more, words):
    with pytest.raises(InvalidInput, match=words):
        surepick("create", url, "library", "--arms", folder, *OPTIONS, *more)
