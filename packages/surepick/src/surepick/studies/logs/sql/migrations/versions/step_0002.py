"""A table for results that are corrected after their plan was closed."""

import sqlalchemy as sa
from alembic import op

revision = "2"
down_revision = "1"

SERIAL = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.create_table(
        "correction",
        sa.Column("id", SERIAL, primary_key=True),
        sa.Column("study", SERIAL, sa.ForeignKey("study.id"), nullable=False),
        sa.Column("plan", sa.BigInteger, nullable=False),
        sa.Column("result", sa.BigInteger, nullable=False),
        sa.Column("of", sa.BigInteger, nullable=False),
        sa.Column("arm", sa.BigInteger, nullable=False),
        sa.Column("typed", sa.Float(53), nullable=False),
        sa.Column("read", sa.Float(53), nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("at", sa.Float(53), nullable=False),
    )
    op.create_index("corrections_of_a_study", "correction", ["study", "id"])
