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

CHECKS: Mapping[str, Callable[[PolicyUnderTest], None]] = {  # the functions of a `PolicyUnderTest` alone
    name: check
    for name, check in vars(checks).items()
    if getattr(check, "__annotations__", {}) == {"tested": PolicyUnderTest, "return": None}
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
