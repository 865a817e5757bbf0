"""Definitions in a PostgreSQL database that differ from the schema."""

import pytest
from tests.store.postgres_databases import PostgresDatabase
from toold.store.postgres.postgres_archive import open_postgres_archive
from toold.store.schema_difference import SchemaDifference

INSERT_TRIGGER = "journal.journal_kept_insert"
SPY = """
CREATE FUNCTION public.spy() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
CREATE TRIGGER spy AFTER INSERT ON call FOR EACH ROW EXECUTE FUNCTION public.spy()
"""


def differences(database: PostgresDatabase, role: str = "postgres") -> list[SchemaDifference] | None:
    with open_postgres_archive(database.address.replace("postgres@", f"{role}@")) as archive:
        return archive.schema_differences()


def test_a_migrated_database_has_the_schema(postgres_database: PostgresDatabase) -> None:
    """Nothing differs, and the comparison leaves nothing behind."""
    assert differences(postgres_database) == []
    assert postgres_database.sql("SELECT count(*) FROM pg_namespace WHERE nspname = 'toold_expected'") == "0"


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (SPY, ("added", "trigger", "call.spy")),
        (
            "ALTER TABLE journal DISABLE TRIGGER journal_kept_insert",
            ("changed", "trigger", INSERT_TRIGGER),
        ),
        ("DROP TRIGGER journal_kept_delete ON journal", ("missing", "trigger", "journal.journal_kept_delete")),
        ("CREATE RULE quiet AS ON DELETE TO session DO INSTEAD NOTHING", ("added", "rule", "session.quiet")),
        ("CREATE VIEW seen AS SELECT 1 AS one", ("added", "view", "seen")),
        ("DROP INDEX a2a_task_by_change", ("missing", "index", "a2a_task_by_change")),
        ("ALTER TABLE session ADD COLUMN note text", ("changed", "table", "session")),
        ("ALTER TABLE session ALTER COLUMN label SET DEFAULT 'x'", ("changed", "table", "session")),
        ("CREATE POLICY mine ON call USING (true)", ("added", "policy", "call.mine")),
        (
            "CREATE OR REPLACE FUNCTION json_text(result bytea) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT '' $$",
            ("changed", "function", "json_text(result bytea)"),
        ),
    ],
)
def test_each_kind_of_change_is_found(
    postgres_database: PostgresDatabase, change: str, found: tuple[str, str, str]
) -> None:
    """With its kind and name."""
    postgres_database.sql(change)
    assert differences(postgres_database) == [found]


def test_without_the_right_to_create_a_schema_nothing_is_compared(postgres_database: PostgresDatabase) -> None:
    """A user of the audit that only reads."""
    postgres_database.sql("CREATE ROLE auditor LOGIN")
    postgres_database.sql(
        "GRANT USAGE ON SCHEMA toold TO auditor; GRANT SELECT ON ALL TABLES IN SCHEMA toold TO auditor"
    )
    try:
        assert differences(postgres_database, "auditor") is None
    finally:
        postgres_database.sql("DROP OWNED BY auditor; DROP ROLE auditor")
