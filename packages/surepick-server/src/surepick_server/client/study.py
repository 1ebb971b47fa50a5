"""A study on a server, with the methods of `Study`."""

import base64
import json
import secrets
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from surepick.core.arms import Arms, KnownIds
from surepick.core.certificate import Certificate
from surepick.core.descriptions import Described
from surepick.core.observations import Quantity
from surepick.core.plans import RoundRecord
from surepick.core.records import IntArray, encode, from_json
from surepick.errors import StorageError
from surepick.noise import parse_noise
from surepick.policies.base import Policy
from surepick.policies.verdict import PolicySummary
from surepick.studies.deviations import EarlyEnd
from surepick.studies.ledger import Batch, ResultParser
from surepick.studies.logs.base import Results
from surepick.studies.logs.keys import canonical_keys
from surepick.studies.operations import Corrected, lease_terms
from surepick.studies.progress import Progress
from surepick.studies.recording import Accept, Receipt, pairs
from surepick.studies.study import Study
from surepick.studies.validation import checked_reason, source
from surepick_server.client.transport import MOST_ROWS, Transport, in_parts, joined_receipts

RECEIPT = "X-Surepick-Receipt"
LEFT_BEHIND = ("log", "replay", "_ledger")  # what only the process that has the database has


class RemoteStudy(Study):
    """A study on a server: `Server.study` gives it. Its methods are those of `Study`.

    What is told is checked here as `Study` checks it, and then by the server. Where the connection fails, `tell`,
    `lease` and whatever only reads are sent again; a result counts once, however often it is sent.

    `worker` is the name of the token if it is left out, and else a part of it: "ann/2". A server without tokens takes
    any.

    More than 100,000 rows are sent in several requests. Each of them is stored whole or not at all, but not all
    together: where one is refused, those before it are stored. Call it again with the same keys.

    A `Receipt` says what became of the results the last time they were sent: those that had arrived before the
    connection failed are `repeated`.

    Args:
        transport: sends the requests.
        name: of the study.
        check: the server is to compute all decisions again first, as for `open_study`.
    """

    def __init__(self, transport: Transport, name: str, *, check: bool = False) -> None:
        found = transport.get("studies", name, "terms", **({"check": True} if check else {}))
        configuration = found["configuration"]
        terms = PolicySummary.stored_in(configuration)
        self.name = str(found["study"])
        self.configuration: Mapping[str, Any] = configuration
        self.ids = tuple(found["ids"])
        self.noise = parse_noise(configuration["policy"]["noise"])
        self.minimize = bool(configuration["minimize"])
        self.judging = configuration["judge"]
        self.surplus = configuration["surplus"]
        self.elsewhere = Documents(transport, self.name)
        self._transport = transport
        self._terms = lambda: terms
        self.study_id = str(configuration["study_id"])
        self._code = lambda: found["registration"]
        self._described = cache(self._said)
        self._entries = ResultParser(self)

    def __repr__(self) -> str:
        return f"RemoteStudy({self.name!r}, {self._transport.url!r})"

    def __getattr__(self, name: str) -> Any:
        if name in LEFT_BEHIND:
            raise AttributeError(f"the log of this study is on its server; a study over HTTP has no {name}.")
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}.")

    @property
    def arms(self) -> Arms:
        """What is chosen among, as the server has it."""
        return self._arms

    @property
    def policy(self) -> Policy[Any]:
        """The algorithm, built here from what the server has stored of it."""
        return self._policy

    @cached_property
    def _arms(self) -> Arms:
        found = self._get("features")
        matrix = np.frombuffer(base64.b64decode(found["packed"]), "<f8").reshape(found["shape"])
        held: dict[str, Any] = {
            name: self.configuration.get(name) for name in ("columns", "preparation", "costs", "segments")
        }
        return Arms(matrix, KnownIds(self.ids), **held)

    @cached_property
    def _policy(self) -> Policy[Any]:
        from surepick.policies.registry import built_policy  # noqa: PLC0415 (only where something is computed)

        return built_policy(arms=self._arms, **self.configuration["policy"])

    def _said(self) -> Described:
        return from_json(Described, json.dumps(self._get("candidates")["described"]))

    def worker_name(self, process: str) -> str:
        """Under which name a process measures, if nobody gave it one: a part of the token's name."""
        who = self._transport.get("me")
        return process if who["local"] else f"{who['name']}/{process}"

    # ask

    def ask(self) -> Batch | None:
        """As `Study.ask`."""
        return self._batch(self._post("plan", {}, again=True))

    def lease(
        self,
        max_pulls: int | None = None,
        *,
        worker: str | None = None,
        duration: str | float | None = None,
        trust_clock: bool = False,
    ) -> Batch | None:
        """As `Study.lease`; worker None is the name of the token."""
        _, seconds = lease_terms(max_pulls, worker, duration)
        most = None if max_pulls is None else int(max_pulls)
        asked = {"max_pulls": most, "worker": worker, "duration": seconds, "trust_clock": trust_clock, "whole": True}
        return self._batch(self._post("leases", asked, again=True))

    def free_part(self) -> Batch | None:
        """As `Study.free_part`."""
        return self._batch(self._post("plan", {"free": True}, again=True))

    # tell

    def tell(
        self,
        ids: Sequence[object] | Batch,
        rewards: ArrayLike,
        keys: Sequence[object] | None = None,
        *,
        worker: str | None = None,
        plan: int | None = None,
        blocks: Sequence[object] | None = None,
        items: Sequence[object] | None = None,
        failed: Sequence[tuple[object, object]] = (),
        accept_unusual: Accept = False,
    ) -> Receipt:
        """As `Study.tell`; worker None is the name of the token."""
        rows, worker, plan = self._entries.single_results(ids, rewards, keys, items, blocks, worker, plan)
        gone = pairs(failed)
        _, names = self._entries.arms_of([name for name, _ in gone])
        labels = canonical_keys([key for _, key in gone], names) or ()
        missing = [{"id": name, "key": key, "failed": True} for name, key in zip(names, labels, strict=True)]
        told = {"results": [*self._rows(rows), *missing], **_whose(worker, plan), **_accepted(accept_unusual)}
        return self._told("results", told)

    def tell_totals(
        self,
        ids: Sequence[object] | Batch,
        pulls: ArrayLike,
        sums: ArrayLike,
        squares: ArrayLike | None = None,
        keys: Sequence[object] | None = None,
        *,
        worker: str | None = None,
        plan: int | None = None,
        blocks: Sequence[object] | None = None,
        quantities: Sequence[Quantity] | None = None,
        accept_unusual: Accept = False,
    ) -> Receipt:
        """As `Study.tell_totals`."""
        if isinstance(ids, Batch):
            worker, plan = self._entries.owner_of(ids, worker, plan)
            ids = self.ids
        rows = self._entries.totals(ids, pulls, sums, squares, keys, worker, blocks, quantities)
        columns = {
            "ids": [self.ids[arm] for arm in rows.arms.tolist()],
            "pulls": rows.pulls.tolist(),
            "sums": rows.sums.tolist(),
            "squares": None if rows.squares is None else rows.squares.tolist(),
            "keys": rows.keys,
            "blocks": rows.blocks,
            "quantities": None if rows.quantities is None else encode(rows.quantities),
        }
        return self._told("totals", columns | _whose(worker, plan) | _accepted(accept_unusual))

    def undo(self, keys: Sequence[object] | None = None, *, worker: str | None = None, reason: str = "") -> list[str]:
        """As `Study.undo`; worker None is the name of the token."""
        given = None if keys is None else list(keys)
        body = {"keys": given, "reason": reason, **({} if worker is None else {"worker": worker})}
        return [str(one) for one in self._post("undo", body)["ids"]]

    def correct(
        self, key: object, value: float, *, typed: float | None = None, worker: str | None = None, reason: str = ""
    ) -> Corrected:
        """As `Study.correct`; worker None is the name of the token."""
        body = {"key": str(key), "value": float(value), "typed": typed, "reason": reason}
        return Corrected(**self._post("correct", body if worker is None else body | {"worker": worker}))

    def tell_prior(
        self,
        ids: Sequence[object],
        rewards: ArrayLike,
        keys: Sequence[object] | None = None,
        *,
        worker: str | None = None,
    ) -> Receipt:
        """As `Study.tell_prior`."""
        rows = self._entries.singles(ids, rewards, keys, worker, prior=True)
        return self._told("prior", {"results": self._rows(rows), "worker": worker})

    def fail(
        self, ids: Sequence[object], keys: Sequence[object] | None = None, *, worker: str | None = None
    ) -> Receipt:
        """As `Study.fail`."""
        source(worker)
        _, names = self._entries.arms_of(ids)
        return self._told("failures", {"ids": list(names), "keys": canonical_keys(keys, names), "worker": worker})

    def release(self, worker: str) -> int:
        """As `Study.release`; the leases of another worker take the role owner."""
        return int(self._post("release", {"worker": worker}, again=True)["released"])

    def abandon(self, reason: str, ids: Sequence[object] | None = None) -> None:
        """As `Study.abandon`; it takes the role owner."""
        whose = None if ids is None else list(self._entries.arms_of(ids)[1])
        self._post("abandon", {"reason": checked_reason(reason), "ids": whose})

    def withdraw(self, ids: Sequence[object], reason: str) -> None:
        """As `Study.withdraw`; it takes the role owner."""
        self._post("withdraw", {"reason": checked_reason(reason), "ids": list(self._entries.arms_of(ids)[1])})

    def add(self, ids: Sequence[object]) -> None:
        """As `Study.add`; it takes the role owner."""
        self._post("add", {"ids": list(self._entries.arms_of(ids)[1])})

    def interim(self) -> bool:
        """As `Study.interim`; it takes the role owner."""
        return bool(self._post("interim", {})["judged"])

    def close(self, reason: str = "") -> None:
        """As `Study.close`; it takes the role owner."""
        self._post("close", {"reason": checked_reason(reason)})

    # what is known

    def recorded(self, ids: Sequence[object], keys: Sequence[object]) -> list[bool]:
        """As `Study.recorded`."""
        _, names = self._entries.arms_of(ids)
        labels, found = canonical_keys(keys, names) or (), list[bool]()
        for first in range(0, len(names), MOST_ROWS):
            rows = slice(first, first + MOST_ROWS)
            given = {"ids": names[rows], "keys": labels[rows]}
            found += map(bool, self._post("recorded", given, again=True)["recorded"])
        return found

    @property
    def missing(self) -> IntArray:
        """Pulls of the open plan that have not been reported yet, shape (K,)."""
        return np.array(self._get("open")["missing"], np.int64)

    @property
    def stopped(self) -> bool:
        """No more measurements are needed, or the study was closed."""
        return bool(self._get("open")["stopped"])

    @property
    def trace(self) -> tuple[RoundRecord, ...]:
        """One record a round."""
        return tuple(from_json(RoundRecord, json.dumps(row)) for row in self._get("answer")["trace"])

    def progress(self) -> Progress:
        """As `Study.progress`."""
        return from_json(Progress, json.dumps(self._transport.get("studies", self.name)["progress"]))

    def recommend(self) -> str:
        """As `Study.recommend`."""
        return str(self._get("answer")["best_arm"])

    def certificate(self) -> Certificate:
        """As `Study.certificate`."""
        return from_json(Certificate, json.dumps(self._get("answer")["certificate"]))

    def early_end(self) -> EarlyEnd | None:
        """As `Study.early_end`."""
        end = self._get("answer")["early_end"]
        return None if end is None else from_json(EarlyEnd, json.dumps(end))

    # requests

    def _get(self, what: str) -> Any:
        return self._transport.get("studies", self.name, what)

    def _post(self, what: str, body: Mapping[str, Any], *, again: bool = False) -> Any:
        return self._transport.post("studies", self.name, what, body=dict(body), again=again)

    def _told(self, what: str, body: Mapping[str, Any]) -> Receipt:
        """Send results, in several requests where they are many; as `_sent`."""
        once, found = secrets.token_hex(16), list[Receipt]()
        for number, (part, says_plan) in enumerate(in_parts(body)):
            complete = next((one.plan for one in found if one.closed), None)
            if complete and not says_plan and part.get("plan", 0) is None:
                part["plan"] = complete  # the rest is of that plan too, and not of the next one
            found.append(self._sent(what, part, f"{once}-{number}"))
        return joined_receipts(found)

    def _sent(self, what: str, body: Mapping[str, Any], once: str) -> Receipt:
        """Send results; rows without a key have one of this request, so that sending it again counts none twice."""
        key = {"idempotency-key": once}
        answer = self._transport.send("POST", "studies", self.name, what, body=body, again=True, headers=key)
        if RECEIPT not in answer.headers:
            raise StorageError(f"{self._transport.url} stored the results and sent no receipt: it is an older version.")
        return from_json(Receipt, answer.headers[RECEIPT])

    def _batch(self, answer: Mapping[str, Any]) -> Batch | None:
        return None if answer["batch"] is None else Batch.received(answer["batch"], self.ids)

    def _rows(self, rows: Results) -> list[dict[str, Any]]:
        """Results of single measurements, row by row."""
        number = len(rows.arms)
        keys, blocks = rows.keys or (None,) * number, rows.blocks or (None,) * number
        columns = zip(rows.arms.tolist(), rows.sums.tolist(), keys, blocks, strict=True)
        found: list[dict[str, Any]] = [
            {"id": self.ids[arm], "reward": reward, "key": key, "block": block} for arm, reward, key, block in columns
        ]
        for one, values in zip(self.constraints, rows.quantities or (), strict=False):
            for row, there, value in zip(found, values.counts.tolist(), values.sums.tolist(), strict=True):
                row.setdefault("quantities", {})[one.name] = value if there else None
        return found


class Documents:
    """What only the server can write, which has all that was recorded of a study."""

    def __init__(self, transport: Transport, name: str) -> None:
        self._transport = transport
        self._name = name

    def certificate(self, name: str | None) -> dict[str, Any]:
        """The certificate; all decisions are computed again first."""
        found: dict[str, Any] = self._transport.get("studies", self._name, "certificate", called=name or "")
        return found

    def report(self, name: str | None, most: int) -> bytes:
        """The page; the server forecasts for fewer candidates than a report here."""
        beside = {"called": name or "", "forecast_up_to": most}
        return self._transport.send("GET", "studies", self._name, "report", query=beside).content

    def export(self, kind: str) -> tuple[bytes, int]:
        """(the table, its rows)."""
        answer = self._transport.send("GET", "studies", self._name, f"export.{kind}")
        return answer.content, int(answer.headers.get("x-surepick-rows", 0))


def _accepted(accept: Accept) -> dict[str, Any]:
    return {"accept_unusual": accept} if accept else {}


def _whose(worker: str | None, plan: int | None) -> dict[str, Any]:
    """Whose results these are, and of which plan."""
    return {"worker": worker, "plan": int(plan) if isinstance(plan, int | np.integer) else plan}
