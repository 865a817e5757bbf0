"""The parts of a fault run of a cluster: PostgreSQL, the links of nodes to it, and the nodes as processes."""

import asyncio
import importlib.util
import re
import secrets
import shutil
import signal
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Final, Self

from tests.postgres_cluster import Cluster
from toold.store.postgres.pg_schema import migrate_postgres

from .daemon import Daemon, DaemonError
from .project import ProjectError

NODES: Final = 3
FENCED: Final = 70
"""The exit code of a node that was declared dead."""
_SOCKET: Final = ".s.PGSQL.5432"


_AGAIN_S: Final = 0.5
_AWAY: Final = re.compile(r"toold: cannot start: .*\b(connect|connection|database)\b")
"""What a node says that starts while the database is away."""
_ROLE: Final = "toold"
"""The role of the nodes in a fault run: limits of connections do not apply to superusers."""
_FULL: Final = """
CREATE TABLE public.disk AS SELECT false AS is_full;
GRANT SELECT ON public.disk TO toold;
CREATE FUNCTION public.require_space() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (SELECT is_full FROM public.disk) THEN
        RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = 'disk_full';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER require_space BEFORE UPDATE ON toold.node FOR EACH ROW EXECUTE FUNCTION public.require_space();
"""
_FILL: Final = "UPDATE public.disk SET is_full = {full}"
_END_CONNECTIONS: Final = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE starts_with(application_name, 'toold {node} ')"
)


_EFFECT_TOOL: Final = """
import os, pathlib
from toold.tools import EFFECT_LOG, simulated_tools
sim_effect, = simulated_tools(pathlib.Path(os.environ["TOOLD_STATE_DIR"]) / EFFECT_LOG)
"""
"""The tool that comes with the simulator, for nodes without it."""


class Database:
    """A database of a PostgreSQL server that can be stopped and killed."""

    def __init__(self, cluster: Cluster, name: str, role: str = "postgres") -> None:
        self._cluster = cluster
        self.name = name
        self.role = role
        """The role of the nodes."""
        self.runs = True
        self.turn = asyncio.Lock()
        """Held during a fault of the server."""

    @property
    def socket(self) -> Path:
        return self._cluster.socket_directory / _SOCKET

    @property
    def url(self) -> str:
        return self.url_at(self.socket.parent)

    def url_at(self, *directories: Path, role: str | None = None) -> str:
        """The address of the database at sockets in other directories, for a role, by default that of the nodes."""
        return f"postgresql://{role or self.role}@/{self.name}?host={','.join(map(str, directories))}"

    def sql(self, statements: str) -> str:
        return self._cluster.sql(statements, database=self.name)

    def start(self) -> None:
        self._cluster.start()
        self.runs = True

    def stop(self, *, kill: bool) -> None:
        """Stops the server and closes its connections; ``kill``: as a crash does."""
        self.runs = False
        self._cluster.stop(signal.SIGQUIT if kill else signal.SIGINT)

    def simulate_disk(self) -> None:
        """SIMULATED: a trigger makes each commit of a node fail as on a full disk, after ``fill``."""
        self.sql(_FULL)

    def remove_simulated_disk(self) -> None:
        """Removes what ``simulate_disk`` created: ``toold audit verify`` reports triggers that are not toold's."""
        self.sql("DROP FUNCTION public.require_space CASCADE")

    def fill(self, *, full: bool) -> None:
        """Fills the simulated disk, or makes space."""
        self.sql(_FILL.format(full=full))

    def refuse_connections(self, node: str) -> None:
        """Ends the connections of a node, and accepts no others of any node."""
        self.sql(f"ALTER ROLE {self.role} CONNECTION LIMIT 0")
        self.sql(_END_CONNECTIONS.format(node=node))

    def accept_connections(self) -> None:
        self.sql(f"ALTER ROLE {self.role} CONNECTION LIMIT -1")

    async def migrate(self) -> None:
        """Creates the tables."""
        await asyncio.to_thread(migrate_postgres, self.url)


@asynccontextmanager
async def database(*, migrated: bool = True) -> AsyncIterator[Database]:
    """A running server with a database, by default migrated.

    Raises:
        ProjectError: pgserver is not installed.
    """
    spec = importlib.util.find_spec("pgserver")
    if spec is None or spec.origin is None:
        raise ProjectError("pgserver has no wheel for this Python")
    # A separate directory: the path of the socket must be short, and PostgreSQL's user must have access.
    with tempfile.TemporaryDirectory(prefix="toold-pg-", ignore_cleanup_errors=True) as directory:
        server = await asyncio.to_thread(Cluster, Path(directory), Path(spec.origin).parent)
        try:
            server.sql(f"CREATE ROLE {_ROLE} LOGIN")
            server.sql(f"CREATE DATABASE toold OWNER {_ROLE}")
            database = Database(server, "toold", _ROLE)
            if migrated:
                await database.migrate()
                database.simulate_disk()
            yield database
        finally:
            server.stop()


