"""What a study says under an assumption, beside what its policy says under the one that was declared."""

from dataclasses import replace

import numpy as np
import pytest

import surepick as sp
from surepick.assumptions import AllOf, Effects, InRange, Linear, Near, NoStructure, Scatter, SumOf
from surepick.assumptions.reading import Question, largest_of
from surepick.errors import InvalidInput, OutOfTurn
from surepick.estimators.flows import ArmFlows

THETA = np.array([1.0, 0.5, 0.0])


def linear_study(seed: int = 0, *, num_arms: int = 8, sigma: float = 0.5, **options) -> sp.Study:
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(num_arms, 3))
    features /= np.linalg.norm(features, axis=1)[:, None]
    settings = {"epsilon": 0.1, "delta": 0.05, "noise": sp.SubGaussian(sigma), "norm_bound": 2.0, **options}
    arms = sp.Arms(features)
    study = sp.Study(sp.make_policy(settings.pop("policy", "certified-linear"), arms, **settings))
    means = features @ THETA
    study.run(lambda ids: [means[int(one)] + sigma * rng.normal() for one in ids], progress=False)
    return study


@pytest.fixture(scope="module")
def linear() -> sp.Study:
    return linear_study()


DECLARED = Linear(2.0, level=False)


@pytest.fixture(scope="module")
def declared(linear):
    """What the study says under the class that was declared."""
    return linear.read(DECLARED)


def test_the_declared_class_says_what_the_policy_says(linear, declared):
    found, said = declared, linear.certificate()
    assert found.gap == pytest.approx(said.certified_gap, rel=1e-6)
    assert found.candidate == said.best_arm
    assert found.stands
    assert not found.refuted
    active = {linear.ids[arm] for arm in linear.trace[-1].active}
    assert set(linear.ids) - active <= set(found.beaten)


# of mixtures a reading in a range takes one part of the evidence, and says less than the certificate
@pytest.mark.parametrize(
    ("evidence", "texts"), [("carried", ("nothing", "in 999000..1001000")), ("mixtures", ("nothing",))]
)
def test_without_structure_the_reading_is_the_certificate(evidence, texts):
    rng = np.random.default_rng(2)
    goal = {"epsilon": 0.3, "delta": 0.1, "noise": "subgaussian:1", "evidence": evidence}
    study = sp.Study(sp.make_policy("certified-independent", sp.Arms(ids=range(5)), **goal))
    result = study.run(lambda ids: [1e6 + 0.5 * int(one) + rng.normal() for one in ids], progress=False)
    for text in texts:
        found = result.read(text)
        assert found.gap == pytest.approx(study.certificate().certified_gap, rel=1e-6)
        assert found.stands
    assert found.largest_norm is None
    if evidence == "carried":
        assert result.read("in 1000001..1000002").gap < found.gap  # a narrow range says more


@pytest.mark.parametrize("minimize", [False, True])
def test_a_range_is_in_the_sign_of_the_user(minimize):
    rng = np.random.default_rng(4)
    arms = sp.Arms(ids=range(6))
    asked = {"epsilon": 0.2, "delta": 0.1, "noise": "bounded:0:4", "evidence": "carried"}
    study = sp.Study(sp.make_policy("certified-independent", arms, **asked), minimize=minimize)
    means = np.array([3.5, 3.2, 3.0, 2.8, 3.9, 3.1])
    study.run(lambda ids: [means[int(one)] + 0.1 * rng.choice([-1, 1]) for one in ids], progress=False)
    found = study.read(InRange(0.0, 4.0))
    assert found.gap <= study.certificate().certified_gap + 1e-6  # line 12 looks not which sign it is
    assert study.read(InRange(2.5, 4.0)).gap <= found.gap + 1e-9
    assert found.declared_scatter is None
    assert found.largest_scatter is None


EDGES = [
    ("largest_norm", lambda by: Linear(by, level=False)),
    ("largest_misspecification", lambda by: Near(DECLARED, by)),
    ("largest_scatter", lambda by: AllOf((DECLARED, Scatter(by)))),
]


