"""The container's health check: greets the daemon through nginx, as a client would, and has it answer a call."""

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
    """Return where the daemon answers.

    Raises:
        CallError, OSError, TimeoutError: it does not.
        ContainerError: the environment is not one that it runs with.
    """
    env = with_secrets(os.environ, lambda path: Path(path).read_text("utf-8"))
    this = container(env)
    # The certificate speaks for the name that the world knows, and this asks 127.0.0.1 whether it lives, no more.
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
