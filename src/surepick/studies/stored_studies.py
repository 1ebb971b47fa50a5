"""Studies as rows of a database: what is stored of one when it is made, and how it is read again."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Engine, Row

from surepick.core.arms import Arms, KnownIds
from surepick.core.column_names import ColumnNames
from surepick.core.diff import first_difference
from surepick.core.json import encode
from surepick.core.validation import storable_text
from surepick.errors import InvalidInput, StorageError
from surepick.noise import parse_noise
from surepick.policies.base import Policy, name_of, spec_of, stopped
from surepick.policies.terms import Terms
from surepick.studies.logs.base import Judge, Surplus
from surepick.studies.logs.damaged_rows import reading
from surepick.studies.logs.hash_chain import arms_hash, chained, hash_of_arms
from surepick.studies.logs.leases import system_clock
from surepick.studies.logs.sql import schema as tables
from surepick.studies.logs.sql.engine import in_words, shown
from surepick.studies.logs.sql.log import SqlLog
from surepick.studies.logs.sql.seals import study_seal
from surepick.studies.progress import Listed
from surepick.studies.registration import check_promise, code_of
from surepick.studies.study import Study
from surepick.text import did_you_mean

VERSION = 1  # of the configuration's format


def listed(engine: Engine, row: Any) -> Listed:
    with reading(str(row.name)):
        configuration = json.loads(row.configuration)
        policy = configuration["policy"]
        log = log_of(engine, row)
        last, ended = log.last_decision(), log.ended()
        return Listed(
            name=str(row.name),
            candidates=int(row.num_arms),
            policy=str(policy["name"]),
            epsilon=float(policy["epsilon"]),
            delta=float(policy["delta"]),
            created_at=float(row.created_at),
            rounds=0 if last is None else last.plan,
            pulls=0 if last is None or last.row is None else last.row.total_pulls,
            verdict="not-yet" if last is None else str(last.verdict),
            ended=ended is not None,
            registration=registration_of(row, configuration),
            shortens=Terms.stored_in(configuration).shortens,
        )


def row_of(
    name: str,
    arms: Arms,
    policy: Policy[Any],
    *,
    minimize: bool,
    judge: Judge,
    surplus: Surplus,
    columns: ColumnNames,
    study_id: str,
) -> dict[str, Any]:
    """A study as a row: what never changes."""
    spec = spec_of(policy) or {}
    configuration = json.dumps(
        {
            "version": VERSION,
            "study_id": study_id,
            "policy": spec,
            "algorithm": name_of(policy),
            "minimize": minimize,
            "judge": judge,
            "surplus": surplus,
            "columns": arms.columns,
            "preparation": arms.preparation,
            **Terms.of(policy, arms).stored(),  # the costs, if there are some, among them
            **({} if arms.segments is None else {"segments": arms.segments}),
            **_files(policy),
            **columns.stored(),
        },
        allow_nan=False,
        ensure_ascii=False,
    )
    features = np.ascontiguousarray(arms.features, dtype="<f8").tobytes()
    ids = json.dumps(arms.ids, ensure_ascii=False)
    shape = arms.features.shape
    hashed = arms_hash(ids, shape, features, arms.costs, arms.segments)
    return {
        "name": name,
        "configuration": configuration,
        "ids": ids,
        "features": features,
        "num_arms": shape[0],
        "num_features": shape[1],
        "arms_hash": hashed,
        "hash": study_hash(name, configuration, ids, hashed),
        "created_at": system_clock(),
    }


def _files(policy: Policy[Any]) -> dict[str, Any]:
    """Where the long list lies that the policy goes through; {} where there is none.

    Raises:
        InvalidInput: it is not in files.
    """
    rows = policy.traits.rows
    if rows is None:
        return {}
    if rows.spec is None:
        raise InvalidInput(
            "a study in a database opens its long list again, so the rows must be in .npy or Parquet files; these are "
            "in memory. Use sp.Study, or write them to files."
        )
    return {"files": rows.spec}


def study_hash(name: str, configuration: str, ids: str, hashed: str) -> str:
    """Where the chain of plans and decisions begins. It holds the ids themselves, so that `tell` needs no features."""
    return chained("", name, configuration, ids, hashed)


def found(engine: Engine, name: str) -> Row[Any]:
    """The study's row, but for the features."""
    storable_text("the name of a study", name)
    columns = [column for column in tables.study.c if column.name != "features"]
    with in_words(engine.url), engine.connect() as connection:
        row = connection.execute(sa.select(*columns).where(tables.study.c.name == name.strip())).first()
        if row is None:
            names = connection.execute(sa.select(tables.study.c.name).order_by(tables.study.c.name)).scalars().all()
            known = f"it has {', '.join(map(repr, names[:10]))}" if names else "it has none yet"
            raise InvalidInput(f"{shown(engine.url)} has no study {name!r}; {known}.{did_you_mean(name, names)}")
    check_row(row)
    return row


