"""What every turn asks of the database, composed once: to compose a statement takes longer than SQLite needs for it."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy import bindparam

from surepick.studies.logs.base import COUNTED
from surepick.studies.logs.sql.schema import decision, event, lease, observation, plan

STUDY, PLAN, PLANS, AFTER, KEYS, WORKER = "in_study", "of_plan", "of_plans", "after", "some_keys", "of_worker"

LAST_PLAN = sa.select(sa.func.max(plan.c.number)).where(plan.c.study == bindparam(STUDY))
NEW_RESULTS = (
    sa.select(observation.c.id, observation.c.arm, observation.c.pulls, observation.c.lease)
    .where(observation.c.study == bindparam(STUDY), observation.c.plan == bindparam(PLAN))
    .where(observation.c.id > bindparam(AFTER), observation.c.standing == COUNTED)
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
    observation.c.source,
    observation.c.standing,
).where(observation.c.study == bindparam(STUDY), observation.c.key.in_(bindparam(KEYS, expanding=True)))
LATEST_LEASE = (
    sa.select(lease.c.plan)
    .where(lease.c.study == bindparam(STUDY), lease.c.worker == bindparam(WORKER))
    .order_by(lease.c.id.desc())
    .limit(1)
)
INSERT = {table: sa.insert(table) for table in (plan, lease, observation, event, decision)}
