"""A table for what is said of a study beside what it promises."""

import sqlalchemy as sa
from alembic import op

revision = "3"
down_revision = "2"

SERIAL = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.create_table(
        "description",
        sa.Column("id", SERIAL, primary_key=True),
        sa.Column("study", SERIAL, sa.ForeignKey("study.id"), nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("value", sa.Text, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("at", sa.Float(53), nullable=False),
        sa.Column("hash", sa.Text, nullable=False),
    )
    op.create_index("descriptions_of_a_study", "description", ["study", "kind", "id"])
