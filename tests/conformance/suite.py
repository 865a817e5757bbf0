"""The official conformance suite against a running daemon: how it is run, and how its checks are judged."""

import asyncio
import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[2]
INSTALLED: Final = ROOT / ".venv/conformance/node_modules/@modelcontextprotocol/conformance/dist/index.js"
"""The directory into which ``make conformance`` installs the suite, with the lock file next to this file."""
EXCEPTIONS: Final = Path(__file__).with_name("exceptions.toml")

REVISIONS: Final = ("2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26")
TASKS: Final = (
    "tasks-lifecycle",
    "tasks-capability-negotiation",
    "tasks-wire-fields",
    "tasks-request-state-removal",
    "tasks-mrtr-input",
    "tasks-request-headers",
    "tasks-dispatch-and-envelope",
    "tasks-status-notifications",
    "tasks-required-task-error",
    "tasks-mrtr-composition",
)
"""Scenarios of an extension do not belong to a revision and run one by one."""

_TIMEOUT_S: Final = 300.0
_RESULTS: Final = re.compile(r"server-(?P<scenario>.+?)-\d{4}-\d\d-\d\dT.*")


class SuiteError(Exception):
    """The suite did not run; the message has the end of its output."""


@dataclass(frozen=True)
class Check:
    """The outcome of one check of one scenario."""

    revision: str
    scenario: str
    id: str
    status: str
    """``SUCCESS``, ``FAILURE``, ``WARNING``, ``INFO`` or ``SKIPPED``."""
    message: str = ""

    @property
    def failed(self) -> bool:
        return self.status in {"FAILURE", "WARNING"}


@dataclass(frozen=True)
class Exceptions:
    """Checks that are not expected to succeed, each with its reason."""

    reasons: dict[str, str]
    """By ``scenario`` or ``scenario:check``."""

    @classmethod
    def load(cls, path: Path = EXCEPTIONS) -> "Exceptions":
        """Read the exceptions of the file.

        Raises:
            ValueError: an exception has no reason or occurs twice.
        """
        reasons: dict[str, str] = {}
        for entry in tomllib.loads(path.read_text(encoding="utf-8"))["exception"]:
            for name in entry["of"]:
                if not entry["reason"] or name in reasons:
                    raise ValueError(f"{path.name}: {name} has no reason, or stands there twice")
                reasons[name] = entry["reason"]
        return cls(reasons)

    def of(self, check: Check) -> str | None:
        """The exception that applies to a check."""
        for name in (f"{check.scenario}:{check.id}", check.scenario):
            if name in self.reasons:
                return name
        return None


@dataclass(frozen=True)
class Verdict:
    """The outcome of all checks."""

    succeeded: int
    excepted: int
    broken: tuple[Check, ...]
    """Failed checks without an exception."""
    stale: tuple[str, ...]
    """Exceptions without a failed check, which should be removed."""

    @property
    def ok(self) -> bool:
        return self.succeeded > 0 and not self.broken and not self.stale


def judge(checks: Iterable[Check], exceptions: Exceptions) -> Verdict:
    """Compare the checks with the exceptions."""
    checks = list(checks)
    failed = [check for check in checks if check.failed]
    under = [exceptions.of(check) for check in failed]
    return Verdict(
        succeeded=sum(check.status == "SUCCESS" for check in checks),
        excepted=sum(name is not None for name in under),
        broken=tuple(check for check, name in zip(failed, under, strict=True) if name is None),
        stale=tuple(sorted(exceptions.reasons.keys() - set(under))),
    )


async def run(node: Path, url: str, directory: Path) -> list[Check]:
    """Run every scenario of each revision, and those of the tasks extension, against the server at ``url``.

    Raises:
        SuiteError: the suite itself failed.
    """
    checks: list[Check] = []
    for revision in REVISIONS:
        results = directory / revision
        await _run(node, "--url", url, "--suite", "all", "--spec-version", revision, "-o", str(results))
        checks += read(results, revision)
    for scenario in TASKS:
        results = directory / scenario
        await _run(node, "--url", url, "--scenario", scenario, "-o", str(results))
        checks += read(results, REVISIONS[0])
    return checks


def read(results: Path, revision: str) -> list[Check]:
    """The checks that a run has written.

    Raises:
        SuiteError: there are no checks.
    """
    checks = []
    for path in sorted(results.glob("*/checks.json")):
        match = _RESULTS.fullmatch(path.parent.name)
        if match:
            written: Sequence[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
            checks += [
                Check(revision, match["scenario"], item["id"], item["status"], item.get("errorMessage") or "")
                for item in written
            ]
    if not checks:
        raise SuiteError(f"the suite has written no checks for {results.name}")
    return checks


async def _run(node: Path, *arguments: str) -> None:
    await run_process([str(node), str(INSTALLED), "server", *arguments], _TIMEOUT_S, " ".join(arguments))


async def run_process(
    command: Sequence[str],
    timeout_s: float,
    what: str,
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> None:
    """Run a suite's process to its end. ``what``: what it runs, for errors.

    Raises:
        SuiteError: it took too long, or ended otherwise than with 0 or 1.
    """
    process = await asyncio.create_subprocess_exec(
        *command, cwd=cwd, env=env, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    try:
        async with asyncio.timeout(timeout_s):
            output, _ = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        raise SuiteError(f"the suite took more than {timeout_s:g} s: {what}") from None
    if process.returncode not in {0, 1}:  # 1: a check failed; ``judge`` decides
        raise SuiteError(f"the suite ended with {process.returncode}: {output.decode(errors='replace')[-2000:]}")
