"""``python -m tests.chaos``: the fault run (docs/faults.md). Exit code 1 if a promise was broken."""

import argparse
import asyncio
import logging
import random
import shutil
import signal
import sys
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path

from .daemon import DaemonError
from .project import ProjectError, project
from .run import Scale, run
from .tally import Tally


def main() -> int:
    """Run, print the figures, and name the calls that broke a promise."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.chaos", description="Inject faults while clients make calls, and check what was lost."
    )
    parser.add_argument("--calls", type=int, default=5000, help="number of sim_effect calls (%(default)s)")
    parser.add_argument("--clients", type=int, default=16, help="number of clients (%(default)s)")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6), help="random by default")
    parser.add_argument("--minutes", type=float, default=10.0, help="start no call after this (%(default)g)")
    parser.add_argument("--no-postgres", action="store_true", help="without PostgreSQL and PostgREST")
    parser.add_argument("--no-hostile", action="store_true", help="without hostile peers")
    arguments = parser.parse_args()
    if arguments.calls < 1 or arguments.clients < 1 or arguments.minutes <= 0:
        parser.error("calls, clients and minutes must be greater than 0")
    scale = Scale(
        arguments.calls, arguments.clients, arguments.seed, arguments.minutes * 60, hostile=not arguments.no_hostile
    )
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends the started processes on the way out
    logging.getLogger("toold").setLevel(logging.ERROR)  # every broken connection logs a warning
    print(f"{scale.calls} calls of {scale.clients} clients, seed {scale.seed}", flush=True)
    directory = Path(tempfile.mkdtemp(prefix="toold-chaos-"))
    try:
        outcome = asyncio.run(_run(directory, scale, with_postgres=not arguments.no_postgres))
    except (ProjectError, DaemonError) as error:
        print(f"{error}\ndata kept in {directory}", file=sys.stderr)
        return 1
    except BaseException:
        shutil.rmtree(directory)
        raise
    print(report(outcome))
    if outcome.kept:
        shutil.rmtree(directory)
        return 0
    print(f"data kept in {directory}\nrun again: make chaos ARGS='--seed {scale.seed} --calls {scale.calls}'")
    return 1


async def _run(directory: Path, scale: Scale, *, with_postgres: bool) -> Tally:
    async with AsyncExitStack() as stack:
        supabase = await stack.enter_async_context(project()) if with_postgres else None
        return await run(directory, scale, supabase, lambda line: print(line, flush=True))


def report(outcome: Tally) -> str:
    """The figures, one per line, and the verdict."""
    width = max(32, *(len(name) + 2 for name in outcome.figures))
    lines = ["", *(f"{name:<{width}}{value:>8}" for name, value in outcome.figures.items()), ""]
    for promise, ids in outcome.breaches.items():
        lines += [f"BROKEN: {promise}: {len(ids)}", *(f"  {each}" for each in ids[:20])] if ids else []
    return "\n".join([*lines, "all promises kept" if outcome.kept else "promises broken"])


if __name__ == "__main__":
    sys.exit(main())
