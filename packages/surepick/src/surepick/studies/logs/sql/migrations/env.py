"""What Alembic runs: the steps of `versions/`, over the connection that surepick opened."""

from alembic import context

from surepick.studies.logs.sql.schema import VERSION_TABLE, metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSION_TABLE,
    transactional_ddl=False,  # the caller's transaction holds all steps
    render_as_batch=True,  # SQLite cannot alter a column in place
)
context.run_migrations()
