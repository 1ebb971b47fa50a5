"""The first schema."""

import sqlalchemy as sa
from alembic import op

revision = "1"
down_revision = None

SERIAL = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.create_table(
        "study",
        sa.Column("id", SERIAL, primary_key=True),
        sa.Column("name", sa.Text, nullable=False, unique=True),
        sa.Column("configuration", sa.Text, nullable=False),
        sa.Column("ids", sa.Text, nullable=False),
        sa.Column("features", sa.LargeBinary, nullable=False),
        sa.Column("num_arms", sa.BigInteger, nullable=False),
        sa.Column("num_features", sa.BigInteger, nullable=False),
        sa.Column("arms_hash", sa.Text, nullable=False),
        sa.Column("hash", sa.Text, nullable=False),
        sa.Column("created_at", sa.Float(53), nullable=False),
        sa.Column("seal", sa.Text, nullable=False),
    )
    op.create_table(
        "plan",
        sa.Column("id", SERIAL, primary_key=True),
        sa.Column("study", SERIAL, sa.ForeignKey("study.id"), nullable=False),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("plan", sa.Text, nullable=False),
        sa.Column("opened_at", sa.Float(53), nullable=False),
        sa.Column("hash", sa.Text, nullable=False),
        sa.UniqueConstraint("study", "number", name="one_plan_a_number"),
    )
    op.create_table(
        "lease",
        sa.Column("id", SERIAL, primary_key=True),
        sa.Column("study", SERIAL, nullable=False),
        sa.Column("plan", sa.BigInteger, nullable=False),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("worker", sa.Text, nullable=False),
        sa.Column("arm", sa.BigInteger, nullable=False),
        sa.Column("pulls", sa.BigInteger, nullable=False),
        sa.Column("first", sa.BigInteger, nullable=False),
        sa.Column("again", sa.BigInteger, nullable=False),
        sa.Column("until", sa.Float(53), nullable=False),
        sa.Column("leased_at", sa.Float(53), nullable=False),
        sa.ForeignKeyConstraint(["study", "plan"], ["plan.study", "plan.number"], name="lease_of_a_plan"),
        sa.UniqueConstraint("study", "plan", "arm", "first", name="a_pull_is_leased_once"),
        sa.CheckConstraint("pulls > 0", name="a_lease_has_pulls"),
    )
    op.create_index("leases_of_a_worker", "lease", ["study", "worker", "id"])
    op.create_table(
        "observation",
        sa.Column("id", SERIAL, primary_key=True),
        sa.Column("study", SERIAL, sa.ForeignKey("study.id"), nullable=False),
        sa.Column("plan", sa.BigInteger, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("key", sa.Text),
        sa.Column("correction", sa.BigInteger, nullable=False),
        sa.Column("arm", sa.BigInteger, nullable=False),
        sa.Column("pulls", sa.BigInteger, nullable=False),
        sa.Column("sum", sa.Float(53), nullable=False),
        sa.Column("squares", sa.Float(53)),
        sa.Column("block", sa.Text),
        sa.Column("item", sa.BigInteger),
        sa.Column("quantities", sa.Text),
        sa.Column("lease", sa.BigInteger, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("told_at", sa.Float(53), nullable=False),
        sa.Column("hash", sa.Text),
        sa.UniqueConstraint("study", "key", "correction", name="a_key_counts_once"),
        sa.CheckConstraint("pulls > 0", name="a_result_has_pulls"),
        sa.CheckConstraint("status in ('counted', 'late', 'prior')", name="a_known_status"),
    )
    op.create_index("results_of_a_plan", "observation", ["study", "plan", "id"])
    some = sa.text("block IS NOT NULL")
    op.create_index("results_of_a_block", "observation", ["study", "block"], sqlite_where=some, postgresql_where=some)
    op.create_table(
        "event",
        sa.Column("id", SERIAL, primary_key=True),
        sa.Column("study", SERIAL, sa.ForeignKey("study.id"), nullable=False),
        sa.Column("plan", sa.BigInteger, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("arm", sa.BigInteger),
        sa.Column("pulls", sa.BigInteger, nullable=False),
        sa.Column("lease", sa.BigInteger, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("at", sa.Float(53), nullable=False),
        sa.Column("result", sa.BigInteger),
        sa.Column("hash", sa.Text),
        sa.CheckConstraint(
            "kind in ('failed', 'abandoned', 'withdrawn', 'added', 'closed', 'ended', 'undone', 'unusual')",
            name="a_known_kind",
        ),
    )
    op.create_index("events_of_a_plan", "event", ["study", "plan", "id"])
    some = sa.text("kind = 'undone'")
    op.create_index(
        "undone_results", "event", ["study", "result"], unique=True, sqlite_where=some, postgresql_where=some
    )
    op.create_table(
        "decision",
        sa.Column("id", SERIAL, primary_key=True),
        sa.Column("study", SERIAL, sa.ForeignKey("study.id"), nullable=False),
        sa.Column("plan", sa.BigInteger, nullable=False),
        sa.Column("round", sa.BigInteger, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("seen", sa.Text, nullable=False),
        sa.Column("trace", sa.Text, nullable=False),
        sa.Column("deviations", sa.Text, nullable=False),
        sa.Column("leader", sa.BigInteger, nullable=False),
        sa.Column("stopped", sa.Integer, nullable=False),
        sa.Column("verdict", sa.Text, nullable=False),
        sa.Column("decided_at", sa.Float(53), nullable=False),
        sa.Column("records", sa.Text, nullable=False),
        sa.Column("previous", sa.Text, nullable=False),
        sa.Column("hash", sa.Text, nullable=False),
        sa.UniqueConstraint("study", "plan", name="one_decision_a_plan"),
    )