@pytest.mark.parametrize(("name", "assumption"), EDGES)
def test_up_to_the_edge_the_answer_stands_and_beyond_it_not(linear, declared, name, assumption):
    edge = getattr(declared, name)
    assert linear.read(assumption(edge * (1.0 - 1e-5))).stands
    assert not linear.read(assumption(edge * (1.0 + 1e-3))).stands
    other = linear.read(assumption(edge * 0.5))
    assert (
        getattr(other, name) == pytest.approx(edge, rel=1e-4) or name == "largest_norm"
    )  # it is no matter where one is


def test_what_is_wider_says_less(linear, declared):
    wider = linear.readings(Near(DECLARED, 0.01), SumOf((DECLARED, Effects("round", 0.02))))
    assert declared.gap < min(one.gap for one in wider)
    narrow = linear.read(AllOf((DECLARED, InRange(-2.0, 2.0), Scatter(0.4))))
    assert narrow.gap < declared.gap


def test_a_range_that_the_results_rule_out_is_refuted():
    rng = np.random.default_rng(3)
    goal = {"epsilon": 0.3, "delta": 0.1, "noise": "subgaussian:1", "evidence": "carried"}
    study = sp.Study(sp.make_policy("certified-independent", sp.Arms(ids=range(4)), **goal))
    study.run(lambda ids: [0.2 * int(one) + rng.normal() for one in ids], progress=False)
    found = study.read("in 5..9")
    assert found.refuted
    assert not found.stands
    assert found.beaten == study.ids
    assert str(found).endswith("then no candidate could be the best, so this is false, with confidence 90 %.")
    assert not study.read("in 0..9").refuted


def test_norms_below_what_the_results_need_are_refuted():
    """Every process bet on an arm whose rewards are large: what it gained less what a norm allows, by hand."""
    features, gained = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 0.7]]), np.array([9.0, 8.0, 6.0])
    flows = np.array([[1.0, 0.0], [1.0, 1.0], [0.5, 0.0]])
    zeros = np.zeros(3)
    held = ArmFlows(
        np.arange(3), np.array([0, 1]), flows, flows.sum(axis=1), gained, zeros, zeros, np.zeros((3, 1)), 3.0, 4
    )
    question = Question(features, 2, (0, 1), 0.1, 1.0)
    nothing = ArmFlows.nothing(3, 1, 3.0)
    scales = np.geomspace(1e-6, 1e6, 20_001)[:, None]
    beaten_below = [
        max(
            float(
                np.max((gain - 3.0) * scales[:, 0] / np.linalg.norm(scales * one - features[w] + features[j], axis=1))
            )
            for w in range(3)
            if w != j
        )
        for j, (gain, one) in enumerate(zip(gained, flows @ features[:2], strict=True))
    ]
    least, found = min(beaten_below), largest_of(question, Linear(1.0, level=False), [nothing, held])
    assert found.norms[1] == pytest.approx(np.array(beaten_below), rel=1e-5)
    for factor, all_beaten in ((0.99, True), (1.5, False)):
        assert largest_of(question, Linear(factor * least, level=False), [nothing, held]).beaten.all() == all_beaten


def test_a_norm_that_is_left_out_is_half_as_much_again_as_the_results_suggest(linear):
    found = linear.read("linear:level=no")
    assert 1.5 * found.suggested_norm <= found.norm <= 1.65 * found.suggested_norm
    assert not found.norm_named
    assert linear.read(DECLARED).norm_named
    assert found.suggested_norm == pytest.approx(np.linalg.norm(THETA), rel=0.5)
    assert f"norm of at most {found.norm:g} (the results suggest up to {found.suggested_norm:.3g})" in str(found)


def test_few_results_suggest_no_small_norm():
    """A fit of them would be flat; what they leave open is counted."""
    rng = np.random.default_rng(6)
    features = rng.normal(size=(20, 3))
    arms, noise = sp.Arms(features), sp.SubGaussian(5.0)
    study = sp.Study(sp.make_policy("certified-linear", arms, epsilon=0.5, delta=0.1, noise=noise, norm_bound=9.0))
    for _ in range(2):
        batch = study.ask()
        study.tell(batch, [0.1 * features[int(one)].sum() + 5.0 * rng.normal() for one in batch.pulls()])
    assert study.read("linear:level=no").suggested_norm > 0.5