class DatabaseLink:
    """The way of one node to the database, which can be cut: a socket that forwards to that of the server."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._open = asyncio.Event()
        self._open.set()
        self._refusing = False
        self._delay_s = 0.0
        self._writers = set[asyncio.StreamWriter]()
        self._tasks = set[asyncio.Task[None]]()

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self) -> Self:
        self._directory = tempfile.TemporaryDirectory(prefix="toold-pg-link-")
        path = Path(self._directory.name) / _SOCKET
        self._server = await asyncio.start_unix_server(self._begin, path)
        self.url = self._database.url_at(Path(self._directory.name))
        return self

    async def close(self) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()
        self._directory.cleanup()

    @contextmanager
    def cut(self, *, silent: bool) -> Iterator[None]:
        """Nothing passes in this block. ``silent``: connections stay open; else they are reset, and new ones too."""
        self._open.clear()
        self._refusing = not silent
        if self._refusing:
            self._abort()
        try:
            yield
        finally:
            if silent:  # bytes that were held back do not arrive later, as after a partition that broke connections
                self._abort()
            self._refusing = False
            self._open.set()

    @contextmanager
    def slow(self, delay_s: float) -> Iterator[None]:
        """Each piece of data is late in this block, in both directions."""
        self._delay_s = delay_s
        try:
            yield
        finally:
            self._delay_s = 0.0

    def _abort(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    def _begin(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            if self._refusing:
                return
            await self._open.wait()
            with suppress(OSError):  # the server does not run
                from_server, to_server = await asyncio.open_unix_connection(self._database.socket)
                self._writers.add(to_server)
                try:
                    await asyncio.wait(
                        [
                            asyncio.create_task(self._pass_on(reader, to_server)),
                            asyncio.create_task(self._pass_on(from_server, writer)),
                        ],
                        return_when=asyncio.FIRST_COMPLETED,
                    )
                finally:
                    self._writers.discard(to_server)
                    to_server.transport.abort()
        finally:
            self._writers.discard(writer)
            writer.transport.abort()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while piece := await reader.read(64 * 1024):
                await asyncio.sleep(self._delay_s)
                await self._open.wait()
                writer.write(piece)
                await writer.drain()


class Node:
    """One node of the cluster: a daemon process and its link to the database."""

    def __init__(
        self, directory: Path, link: DatabaseLink, settings: Mapping[str, str], *, simulate: bool = True
    ) -> None:
        directory.mkdir()
        self.name = directory.name
        self.link = link
        self.daemon = Daemon(directory, settings, simulate=simulate)
        self.killed: list[float] = []
        """When it was killed, in Unix time."""
        self.drained: list[float] = []
        """When it had stopped in an orderly way, in Unix time."""
        self.turn = asyncio.Lock()
        """Held while something stops and starts the process."""
        self.fault = asyncio.Lock()
        """Held during a fault of this node."""

    async def start(self) -> None:
        """Starts the process; again, as a supervisor would, if the database is away, or if it gets so little of the
        processor that it is declared dead before it listens.

        Raises:
            DaemonError: it does not start.
        """
        while True:
            try:
                await self.daemon.start()
            except DaemonError as error:
                away = self.daemon.exit_code == 1 and _AWAY.search(str(error))
                if not (self.daemon.exit_code == FENCED or away):
                    raise
                await asyncio.sleep(_AGAIN_S)
            else:
                return

    async def kill(self) -> None:
        """Kills the process."""
        self.killed.append(time.time())
        await self.daemon.kill()

    async def stop(self) -> None:
        """Stops the process as for an upgrade.

        Raises:
            DaemonError: it did not end in time, or neither in an orderly way nor because it was declared dead.
        """
        await self.daemon.stop(frozenset({0, FENCED}))
        if self.daemon.exit_code == 0:
            self.drained.append(time.time())

    def install(self, module: str, source: str) -> None:
        """Installs a package of tools, before the first start."""
        info = self.daemon.state.parent / f"{module}-1.0.dist-info"
        info.mkdir()
        (info.parent / f"{module}.py").write_text(source)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[toold.tools]\n{module} = {module}\n")

    def prepare(self, audit_key: str) -> None:
        """Creates the state directory with the audit key that all nodes have."""
        self.daemon.state.mkdir(mode=0o700)
        key = self.daemon.state / "audit.key"
        key.touch(mode=0o600)
        key.write_text(f"{audit_key}\n", encoding="ascii")


async def start_nodes(
    stack: AsyncExitStack,
    directory: Path,
    database: Database,
    settings: Mapping[str, str],
    *,
    tokens: Mapping[str, Sequence[str]] | None = None,
    vendor_key: str | None = None,
) -> tuple[list[Node], str]:
    """Starts the nodes of a cluster; the stack ends them. Returns their token too. Named tokens are made with the
    options of ``tokens``, and are in files such as ``ci.token``. ``vendor_key``: the variable with the key for a
    stand-in vendor, which is the node's name; without it, the simulator answers.

    Raises:
        DaemonError: one does not start.
    """
    token, audit_key, nodes = secrets.token_urlsafe(32), secrets.token_hex(32), list[Node]()
    for number in range(NODES):
        link = await stack.enter_async_context(DatabaseLink(database))
        own = {
            "TOOLD_STORE": link.url,
            "TOOLD_NODE_NAME": f"node-{number}",
            "TOOLD_CLUSTER_SECRET": f"secret-of-{token}",
            "TOOLD_TOKEN": token,
            "TOOLD_GRACE_PERIOD_S": "3",
        }
        if vendor_key is not None:
            own |= {"TOOLD_SIMULATE": "false", vendor_key: f"node-{number}"}
        node = Node(directory / f"node-{number}", link, own | dict(settings), simulate=vendor_key is None)
        node.prepare(audit_key)
        if vendor_key is not None:
            node.install("effect_tool", _EFFECT_TOOL)
        nodes.append(node)
        stack.push_async_callback(node.daemon.close)
    if tokens:
        for name, secret in (await nodes[0].daemon.create_tokens(tokens)).items():
            (directory / f"{name}.token").write_text(secret)
    for node in nodes[1:] if tokens else ():
        shutil.copy(nodes[0].daemon.state / "tokens.json", node.daemon.state)
    for node in nodes:
        await node.start()
    return nodes, token
