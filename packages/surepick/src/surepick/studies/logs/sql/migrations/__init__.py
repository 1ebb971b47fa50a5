"""The steps from schema to schema, for Alembic."""
