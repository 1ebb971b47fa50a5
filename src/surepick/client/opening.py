"""Studies by their address: that of a database, or of a server."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from surepick.client.addresses import is_http
from surepick.core.arms import Arms
from surepick.errors import InvalidInput
from surepick.policies.base import Policy
from surepick.studies.logs.base import CLOSED_ROUNDS, COUNT, Judge, Surplus
from surepick.studies.progress import Listed
from surepick.studies.registration import subject_of
from surepick.studies.study import Study

if TYPE_CHECKING:
    from surepick.client.server import Server

EXTRAS = {"sqlalchemy": "studies", "alembic": "studies", "httpx": "client"}


def create_study(
    url: str,
    name: str,
    arms: Arms | Policy[Any],
    policy: Policy[Any] | None = None,
    *,
    minimize: bool = False,
    judge: Judge = CLOSED_ROUNDS,
    surplus: Surplus | None = None,
    id_column: str | None = None,
    reward_column: str | None = None,
    study_id: str | None = None,
    token: str | None = None,
) -> Study:
    """A new study in a database, which is made if it is absent, or on a server.

    Args:
        url: "sqlite:///FILE" or "postgresql+psycopg://USER@HOST/DATABASE"; or of a server, "https://HOST".
        name: what the study is called there; no other study may be.
        arms, policy: what is chosen among, and the algorithm; or the algorithm alone, if it knows its arms. It was
            made by `make_policy`, or is equal to one that was: only such a one can be built again elsewhere.
        minimize: small rewards are good.
        judge, study_id: as in `Study`.
        id_column, reward_column: what your tables call the columns of ids and of results; beside "id" and "reward",
            `surepick tell` and a server then find these. No part of the registration.
        surplus: what becomes of results beyond what was asked, as in `Study`; None: they count in a database, and are
            refused by a server.
        token: of a server; None: that of SUREPICK_TOKEN.

    Raises:
        InvalidInput: the address or the name has no meaning, the name is taken, the policy has no spec, or does not
            judge parts.
        StorageError: the database or the server cannot be reached or written, or is not ours.
    """
    told: dict[str, Any] = {"minimize": minimize, "judge": judge}
    told |= {"id_column": id_column, "reward_column": reward_column, "study_id": study_id}
    made: Study
    if is_http(url):
        made = _server("create_study", url, token).create(name, arms, policy, surplus=surplus, **told)
    else:
        told["surplus"] = COUNT if surplus is None else surplus
        made = _databases("create_study", token).create_study(url, name, arms, policy, **told)
    made.remember(*subject_of(arms, policy))
    return made


def open_study(url: str, name: str, policy: Policy[Any] | None = None, *, token: str | None = None) -> Study:
    """A study in a database or on a server; all that was decided in it is computed again and compared.

    Args:
        url, name, token: as in `create_study`.
        policy: None: built from what is stored. One that is given must do the same as the stored one.

    Raises:
        InvalidInput: there is no such study, or the policy that was given is another one.
        StorageError: the database or the server cannot be reached, is not ours, or holds something that does not
            follow from the reported results; the row is named.
    """
    if is_http(url):
        return _server("open_study", url, token).study(name, policy, check=True)
    found: Study = _databases("open_study", token).open_study(url, name, policy)
    return found


def resume_study(url: str, name: str, policy: Policy[Any] | None = None, *, token: str | None = None) -> Study:
    """As `open_study`, without computing anything again.

    Raises:
        As `open_study`, but for what only a computation could find.
    """
    if is_http(url):
        return _server("resume_study", url, token).study(name, policy)
    found: Study = _databases("resume_study", token).resume_study(url, name, policy)
    return found


def list_studies(url: str, *, token: str | None = None) -> list[Listed]:
    """The studies of a database, or those that a server shows us, by name.

    Args:
        url, token: as in `create_study`.

    Raises:
        InvalidInput, StorageError: as in `open_study`.
    """
    if is_http(url):
        return _server("list_studies", url, token).studies()
    found: list[Listed] = _databases("list_studies", token).list_studies(url)
    return found


def _server(name: str, url: str, token: str | None) -> Server:
    found: Server = _loaded(name, "surepick.client.server").Server(url, token=token)
    return found


def _databases(name: str, token: str | None) -> Any:
    if token is not None:
        raise InvalidInput("a token is for a server, and this is the address of a database; leave the token out.")
    return _loaded(name, "surepick.studies.database")


def _loaded(name: str, module: str) -> Any:
    """A module whose packages are an extra.

    Raises:
        InvalidInput: they are absent.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name not in EXTRAS:
            raise
        extra = EXTRAS[error.name]
        raise InvalidInput(f'{name} needs {error.name}, which is absent: pip install "surepick[{extra}]".') from error
