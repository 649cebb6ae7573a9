"""Sessions in SQL databases: one store and one journal, with a driver for SQLite and one for PostgreSQL."""
