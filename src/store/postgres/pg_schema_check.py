"""Compares the definitions in a PostgreSQL database with those of the schema.

The server itself creates the expected definitions, in a schema that exists only within a transaction that is rolled
back.
"""

from typing import Any, Final

import psycopg

from ..schema_difference import SchemaDifference, compared
from .pg_connection import SCHEMA_NAME
from .pg_schema import POSTGRES_STEPS

Connection = psycopg.Connection[tuple[Any, ...]]

_EXPECTED: Final = "toold_expected"
_DEFINITIONS: Final = """
SELECT 'table', relname, concat_ws(E'\\n', relkind::text, relrowsecurity::text,
    (SELECT string_agg(concat_ws(' ', attname, format_type(atttypid, atttypmod), attcollation::text,
                                 attnotnull::text, attidentity::text, attgenerated::text,
                                 pg_get_expr(adbin, adrelid)), E'\\n' ORDER BY attname)
     FROM pg_attribute LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
     WHERE attrelid = class.oid AND attnum > 0 AND NOT attisdropped),
    (SELECT string_agg(pg_get_constraintdef(oid), E'\\n' ORDER BY conname) FROM pg_constraint
     WHERE conrelid = class.oid))
FROM pg_class class WHERE relnamespace = %(schema)s::regnamespace AND relkind IN ('r', 'p', 'f')
UNION ALL
SELECT 'view', relname, pg_get_viewdef(oid)
FROM pg_class WHERE relnamespace = %(schema)s::regnamespace AND relkind IN ('v', 'm')
UNION ALL
SELECT 'index', relname, pg_get_indexdef(oid)
FROM pg_class WHERE relnamespace = %(schema)s::regnamespace AND relkind IN ('i', 'I')
UNION ALL
SELECT 'function', concat(proname, '(', pg_get_function_identity_arguments(oid), ')'),
       CASE WHEN prokind IN ('f', 'p') THEN pg_get_functiondef(oid) ELSE prokind::text END
FROM pg_proc WHERE pronamespace = %(schema)s::regnamespace
UNION ALL
SELECT 'trigger', concat(relname, '.', tgname), concat_ws(' ', pg_get_triggerdef(pg_trigger.oid), tgenabled)
FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid
WHERE relnamespace = %(schema)s::regnamespace AND NOT tgisinternal
UNION ALL
SELECT 'rule', concat(relname, '.', rulename), concat_ws(' ', pg_get_ruledef(pg_rewrite.oid), ev_enabled)
FROM pg_rewrite JOIN pg_class ON pg_class.oid = ev_class
WHERE relnamespace = %(schema)s::regnamespace AND rulename <> '_RETURN'
UNION ALL
SELECT 'policy', concat(relname, '.', polname),
       concat_ws(' ', polcmd, polpermissive, pg_get_expr(polqual, polrelid), pg_get_expr(polwithcheck, polrelid))
FROM pg_policy JOIN pg_class ON pg_class.oid = polrelid WHERE relnamespace = %(schema)s::regnamespace
"""


def schema_differences(connection: Connection) -> list[SchemaDifference]:
    """Returns the definitions in a database of the current schema that were added, removed or changed.

    Raises:
        psycopg.errors.InsufficientPrivilege: the user may not create a schema in this database.
        psycopg.Error: the database cannot be read.
    """
    with connection.transaction(force_rollback=True):
        connection.execute(f"CREATE SCHEMA {_EXPECTED}")
        connection.execute(f"SET LOCAL search_path = {_EXPECTED}")
        for step in POSTGRES_STEPS:
            connection.execute(step.script.encode(), prepare=False)
        return compared(_definitions(connection, _EXPECTED), _definitions(connection, SCHEMA_NAME))


def _definitions(connection: Connection, schema: str) -> dict[tuple[str, str], str]:
    """(kind, name) → the definition without the names of the schemas."""
    rows = connection.execute(_DEFINITIONS, {"schema": schema}).fetchall()
    return {(kind, name): _unqualified(definition) for kind, name, definition in rows}


def _unqualified(definition: str) -> str:
    return definition.replace(f"{_EXPECTED}.", "").replace(f"{SCHEMA_NAME}.", "")
