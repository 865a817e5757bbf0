"""Two nodes that are started as compose starts them, behind the shipped nginx, on loopback."""

import asyncio
import os
import secrets
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest
from tests.chaos.daemon import free_port
from tests.daemon_environment import daemon_environment
from tests.postgres_cluster import running_cluster
from toold.client import MCPWebSocketClient
from toold.store.postgres.pg_schema import migrate_postgres

CLUSTER = Path(__file__).parents[2] / "docker/cluster"
TOKEN = secrets.token_urlsafe(24)
NGINX = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
HTTP = """
daemon off;
pid {run}/nginx.pid;
error_log stderr warn;
events {{ worker_connections 256; }}
http {{
    client_body_temp_path {run}/body;
    proxy_temp_path {run}/proxy;
    fastcgi_temp_path {run}/fastcgi;
    uwsgi_temp_path {run}/uwsgi;
    scgi_temp_path {run}/scgi;
    include {run}/balancer.conf;
}}
"""

pytestmark = pytest.mark.skipif(NGINX is None, reason="nginx is not installed (Debian: apt install nginx-light)")


@dataclass
class Balanced:
    """The programs, and where nginx listens."""

    origin: str
    nodes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    logs: dict[str, Path] = field(default_factory=dict)

    def connected(self, text: str) -> str:
        """The node whose log has a text."""
        (name,) = (name for name, log in self.logs.items() if text in log.read_text("utf-8"))
        return name


@pytest.fixture
def database(starts_processes: None) -> Iterator[str]:
    """The address of a database with the tables of toold."""
    with running_cluster() as server:
        server.sql("CREATE DATABASE toold")
        address = f"postgresql://postgres@/toold?host={server.client_environment['PGHOST']}"
        migrate_postgres(address)
        yield address


@pytest.fixture
async def balanced(database: str, tmp_path: Path) -> AsyncIterator[Balanced]:
    """Both nodes, ready, and nginx with the shipped configuration, in which only addresses are replaced."""
    given = tmp_path / "secrets"
    given.mkdir(mode=0o700)
    texts = {"store": database, "token": TOKEN, "cluster_secret": "c" * 32, "audit_key": secrets.token_hex(32)}
    for name, text in texts.items():
        (given / name).write_text(text)
    configuration = (CLUSTER / "balancer.conf").read_text("utf-8")
    public = free_port()
    configuration = configuration.replace("listen 8080;", f"listen 127.0.0.1:{public};")
    balanced = Balanced(f"http://127.0.0.1:{public}")
    programs: list[subprocess.Popen[bytes]] = []
    try:
        ports: dict[str, int] = {}
        for name in ("node1", "node2"):
            state = tmp_path / name
            state.mkdir(mode=0o700)
            port, ports[name] = free_port(), free_port()
            configuration = configuration.replace(f"{name}:8079", f"127.0.0.1:{port}")
            configuration = configuration.replace(f"{name}:8080", f"127.0.0.1:{ports[name]}")
            environment = daemon_environment(
                state,
                TOOLD_NODE_NAME=name,
                TOOLD_PORT=str(port),
                TOOLD_HTTP_PORT=str(ports[name]),
                TOOLD_CLUSTER_SECRET_FILE=str(given / "cluster_secret"),
                TOOLD_LOG_FORMAT="json",
                TOOLD_WARM_UP="false",
                SECRETS=str(given),
                PATH=f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            )
            balanced.logs[name] = tmp_path / f"{name}.log"
            with balanced.logs[name].open("wb") as log:
                command = ["sh", str(CLUSTER / "node.sh"), "serve", "--simulate"]
                program = subprocess.Popen(command, cwd=state, env=environment, stdout=log, stderr=log)
            programs.append(program)
            balanced.nodes[name] = program
        (tmp_path / "balancer.conf").write_text(configuration)
        (tmp_path / "nginx.conf").write_text(HTTP.format(run=tmp_path))
        async with httpx.AsyncClient(trust_env=False) as http:
            for name, port in ports.items():
                await _until_healthy(http, f"http://127.0.0.1:{port}", balanced.nodes[name], balanced.logs[name])
            assert NGINX is not None
            command = [NGINX, "-e", "stderr", "-c", str(tmp_path / "nginx.conf")]
            with (tmp_path / "nginx.log").open("wb") as log:
                programs.append(subprocess.Popen(command, stdout=log, stderr=log))
            await _until_healthy(http, balanced.origin, programs[-1], tmp_path / "nginx.log")
        yield balanced
    finally:
        for program in programs:
            program.send_signal(signal.SIGTERM)
        for program in programs:
            await asyncio.to_thread(program.wait)


async def _until_healthy(http: httpx.AsyncClient, origin: str, program: subprocess.Popen[bytes], log: Path) -> None:
    while True:
        assert program.poll() is None, log.read_text("utf-8")
        try:
            if (await http.get(f"{origin}/healthz")).status_code == 200:
                return
        except httpx.TransportError:
            await asyncio.sleep(0.05)


async def test_a_client_outlives_the_node_that_has_its_session(balanced: Balanced) -> None:
    """nginx connects it to the other node, which takes the session over; requests over HTTP are answered too."""
    url = balanced.origin.replace("http", "ws", 1) + "/ws"
    async with (
        MCPWebSocketClient(url, token=TOKEN, client_name="balanced") as client,
        httpx.AsyncClient(base_url=balanced.origin, headers={"authorization": f"Bearer {TOKEN}"}) as http,
    ):
        assert (await client.call("echo", {"text": "before"})).text == "before"
        holder = balanced.connected('"client": "balanced"')
        balanced.nodes[holder].kill()
        assert (await client.call("echo", {"text": "after"}, timeout=600)).text == "after"
        answer = await http.post("/tools/echo", json={"text": "by HTTP"}, timeout=600)
        assert "by HTTP" in answer.text
        assert client.session_id in balanced.logs[{"node1": "node2", "node2": "node1"}[holder]].read_text("utf-8")


async def test_the_operator_api_is_not_published(balanced: Balanced) -> None:
    """Paths that nginx does not name are unknown outside, also with the daemon's token."""
    async with httpx.AsyncClient(base_url=balanced.origin, headers={"authorization": f"Bearer {TOKEN}"}) as http:
        for path in ("/operator/sources", "/metrics", "/readyz", "/", "/mcpx"):
            assert (await http.get(path)).status_code == 404
        assert (await http.get("/openapi.json")).status_code == 200
