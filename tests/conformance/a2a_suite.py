"""``python -m tests.conformance.a2a_suite VERSION CHECKOUT`` runs the A2A TCK of a version against a separate daemon.

The exit code is 1 if a test fails that is not an exception, or if an exception excuses nothing. docs/a2a.md says how to
get the checkout.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final, NamedTuple

from .suite import Check, Exceptions, SuiteError, Verdict, judge, run_process
from .suite_command import daemon_with, verdict_of

HERE: Final = Path(__file__).parent


class TckLine(NamedTuple):
    """The suite for one version of A2A."""

    version: str
    commit: str
    """The exceptions are for this one."""
    exceptions: Path
    arguments: tuple[str, ...]
    """The arguments of pytest; ``URL`` is the daemon's."""
    settings: str
    """The settings of the daemon with its agents."""


_PUSH_HOSTS: Final = 'a2a_push_hosts = ["localhost", "127.0.0.1", "example.com"]'
LINES: Final = {
    "1.0": TckLine(
        "1.0",
        "357c4a87afa2818731590647cccbea31c31733a2",  # of the branch 1.0-dev
        HERE / "a2a_exceptions.toml",
        ("tests/compatibility", "--sut-host=URL"),
        f"""
{_PUSH_HOSTS}
a2a_agent = "tck"

[agents.tck]
description = "Answers the suite."
execution_type = "custom"
custom = "tck"
skills = [
    {{ id = "scenarios", description = "Does what a scenario says." }},
    {{ id = "more", description = "Is on the extended card.", extended = true }},
]

[agents.tck-messages]
description = "Answers the suite by messages."
execution_type = "custom"
custom = "tck"
answer_as = "message"
""",
    ),
    "0.3": TckLine(
        "0.3",
        "eb1f804c27ea25db8805264d9ed2d7ca077a7776",  # of the branch 0.3.x
        HERE / "a2a_03_exceptions.toml",
        ("tests/mandatory", "tests/optional/capabilities", "--sut-url=URL", "--test-scope=all", "--transports=jsonrpc"),
        f"""
{_PUSH_HOSTS}

[agents.tck]
description = "Answers the suite."
execution_type = "custom"
custom = "tck-asks"
""",
    ),
}
_TIMEOUT_S: Final = 900.0
_STATUSES: Final = {"passed": "SUCCESS", "failed": "FAILURE", "skipped": "SKIPPED"}
_ENTRY_POINTS: Final = "[toold.agents]\ntck = tck_agent:answer\ntck-asks = tck_agent:ask_on\n"


def main() -> int:
    """Run the suite, and print failed tests and stale exceptions."""
    line, checkout = LINES[sys.argv[1]], Path(sys.argv[2]).resolve()
    return verdict_of(
        lambda directory: _run(line, checkout, directory),
        lambda check: f"{check.scenario}:{check.id}  {check.message[-300:]}",
        "tests",
    )


def read_outcomes(results: Path, version: str) -> list[Check]:
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
        checks.append(Check(version, name, parameters.removesuffix("]"), status, outcome["message"]))
    return checks


def _check_commit(line: TckLine, checkout: Path) -> None:
    command = ["git", "-C", str(checkout), "rev-parse", "HEAD"]
    commit = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    if commit != line.commit:
        wanted = f"check out {line.commit} of a2aproject/a2a-tck there, for A2A {line.version}"
        raise SuiteError(f"{checkout} is at {commit or 'no commit'}; {wanted}")
    if not (checkout / ".venv/bin/python").exists():
        raise SuiteError(f"{checkout} has no environment .venv; docs/a2a.md says how to make it")


async def _run(line: TckLine, checkout: Path, directory: Path) -> Verdict:
    _check_commit(line, checkout)
    async with daemon_with(directory, line.settings, HERE / "tck_agent.py", _ENTRY_POINTS) as daemon:
        checks = await _tested(line, checkout, f"http://127.0.0.1:{daemon.http_port}", directory / "results")
    return judge(checks, Exceptions.load(line.exceptions))


async def _tested(line: TckLine, checkout: Path, url: str, results: Path) -> list[Check]:
    plugins = ["-p", "tck_plugin", "-p", "no:cacheprovider"]
    arguments = [argument.replace("URL", url) for argument in line.arguments]
    command = [str(checkout / ".venv/bin/python"), "-m", "pytest", *arguments, *plugins]
    told = {"TCK_RESULTS": str(results), "TCK_VERSION": line.version}
    env = {**os.environ, **told, "PYTHONPATH": str(HERE), "NO_PROXY": "*"}
    await run_process(command, _TIMEOUT_S, " ".join(arguments), cwd=checkout, env=env)
    return read_outcomes(results, line.version)


if __name__ == "__main__":
    sys.exit(main())
