"""The container's health check: connects to the daemon through nginx, as a client does, and makes a call."""

import asyncio
import os
import ssl
import sys
from pathlib import Path

from rendering import ContainerError, container, with_secrets
from toold.client import MCPWebSocketClient
from toold.protocol.error_codes import CallError

TIMEOUT_S = 8.0


async def check() -> None:
    """Return if the daemon answers.

    Raises:
        CallError, OSError, TimeoutError: it does not answer.
        ContainerError: the environment is invalid.
    """
    env = with_secrets(os.environ, lambda path: Path(path).read_text("utf-8"))
    this = container(env)
    # The certificate is for the public host name; this connects to 127.0.0.1.
    tls = ssl._create_unverified_context() if this.certificate else None  # noqa: S323
    async with (
        asyncio.timeout(TIMEOUT_S),
        MCPWebSocketClient(this.url, token=env.get("TOOLD_TOKEN"), tls=tls, client_name="container-health") as client,
    ):
        await client.call_tool("version")  # takes no permit: a busy daemon is healthy


if __name__ == "__main__":
    try:
        asyncio.run(check())
    except (CallError, ContainerError, OSError, TimeoutError) as error:
        sys.exit(f"not healthy: {error!r}")
