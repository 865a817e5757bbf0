"""``python -m tests.conformance.a2a_suite CHECKOUT`` runs the A2A TCK against a separate daemon with one agent.

The exit code is 1 if a test fails that is not an exception, or if an exception excuses nothing. docs/a2a.md says how to
get the checkout.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from .suite import Check, Exceptions, SuiteError, Verdict, judge, run_process
from .suite_command import daemon_with, verdict_of

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
    checkout = Path(sys.argv[1]).resolve()
    return verdict_of(
        lambda directory: _run(checkout, directory),
        lambda check: f"{check.scenario}:{check.id}  {check.message[-300:]}",
        "tests",
    )


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
    _check_commit(checkout)
    async with daemon_with(
        directory, _SETTINGS, HERE / "tck_agent.py", "[toold.agents]\ntck = tck_agent:answer\n"
    ) as daemon:
        checks = await _tested(checkout, f"http://127.0.0.1:{daemon.http_port}", directory / "results")
    return judge(checks, Exceptions.load(HERE / "a2a_exceptions.toml"))


async def _tested(checkout: Path, url: str, results: Path) -> list[Check]:
    plugins = ["-p", "tck_plugin", "-p", "no:cacheprovider"]
    command = [str(checkout / ".venv/bin/python"), "-m", "pytest", "tests/compatibility", f"--sut-host={url}", *plugins]
    env = {**os.environ, "PYTHONPATH": str(HERE), "TCK_RESULTS": str(results), "NO_PROXY": "*"}
    await run_process(command, _TIMEOUT_S, "tests/compatibility", cwd=checkout, env=env)
    return read_outcomes(results)


if __name__ == "__main__":
    sys.exit(main())
