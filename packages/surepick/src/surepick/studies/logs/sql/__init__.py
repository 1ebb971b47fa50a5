"""The log in a database: SQLite or PostgreSQL."""
