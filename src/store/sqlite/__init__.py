"""The default store: one SQLite file, used by one process. All SQL for SQLite is here."""
