"""A server: its studies, new ones, forecasts, and certificates that it checks."""

import base64
import json
from typing import Any

import numpy as np

from surepick.core.arms import Arms
from surepick.core.descriptions import NO_SCALE, Scale
from surepick.core.records import encode, from_json
from surepick.policies.base import Policy, spec_of
from surepick.studies.logs.base import CLOSED_ROUNDS, Judge, Surplus
from surepick.studies.progress import ListedSoFar
from surepick.studies.registration import check_promise, checked_subject, subject_of
from surepick.studies.validation import checked_surplus
from surepick_server.client.study import RemoteStudy
from surepick_server.client.transport import Transport


class Server:
    """A server that `surepick serve` runs. Its connections are shared, also between threads; open a study in each.

    Args:
        url: "https://HOST", or "http://127.0.0.1:8421" on this machine.
        token: who we are; None: that of SUREPICK_TOKEN. It is sent in a header, and never shown.
        insecure: http to another machine is meant; None: as SUREPICK_INSECURE_HTTP says ("1").

    Raises:
        InvalidInput: the address or the token is none, or it is http to another machine.
    """

    def __init__(self, url: str, *, token: str | None = None, insecure: bool | None = None) -> None:
        self._transport = Transport(url, token=token, insecure=insecure)

    def __repr__(self) -> str:
        return f"Server({self._transport.url!r})"

    @property
    def url(self) -> str:
        """Its address."""
        return self._transport.url

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()

    def studies(self) -> list[ListedSoFar]:
        """The studies that this token may see, by name."""
        return [from_json(ListedSoFar, json.dumps(one)) for one in self._transport.get("studies")["studies"]]

    def study(self, name: str, policy: Policy[Any] | None = None, *, check: bool = False) -> RemoteStudy:
        """One of its studies.

        Args:
            name: of the study.
            policy: one that is given must be the study's.
            check: the server is to compute all decisions again first, as for `open_study`.

        Raises:
            InvalidInput: there is no such study, the token may not see it, or the policy is another one.
            StorageError: no server answers, or what it stored does not follow from the results.
        """
        study = RemoteStudy(self._transport, name, check=check)
        if policy is not None:
            subject_of(study.arms, policy)
            check_promise(study.name, study.configuration, policy)
        return study

    def create(
        self,
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
        scale: Scale = NO_SCALE,
    ) -> RemoteStudy:
        """A new study on the server; as `create_study`. It takes the role owner."""
        arms, policy = checked_subject(name, arms, policy, minimize=minimize, judge=judge)
        asked = {"name": name.strip(), **_asked(arms, policy), "minimize": minimize, "judge": judge}
        asked["candidates"]["id_column"] = id_column
        asked["reward_column"] = reward_column
        asked |= scale.stored()
        asked |= {} if study_id is None else {"study_id": study_id}
        asked |= {} if surplus is None else {"surplus": checked_surplus(surplus, judge)}
        self._transport.post("studies", body=asked)
        return RemoteStudy(self._transport, name.strip())

    def forecast(self, arms: Arms | Policy[Any], policy: Policy[Any] | None = None, **more: Any) -> dict[str, Any]:
        """What a study would cost, as the server says it.

        Args:
            arms, policy: as in `create`.
            more: "means", "minimize", "assume_scale", "rehearsals", "seed", as in the API.
        """
        arms, policy = subject_of(arms, policy)
        said: dict[str, Any] = self._transport.post("forecasts", body=_asked(arms, policy) | encode(more), again=True)
        return said

    def verify(self, document: dict[str, Any], *, registered: str | None = None) -> dict[str, Any]:
        """What comes of computing every number of a certificate again: "holds", "verdict", and the checks in "lines".

        Args:
            document: the certificate.
            registered: a registration code that it must have.
        """
        query = {} if registered is None else {"registered": registered}
        answer = self._transport.send("POST", "verify", query=query, body=document, again=True)
        said: dict[str, Any] = answer.json()
        return said


def _asked(arms: Arms, policy: Policy[Any]) -> dict[str, Any]:
    """Candidates and policy, exactly: the study has the same registration code wherever it is made."""
    matrix = np.ascontiguousarray(arms.features, dtype="<f8")
    packed = {"packed": base64.b64encode(matrix.tobytes()).decode(), "shape": list(matrix.shape)}
    candidates = {
        "ids": list(arms.ids),
        "features": packed if matrix.shape[1] else None,
        "columns": arms.columns,
        "preparation": arms.preparation,
        "costs": None if arms.costs is None else arms.costs.tolist(),
        "segments": arms.segments,
        **({"described": encode(arms.described)} if arms.described else {}),
    }
    return {"candidates": candidates, "spec": encode(spec_of(policy))}
