"""A server in a container of docker or podman, where one of them works: what the container allows.

The image is empty. Python and its libraries are those of this machine, as mounts.
"""

import shutil
import signal
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.sources.conftest import Context
from tests.sources.mcp.conftest import running_source
from toold.sources.mcp import server_container
from toold.tools import ToolOutput

# `make test-peers` runs it, since docker is not everywhere.
pytestmark = [pytest.mark.process, pytest.mark.large_peer]

PROGRAM = Path(__file__).parent / "programs" / "probing_server.py"
IMAGE = "localhost/toold-test-empty:1"
LIBRARIES = [path for path in ("/usr", "/lib", "/lib64", sys.base_prefix) if Path(path).is_dir()]


def run(*command: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def working_program() -> str | None:
    """The path of the first program whose service answers."""
    programs = filter(None, map(shutil.which, server_container.PROGRAMS))
    return next((program for program in programs if run(program, "info").returncode == 0), None)


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """docker or podman, with the empty image."""
    program = working_program()
    if program is None:
        pytest.skip("neither docker nor podman works here")
    archive = tmp_path / "empty.tar"
    with tarfile.open(archive, "w") as tar:
        for name in ("dev", "proc", "sys", "tmp"):
            directory = tarfile.TarInfo(name)
            directory.type, directory.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(directory)
    imported = run(program, "import", str(archive), IMAGE)
    if imported.returncode != 0:
        pytest.skip(f"{program} cannot import an image: {imported.stderr[-200:]}")
    monkeypatch.setattr(server_container, "PROGRAMS", (Path(program).name,))
    monkeypatch.setenv("GLM_API_KEY", "secret-of-the-daemon")
    yield program
    run(program, "rmi", "--force", IMAGE)


async def test_a_container_isolates_its_server(engine: str, tmp_path: Path) -> None:
    """No network, no capabilities, nothing to write except /tmp and what a mount allows, limited memory and processes;
    and no container is left behind.
    """
    for name in ("data", "shared"):
        (tmp_path / name).mkdir()
    mounts = [*(f"{path}:{path}" for path in LIBRARIES), f"{PROGRAM.parent}:{PROGRAM.parent}"]
    table = {
        "image": IMAGE,
        "command": [str(Path(sys.executable).resolve()), "-S", "-I", str(PROGRAM)],
        "env": {"API_KEY": "k-1234"},
        "container": {
            "memory_mib": 100,
            "processes": 20,
            "mounts": [*mounts, f"{tmp_path}/data:/data", f"{tmp_path}/shared:/shared:rw"],
        },
    }
    async with running_source(tmp_path, lambda timeout_s: Context(tmp_path, timeout_s), "real", (), table) as source:
        await source.until(lambda: source.published > 0)
        answer = await source.call("probe")
        assert isinstance(answer, ToolOutput)
        probed: Any = answer.data
        assert containers(engine) != []
    forked, filled = probed.pop("forked"), probed.pop("filled")
    assert probed == {
        "routes": 0,
        "root": "OSError",
        "tmp": "written",
        "data": "OSError",
        "shared": "written",
        "capabilities": 0,
        "no_new_privileges": "1",
        "key": "k-1234",
        "daemon": None,
    }
    assert 0 < forked < 20
    assert filled == signal.SIGKILL  # the memory was not there
    assert containers(engine) == []


def containers(engine: str) -> list[str]:
    """The names of the containers of the test's source."""
    return run(engine, "ps", "--all", "--filter", "name=toold-real-", "--format", "{{.Names}}").stdout.split()
