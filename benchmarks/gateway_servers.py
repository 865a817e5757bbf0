"""Starts the gateways of other projects, each in its own environment."""

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Final

import httpx
import psutil
from tests.chaos.daemon import free_port

from .servers import Server, mcp_server_in, peer_python

_START_S: Final = 300.0
"""ContextForge migrates its database for half a minute of computing time."""
_ADMIN: Final = "admin@example.com"
_SECRETS: Final = {
    "AUTH_ENCRYPTION_SECRET": "an-encryption-secret-for-the-benchmark-alone",
    "BASIC_AUTH_PASSWORD": "Aa1-for-the-benchmark",
    "DEFAULT_USER_PASSWORD": "Aa1-for-the-benchmark",
    "JWT_SECRET_KEY": "a-signing-secret-for-the-benchmark-alone",
    "PLATFORM_ADMIN_PASSWORD": "Aa1-for-the-benchmark",
}
_SETTINGS: Final = {
    "CACHE_TYPE": "memory",
    "DATABASE_URL": "sqlite:///./gateway.db",
    "ENVIRONMENT": "development",
    "LOG_LEVEL": "ERROR",
    "MCPGATEWAY_UI_ENABLED": "false",
    "PLUGINS_ENABLED": "false",
    "RATE_LIMITING_ENABLED": "false",
    "SSRF_ALLOW_LOCALHOST": "true",
    "SSRF_ALLOW_PRIVATE_NETWORKS": "true",
    "TOOL_RATE_LIMIT": "1000",
}
"""Without limits on the rate, logs of calls, plugins and pages, which would slow it."""


def fastmcp_proxy(servers: Mapping[str, Mapping[str, Any]]) -> AbstractContextManager[Server]:
    """FastMCP's proxy in front of these ``mcpServers``.

    Raises:
        RuntimeError: its environment does not exist.
    """
    command = [peer_python("fastmcp"), "-P", "benchmarks/fastmcp_proxy.py", json.dumps(servers)]
    return mcp_server_in("FastMCP's proxy", command)


@contextmanager
def context_forge(urls: Mapping[str, str]) -> Iterator[tuple[Server, str]]:
    """ContextForge in front of the servers at these URLs; yields it and the token of its administrator.

    Raises:
        RuntimeError: its environment does not exist, or it did not start.
    """
    python = Path(peer_python("contextforge"))
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="toold-bench-") as temporary:
        env = {"HOME": temporary, "PATH": os.environ["PATH"], **_SETTINGS, **_SECRETS}
        create = [str(python), "-m", "mcpgateway.utils.create_jwt_token", "--username", _ADMIN, "--admin"]
        secret = ["--exp", "600", "--secret", _SECRETS["JWT_SECRET_KEY"]]
        made = subprocess.run([*create, *secret], cwd=temporary, env=env, capture_output=True, text=True, check=True)
        token = made.stdout.split()[-1]
        command = [str(python.with_name("mcpgateway")), "--host", "127.0.0.1", "--port", str(port)]
        command += ["--timeout-keep-alive", "600"]
        began = time.perf_counter()
        log = Path(temporary) / "log"
        with (
            log.open("w") as output,
            subprocess.Popen(
                command, cwd=temporary, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=output, text=True
            ) as process,
        ):
            try:
                _register(f"http://127.0.0.1:{port}", token, urls, process, log)
                version = _version_of(python)
                yield Server("ContextForge", process, port, time.perf_counter() - began, port, version), token
            finally:
                for child in psutil.Process(process.pid).children(recursive=True):
                    child.terminate()
                process.terminate()
                process.wait(30)


def _register(url: str, token: str, urls: Mapping[str, str], process: "subprocess.Popen[str]", log: Path) -> None:
    give_up = time.perf_counter() + _START_S
    with httpx.Client(
        base_url=url, headers={"Authorization": f"Bearer {token}"}, trust_env=False, timeout=60
    ) as client:
        while True:
            try:
                if client.get("/health").is_success:
                    break
            except httpx.TransportError:
                pass
            if process.poll() is not None or time.perf_counter() > give_up:
                raise RuntimeError(f"ContextForge did not start:\n{log.read_text()[-2000:]}")
            time.sleep(0.2)
        for name, upstream in urls.items():
            body = {"name": name, "url": upstream, "transport": "STREAMABLEHTTP"}
            answer = client.post("/gateways", json=body)
            if answer.is_error:
                raise RuntimeError(f"ContextForge refuses {name}: {answer.text[:500]}")


def _version_of(python: Path) -> str:
    ask = "from importlib.metadata import version as v; print(v('mcp-contextforge-gateway'), 'on mcp', v('mcp'))"
    shown = subprocess.run([str(python), "-c", ask], capture_output=True, text=True, check=True)
    return f"ContextForge {shown.stdout.strip()}, SQLite, one worker, no rate limits, JSON answers"
