"""What the commands of the suites share: a daemon with the suite's own package, a suite's process, and the verdict."""

import asyncio
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.chaos.daemon import Daemon

from .suite import Check, SuiteError, Verdict


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
async def daemon_with(directory: Path, settings: str, module: Path, entry_points: str) -> AsyncIterator[Daemon]:
    """A daemon without authentication, with this toold.toml, and ``module`` as an installed package with these entry
    points.
    """
    config = directory / "toold.toml"
    config.write_text(settings)
    packages = directory / "packages"
    name = module.stem
    info = packages / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    shutil.copy(module, packages)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(entry_points)
    daemon = Daemon(directory, {"TOOLD_AUTH": "false", "TOOLD_CONFIG": str(config), "PYTHONPATH": str(packages)})
    await daemon.start()
    try:
        yield daemon
    finally:
        await daemon.kill()