@pytest.mark.cases(4)
@pytest.mark.parametrize("policy", ["certified-kernel", "certified-linear"])
@pytest.mark.parametrize("noise", ["bounded:-3:3", "normal", "subgaussian:0.5"])
def test_whatever_the_noise_the_declared_class_says_what_the_policy_says(policy, noise):
    rng = np.random.default_rng(8)
    features = rng.normal(size=(12, 2))
    more = {"kernel": "gaussian:0.3"} if policy == "certified-kernel" else {}
    arms, wide = sp.Arms(features), {"largest_batch": 400, "max_batches": 8}
    made = sp.make_policy(policy, arms, epsilon=0.4, delta=0.1, noise=noise, norm_bound=1.5, **more, **wide)
    study = sp.Study(made)
    means = np.tanh(features @ [0.6, -0.3])
    study.run(lambda ids: [means[int(one)] + 0.5 * rng.uniform(-1, 1) for one in ids], progress=False, unusual="accept")
    text = (
        "linear:norm=1.5,level=no" if policy == "certified-linear" else "smooth:kernel=gaussian:0.3,norm=1.5,level=no"
    )
    said, found = study.certificate().certified_gap, study.read(text).gap
    print(policy, noise, said, found)
    assert found <= said * (1.0 + 1e-4)  # other dimensions cost the policy misspecification, and the reader nothing


def test_blocks_and_effects():
    rng = np.random.default_rng(9)
    policy = sp.make_policy(
        "certified-independent",
        sp.Arms(ids=range(4)),
        epsilon=0.5,
        delta=0.1,
        noise="subgaussian:0.5",
        blocks="plate",
        block_size=8,
    )
    study = sp.Study(policy)
    while (batch := study.ask()) is not None:
        pulls = batch.pulls()
        study.tell(batch, [0.4 * int(one) + 0.3 * rng.normal() for one in pulls])
    found = study.read("nothing")
    assert found.gap == pytest.approx(study.certificate().certified_gap, rel=1e-6)
    assert study.read("nothing + effects of plate up to 9").gap == pytest.approx(found.gap, rel=1e-9)
    with pytest.raises(InvalidInput, match="another scale"):
        study.read("nothing and scatter<=0.4")


def test_several_at_once_and_those_that_suit_the_study(linear, declared):
    found = linear.readings()
    assert [type(one.assumption).__name__ for one in found] == ["Linear", "Linear", "Smooth", "NoStructure"]
    assert str(found[0].assumption) == "linear:norm=2,level=no"
    assert found[0] == declared
    assert linear.readings("nothing", NoStructure())[0] == found[3]


def test_what_cannot_be_read_is_refused_in_a_sentence(linear):
    with pytest.raises(InvalidInput, match=r"^'linear:norm=2 \+ smooth:length=[\d.]+' lacks a norm"):
        linear.read("linear:norm=2 + smooth")
    with pytest.raises(InvalidInput, match="'day' cannot be read"):
        linear.read("linear:norm=2 + effects of day up to 1")
    fresh = sp.Study(replace(linear.policy))
    with pytest.raises(OutOfTurn, match="there is nothing to read"):
        fresh.read("nothing")
    plain = sp.Study(
        sp.make_policy("certified-independent", sp.Arms(ids=["a", "b"]), epsilon=0.5, delta=0.1, noise="bernoulli")
    )
    plain.run(lambda ids: [float(one == "a") for one in ids], progress=False)
    with pytest.raises(InvalidInput, match="these candidates have none"):
        plain.read("linear")
    other = sp.Study(sp.make_policy("lucb", sp.Arms(ids=["a", "b"]), epsilon=0.9, delta=0.4, noise="bernoulli"))
    with pytest.raises(InvalidInput, match="lucb keeps no evidence"):
        other.read("nothing")
