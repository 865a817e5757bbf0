"""Servers in containers: the command of docker, with a stand-in for docker (``container_stand_in``)."""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from toold.sources import McpSettings, SourceSettingsError, read_sources
from toold.sources.mcp import server_container
from toold.sources.mcp.server_container import container_command, container_name, container_program
from toold.sources.mcp.upstream_failures import UpstreamUnavailableError

from . import container_stand_in


def settings(**table: Any) -> McpSettings:
    (source,) = read_sources({"s": {"type": "mcp", "image": container_stand_in.IMAGE, **table}}).values()
    assert isinstance(source, McpSettings)
    return source


def test_a_container_gets_nothing_by_default() -> None:
    """No network, no files, no capabilities, limited memory, processor time and processes."""
    assert container_command("docker", "toold-s-1", settings()) == [
        *("docker", "run", "--rm", "--interactive", "--name=toold-s-1", "--init", "--pull=missing", "--network=none"),
        *("--memory=512m", "--memory-swap=512m", "--cpus=1", "--pids-limit=256", "--cap-drop=ALL"),
        *("--security-opt=no-new-privileges", "--read-only", "--tmpfs=/tmp", "example/server:1"),
    ]


def test_what_the_settings_allow() -> None:
    """Values of variables are not in the arguments; mounts are read-only unless they say otherwise."""
    limits = {"network": True, "memory_mib": 64, "cpus": 0.5, "processes": 8, "mounts": ["/srv/a:/a", "/srv/b:/b:rw"]}
    command = container_command(
        "podman",
        "n",
        settings(command=["serve", "--fast"], container=limits, env={"KEY": {"env": "K"}, "MODE": "secret-text"}),
    )
    assert {"--network=bridge", "--memory=64m", "--cpus=0.5", "--pids-limit=8"} <= set(command)
    assert {"--env=KEY", "--env=MODE", "--volume=/srv/a:/a:ro", "--volume=/srv/b:/b:rw"} <= set(command)
    assert command[-3:] == ["example/server:1", "serve", "--fast"]
    assert "secret-text" not in " ".join(command)


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ({"image": "--privileged"}, "image"),
        ({"image": "a b"}, "image"),
        ({"image": "a", "url": "https://h.example"}, "exactly one of command, url and image"),
        ({"image": "a", "container": {"mounts": ["relative:/a"]}}, "container.mounts"),
        ({"image": "a", "container": {"mounts": ["/a:/b:/c:rw"]}}, "container.mounts"),
        ({"image": "a", "container": {"memory": 5}}, "container.memory is not a setting"),
        ({"image": "a", "container": {"memory_mib": 1}}, "container.memory_mib must be 16 or more"),
        ({"command": ["a"], "container": {"network": True}}, "container requires image"),
        ({"image": "a", "env": {"DOCKER_HOST": "tcp://h.example"}}, "env.DOCKER_HOST affects docker or podman"),
        ({"image": "a", "env": {"LD_PRELOAD": "/x.so"}}, "env.LD_PRELOAD affects docker or podman"),
    ],
)
def test_invalid_settings(table: dict[str, Any], problem: str) -> None:
    """An image cannot be an option of docker; the message names the key."""
    with pytest.raises(SourceSettingsError, match=problem):
        read_sources({"s": {"type": "mcp", **table}})


def test_docker_or_podman(tmp_path: Path) -> None:
    """The first that is installed; without one, the problem says what is missing."""
    with pytest.raises(UpstreamUnavailableError, match="docker or podman on the PATH"):
        container_program(str(tmp_path))
    (tmp_path / "podman").touch(0o755)
    assert container_program(str(tmp_path)) == str(tmp_path / "podman")
    (tmp_path / "docker").touch(0o755)
    assert container_program(str(tmp_path)) == str(tmp_path / "docker")
    assert container_name("s").startswith("toold-s-")
    assert container_name("s") != container_name("s")


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Puts the stand-in on the PATH as docker; returns the file of its records."""
    log, program = tmp_path / "docker.log", tmp_path / "bin" / "docker"
    program.parent.mkdir()
    text = f'#!/bin/sh\nSTAND_IN_LOG={log} exec {sys.executable} -S {container_stand_in.__file__} "$@"\n'
    program.write_text(text)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("GLM_API_KEY", "secret-of-the-daemon")
    monkeypatch.setattr(server_container, "PROGRAMS", ("docker",))
    return log


def records(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text().splitlines()]


async def test_a_server_in_a_container(opened: Any, configure_plain_server: Any, stand_in: Path) -> None:
    """SIMULATED docker: its standard streams are the server's, and its variables those of the settings. The container
    is removed by its name when its server ends, and another is started.
    """
    command = configure_plain_server()
    table = {"image": container_stand_in.IMAGE, "command": command, "env": {"API_KEY": "k-1234"}}
    source = await opened(**table)
    assert await source.call("echo", text="hi")
    (first,) = records(stand_in)
    assert first["arguments"][:2] == ["run", "--rm"]
    assert (first["secret"], first["other"]) == ("k-1234", None)
    name = next(each for each in first["arguments"] if each.startswith("--name=")).removeprefix("--name=")
    pid = (await source.call("pid")).data["result"]
    os.kill(pid, signal.SIGKILL)
    await source.until(lambda: len(records(stand_in)) >= 3)
    removed, again = records(stand_in)[1:3]
    assert removed["arguments"] == ["rm", "--force", name]
    assert again["arguments"][0] == "run"
    assert await source.call_until_available("echo", text="hi")


async def test_without_docker_the_source_says_so(opened: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And is tried again later."""
    monkeypatch.setenv("PATH", str(tmp_path))
    source = await opened(image="a", ready=False)
    await source.until(lambda: bool(source.problems))
    assert "its image needs docker or podman on the PATH of the daemon" in source.problems[-1]
