"""The eigenfunctions of a kernel by name: in `make_policy`, in a database, in a certificate, on the command line."""

import json

import numpy as np
import pytest
from together import of_each
from typer.testing import CliRunner

import surepick as sp
from surepick.certificates.document import certificate_document
from surepick.certificates.verify import verify_certificate
from surepick.cli.app import app
from surepick.embeddings.base import ESTIMATED_NORM
from surepick.forecasts import simulated_studies
from surepick.policies.registry import policy_options
from surepick_bench.mercer import ExpansionRecord, SineExpansion

PLACES = np.linspace(0.0, 1.0, 12)
LINE = sp.Arms(PLACES[:, None] - 0.4, columns=["place"])
SQUARE = sp.Arms(np.column_stack([PLACES, PLACES[::-1] ** 2]), columns=["place", "turn"])
ROOM = sp.Arms(PLACES[:, None], columns=["place"])
WIDE, SINE, WAVES = "hermite:1.0:0.5", "sine", "fourier:geometric:0.1"
PRODUCT = f"{WAVES}*hermite:0.5:0.5"
MEANS = 0.9 * np.exp(-((PLACES - 0.7) ** 2) / 0.2)
NAMES = ("kernel-embedding", "fixed-kernel", "certified-kernel")
CASES = [(LINE, WIDE), (ROOM, SINE), (ROOM, WAVES), (SQUARE, PRODUCT)]


def make(name: str, arms: sp.Arms = LINE, expansion: object = WIDE, **changes) -> sp.Policy:
    usual = {"epsilon": 0.3, "delta": 0.05, "noise": sp.SubGaussian(0.1), "norm_bound": 1.5}
    return sp.make_policy(name, arms, expansion=expansion, **(usual | changes))


@pytest.mark.parametrize("name", NAMES)
def test_the_expansion_decides_the_embedding(name):
    policy = make(name)
    assert policy.traits.embedding == sp.MercerEmbedding(LINE.features, expansion=WIDE, norm_bound=1.5)
    assert "the expansion hermite:1.0:0.5" in policy.traits.assumptions[0]
    cut = make(name, max_dim=9, bound="pointwise", norm_source="estimated")
    assert (cut.traits.embedding.max_dim, cut.traits.embedding.traits.heuristic) == (9, ESTIMATED_NORM)
    assert "norm at most 1.5 (estimated from measurements)" in cut.traits.assumptions[0]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("options", [{}, {"max_dim": 9}, {"norm_source": "estimated"}])
def test_the_spec_rebuilds_an_equal_policy(name, options):
    policy = make(name, **options)
    spec = json.loads(json.dumps(policy.spec))
    embedded = {"expansion": WIDE, "norm_bound": 1.5, "bound": "pointwise", "norm_source": "declared", "max_dim": None}
    assert spec.items() >= (embedded | options).items()
    assert not {"kernel", "nystrom_above", "max_rank", "rounding"} & spec.keys()
    assert spec.keys() <= {"name", "epsilon", "delta", "noise", *policy_options(name)}
    assert sp.make_policy(arms=LINE, **spec) == policy


def test_an_expansion_by_hand_has_no_name_and_no_spec():
    sine = SineExpansion()
    by_hand = ExpansionRecord(sine.eigenvalues(12), sine.eigenfunctions, sine.diagonal, approximate=False)
    policy = make("certified-kernel", ROOM, by_hand)
    assert policy.spec is None
    assert sp.simulate(policy, environment(ROOM), seed=0).verdict == "certified"


@of_each("name", NAMES)
@of_each(
    ("options", "message"),
    [
        ({"gamma": 1.0}, "say which kernel, once"),
        ({"kernel": "gaussian:1"}, "say which kernel, once"),
        ({"expansion": None}, "say which kernel, once"),
        (
            {"nystrom_above": 10},
            "nystrom_above has no effect on an embedding named by expansion; that knows expansion,",
        ),
        ({"max_rank": 3, "rounding": 0.1}, "max_rank, rounding has no effect"),
        ({"expansion": None, "gamma": 1.0, "max_dim": 3}, "max_dim has no effect on an embedding named by gamma"),
        ({"norm_bound": None}, "needs norm_bound"),
        ({"expansion": "matern:2.5:1"}, "expansion 'matern:2.5:1' is not understood. Write sine, hermite:"),
        ({"expansion": 3}, "expansion is a int"),
        ({"expansion": SINE}, "arms lie outside"),
        ({"expansion": PRODUCT}, "1 feature columns and the expansion is of 2 variables"),
        ({"expansion": "hermite:1e300:1e300"}, "leaves what floats hold"),
        ({"expansion": "hermite:1e-300:1e-300"}, "leaves what floats hold"),
        ({"bound": "row-tail"}, "bound is 'row-tail'; choose one of 'pointwise', 'paper'"),
        ({"bound": "paper"}, "the paper's bound needs a finite C_phi"),
        ({"max_dim": 2.5}, "max_dim is 2.5; it must be a whole number"),
        ({"max_dim": 10**9}, "would take 96 GB"),
        ({"norm_source": "guessed"}, "norm_source is 'guessed'"),
    ],
)
def test_what_has_no_meaning_is_refused_with_a_sentence(name, options, message):
    with pytest.raises(sp.InvalidInput, match=message):
        make(name, **options)


def test_arms_at_which_every_eigenfunction_is_zero_are_refused():
    with pytest.raises(sp.InvalidInput, match="all eigenfunctions are zero at these arms"):
        sp.MercerEmbedding(np.zeros((3, 1)), expansion=SINE, norm_bound=1.0)


