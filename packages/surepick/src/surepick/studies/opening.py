"""Studies by their address: that of a database, or of a server."""

import importlib
import ipaddress
import os
from typing import TYPE_CHECKING, Any, Unpack
from urllib.parse import SplitResult, urlsplit

from surepick.core.arms import Arms
from surepick.core.descriptions import NO_SCALE, Scale
from surepick.errors import InvalidInput
from surepick.noise import Noise
from surepick.policies.base import Policy, spec_of
from surepick.studies.logs.base import CLOSED_ROUNDS, COUNT, Judge, Surplus
from surepick.studies.progress import ListedSoFar
from surepick.studies.registration import subject_of
from surepick.studies.study import Study
from surepick.text import quoted

if TYPE_CHECKING:
    from surepick.policies.option_types import Options

# --- Addresses of servers, and whether a token may be sent there.

TOKEN, INSECURE = "SUREPICK_TOKEN", "SUREPICK_INSECURE_HTTP"


def is_http(url: object) -> bool:
    """Whether an address is a server's, and no database's."""
    return isinstance(url, str) and url.lower().startswith(("http://", "https://"))


def checked_address(url: str, *, insecure: bool | None = None) -> str:
    """The address of a server, without a slash at the end."""
    try:
        parts = urlsplit(url.strip())
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise InvalidInput(f"{quoted(url)} is no address of a server: {error}.") from None
    if parts.username is not None or parts.password is not None:
        raise InvalidInput(
            f"the address of {quoted(host)} has a name or a password in it, which lists of processes and logs show. "
            f"Leave it out, and put the token into {TOKEN}."
        )
    if not host or parts.query or parts.fragment:
        raise InvalidInput(
            f"{quoted(_plain(parts))} is no address of a server; write https://HOST, or http://127.0.0.1:8421."
        )
    meant = os.environ.get(INSECURE) == "1" if insecure is None else insecure
    if parts.scheme.lower() == "http" and not meant and not is_this_machine(host):
        raise InvalidInput(
            f"http://{host} is another machine, and http is not encrypted: whoever is between could read the token and "
            f"the results. Write https://, or, in a network that you trust, insecure=True ({INSECURE}=1)."
        )
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme.lower()}://{shown}{'' if port is None else f':{port}'}{parts.path.rstrip('/')}"


