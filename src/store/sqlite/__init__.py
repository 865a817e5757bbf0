"""The store on one SQLite file, for one process: the default. All SQL for SQLite is here."""
