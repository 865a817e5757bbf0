"""``python -m tests.conformance.a2a_suite CHECKOUT`` runs the A2A TCK against a separate daemon with one agent.

The exit code is 1 if a test fails that is not an exception, or if an exception excuses nothing. docs/a2a.md says how to
get the checkout.
"""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.chaos.daemon import Daemon

from .suite import Check, Exceptions, SuiteError, Verdict, judge

COMMIT: Final = "357c4a87afa2818731590647cccbea31c31733a2"
"""Of the suite's branch 1.0-dev; the exceptions are for this one."""
HERE: Final = Path(__file__).parent
_TIMEOUT_S: Final = 900.0
_STATUSES: Final = {"passed": "SUCCESS", "failed": "FAILURE", "skipped": "SKIPPED"}
_SETTINGS: Final = """
a2a_push_hosts = ["localhost", "127.0.0.1", "example.com"]

[agents.tck]
description = "Answers the suite."
execution_type = "custom"
custom = "tck"
"""


def main() -> int:
    """Run the suite, and print failed tests and stale exceptions."""
    directory = Path(tempfile.mkdtemp(prefix="toold-tck-"))
    try:
        checkout = Path(sys.argv[1]).resolve()
        _check_commit(checkout)
        verdict = asyncio.run(_run(checkout, directory))
    except SuiteError as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    for check in verdict.broken:
        print(f"FAILED  {check.scenario}:{check.id}  {check.message[-300:]}")
    for name in verdict.stale:
        print(f"STALE   {name} is an exception, and nothing failed there")
    print(f"{verdict.succeeded} tests succeeded, {verdict.excepted} are exceptions, {len(verdict.broken)} failed")
    return 0 if verdict.ok else 1


def read_outcomes(results: Path) -> list[Check]:
    """The outcomes that the plugin has written.

    Raises:
        SuiteError: there are none.
    """
    lines = results.read_text(encoding="utf-8").splitlines() if results.exists() else []
    if not lines:
        raise SuiteError("the suite has run no tests")
    checks = []
    for line in lines:
        outcome = json.loads(line)
        name, _, parameters = outcome["test"].rpartition("::")[2].partition("[")
        status = _STATUSES[outcome["outcome"]]
        checks.append(Check("1.0", name, parameters.removesuffix("]"), status, outcome["message"]))
    return checks


def _check_commit(checkout: Path) -> None:
    command = ["git", "-C", str(checkout), "rev-parse", "HEAD"]
    commit = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    if commit != COMMIT:
        raise SuiteError(f"{checkout} is at {commit or 'no commit'}; check out {COMMIT} of a2aproject/a2a-tck there")
    if not (checkout / ".venv/bin/python").exists():
        raise SuiteError(f"{checkout} has no environment; run `uv sync` there")


async def _run(checkout: Path, directory: Path) -> Verdict:
    config = directory / "toold.toml"
    config.write_text(_SETTINGS)
    packages = _package(directory)
    daemon = Daemon(directory, {"TOOLD_AUTH": "false", "TOOLD_CONFIG": str(config), "PYTHONPATH": str(packages)})
    await daemon.start()
    try:
        return judge(
            await _tested(checkout, f"http://127.0.0.1:{daemon.http_port}", directory / "results"),
            Exceptions.load(HERE / "a2a_exceptions.toml"),
        )
    finally:
        await daemon.kill()


async def _tested(checkout: Path, url: str, results: Path) -> list[Check]:
    plugins = ["-p", "tck_plugin", "-p", "no:cacheprovider"]
    command = [str(checkout / ".venv/bin/python"), "-m", "pytest", "tests/compatibility", f"--sut-host={url}", *plugins]
    env = {**os.environ, "PYTHONPATH": str(HERE), "TCK_RESULTS": str(results), "NO_PROXY": "*"}
    process = await asyncio.create_subprocess_exec(
        *command, cwd=checkout, env=env, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            output, _ = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        raise SuiteError(f"the suite took more than {_TIMEOUT_S:g} s") from None
    if process.returncode not in {0, 1}:  # 1: a test failed; ``judge`` decides
        raise SuiteError(f"the suite ended with {process.returncode}: {output.decode(errors='replace')[-2000:]}")
    return read_outcomes(results)


def _package(directory: Path) -> Path:
    """A directory with the suite's agent as an installed package."""
    packages = directory / "packages"
    info = packages / "tck_agent-1.0.dist-info"
    info.mkdir(parents=True)
    shutil.copy(HERE / "tck_agent.py", packages)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tck-agent\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[toold.agents]\ntck = tck_agent:answer\n")
    return packages


if __name__ == "__main__":
    sys.exit(main())
