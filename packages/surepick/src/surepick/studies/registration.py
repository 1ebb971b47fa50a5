"""The registration code of a study: what is asked, of which candidates, by which policy, in a line to write down.

    code = "sp1-" + seven groups of four letters: the first 140 bits of a SHA-256 in base 32, in small letters

It is fixed before the first result, and any certificate amounts to one. A study has an id that is drawn when it is
made, so that no two studies of one question have the same code. A certificate with another code promises
something else than was registered. docs/certificates.md defines it for other programs.
"""

import base64
import hashlib
import re
import secrets
from collections.abc import Mapping
from typing import Any

from surepick.core.arms import Arms
from surepick.core.records import encode
from surepick.core.values import storable_text
from surepick.errors import InvalidInput
from surepick.policies.base import Policy, name_of, spec_of
from surepick.studies.logs.base import CLOSED_ROUNDS, Judge
from surepick.studies.logs.hash_chain import canonical, hash_of_arms
from surepick.studies.validation import checked_judge
from surepick.text import printable, quoted

VERSION = 1  # of the definition; it stands in the prefix
PREFIX = f"sp{VERSION}"
LETTERS, GROUP = 28, 4
EXACT = 2**53  # whole numbers below it are the same as integers and as doubles
MOST_ID = 100  # characters of a study's id
REHEARSAL = "rehearsal"  # the id of a study that nobody registers, so that its output is the same each time
CODE = re.compile(f"{PREFIX}[a-z2-7]{{{LETTERS}}}")
SEPARATORS = re.compile(r"[\s\-\u2010-\u2015\u2212]+")  # word processors turn hyphens into dashes


def registration_code(
    arms: Arms, policy: Policy[Any], *, study_id: str, minimize: bool = False, judge: Judge = CLOSED_ROUNDS
) -> str | None:
    """The registration code of a study that has not begun, or has: results have no part in it.

    Args:
        arms: what is chosen among.
        policy: the algorithm, with epsilon, delta, noise and its options.
        study_id: `study.study_id`, so that two studies of one question have two codes.
        minimize: small rewards are good.
        judge: when results are judged, as in `Study`.

    Returns:
        The code, e.g. "sp1-mfzw-k3tu-pb2x-ovqd-6hae-y7ls-rc4n"; None if the policy has parts without a name, because
        a code that left these out would pass for one that covers them.
    """
    entry = {"sha256": hash_of_arms(arms), "columns": arms.columns, "preparation": arms.preparation}
    return code_of(spec_of(policy), entry, study_id=study_id, minimize=minimize, judge=judge)


def settled_id(given: str | None) -> str:
    """The id of a study: one that is given, for rehearsals, or drawn now."""
    if given is None:
        return secrets.token_hex(16)
    if not 0 < len(storable_text("study_id", given)) <= MOST_ID:
        raise InvalidInput(f"study_id has {len(given)} characters, and takes 1 to {MOST_ID}; leave it out to draw one.")
    return given


def code_of(
    spec: Mapping[str, Any] | None,
    arms: Mapping[str, Any],
    *,
    study_id: str,
    minimize: bool,
    judge: str = CLOSED_ROUNDS,
) -> str | None:
    """The registration code from what is stored of a study."""
    if spec is None:
        return None
    asked = {
        "arms": {name: encode(arms[name]) for name in ("columns", "preparation", "sha256")},
        "minimize": minimize,
        "policy": {name: _plain(encode(_covered(name, one))) for name, one in spec.items() if one is not None},
        "registration": VERSION,
        "study_id": study_id,
    } | ({} if judge == CLOSED_ROUNDS else {"judge": judge})
    text = base64.b32encode(hashlib.sha256(canonical(asked)).digest()).decode().lower()
    return _grouped(text[:LETTERS])


def _covered(option: str, value: Any) -> Any:
    """What of an option the code stands for: of the first look at a long list which one it is, no computed numbers."""
    return {name: value[name] for name in ("root", "sizes")} if option == "first_look" else value