def is_this_machine(host: str) -> bool:
    """Whether a name or number of a host is this machine's own."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _plain(parts: SplitResult) -> str:
    return f"{parts.scheme}://{parts.hostname or ''}{parts.path}"


CLIENT = "surepick_server.client.server"  # in surepick-server
EXTRAS = {"sqlalchemy": "studies", "alembic": "studies", "httpx": "client"}


def create_study(
    url: str,
    name: str,
    arms: Arms | Policy[Any],
    policy: Policy[Any] | str | None = None,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    noise: Noise | str | None = None,
    minimize: bool = False,
    judge: Judge = CLOSED_ROUNDS,
    surplus: Surplus | None = None,
    id_column: str | None = None,
    reward_column: str | None = None,
    study_id: str | None = None,
    scale: Scale = NO_SCALE,
    token: str | None = None,
    **options: "Unpack[Options]",
) -> Study:
    """A new study in a database, which is made if it is absent, or on a server.

    Args:
        url: "sqlite:///FILE" or "postgresql+psycopg://USER@HOST/DATABASE"; or of a server, "https://HOST".
        name: what the study is called there; no other study may be.
        arms, policy: what is chosen among, and the algorithm; or the algorithm alone, if it knows its arms. It was
            made by `make_policy`, or is equal to one that was: only such a one can be built again elsewhere. One of
            another package is built again wherever that is installed.
        epsilon, delta, noise, options: where `policy` is a name: as in `make_policy`; delta None: 0.05.
        minimize: small rewards are good.
        judge, study_id: as in `Study`.
        id_column, reward_column: what your tables call the columns of ids and of results; beside "id" and "reward",
            `surepick tell` and a server then find these. No part of the registration.
        scale: the unit of a measurement, and the limits beyond which one is asked about before it is stored. No part
            of the registration, as little as `arms.described`, which is stored with the study.
        surplus: what becomes of results beyond what was asked, as in `Study`; None: they count in a database, and are
            refused by a server.
        token: of a server; None: that of SUREPICK_TOKEN.

    Raises:
        InvalidInput: the address or the name has no meaning, the name is taken, the policy has no spec, or does not
            judge parts.
        StorageError: the database or the server cannot be reached or written, or is not ours.
    """
    if isinstance(policy, str):
        from surepick.policies.registry import settled_policy  # noqa: PLC0415 (only where a policy is made)

        known = arms if isinstance(arms, Arms) else subject_of(arms)[0]
        policy = settled_policy(policy, known, epsilon=epsilon, delta=delta, noise=noise, **options)
    elif any(each is not None for each in (epsilon, delta, noise, *options.values())):
        raise InvalidInput("epsilon, delta, noise and options stand beside the name of a policy; leave them out.")
    told: dict[str, Any] = {"minimize": minimize, "judge": judge}
    told |= {"id_column": id_column, "reward_column": reward_column, "study_id": study_id, "scale": scale}
    made: Study
    if is_http(url):
        made = _server("create_study", url, token).create(name, arms, policy, surplus=surplus, **told)
    else:
        told["surplus"] = COUNT if surplus is None else surplus
        made = _databases("create_study", token).create_stored_study(url, name, arms, policy, **told)
    made.remember(*subject_of(arms, policy))
    return made


def open_study(url: str, name: str, policy: Policy[Any] | None = None, *, token: str | None = None) -> Study:
    """A study in a database or on a server. In a database its chain of hashes is checked, the latest decisions are
    computed again and compared, and all of them before an answer is given (`certificate`, `read`, an export); a server
    computes all of them again now.

    Args:
        url, name, token: as in `create_study`.
        policy: None: built from what is stored. One that is given must do the same as the stored one.

    Raises:
        InvalidInput: there is no such study, or the policy that was given is another one.
        StorageError: the database or the server cannot be reached, is not ours, or holds something that is not what
            was stored, or does not follow from the reported results; the row is named.
    """
    if is_http(url):
        found: Study = _server("open_study", url, token).study(name, policy, check=True)
    else:
        found = _databases("open_study", token).open_stored_study(url, name, policy)
    return found


def kept_study(
    url: str | None, name: str, arms: Arms, policy: Policy[Any], *, minimize: bool = False
) -> tuple[Study, bool]:
    """The study of that name, with the results of before, or a new one; and whether it was there.

    Args:
        url: as in `create_study`; None: a new study in memory.
        name, arms, policy, minimize: as in `create_study`. The test items of a stored study keep the order that was
            drawn for them.

    Raises:
        InvalidInput: the stored study has other candidates, or asks something else.
        StorageError: as in `create_study`.
    """
    if url is None:
        return Study(arms, policy, minimize=minimize), False
    try:
        return create_study(url, name, arms, policy, minimize=minimize), False
    except InvalidInput:  # the database, too, is made by the first study
        if name not in {one.name for one in list_studies(url)}:
            raise
    study = open_study(url, name)
    if (study.ids, study.minimize, _asked(study.policy)) != (arms.ids, minimize, _asked(policy)):
        raise InvalidInput(
            f"the study {quoted(name)} there has other candidates, or asks something else: ask for the same as before, "
            "or give another name."
        )
    study.remember(arms, policy)
    return study, True


def _asked(policy: Policy[Any]) -> dict[str, Any] | None:
    """What a policy is, without a seed that the program drew for it."""
    spec = spec_of(policy)
    drawn = spec is not None and spec.get("seed_by") == "program"
    return None if spec is None else {name: value for name, value in spec.items() if name != "seed" or not drawn}


def resume_study(url: str, name: str, policy: Policy[Any] | None = None, *, token: str | None = None) -> Study:
    """As `open_study`, without computing anything again before an answer is given."""
    if is_http(url):
        found: Study = _server("resume_study", url, token).study(name, policy)
    else:
        found = _databases("resume_study", token).resume_stored_study(url, name, policy)
    return found


def list_studies(url: str, *, token: str | None = None) -> list[ListedSoFar]:
    """The studies of a database, or those that a server shows us, by name.

    Args:
        url, token: as in `create_study`.

    Raises:
        InvalidInput, StorageError: as in `open_study`.
    """
    if is_http(url):
        found: list[ListedSoFar] = _server("list_studies", url, token).studies()
    else:
        found = _databases("list_studies", token).list_stored_studies(url)
    return found


def _server(name: str, url: str, token: str | None) -> Any:
    return _loaded(name, CLIENT).Server(url, token=token)


def _databases(name: str, token: str | None) -> Any:
    if token is not None:
        raise InvalidInput("a token is for a server, and this is the address of a database; leave the token out.")
    return _loaded(name, "surepick.studies.database")


def _loaded(name: str, module: str) -> Any:
    """A module whose packages are an extra."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        absent = error.name is not None and f"{module}.".startswith(f"{error.name}.")
        if error.name not in EXTRAS and not absent:
            raise
        if absent:
            raise InvalidInput(f'{name} of a server is in another package: pip install "surepick[client]".') from error
        extra = EXTRAS[str(error.name)]
        raise InvalidInput(f'{name} needs {error.name}, which is absent: pip install "surepick[{extra}]".') from error
