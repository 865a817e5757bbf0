"""What the commands of the suites share: a daemon with the suite's own package, a suite's process, and the verdict."""

import asyncio
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import httpx
from tests.chaos.daemon import Daemon

from .suite import Check, SuiteError, Verdict

_CONNECT_S: Final = 60.0


def verdict_of(run: Callable[[Path], Coroutine[Any, Any, Verdict]], shown: Callable[[Check], str], unit: str) -> int:
    """Run a suite in a temporary directory, and print failed checks and stale exceptions. Returns the exit code.

    ``shown``: a failed check in one line; ``unit``: what the suite calls its checks.
    """
    directory = Path(tempfile.mkdtemp(prefix="toold-conformance-"))
    try:
        verdict = asyncio.run(run(directory))
    except SuiteError as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    for check in verdict.broken:
        print(f"FAILED  {shown(check)}")
    for name in verdict.stale:
        print(f"STALE   {name} is an exception, and nothing failed there")
    print(f"{verdict.succeeded} {unit} succeeded, {verdict.excepted} are exceptions, {len(verdict.broken)} failed")
    return 0 if verdict.ok else 1


@asynccontextmanager
async def daemon_with(
    directory: Path, settings: str, module: Path | None = None, entry_points: str = ""
) -> AsyncIterator[Daemon]:
    """A daemon without authentication, with this toold.toml, and ``module`` as an installed package with these entry
    points, if there is one.
    """
    config = directory / "toold.toml"
    config.write_text(settings)
    packages = directory / "packages"
    if module is not None:
        _install(packages, module, entry_points)
    daemon = Daemon(directory, {"TOOLD_AUTH": "false", "TOOLD_CONFIG": str(config), "PYTHONPATH": str(packages)})
    await daemon.start()
    try:
        yield daemon
    finally:
        await daemon.kill()


def _install(packages: Path, module: Path, entry_points: str) -> None:
    name = module.stem
    info = packages / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    shutil.copy(module, packages)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(entry_points)


async def source_connected(url: str, server: str) -> None:
    """Waits until the daemon lists the prompts of the reference server.

    Raises:
        SuiteError: it does not.
    """
    try:
        async with asyncio.timeout(_CONNECT_S), httpx.AsyncClient(trust_env=False) as http:
            while True:
                listed = await http.post(url, json={"jsonrpc": "2.0", "id": 1, "method": "prompts/list"})
                if "test_simple_prompt" in listed.text:
                    return
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise SuiteError(f"the daemon did not connect to {server} in {_CONNECT_S:g} s") from None
