"""What every policy must keep, as checks that the author of a policy runs on it.

    from surepick.testing import check_policy

    check_policy(lambda arms, problem: MyPolicy(problem))

A check is a function of a `PolicyUnderTest` that raises `ProtocolBroken`, with what was wrong, where a policy breaks
one belief; `CHECKS` has them by name, for one test each:

    @pytest.mark.parametrize("name", CHECKS)
    def test_my_policy(name):
        CHECKS[name](PolicyUnderTest(make))

They need neither pytest nor a clone of the repository, and take a second for a policy that computes little. All that
they play is four candidates, so a policy that passes is not fast, and its intervals are not proved: an error rate far
above delta is noticed, half a width that is missing is not.
"""

from collections.abc import Callable, Mapping

from surepick.testing import checks
from surepick.testing.checks import (
    FEATURES,
    MEANS,
    Maker,
    PlayedTurn,
    PolicyUnderTest,
    ProtocolBroken,
    easy_environment,
    noiseless,
    played,
)

__all__ = [
    "CHECKS",
    "FEATURES",
    "MEANS",
    "PlayedTurn",
    "PolicyUnderTest",
    "ProtocolBroken",
    "check_policy",
    "easy_environment",
    "noiseless",
    "played",
]

CHECKS: Mapping[str, Callable[[PolicyUnderTest], None]] = {
    check.__name__: check
    for check in (
        checks.it_is_a_policy,
        checks.its_traits_are_true,
        checks.it_stops_as_it_says,
        checks.asking_changes_nothing,
        checks.telling_changes_nothing,
        checks.claiming_changes_nothing,
        checks.states_and_plans_survive_json,
        checks.a_replay_comes_to_the_same,
        checks.a_study_comes_to_the_same,
        checks.plans_are_whole,
        checks.rows_say_what_happened,
        checks.only_what_eliminates_shrinks,
        checks.claims_are_in_range,
        checks.rewards_without_noise_find_the_best_arm,
        checks.one_arm_needs_no_pull,
        checks.a_gap_bound_below_epsilon_needs_no_pull,
        checks.two_identical_arms_do_not_rule_out_each_other,
        checks.an_unfinished_study_says_so,
        checks.missing_results_never_certify,
        checks.totals_without_squares_are_enough,
        checks.certified_answers_are_seldom_wrong,
        checks.its_certificate_is_verified,
    )
}


def check_policy(make: Maker) -> None:
    """Run all checks.

    Args:
        make: (arms, problem) -> the policy, as in `PolicyUnderTest`.

    Raises:
        ProtocolBroken: lists each belief that the policy breaks, and how.
    """
    tested, broken = PolicyUnderTest(make), list[str]()
    for name, check in CHECKS.items():
        try:
            check(tested)
        except Exception as error:
            kind = "" if isinstance(error, ProtocolBroken) else f"{type(error).__name__}: "
            broken.append(f"{name}: {kind}{error}")
    if broken:
        raise ProtocolBroken("\n".join([f"{len(broken)} of {len(CHECKS)} checks fail.", *broken]))
