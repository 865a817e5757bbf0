#!/bin/sh
# Prepares PostgreSQL like a Supabase project, as the audit's migrations expect, and applies them. Idempotent.
# Usage: prepare.sh DIRECTORY_OF_MIGRATIONS, with libpq's variables, and passwords in the files that
# POSTGRES_PASSWORD_FILE and AUTHENTICATOR_PASSWORD_FILE name.
set -eu
if [ -n "${POSTGRES_PASSWORD_FILE:-}" ]; then
    PGPASSWORD=$(cat "$POSTGRES_PASSWORD_FILE")
    export PGPASSWORD
fi
AUTHENTICATOR_PASSWORD=$(cat "$AUTHENTICATOR_PASSWORD_FILE")
export AUTHENTICATOR_PASSWORD

# The password is in the environment, because command lines are visible to all users.
psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1 <<'SQL'
\getenv password AUTHENTICATOR_PASSWORD
SELECT format('CREATE ROLE %I NOLOGIN NOINHERIT %s', name, flags)
FROM (VALUES ('anon', ''), ('authenticated', ''), ('service_role', 'BYPASSRLS')) AS role (name, flags)
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name) \gexec
SELECT 'CREATE ROLE authenticator LOGIN NOINHERIT'
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'authenticator') \gexec
ALTER ROLE authenticator PASSWORD :'password';
GRANT anon, authenticated, service_role TO authenticator;
GRANT USAGE ON SCHEMA public TO anon, authenticated, service_role;
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT ALL ON TABLES TO anon, authenticated, service_role;
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT ALL ON FUNCTIONS TO anon, authenticated, service_role;
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT ALL ON SEQUENCES TO anon, authenticated, service_role;
SQL

for migration in "$1"/*.sql; do
    psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --single-transaction --file="$migration"
done
# PostgREST caches the schema; make it reload.
psql --no-psqlrc --quiet --command="NOTIFY pgrst, 'reload schema'"
