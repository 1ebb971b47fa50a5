"""Bad arms, settings and noise, each with its own error: its type, what was wrong, and what to do about it."""

import json
import sys

import numpy as np
import pytest
from refusals import ARMS, INF, LINEAR, NAMES, NAN, make, open_study, refused
from together import of_each

import surepick as sp
from surepick.cli import main


def test_the_parents_of_the_errors():
    assert issubclass(sp.InvalidInput, ValueError)
    assert issubclass(sp.OutOfTurn, RuntimeError)
    for kind in (
        sp.InvalidInput,
        sp.OutOfTurn,
        sp.errors.ContractError,
        sp.errors.NotConverged,
        sp.StorageError,
        sp.errors.DatasetMissing,
    ):
        assert issubclass(kind, sp.SurepickError)


# arms


@pytest.mark.parametrize("bad", [NAN, INF, -INF])
def test_features_that_are_not_finite_name_their_rows(bad):
    features = np.ones((9, 2))
    features[[2, 5], [0, 1]] = bad
    refused(lambda: sp.Arms(features, list("abcdefghi")), "2 of 9 arms", "'c', 'f'", "Fill or drop these rows")


def test_many_bad_rows_are_not_all_listed():
    message = refused(lambda: sp.Arms(np.full((1000, 1), NAN)), "1000 of 1000", "and 995 more")
    assert len(message) < 300


@pytest.mark.parametrize(
    "call", [lambda: sp.Arms(np.empty((0, 3))), lambda: sp.Arms(ids=[]), lambda: sp.Arms(np.empty((0, 0)))]
)
def test_no_arm_at_all(call):
    refused(call, "no arm (K = 0)")


def test_neither_features_nor_ids():
    refused(sp.Arms, "features, or ids, or both")


@pytest.mark.parametrize("features", [[1.0, 2.0], 3.0, [[[1.0]]], []])
def test_features_of_another_shape(features):
    refused(lambda: sp.Arms(features), "have shape", "(K, D), one row an arm")


@pytest.mark.parametrize("features", [[["red"]], [[1, 2], [3]], [[None, 1, {}]]])
def test_features_that_are_not_numbers(features):
    refused(lambda: sp.Arms(features), "not a numeric (K, D) array")


def test_ids_repeated_in_memory():
    refused(lambda: sp.Arms(np.ones((3, 1)), ["x", "y", "x"]), "1 ids are repeated", "'x'", "must name one arm")


def test_ids_that_only_look_alike_as_text():
    refused(lambda: sp.Arms(np.ones((2, 1)), [1, "1"]), "'1'")


def test_as_many_ids_as_arms():
    refused(lambda: sp.Arms(np.ones((3, 1)), ["x"]), "1 ids for 3 arms", "one id per arm")


@pytest.mark.parametrize("name", NAMES)
def test_one_arm_is_not_bad_input(name):
    arms = sp.Arms([[2.0, 1.0]], ["only"])
    study = sp.Study(arms, make(name, arms))
    assert study.ask() is None
    answer = study.certificate()
    assert (answer.best_arm, answer.pulls, answer.verdict) == ("only", 0, "certified")
    assert "only one arm" in answer.reason


def test_one_arm_in_a_table(write, monkeypatch, capsys):
    path = write("id,y\nonly,0.5\nonly,0.7\n")
    words = [
        "run",
        str(path),
        "--id",
        "id",
        "--reward",
        "y",
        "--noise",
        "bounded:0:1",
        "--epsilon",
        "0.1",
        "--format",
        "json",
    ]
    monkeypatch.setattr(sys, "argv", ["surepick", *words])
    with pytest.raises(SystemExit) as stop:
        main()
    answer = json.loads(capsys.readouterr().out)
    assert (stop.value.code or 0, answer["best_arm"], answer["pulls"], answer["verdict"]) == (0, "only", 0, "certified")


# settings


