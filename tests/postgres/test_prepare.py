"""docker/postgres/prepare.sh prepares a plain PostgreSQL for the audit and can run repeatedly."""

import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def test_plain_database_is_prepared(plain_cluster: Any, tmp_path: Path) -> None:
    """The first run creates roles, grants and tables, the second changes nothing, and anon has no grants."""
    (tmp_path / "password").write_text("it's a password")
    env = {
        **plain_cluster.client_environment,
        "PGUSER": "postgres",
        "PGDATABASE": "postgres",
        "AUTHENTICATOR_PASSWORD_FILE": str(tmp_path / "password"),
    }
    for _ in range(2):
        words = ["sh", str(ROOT / "docker/postgres/prepare.sh"), str(ROOT / "supabase/migrations")]
        done = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "ERROR" not in done.stderr
    assert plain_cluster.sql("SELECT count(*) FROM toold_calls", role="service_role") == "0"
    granted = "SELECT count(*) FROM information_schema.role_table_grants WHERE grantee = 'anon'"
    assert plain_cluster.sql(f"{granted} AND table_name LIKE 'toold%'") == "0"
    assert plain_cluster.sql("SELECT count(*) FROM pg_roles WHERE rolname = 'authenticator' AND rolcanlogin") == "1"