def check_row(row: Row[Any]) -> None:
    """Refuse a study's row that is not what was stored.

    Raises:
        StorageError: it is one.
    """
    name = row.name
    if row.hash != study_hash(name, row.configuration, row.ids, row.arms_hash):
        raise StorageError(
            f"study {name!r}: its configuration, or the names of its arms, are not what was stored: the bytes do not "
            "match their hash. The database was altered or is damaged. Nothing was changed now; take the latest "
            "backup (docs/studies.md)."
        )
    if row.seal != study_seal(row._mapping):
        raise StorageError(
            f"study {name!r}: its number in the database, the number of its arms or their features, or the time of its "
            "creation, is not what was stored. The database was altered or is damaged. Nothing was changed now; take "
            "the latest backup (docs/studies.md)."
        )


def log_of(engine: Engine, row: Row[Any]) -> SqlLog:
    return SqlLog(engine, study=row.id, name=row.name, num_arms=row.num_arms, start=row.hash)


def opened(engine: Engine, row: Row[Any], build: Callable[[], tuple[Arms, Policy[Any]]]) -> Study:
    with reading(row.name):
        configuration = json.loads(row.configuration)
        terms = Terms.stored_in(configuration)
        return Study.over(
            log_of(engine, row),
            ids=tuple(json.loads(row.ids)),
            noise=parse_noise(configuration["policy"]["noise"]),
            minimize=configuration["minimize"],
            terms=lambda: terms,
            build=build,
            registration=lambda: registration_of(row, configuration),
            study_id=configuration["study_id"],
            judge=configuration["judge"],
            surplus=configuration["surplus"],
        )


def registration_of(row: Row[Any], configuration: dict[str, Any]) -> str | None:
    """The registration code, from what is stored: neither features nor a policy are needed."""
    arms = {name: configuration[name] for name in ("columns", "preparation")} | {"sha256": row.arms_hash}
    about: dict[str, Any] = {name: configuration[name] for name in ("study_id", "minimize", "judge")}
    return code_of(configuration["policy"], arms, **about)


def arms_of(engine: Engine, row: Row[Any]) -> Arms:
    """The arms as they were stored.

    Raises:
        StorageError: they are not.
    """
    with in_words(engine.url), engine.connect() as connection:
        features = connection.execute(
            sa.select(tables.study.c.features).where(tables.study.c.id == row.id)
        ).scalar_one()
    configuration, shape = json.loads(row.configuration), (row.num_arms, row.num_features)
    held = {name: configuration.get(name) for name in ("columns", "preparation", "costs", "segments")}
    apart = held["costs"], held["segments"]
    if not isinstance(features, bytes) or row.arms_hash != arms_hash(row.ids, shape, features, *apart):
        raise StorageError(
            f"study {row.name!r}: its arms are not what was stored: the bytes do not match their hash. Nothing was "
            "changed now; take the latest backup (docs/studies.md)."
        )
    return Arms(np.frombuffer(features, dtype="<f8").reshape(shape), KnownIds(json.loads(row.ids)), **held)


def rebuilt(engine: Engine, row: Row[Any]) -> tuple[Arms, Policy[Any]]:
    from surepick.policies.registry import built_policy  # noqa: PLC0415 (only where something is computed)

    arms, configuration = arms_of(engine, row), json.loads(row.configuration)
    files = configuration.get("files")
    if files is None:
        return arms, built_policy(arms=arms, **configuration["policy"])
    from surepick.policies.long_lists import check_rows  # noqa: PLC0415 (only for lists in files)
    from surepick.tables.blocks import read_again  # noqa: PLC0415 (as above)

    rows, written = read_again(files)
    policy = built_policy(arms=rows, **configuration["policy"])
    if hash_of_arms(policy.problem.arms or arms) != row.arms_hash:
        raise StorageError(
            f"study {row.name!r}: the candidates that it measures are no longer in the files that it goes through "
            f"({files['files'][0]['path']}{', ...' if len(files['files']) > 1 else ''}); these were changed. Nothing "
            "was changed in the study; put the files back."
        )
    if written:
        check_rows(policy)
    return arms, policy


def check_same(study: Study, row: Row[Any], policy: Policy[Any]) -> None:
    """Refuse a policy that is not the study's: another algorithm or promise, or another first plan."""
    configuration = json.loads(row.configuration)
    check_promise(row.name, configuration, policy)
    first = next(study.log.plans(), None)
    state = policy.init()
    if first is None or stopped(policy, state):
        return
    difference = first_difference(encode(first.plan), encode(policy.ask(state)))
    if difference:
        raise InvalidInput(
            f"the policy that was given is not the one of study {row.name!r}: its first plan differs ({difference})."
        )
