"""The first schema: where the steps begin. An empty database is given the tables as they are described now."""

revision = "1"
down_revision = None