@pytest.mark.parametrize(("arms", "expansion"), CASES)
def test_equal_arms_have_equal_vectors_wherever_they_stand(arms, expansion):
    order = np.random.default_rng(0).integers(0, arms.num_arms, 101)
    embedding = sp.MercerEmbedding(arms.features[order], expansion=expansion, norm_bound=1.0)
    vectors = embedding.at(embedding.max_dim).features
    for place in range(arms.num_arms):
        same = vectors[order == place]
        assert (same == same[0]).all()


def environment(arms: sp.Arms) -> sp.environments.Environment:
    return sp.environments.Environment(arms=arms, means=MEANS, noise=sp.SubGaussian(0.1))


@pytest.mark.parametrize("name", NAMES)
def test_the_promise_is_kept(name):
    run = sp.simulate(make(name), environment(LINE), seed=0)
    assert (run.verdict, run.true_gap <= 0.3) == ("certified", True)
    estimated = sp.simulate(make(name, norm_source="estimated"), environment(LINE), seed=0)
    assert (estimated.verdict, estimated.certificate.pulls) == ("heuristic", run.certificate.pulls)
    assert ESTIMATED_NORM in estimated.certificate.reason


@pytest.mark.cases(4)  # of every policy two and of every expansion one
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("arms", "expansion"), CASES)
def test_a_study_survives_in_a_database_and_its_certificate_is_verified(sqlite_url, name, arms, expansion):
    strict = {} if name == "certified-kernel" or expansion == WIDE else {"epsilon": 6.0}
    policy = make(name, arms, expansion, **strict)
    study = sp.create_study(sqlite_url, "x", arms, policy)
    rng = np.random.default_rng(0)
    for _ in range(3):
        plan = study.ask()
        if plan is None:
            break
        pulled = np.flatnonzero(plan.counts)
        counts = plan.counts[pulled]
        sums = counts * MEANS[pulled] + 0.1 * np.sqrt(counts) * rng.normal(size=len(pulled))
        study.tell_totals([arms.ids[arm] for arm in pulled], counts, sums, sums**2 / counts + 0.01 * counts)
        study = sp.open_study(sqlite_url, "x")
        assert study.policy == policy
    document = json.loads(json.dumps(certificate_document(study)))
    assert document["policy"]["expansion"] == expansion
    found = verify_certificate(document)
    assert found.holds, str(found)
    document["policy"]["expansion"] = "hermite:1.5:0.5"
    assert not verify_certificate(document).holds


def test_a_forecast_knows_it():
    forecast = sp.forecast(make("certified-kernel"), means=MEANS, rehearsals=2)
    assert 0 < forecast.total <= 10 * sp.simulate(make("certified-kernel"), environment(LINE), seed=0).certificate.pulls


# the command line


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "ovens.csv"
    rows = [f"{place},{heat},{reward}" for place, heat, reward in zip(range(12), PLACES - 0.4, MEANS, strict=True)]
    path.write_text("\n".join(["oven,heat,yield", *rows, *rows]) + "\n")
    return path


def surepick(*arguments) -> tuple[int, str]:
    result = CliRunner(env={"COLUMNS": "80", "TERM": "dumb"}).invoke(app, list(map(str, arguments)))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout


COMMON = ("--id", "oven", "--noise", "subgaussian:0.1", "--epsilon", 0.3, "--norm-bound", 1.5, "--format", "json")


def test_run_takes_an_expansion(table):
    code, output = surepick("run", table, "--reward", "yield", "--expansion", WIDE, *COMMON)
    found = json.loads(output)
    assert (code, found["verdict"]) == (0, "certified")
    assert (found["policy"]["name"], found["policy"]["expansion"]) == ("certified-kernel", WIDE)


def test_forecast_takes_several(table, monkeypatch):
    monkeypatch.setattr(simulated_studies, "EQUAL_STUDIES", 1)  # what it says is looked at, not how good it is
    code, output = surepick(
        "forecast", table, "--reward", "yield", "--expansion", "hermite:1:0.5,hermite:2:0.5", "--rehearsals", 1, *COMMON
    )
    rows = json.loads(output)["rows"]
    assert code == 0
    assert [row["name"] for row in rows] == [
        "certified-linear norm_bound=1.5",
        "certified-kernel norm_bound=1.5 expansion=hermite:1:0.5",
        "certified-kernel norm_bound=1.5 expansion=hermite:2:0.5",
        "certified-independent",
    ]
    assert rows[1]["spec"]["expansion"] == WIDE


def test_create_takes_an_expansion(table, tmp_path, sqlite_url):
    arms = tmp_path / "arms.csv"
    arms.write_text("\n".join(["oven,heat", *(f"{place},{heat}" for place, heat in enumerate(PLACES - 0.4))]))
    options = ("--arms", arms, "--expansion", WIDE, "--option", "max_dim=9")
    code, output = surepick("create", sqlite_url, "ovens", *options, *COMMON)
    assert code == 0
    assert json.loads(output)["policy"]["max_dim"] == 9
    assert sp.open_study(sqlite_url, "ovens").policy.spec["expansion"] == WIDE


@pytest.mark.parametrize("command", ["run", "forecast"])
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("--policy", "certified-linear"),
            "--expansion has no meaning for certified-linear.* --policy certified-kernel",
        ),
        (("--gamma", 1), "say which kernel, once"),
    ],
)
def test_the_command_line_says_where_it_has_no_meaning(table, command, words, message):
    with pytest.raises(sp.InvalidInput, match=message):
        surepick(command, table, "--reward", "yield", "--expansion", WIDE, *words, *COMMON)


@pytest.mark.parametrize("command", ["run", "forecast", "create"])
def test_the_help_names_it(command):
    assert "--expansion" in surepick(command, "--help")[1]