@of_each("name", NAMES)
@of_each("epsilon", [0.0, -1.0, NAN, INF])
def test_epsilon_must_be_positive(name, epsilon):
    refused(lambda: make(name, epsilon=epsilon), f"epsilon is {epsilon!r}", "must be positive", "reward units")


@of_each("name", NAMES)
@of_each("delta", [0.0, 1.0, -0.1, 5, NAN])
def test_delta_must_be_a_probability(name, delta):
    refused(lambda: make(name, delta=delta), f"delta is {delta!r}", "strictly between 0 and 1")


@pytest.mark.parametrize("name", LINEAR)
@pytest.mark.parametrize("norm_bound", [0.0, -2.0, NAN, INF])
def test_the_norm_bound_must_be_positive(name, norm_bound):
    refused(lambda: make(name, norm_bound=norm_bound), f"norm_bound is {norm_bound!r}", "must be positive")
    refused(lambda: sp.LinearEmbedding(ARMS.features, norm_bound=norm_bound), f"norm_bound is {norm_bound!r}")


@pytest.mark.parametrize("name", LINEAR)
def test_a_norm_bound_is_needed(name):
    refused(
        lambda: sp.make_policy(name, ARMS, epsilon=0.1, delta=0.05, noise=sp.Bernoulli()), "norm_bound", "largest norm"
    )


@of_each("name", NAMES)
@of_each("gap_bound", [0.0, -1.0, NAN, INF])
def test_the_gap_bound_must_be_positive(name, gap_bound):
    refused(lambda: make(name, gap_bound=gap_bound), f"gap_bound is {gap_bound!r}", "largest possible gap")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("changes", [{"gap_bound": 0.1}, {"noise": sp.Bounded(3.0, 3.05)}])
def test_a_gap_bound_below_epsilon_is_an_answer(name, changes):
    study = sp.Study(ARMS, make(name, **changes))
    answer = study.certificate()
    assert study.ask() is None
    assert (answer.pulls, answer.verdict) == (0, "certified")
    assert "every arm is epsilon-best" in answer.reason
    assert len(answer.assumptions) == 1
    assert answer.certified_gap == pytest.approx(changes.get("gap_bound", 0.05))


def test_a_gap_bound_above_epsilon_is_none():
    assert sp.Study(ARMS, make(gap_bound=0.11)).certificate().verdict == "not-yet"


@pytest.mark.parametrize("slack", [0.0, 1.5, NAN])
def test_the_slack_must_be_a_share(slack):
    refused(lambda: make("rage", slack=slack), f"slack is {slack!r}", "(0, 1]")


@pytest.mark.parametrize(
    ("option", "value", "known"),
    [
        ("schedule", "hasty", "'convergent'"),
        ("union", "none", "'best-pairs'"),
        ("bound", "tight", "'row-tail'"),
        ("floor", "sky", "'support'"),
        ("stopping", "soon", "'certified'"),
        ("dimension", "large", "'cheapest'"),
    ],
)
def test_a_choice_that_does_not_exist_lists_those_that_do(option, value, known):
    refused(lambda: make("linear-embedding", **{option: value}), f"{option} is {value!r}", "choose one of", known)


def test_looks_must_be_one_or_more():
    refused(lambda: make("linear-embedding", looks=0), "looks is 0", "at least once")


@pytest.mark.parametrize("growth", [0.0, -1.0, NAN, INF])
def test_the_growth_must_be_positive(growth):
    refused(lambda: make(growth=growth), f"growth is {growth!r}", "must be positive")


@pytest.mark.parametrize("dim", [0, 3, -1])
def test_a_dimension_beyond_the_rank(dim):
    refused(lambda: make("linear-embedding", dim=dim), f"dimension {dim}", "use 1 .. 2")


@pytest.mark.parametrize("name", NAMES)
def test_an_unknown_option_lists_the_known(name):
    refused(lambda: make(name, colour="red"), f"{name} has no option 'colour'", "it knows", "gap_bound")


