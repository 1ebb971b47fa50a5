"""What every turn asks of the database, composed once: to compose a statement takes longer than SQLite needs for it."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy import bindparam

from surepick.studies.logs.base import COUNTED
from surepick.studies.logs.sql.schema import decision, event, lease, observation, plan

STUDY, PLAN, PLANS, AFTER, KEYS, WORKER = "in_study", "of_plan", "of_plans", "after", "some_keys", "of_worker"
RECENT = "so_many_rows"

_UNDONE: sa.ColumnElement[str] = sa.literal_column("'undone'")  # as a literal, so that its index is used
UNDONE_ROWS = sa.select(event.c.result).where(event.c.study == bindparam(STUDY), event.c.kind == _UNDONE)
STANDS = observation.c.id.not_in(UNDONE_ROWS)  # whether a result was not undone
ANY_UNDONE = UNDONE_ROWS.limit(1)
LAST_PLAN = sa.select(sa.func.max(plan.c.number)).where(plan.c.study == bindparam(STUDY))
NEW_RESULTS = (
    sa.select(observation.c.id, observation.c.arm, observation.c.pulls, observation.c.lease)
    .where(observation.c.study == bindparam(STUDY), observation.c.plan == bindparam(PLAN))
    .where(observation.c.id > bindparam(AFTER), observation.c.status == COUNTED)
    .order_by(observation.c.id)
)
NEW_LEASES = (
    sa.select(lease)
    .where(lease.c.study == bindparam(STUDY), lease.c.plan == bindparam(PLAN), lease.c.id > bindparam(AFTER))
    .order_by(lease.c.id)
)
NEW_EVENTS = (
    sa.select(event)
    .where(event.c.study == bindparam(STUDY), event.c.plan.in_(bindparam(PLANS, expanding=True)))
    .where(event.c.id > bindparam(AFTER))
    .order_by(event.c.id)
)
RECORDED = sa.select(
    observation.c.key,
    observation.c.arm,
    observation.c.pulls,
    observation.c.sum,
    observation.c.block,
    observation.c.quantities,
    observation.c.source,
    observation.c.status,
).where(observation.c.study == bindparam(STUDY), observation.c.key.in_(bindparam(KEYS, expanding=True)), STANDS)
USED_BEFORE = (  # keys with results, all of which were undone
    sa.select(observation.c.key, sa.func.count())
    .where(observation.c.study == bindparam(STUDY), observation.c.key.in_(bindparam(KEYS, expanding=True)))
    .group_by(observation.c.key)
)
LATEST_LEASE = (
    sa.select(lease.c.plan)
    .where(lease.c.study == bindparam(STUDY), lease.c.worker == bindparam(WORKER))
    .order_by(lease.c.id.desc())
    .limit(1)
)
STAMPED = ((observation, observation.c.told_at), (lease, lease.c.leased_at), (plan, plan.c.opened_at))
NEWEST_TIMES = tuple(  # of a study's own rows; each may read all of them
    sa.select(time).where(table.c.study == bindparam(STUDY)).order_by(table.c.id.desc()).limit(1)
    for table, time in STAMPED
)
RECENT_TIMES = sa.select(  # the same among the last rows of all studies, which are all that is read; else nothing
    *(
        sa.select(time)
        .where(table.c.id > sa.select(sa.func.max(table.alias().c.id)).scalar_subquery() - bindparam(RECENT))
        .where(table.c.study + 0 == bindparam(STUDY))  # by no index of studies: it has all rows of this one
        .order_by(table.c.id.desc())
        .limit(1)
        .scalar_subquery()
        for table, time in STAMPED
    )
)
INSERT = {table: sa.insert(table) for table in (plan, lease, observation, event, decision)}
