"""The store on a PostgreSQL database, for several nodes. Needs the extra ``postgres``. All SQL for PostgreSQL is
here."""
