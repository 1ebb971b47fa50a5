"""Results that were undone, or confirmed although they are unusual: events about a row; a key can be reported again."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

SERIAL = sa.BigInteger().with_variant(sa.Integer, "sqlite")
KINDS = "kind in ('failed', 'abandoned', 'closed', 'ended', 'undone', 'unusual')"


def upgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        _made_anew()
    else:
        op.add_column("observation", sa.Column("again", sa.BigInteger, nullable=False, server_default=sa.text("0")))
        op.add_column("event", sa.Column("result", sa.BigInteger))
        op.drop_constraint("a_key_counts_once", "observation")
        op.create_unique_constraint("a_key_counts_once", "observation", ["study", "key", "again"])
        op.drop_constraint("a_known_kind", "event")
        op.create_check_constraint("a_known_kind", "event", KINDS)
    some = sa.text("kind = 'undone'")
    op.create_index(
        "undone_results",
        "event",
        ["study", "result"],
        unique=True,
        sqlite_where=some,
        postgresql_where=some,
    )


def _made_anew() -> None:
    """The two tables with other constraints, which SQLite changes in no other way."""
    for table in ("observation", "event"):
        op.rename_table(table, f"{table}_before")
    op.create_table(
        "observation",
        sa.Column("id", SERIAL, primary_key=True),
        sa.Column("study", SERIAL, sa.ForeignKey("study.id"), nullable=False),
        sa.Column("plan", sa.BigInteger, nullable=False),
        sa.Column("standing", sa.Text, nullable=False),
        sa.Column("key", sa.Text),
        sa.Column("arm", sa.BigInteger, nullable=False),
        sa.Column("pulls", sa.BigInteger, nullable=False),
        sa.Column("sum", sa.Float(53), nullable=False),
        sa.Column("squares", sa.Float(53)),
        sa.Column("lease", sa.BigInteger, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("told_at", sa.Float(53), nullable=False),
        sa.Column("hash", sa.Text),
        sa.Column("again", sa.BigInteger, nullable=False, server_default=sa.text("0")),
        sa.UniqueConstraint("study", "key", "again", name="a_key_counts_once"),
        sa.CheckConstraint("pulls > 0", name="a_result_has_pulls"),
        sa.CheckConstraint("standing in ('counted', 'late', 'prior')", name="a_known_standing"),
    )
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
        sa.Column("hash", sa.Text),
        sa.Column("result", sa.BigInteger),
        sa.CheckConstraint(KINDS, name="a_known_kind"),
    )
    results = "id, study, plan, standing, key, arm, pulls, sum, squares, lease, source, told_at, hash"
    events = "id, study, plan, kind, arm, pulls, lease, reason, at, hash"
    for table, columns in (("observation", results), ("event", events)):
        op.execute(f"INSERT INTO {table} ({columns}) SELECT {columns} FROM {table}_before ORDER BY id")
        op.drop_table(f"{table}_before")
    op.create_index("results_of_a_plan", "observation", ["study", "plan", "id"])
    op.create_index("events_of_a_plan", "event", ["study", "plan", "id"])