def test_an_unknown_policy_lists_the_known():
    refused(lambda: make("thompson"), "no policy 'thompson'", *sp.policy_names())
    refused(lambda: sp.paper_settings("thompson"), "no policy 'thompson'", *sp.policy_names())


def test_a_matrix_is_not_arms():
    refused(lambda: make(arms=np.eye(3)), "arms is a ndarray", "Arms(features, ids)")


@pytest.mark.parametrize("name", ["rage", *LINEAR])
def test_arms_without_features_suit_only_policies_that_ignore_them(name):
    arms = sp.Arms(ids=["a", "b"])
    refused(lambda: make(name, arms), "feature")
    for ignoring in ("action-elimination", "certified-independent"):
        assert make(ignoring, arms).problem.num_arms == 2


def test_features_that_are_all_zero():
    refused(lambda: make("linear-embedding", sp.Arms(np.zeros((3, 2)))), "all features are zero")


# what is assumed of the rewards


@pytest.mark.parametrize("sigma", [0.0, -1.0, NAN, INF, (), (1.0, 0.0), ((1.0,),)])
def test_a_scale_must_be_positive(sigma):
    refused(lambda: sp.SubGaussian(sigma), f"sigma is {sigma!r}", "must be positive")


@pytest.mark.parametrize(("low", "high"), [(1.0, 0.0), (0.0, 0.0), (NAN, 1.0), (0.0, INF)])
def test_bounds_must_be_in_order(low, high):
    refused(lambda: sp.Bounded(low, high), f"[{low!r}, {high!r}]", "low must be below high")


@pytest.mark.parametrize("name", NAMES)
def test_as_many_scales_as_arms(name):
    refused(lambda: make(name, noise=sp.SubGaussian((1.0, 2.0))), "2 scales for 3 arms", "one per arm")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "gauss:1",
        "bernoulli:0.5",
        "bounded",
        "bounded:0",
        "bounded:0:1:2",
        "bounded:a:b",
        "subgaussian",
        "subgaussian:",
    ],
)
def test_a_noise_that_is_not_understood_shows_the_forms(text):
    refused(lambda: sp.parse_noise(text), repr(text), "bernoulli", "bounded:LOW:HIGH", "subgaussian:SIGMA")
    refused(lambda: make(noise=text), "is not understood")


@pytest.mark.parametrize("text", ["subgaussian:0", "subgaussian:nan", "bounded:1:0", "bounded:0:inf"])
def test_a_noise_that_is_understood_and_impossible_says_why(text):
    refused(lambda: sp.parse_noise(text), "finite")


def test_a_total_that_no_rewards_of_zero_and_one_have():
    study = open_study(noise=sp.Bernoulli())
    refused(lambda: study.tell_totals(study.ids, [2, 1, 1], [0.7, 0.0, 0.0]), "'a'")


def test_one_id_without_brackets():
    study = open_study()
    refused(lambda: study.tell("ab", [1.0, 0.0]), "'ab'")


def test_complex_features():
    refused(lambda: sp.Arms(np.array([[1j]])), "not a numeric")


@pytest.mark.parametrize(
    "changes",
    [
        {"epsilon": "0.1"},
        {"epsilon": None},
        {"delta": "5%"},
        {"norm_bound": "1"},
        {"gap_bound": "1"},
        {"noise": 0.5},
        {"noise": None},
        {"noise": sp.Bernoulli},
        {"looks": NAN},
        {"looks": 1.5},
        {"tolerance": NAN},
        {"dim": 1.5},
    ],
    ids=str,
)
def test_settings_of_another_type(changes):
    refused(lambda: make("linear-embedding", **changes), next(iter(changes)))


@pytest.mark.parametrize("call", [lambda: sp.SubGaussian("loud"), lambda: sp.Bounded("a", "b")])
def test_a_noise_of_text(call):
    refused(call, "must be a number")


def test_arms_and_policy_exchanged():
    refused(lambda: sp.Study(make(), ARMS), "Study(arms, policy)")
