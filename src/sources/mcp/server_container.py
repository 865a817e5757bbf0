"""A server that runs in a container: the command of docker or podman that starts it, and its removal.

The program in the container gets only what the settings name. By default, it has no network, no files of the machine
and few variables; its memory, processor time and processes are limited.
"""

import asyncio
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from secrets import token_hex
from typing import Final

from ..source_settings import McpSettings
from .upstream_failures import UpstreamUnavailableError

PROGRAMS: Final = ("docker", "podman")
"""The programs. The first one on the PATH is used."""
REMOVE_S: Final = 10.0
"""The timeout of the removal of a container."""
_CLIENT_VARIABLES: Final = (
    *("CONTAINER_HOST", "CONTAINER_SSHKEY", "DBUS_SESSION_BUS_ADDRESS", "DOCKER_CERT_PATH", "DOCKER_CONFIG"),
    *("DOCKER_CONTEXT", "DOCKER_HOST", "DOCKER_TLS_VERIFY", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"),
)
"""Variables of the daemon with which docker and podman find their service and files. Containers do not get them."""


def container_program(path: str | None = None) -> str:
    """The path of docker or podman.

    Raises:
        UpstreamUnavailableError: neither is installed.
    """
    for program in PROGRAMS:
        if (found := shutil.which(program, path=path)) is not None:
            return found
    raise UpstreamUnavailableError(f"its image needs {' or '.join(PROGRAMS)} on the PATH of the daemon")


def container_name(source: str) -> str:
    """A unique name for a source's container, needed to remove it."""
    return f"toold-{re.sub(r'[^A-Za-z0-9_.-]', '-', source)}-{token_hex(4)}"


def container_command(program: str, name: str, settings: McpSettings) -> list[str]:
    """The command that runs the image of these settings, with its standard streams. Values of variables are in the
    environment of the command and not in its arguments, which every user of the machine can read.
    """
    limits = settings.container
    options = ["--rm", "--interactive", f"--name={name}", "--init", "--pull=missing"]
    options += [f"--network={'bridge' if limits.network else 'none'}"]
    options += [f"--memory={limits.memory_mib}m", f"--memory-swap={limits.memory_mib}m", f"--cpus={limits.cpus:g}"]
    options += [f"--pids-limit={limits.processes}", "--cap-drop=ALL", "--security-opt=no-new-privileges"]
    options += ["--read-only", "--tmpfs=/tmp"]
    options += [f"--env={variable}" for variable in settings.env]
    options += [f"--volume={mount}" for mount in limits.volumes]
    return [program, "run", *options, str(settings.image), *(settings.command or ())]


def client_environment(own: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables of the daemon that docker and podman need."""
    return {name: own[name] for name in _CLIENT_VARIABLES if name in own}


async def remove_container(program: str, name: str, env: Mapping[str, str]) -> None:
    """Removes the container, if it still exists: the end of the program that started it does not end it."""
    await _run([program, "rm", "--force", name], env)


async def _run(command: Sequence[str], env: Mapping[str, str]) -> None:
    nothing = asyncio.subprocess.DEVNULL
    with suppress(OSError, TimeoutError):
        process = await asyncio.create_subprocess_exec(
            *command, stdin=nothing, stdout=nothing, stderr=nothing, env=dict(env), start_new_session=True
        )
        try:
            async with asyncio.timeout(REMOVE_S):
                await process.wait()
        finally:
            with suppress(ProcessLookupError):
                process.kill()