def read_code(text: str) -> str:
    """A registration code as somebody typed it: capitals, spaces and missing hyphens do not matter."""
    if not isinstance(text, str):
        raise InvalidInput(f"the registration code is {quoted(text)}, a {type(text).__name__}; give it as a text.")
    typed = SEPARATORS.sub("", text).lower()
    if not CODE.fullmatch(typed):
        letters = typed.removeprefix(PREFIX)
        why = f"it has {len(letters)} letters and digits after {PREFIX}, and a code has {LETTERS}"
        if wrong := sorted(set(re.sub("[a-z2-7]", "", letters))):
            why = f"no code has {printable(wrong[0])!r} in it, only the letters a to z and the digits 2 to 7"
        if not typed.startswith(PREFIX):
            why = f"it does not begin with {PREFIX}"
        raise InvalidInput(
            f"{_short(printable(text))!r} is no registration code: {why}. Copy it as surepick create or "
            f"surepick status shows it: {PREFIX}- and seven groups of four."
        )
    return _grouped(typed.removeprefix(PREFIX))


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


def _grouped(letters: str) -> str:
    return "-".join([PREFIX, *(letters[start : start + GROUP] for start in range(0, LETTERS, GROUP))])


def _plain(value: Any) -> Any:
    """Plain data in which 1.0 and 1 are the same number."""
    if isinstance(value, float) and value.is_integer() and abs(value) < EXACT:
        return int(value)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return value


def subject_of(arms: Arms | Policy[Any], policy: Policy[Any] | None = None) -> tuple[Arms, Policy[Any]]:
    """The arms and the policy of a study, given as (arms, policy), or as a policy that knows its arms."""
    if policy is None and isinstance(arms, Policy):
        policy = arms
        if policy.problem.arms is None:
            raise InvalidInput(
                f"this {type(policy).__name__} does not know its arms, only their number: it was not made by "
                "make_policy. Give both: Study(arms, policy)."
            )
        arms = policy.problem.arms
    if not isinstance(arms, Arms) or not isinstance(policy, Policy):
        raise InvalidInput(
            f"Study(arms, policy) was given a {type(arms).__name__} and a {type(policy).__name__}; the arms come first."
        )
    if policy.problem.num_arms != arms.num_arms:
        raise InvalidInput(
            f"the policy is for {policy.problem.num_arms} arms and there are {arms.num_arms}; build it from them."
        )
    return arms, policy


def checked_subject(
    name: str, arms: Arms | Policy[Any], policy: Policy[Any] | None, *, minimize: bool, judge: Judge
) -> tuple[Arms, Policy[Any]]:
    """(arms, policy) of a study that can be kept, before anything is written."""
    arms, policy = subject_of(arms, policy)
    if not storable_text("the name of a study", name).strip():
        raise InvalidInput(f"the name of a study is {name!r}; give it one, e.g. 'headlines'.")
    if spec_of(policy) is None:
        raise InvalidInput(
            "the policy was made of parts that have no name (a callable kernel, a hand-made expansion), so no other "
            "process could build it again. Use sp.Study in memory, or make_policy(name, ...)."
        )
    checked_judge(judge, policy, minimize=minimize)
    return arms, policy


def check_promise(name: str, configuration: Mapping[str, Any], policy: Policy[Any]) -> None:
    """Refuse a policy that is another algorithm than that of a stored study, or promises something else."""
    from surepick.policies.registry import stands_for  # noqa: PLC0415 (only where something is computed)

    stored, algorithm = configuration["policy"], configuration["algorithm"]
    made_by_hand = spec_of(policy) is None and stands_for(stored["name"], policy)
    problem = policy.problem
    for field, value, given in (
        ("algorithm", algorithm, algorithm if made_by_hand else name_of(policy)),
        ("epsilon", stored["epsilon"], problem.epsilon),
        ("delta", stored["delta"], problem.delta),
        ("noise", stored["noise"], problem.noise.spec),
    ):
        if given != value:
            raise InvalidInput(
                f"the policy that was given is not the one of study {name!r}: its {field} is {given!r} and the study's "
                f"is {value!r}."
            )
